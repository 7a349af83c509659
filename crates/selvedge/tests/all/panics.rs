//! Panics: what unwinds, what is poisoned, and that nothing ends the test process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize as Counter, Ordering::SeqCst as Now};

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Mutex, RwLock};
use selvedge::thread;

use crate::common::{failure, outcomes, verified};

/// Performs an operation when it is dropped, and notes whether its thread panics then.
struct Notes<'a>(&'a AtomicUsize);

impl Drop for Notes<'_> {
    fn drop(&mut self) {
        let panics = usize::from(thread::panicking());
        self.0.fetch_add(1 + 10 * panics, AcqRel);
    }
}

#[test]
fn only_the_thread_that_panics_is_panicking() {
    let seen = outcomes(Rc11, || {
        let notes = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = Arc::clone(&notes);
        let thread = thread::spawn(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                // Others run while this thread unwinds.
                let _notes = Notes(&other.0);
                panic!("on purpose");
            }));
            assert!(caught.is_err() && !thread::panicking());
        });
        drop(Notes(&notes.1));
        let at = notes.0.load(Acquire);
        drop(Notes(&notes.1));
        assert!(!thread::panicking());
        thread.join().unwrap();
        (at, notes.0.load(Relaxed), notes.1.load(Relaxed))
    });
    assert_eq!(seen, [(0, 11, 2), (11, 11, 2)].into());
}

#[test]
fn two_threads_may_panic_at_the_same_time() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new((Mutex::new(0), RwLock::new(0), AtomicUsize::new(0)));
        let panics = |lock: &(Mutex<usize>, RwLock<usize>, AtomicUsize)| {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _notes = Notes(&lock.2);
                panic!("on purpose");
            }));
            assert!(caught.is_err());
            // Nobody panicked with these locks.
            *lock.0.lock().unwrap() += 1;
            *lock.1.write().unwrap() += 1;
        };
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || panics(&other));
        panics(&lock);
        thread.join().unwrap();
        lock.2.load(Relaxed)
    });
    assert_eq!(seen, [22].into());
}

#[test]
fn a_lock_is_poisoned_by_the_thread_that_held_it_only() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new((Mutex::new(0), Mutex::new(0)));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _held = other.0.lock();
                panic!("on purpose");
            }));
            assert!(caught.is_err());
        });
        let poisoned = lock.0.lock().is_err();
        assert!(lock.1.lock().is_ok());
        thread.join().unwrap();
        assert!(lock.0.is_poisoned() && !lock.1.is_poisoned());
        poisoned
    });
    assert_eq!(seen, [false, true].into());
}

/// A destructor that locks, and expects no poison.
struct Locks(Arc<Mutex<usize>>);

impl Drop for Locks {
    fn drop(&mut self) {
        assert!(!thread::panicking(), "nobody panics");
        *self.0.lock().unwrap() += 1;
    }
}

#[test]
fn an_execution_that_is_given_up_runs_no_destructors() {
    static DROPS: Counter = Counter::new(0);
    static RUNS: Counter = Counter::new(0);
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Now);
        }
    }
    let report = verified(Rc11, || {
        RUNS.fetch_add(1, Now);
        let lock = Arc::new(Mutex::new(0));
        let flag = Arc::new(AtomicBool::new(false));
        let (_locks, _counts) = (Locks(Arc::clone(&lock)), Counts);
        let (other, set) = (Arc::clone(&lock), Arc::clone(&flag));
        let thread = thread::spawn(move || {
            let _locks = Locks(other);
            set.store(true, Release);
        });
        selvedge::explore::assume(flag.load(Acquire));
        thread.join().unwrap();
    });
    assert_eq!(report.executions, 1);
    assert!(report.blocked > 0);
    assert!(DROPS.load(Now) < RUNS.load(Now));
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the second panic");
    }
}

#[test]
fn a_second_panic_while_a_thread_unwinds_is_a_failure_with_its_schedule() {
    let test = || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Release));
        let bomb = Bomb;
        assert!(!flag.load(Acquire), "the first panic");
        thread.join().unwrap();
        std::mem::forget(bomb);
    };
    let found = failure(Rc11, test);
    assert_eq!(found.kind, "abort", "{found}");
    assert!(found.message.contains("the second panic"), "{found}");
    assert!(
        found.to_string().contains("tests/all/panics.rs:"),
        "{found}"
    );
    // The process goes on, and panics as before.
    assert!(!std::thread::panicking());
    verified(Rc11, || {
        assert!(catch_unwind(|| panic!("on purpose")).is_err())
    });
}

#[test]
fn a_panic_in_a_destructor_that_is_caught_there_is_no_failure() {
    struct Careful;
    impl Drop for Careful {
        fn drop(&mut self) {
            assert!(catch_unwind(|| drop(Bomb)).is_err());
        }
    }
    verified(Rc11, || {
        let caught = catch_unwind(|| {
            let _careful = Careful;
            panic!("on purpose");
        });
        assert!(caught.is_err());
    });
}

#[test]
fn an_abort_is_a_failure_with_its_schedule() {
    let found = failure(Rc11, || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Release));
        if flag.load(Acquire) {
            std::process::abort();
        }
        thread.join().unwrap();
    });
    assert_eq!(found.kind, "abort", "{found}");
}

#[test]
fn destructors_run_in_the_order_of_the_language() {
    struct Says(u32, std::sync::Arc<std::sync::Mutex<Vec<u32>>>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let seen = outcomes(Rc11, || {
        let order = std::sync::Arc::<std::sync::Mutex<Vec<u32>>>::default();
        let says = |n| Says(n, std::sync::Arc::clone(&order));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _one = says(1);
            let thread = thread::spawn({
                let two = says(2);
                move || drop(two)
            });
            let _three = (says(3), says(4));
            thread.join().unwrap();
            panic!("on purpose");
        }));
        assert!(caught.is_err());
        std::mem::take(&mut *order.lock().unwrap())
    });
    assert_eq!(seen, [vec![2, 3, 4, 1]].into());
}

#[test]
fn what_is_printed_or_collected_in_an_execution_that_is_given_up_is_kept() {
    let kept = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let all = std::sync::Arc::clone(&kept);
    let report = verified(Rc11, move || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, Release));
        let read = flag.load(Acquire);
        all.lock()
            .unwrap()
            .push(format!("it was {read}, and so on"));
        println!("{read}");
        selvedge::explore::assume(read);
        thread.join().unwrap();
    });
    assert_eq!((report.executions, report.blocked), (1, 1));
    let kept = kept.lock().unwrap();
    assert!(kept.iter().all(|text| text.ends_with("and so on")));
    assert!(kept.iter().any(|text| text.contains("false")));
}
