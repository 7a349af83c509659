//! The classic litmus tests in Rust, under each memory model.

use std::collections::BTreeSet;

use selvedge::model::MemoryModel::{self, Ra, Rc11, Sc, Tso};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering, Ordering::*, fence};
use selvedge::thread;

use crate::common::{MODELS, outcomes};

/// Two locations.
#[derive(Default)]
struct Memory {
    x: AtomicUsize,
    y: AtomicUsize,
}

/// The code of a thread, with its result.
type Code = fn(&Memory) -> (usize, usize);

/// The results of threads that run these on the same memory.
fn run<const N: usize>(model: MemoryModel, threads: [Code; N]) -> BTreeSet<[(usize, usize); N]> {
    outcomes(model, move || {
        let memory = Arc::new(Memory::default());
        let threads = threads.map(|thread| {
            let memory = Arc::clone(&memory);
            thread::spawn(move || thread(&memory))
        });
        threads.map(|thread| thread.join().unwrap())
    })
}

/// Under which models `outcome` is possible.
fn allowed<const N: usize>(threads: [Code; N], outcome: [(usize, usize); N]) -> Vec<MemoryModel> {
    let allows = |&model: &MemoryModel| run(model, threads).contains(&outcome);
    MODELS.into_iter().filter(allows).collect()
}

/// The models under which `test` may return `outcome`. Under each of them it may return what is in
/// `always`.
fn allowing(
    outcome: (usize, usize),
    always: &[(usize, usize)],
    test: impl Fn(Arc<Memory>) -> (usize, usize) + Copy + Send + Sync + 'static,
) -> Vec<MemoryModel> {
    let allows = |&model: &MemoryModel| {
        let seen = outcomes(model, move || test(Arc::new(Memory::default())));
        assert!(always.iter().all(|outcome| seen.contains(outcome)));
        seen.contains(&outcome)
    };
    MODELS.into_iter().filter(allows).collect()
}

#[test]
fn store_buffering() {
    let relaxed: [Code; 2] = [
        |m| {
            m.x.store(1, Relaxed);
            (m.y.load(Relaxed), 0)
        },
        |m| {
            m.y.store(1, Relaxed);
            (m.x.load(Relaxed), 0)
        },
    ];
    assert_eq!(allowed(relaxed, [(0, 0), (0, 0)]), [Tso, Ra, Rc11]);
    let sequential: [Code; 2] = [
        |m| {
            m.x.store(1, SeqCst);
            (m.y.load(SeqCst), 0)
        },
        |m| {
            m.y.store(1, SeqCst);
            (m.x.load(SeqCst), 0)
        },
    ];
    // Release-acquire knows no stronger order; under TSO a sequentially consistent store is an
    // exchange.
    assert_eq!(allowed(sequential, [(0, 0), (0, 0)]), [Ra]);
    let fenced: [Code; 2] = [
        |m| {
            m.x.store(1, Relaxed);
            fence(SeqCst);
            (m.y.load(Relaxed), 0)
        },
        |m| {
            m.y.store(1, Relaxed);
            fence(SeqCst);
            (m.x.load(Relaxed), 0)
        },
    ];
    let models = allowed(fenced, [(0, 0), (0, 0)]);
    assert!(!models.contains(&Rc11) && !models.contains(&Tso));
}

#[test]
fn message_passing() {
    let with = |store: Ordering, load: Ordering| {
        allowing((1, 0), &[(0, 0), (0, 1), (1, 1)], move |memory| {
            let writer = Arc::clone(&memory);
            let thread = thread::spawn(move || {
                writer.x.store(1, Relaxed);
                writer.y.store(1, store);
            });
            let read = (memory.y.load(load), memory.x.load(Relaxed));
            thread.join().unwrap();
            read
        })
    };
    assert_eq!(with(Relaxed, Relaxed), [Rc11]);
    assert_eq!(with(Release, Relaxed), [Rc11]);
    assert_eq!(with(Relaxed, Acquire), [Rc11]);
    assert_eq!(with(Release, Acquire), []);
}

#[test]
fn independent_reads_of_independent_writes() {
    let acquire: [Code; 4] = [
        |m| {
            m.x.store(1, Release);
            (0, 0)
        },
        |m| {
            m.y.store(1, Release);
            (0, 0)
        },
        |m| (m.x.load(Acquire), m.y.load(Acquire)),
        |m| (m.y.load(Acquire), m.x.load(Acquire)),
    ];
    let disagree = [(0, 0), (0, 0), (1, 0), (1, 0)];
    assert_eq!(allowed(acquire, disagree), [Ra, Rc11]);
    let sequential: [Code; 4] = [
        |m| {
            m.x.store(1, SeqCst);
            (0, 0)
        },
        |m| {
            m.y.store(1, SeqCst);
            (0, 0)
        },
        |m| (m.x.load(SeqCst), m.y.load(SeqCst)),
        |m| (m.y.load(SeqCst), m.x.load(SeqCst)),
    ];
    assert_eq!(allowed(sequential, disagree), [Ra]);
}

