//! Poison: who sees it, when, and that asking for it is explored.

use std::panic::{AssertUnwindSafe, catch_unwind};

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Mutex, Once, OnceState, RwLock};
use selvedge::thread;

use crate::common::{MODELS, outcomes, verified};

/// Whether `f` panics.
fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

fn poison(lock: &Mutex<usize>) {
    let panicked = panics(|| {
        let _held = lock.lock();
        panic!("on purpose");
    });
    assert!(panicked);
}

#[test]
fn whether_a_mutex_is_poisoned_already_is_explored() {
    for model in MODELS {
        let seen = outcomes(model, || {
            let lock = Arc::new(Mutex::new(0));
            let other = Arc::clone(&lock);
            let thread = thread::spawn(move || poison(&other));
            let early = lock.is_poisoned();
            thread.join().unwrap();
            (early, lock.is_poisoned(), lock.lock().is_err())
        });
        assert_eq!(seen, [(false, true, true), (true, true, true)].into());
    }
}

#[test]
fn whether_an_rwlock_is_poisoned_already_is_explored() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            // A reader poisons nothing.
            let panicked = panics(|| {
                let _held = other.read();
                panic!("on purpose");
            });
            assert!(panicked && !other.is_poisoned());
            let panicked = panics(|| {
                let _held = other.write();
                panic!("on purpose");
            });
            assert!(panicked);
        });
        let early = lock.is_poisoned();
        thread.join().unwrap();
        assert!(lock.read().is_err() && lock.try_write().is_err());
        early
    });
    assert_eq!(seen, [false, true].into());
}

#[test]
fn clearing_poison_is_explored() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(Mutex::new(0));
        poison(&lock);
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || other.clear_poison());
        let early = lock.lock().is_err();
        thread.join().unwrap();
        (early, lock.try_lock().is_err())
    });
    assert_eq!(seen, [(false, false), (true, false)].into());
    // A lock that is poisoned and cleared at the same time may end in both ways.
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || poison(&other));
        lock.clear_poison();
        thread.join().unwrap();
        let Ok(lock) = Arc::try_unwrap(lock) else {
            unreachable!("the thread has ended");
        };
        lock.into_inner().is_err()
    });
    assert_eq!(seen, [false, true].into());
}

#[test]
fn a_lock_whose_poison_nobody_asks_for_costs_no_executions() {
    let test = |asks: bool| {
        move || {
            let lock = Arc::new(Mutex::new(0));
            let other = Arc::clone(&lock);
            let thread = thread::spawn(move || poison(&other));
            let _ = lock.lock().map(|mut value| *value += 1);
            thread.join().unwrap();
            let mut lock = Arc::try_unwrap(lock).unwrap_or_else(|_| unreachable!());
            assert_eq!(asks && lock.is_poisoned(), asks);
            assert!(lock.get_mut().is_err());
        }
    };
    assert_eq!(verified(Rc11, test(false)).executions, 2);
    assert!(verified(Rc11, test(true)).executions >= 2);
}

#[test]
fn a_once_is_poisoned_by_a_panic() {
    let seen = outcomes(Rc11, || {
        let once = Arc::new(Once::new());
        let other = Arc::clone(&once);
        let thread = thread::spawn(move || panics(|| other.call_once(|| panic!("on purpose"))));
        let ran = AtomicUsize::new(0);
        let mine = panics(|| {
            once.call_once(|| {
                ran.fetch_add(1, Relaxed);
            });
        });
        let theirs = thread.join().unwrap();
        assert_eq!(once.is_completed(), !mine);
        assert_eq!(panics(|| once.wait()), mine);
        assert_eq!(panics(|| once.call_once(|| ())), mine);
        (mine, theirs, ran.load(Relaxed))
    });
    // One of them begins, and the other one sees how that ends.
    assert_eq!(seen, [(false, false, 1), (true, true, 0)].into());
}

#[test]
fn a_poisoned_once_can_be_run_by_force() {
    let seen = outcomes(Rc11, || {
        let once = Arc::new(Once::new());
        assert!(panics(|| once.call_once(|| panic!("on purpose"))));
        let run = |once: &Once| {
            let mut was_poisoned = None;
            once.call_once_force(|state: &OnceState| was_poisoned = Some(state.is_poisoned()));
            was_poisoned
        };
        let other = Arc::clone(&once);
        let thread = thread::spawn(move || run(&other));
        let mine = run(&once);
        assert!(once.is_completed());
        once.wait_force();
        once.call_once(|| unreachable!("it is done"));
        (mine, thread.join().unwrap())
    });
    assert_eq!(seen, [(None, Some(true)), (Some(true), None)].into());
    verified(Rc11, || {
        let once = Once::new();
        once.call_once_force(|state| assert!(!state.is_poisoned()));
        assert!(once.is_completed());
    });
}
