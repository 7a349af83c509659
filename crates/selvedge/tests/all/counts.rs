//! How many executions there are.

use selvedge::model::{Equivalence, MemoryModel, Verdict};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use selvedge::thread;

use crate::common::{MODELS, builder, outcomes, verified};

#[test]
fn three_fetch_adds_by_three_threads_have_1680_executions() {
    for model in MODELS {
        let report = verified(model, || {
            let count = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let count = Arc::clone(&count);
                    thread::spawn(move || {
                        for _ in 0..3 {
                            count.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(count.load(Ordering::SeqCst), 9);
        });
        assert_eq!(report.executions, 1680, "{model:?}");
        assert_eq!(report.blocked, 0);
    }
}

#[test]
fn a_spin_loop_without_a_hint_ends() {
    let report = verified(MemoryModel::Rc11, || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Ordering::Release));
        while !flag.load(Ordering::Acquire) {}
        thread.join().unwrap();
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn a_spin_loop_that_counts_on_the_stack_is_not_cut_short() {
    let seen = outcomes(MemoryModel::Rc11, || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Ordering::Release));
        let mut tries = 0;
        while !flag.load(Ordering::Acquire) && tries < 3 {
            tries += 1;
        }
        thread.join().unwrap();
        tries
    });
    assert_eq!(seen, [0, 1, 2, 3].into());
}

#[test]
fn a_spin_loop_that_counts_on_the_heap_is_not_cut_short() {
    let seen = outcomes(MemoryModel::Rc11, || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Ordering::Release));
        let tries = std::rc::Rc::new(std::cell::Cell::new(0));
        while !flag.load(Ordering::Acquire) && tries.get() < 3 {
            tries.set(tries.get() + 1);
        }
        thread.join().unwrap();
        tries.get()
    });
    assert_eq!(seen, [0, 1, 2, 3].into());
}

#[test]
fn a_limit_that_was_asked_for_is_no_proof() {
    let mut builder = builder(MemoryModel::Rc11);
    builder.max_permutations = Some(1);
    let race = || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Ordering::Relaxed));
        flag.load(Ordering::Relaxed);
        thread.join().unwrap();
    };
    let report = builder.explore(race);
    assert_eq!((report.executions, report.verdict), (1, Verdict::Stopped));
    assert_eq!(verified(MemoryModel::Rc11, race).executions, 2);
}

#[test]
fn a_bound_on_preemptions_leaves_out_what_needs_more() {
    let test = || {
        let count = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    for _ in 0..2 {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    };
    for model in MODELS {
        let mut builder = builder(model);
        assert_eq!(builder.explore(test).executions, 6);
        builder.preemption_bound = Some(0);
        let report = builder.explore(test);
        assert_eq!((report.executions, report.bound), (2, Some(0)), "{model:?}");
    }
}

#[test]
fn reads_from_classes_are_fewer() {
    let mut builder = builder(MemoryModel::Ra);
    let test = || {
        let value = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (1..4)
            .map(|n| {
                let value = Arc::clone(&value);
                thread::spawn(move || value.store(n, Ordering::Release))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    };
    assert_eq!(builder.explore(test).executions, 6);
    builder.equivalence = Equivalence::ReadsFrom;
    assert_eq!(builder.explore(test).executions, 1);
}