#[test]
fn load_buffering_is_forbidden_everywhere() {
    let threads: [Code; 2] = [
        |m| {
            let read = m.x.load(Relaxed);
            m.y.store(1, Relaxed);
            (read, 0)
        },
        |m| {
            let read = m.y.load(Relaxed);
            m.x.store(1, Relaxed);
            (read, 0)
        },
    ];
    assert_eq!(allowed(threads, [(1, 0), (1, 0)]), []);
    assert_eq!(run(Sc, threads).len(), 3);
}

#[test]
fn two_reads_of_one_location_do_not_go_back() {
    let threads: [Code; 2] = [
        |m| {
            m.x.store(1, Relaxed);
            (0, 0)
        },
        |m| (m.x.load(Relaxed), m.x.load(Relaxed)),
    ];
    assert_eq!(allowed(threads, [(0, 0), (1, 0)]), []);
}

#[test]
fn write_to_read_causality() {
    let with: [Code; 3] = [
        |m| {
            m.x.store(1, Relaxed);
            (0, 0)
        },
        |m| {
            let read = m.x.load(Acquire);
            m.y.store(1, Release);
            (read, 0)
        },
        |m| (m.y.load(Acquire), m.x.load(Relaxed)),
    ];
    let stale = [(0, 0), (1, 0), (1, 0)];
    assert_eq!(allowed(with, stale), []);
    let without: [Code; 3] = [
        with[0],
        |m| {
            let read = m.x.load(Relaxed);
            m.y.store(1, Relaxed);
            (read, 0)
        },
        |m| (m.y.load(Relaxed), m.x.load(Relaxed)),
    ];
    assert_eq!(allowed(without, stale), [Rc11]);
}

#[test]
fn two_threads_that_write_both_locations() {
    // The last write to each location is the first of its thread.
    let with = |order: Ordering| {
        allowing((1, 1), &[(2, 1), (1, 2), (2, 2)], move |memory| {
            let other = Arc::clone(&memory);
            let thread = thread::spawn(move || {
                other.y.store(1, order);
                other.x.store(2, order);
            });
            memory.x.store(1, order);
            memory.y.store(2, order);
            thread.join().unwrap();
            (memory.x.load(Relaxed), memory.y.load(Relaxed))
        })
    };
    assert_eq!(with(Relaxed), [Ra, Rc11]);
    assert_eq!(with(Release), [Ra, Rc11]);
    assert_eq!(with(SeqCst), [Ra]);
}

#[test]
fn fences_pass_messages() {
    let fenced: [Code; 2] = [
        |m| {
            m.x.store(1, Relaxed);
            fence(Release);
            m.y.store(1, Relaxed);
            (0, 0)
        },
        |m| {
            let read = m.y.load(Relaxed);
            fence(Acquire);
            (read, m.x.load(Relaxed))
        },
    ];
    assert_eq!(allowed(fenced, [(0, 0), (1, 0)]), []);
    let half: [Code; 2] = [fenced[0], |m| (m.y.load(Relaxed), m.x.load(Relaxed))];
    assert_eq!(allowed(half, [(0, 0), (1, 0)]), [Rc11]);
}

#[test]
fn a_release_sequence_goes_through_updates_and_not_through_stores() {
    let with = |between: fn(&AtomicUsize)| {
        allowing((2, 0), &[], move |memory| {
            let (one, two) = (Arc::clone(&memory), Arc::clone(&memory));
            let first = thread::spawn(move || {
                one.x.store(1, Relaxed);
                one.y.store(1, Release);
            });
            let second = thread::spawn(move || {
                if two.y.load(Relaxed) == 1 {
                    between(&two.y);
                }
            });
            let read = (memory.y.load(Acquire), memory.x.load(Relaxed));
            first.join().unwrap();
            second.join().unwrap();
            read
        })
    };
    let update = |y: &AtomicUsize| {
        y.fetch_add(1, Relaxed);
    };
    assert_eq!(with(update), []);
    assert_eq!(with(|y| y.store(2, Relaxed)), [Rc11]);
}

#[test]
fn a_store_after_a_read_and_a_read_after_a_store() {
    // R: the first write to y comes before the second in the order of modification, and yet x is old.
    let with = |order: Ordering| {
        allowing((2, 0), &[], move |memory| {
            let other = Arc::clone(&memory);
            let thread = thread::spawn(move || {
                other.x.store(1, order);
                other.y.store(1, order);
            });
            memory.y.store(2, order);
            let read = memory.x.load(order);
            thread.join().unwrap();
            (memory.y.load(Relaxed), read)
        })
    };
    let weak = |order| match order {
        SeqCst => vec![Ra],
        _ => vec![Tso, Ra, Rc11],
    };
    assert_eq!(with(Relaxed), weak(Relaxed));
    assert_eq!(with(SeqCst), weak(SeqCst));
}
