//! Small algorithms, right and wrong, with spin loops as people write them.

use selvedge::cell::UnsafeCell;
use selvedge::model::MemoryModel::{Rc11, Sc};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering, Ordering::*};
use selvedge::thread;

use crate::common::{failure, verified};

/// A number that only one thread at a time may touch.
struct Guarded(UnsafeCell<usize>);

// SAFETY: that is what the algorithms are for; the checker reports it if they fail.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new() -> Guarded {
        Guarded(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: as above.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|number| unsafe { *number })
    }
}

/// Threads take a ticket and wait until it is called.
fn ticket_lock(threads: usize, release: Ordering) -> impl Fn() + Send + Sync + 'static {
    move || {
        let lock = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Guarded::new()));
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    let ticket = lock.0.fetch_add(1, Relaxed);
                    while lock.1.load(Acquire) != ticket {}
                    lock.2.add();
                    lock.1.store(ticket + 1, release);
                })
            })
            .collect();
        let count = threads.len();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lock.2.get(), count);
    }
}

#[test]
fn a_ticket_lock_has_one_execution_for_each_order_of_tickets() {
    assert_eq!(verified(Rc11, ticket_lock(3, Release)).executions, 6);
    assert_eq!(verified(Sc, ticket_lock(2, Relaxed)).executions, 2);
    assert_eq!(failure(Rc11, ticket_lock(2, Relaxed)).kind, "data-race");
}

/// Peterson's algorithm for two threads, with the orders of its stores and loads.
fn peterson(store: Ordering, load: Ordering) -> impl Fn() + Send + Sync + 'static {
    struct Peterson {
        wants: [AtomicBool; 2],
        turn: AtomicUsize,
        guarded: Guarded,
    }
    fn enter(shared: &Peterson, me: usize, store: Ordering, load: Ordering) {
        let other = 1 - me;
        shared.wants[me].store(true, store);
        shared.turn.store(other, store);
        while shared.wants[other].load(load) && shared.turn.load(load) == other {}
        shared.guarded.add();
        shared.wants[me].store(false, store);
    }
    move || {
        let shared = Arc::new(Peterson {
            wants: [AtomicBool::new(false), AtomicBool::new(false)],
            turn: AtomicUsize::new(0),
            guarded: Guarded::new(),
        });
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || enter(&other, 1, store, load));
        enter(&shared, 0, store, load);
        thread.join().unwrap();
        assert_eq!(shared.guarded.get(), 2);
    }
}

#[test]
fn petersons_algorithm_needs_sequential_consistency() {
    verified(Rc11, peterson(SeqCst, SeqCst));
    verified(Sc, peterson(Release, Acquire));
    assert_eq!(failure(Rc11, peterson(Release, Acquire)).kind, "data-race");
}

#[test]
fn a_loop_that_gives_up_is_seen_to_give_up() {
    let tries = |counter: fn() -> Box<dyn FnMut() -> usize>| {
        move || {
            let flag = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&flag);
            let thread = thread::spawn(move || other.store(true, Release));
            let mut counter = counter();
            while !flag.load(Acquire) {
                assert!(counter() < 3, "gave up");
            }
            thread.join().unwrap();
        }
    };
    let on_the_heap = tries(|| {
        let mut count = 0;
        Box::new(move || {
            count += 1;
            count
        })
    });
    assert!(failure(Rc11, on_the_heap).message.contains("gave up"));
    let in_a_thread_local = tries(|| {
        selvedge::thread_local! {
            static COUNT: std::cell::Cell<usize> = std::cell::Cell::new(0);
        }
        Box::new(|| {
            COUNT.with(|count| {
                count.set(count.get() + 1);
                count.get()
            })
        })
    });
    assert!(failure(Rc11, in_a_thread_local).message.contains("gave up"));
}
