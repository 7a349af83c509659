//! The less common parts of the interface: what they allow, as sets of outcomes.

use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};
use std::time::Duration;

use selvedge::cell::Cell;
use selvedge::future::AtomicWaker;
use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use selvedge::{hint, thread};

use crate::common::{failure, outcomes, verified};

/// The results of two threads that share `value`: the first of all, and another.
fn both<T: Send + Sync + 'static, A, B: 'static>(
    value: T,
    one: impl FnOnce(&T) -> A,
    other: impl FnOnce(&T) -> B + 'static,
) -> (A, B) {
    let value = Arc::new(value);
    let shared = Arc::clone(&value);
    let thread = thread::spawn(move || other(&shared));
    let one = one(&value);
    (one, thread.join().unwrap())
}

#[test]
fn waiting_while_a_condition_holds_ends_when_it_does_not() {
    let seen = outcomes(Rc11, || {
        let shared = (Mutex::new(0), Condvar::new());
        let wait = |(lock, changed): &(Mutex<usize>, Condvar)| {
            *changed
                .wait_while(lock.lock().unwrap(), |n| *n < 2)
                .unwrap()
        };
        let add = |(lock, changed): &(Mutex<usize>, Condvar)| {
            for _ in 0..2 {
                *lock.lock().unwrap() += 1;
                changed.notify_one();
            }
        };
        both(shared, wait, add).0
    });
    assert_eq!(seen, [2].into());
    let seen = outcomes(Rc11, || {
        let shared = (Mutex::new(0), Condvar::new());
        let wait = |(lock, changed): &(Mutex<usize>, Condvar)| {
            let long = Duration::from_secs(1);
            let guard = lock.lock().unwrap();
            let (n, result) = changed
                .wait_timeout_while(guard, long, |n| *n == 0)
                .unwrap();
            (*n, result.timed_out())
        };
        let set = |(lock, changed): &(Mutex<usize>, Condvar)| {
            *lock.lock().unwrap() = 1;
            changed.notify_all();
        };
        both(shared, wait, set).0
    });
    assert_eq!(seen, [(0, true), (1, false)].into());
}

#[test]
fn iterating_over_what_is_there_does_not_wait() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            for n in 0..2 {
                sender.send(n).unwrap();
            }
        });
        let there: Vec<usize> = receiver.try_iter().collect();
        thread.join().unwrap();
        let rest: Vec<usize> = receiver.into_iter().collect();
        (there, rest)
    });
    let all = [
        (vec![], vec![0, 1]),
        (vec![0], vec![1]),
        (vec![0, 1], vec![]),
    ];
    assert_eq!(seen, all.into());
}

#[test]
fn a_failed_update_is_tried_again() {
    let seen = outcomes(Rc11, || {
        let double = |x: &AtomicUsize| x.fetch_update(Relaxed, Relaxed, |n| Some(2 * n)).unwrap();
        let add = |x: &AtomicUsize| x.fetch_add(1, Relaxed);
        both(AtomicUsize::new(1), double, add)
    });
    assert_eq!(seen, [(1, 2), (2, 1)].into());
    let seen = outcomes(Rc11, || {
        let not = |x: &AtomicBool| x.fetch_not(Relaxed);
        both(AtomicBool::new(false), not, not)
    });
    assert_eq!(seen, [(false, true), (true, false)].into());
    #[allow(deprecated, reason = "loom has it")]
    let swap = |x: &AtomicUsize| x.compare_and_swap(0, 1, AcqRel);
    let seen = outcomes(Rc11, move || both(AtomicUsize::new(0), swap, swap));
    assert_eq!(seen, [(0, 1), (1, 0)].into());
}

#[test]
fn counts_of_an_arc_are_what_others_left() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(0);
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || {
            let more = Arc::clone(&other);
            assert!(Arc::ptr_eq(&more, &other));
        });
        let count = Arc::strong_count(&value);
        thread.join().unwrap();
        (count, Arc::strong_count(&value))
    });
    assert_eq!(seen, [(1, 1), (2, 1), (3, 1)].into());
    verified(Rc11, || {
        let slice: Arc<[u8]> = Arc::from_std(StdArc::new([1, 2]));
        assert_eq!(&*Arc::clone(&slice), [1, 2]);
        let raw = Arc::into_raw(Arc::new(5));
        // SAFETY: of the three owners, two are taken back and one is let go of.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::increment_strong_count(raw);
            Arc::decrement_strong_count(raw);
            assert_eq!(*Arc::from_raw(raw) + *Arc::from_raw(raw), 10);
        }
    });
}

#[test]
fn a_reader_and_a_writer_that_only_try_see_each_other() {
    let seen = outcomes(Rc11, || {
        let write = |lock: &RwLock<usize>| lock.try_write().map(|mut value| *value = 1).is_ok();
        let read = |lock: &RwLock<usize>| lock.try_read().map(|value| *value).ok();
        both(RwLock::new(0), write, read)
    });
    let all = [
        (false, Some(0)),
        (true, None),
        (true, Some(0)),
        (true, Some(1)),
    ];
    assert_eq!(seen, all.into());
}

#[test]
fn a_lock_is_poisoned_by_a_panic_until_that_is_cleared() {
    verified(Rc11, || {
        let (lock, shared) = (Mutex::new(1), RwLock::new(1));
        let panics = std::panic::AssertUnwindSafe(|| {
            let _guards = (lock.lock(), shared.write());
            panic!("while it is held");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(lock.is_poisoned() && shared.is_poisoned());
        assert_eq!(**lock.lock().unwrap_err().get_ref(), 1);
        assert!(shared.read().is_err() && shared.try_write().is_err());
        lock.clear_poison();
        shared.clear_poison();
        assert!(lock.lock().is_ok() && shared.write().is_ok());
    });
}

/// Counts how often it is woken.
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_waker_is_taken_by_one_of_those_who_want_it() {
    let seen = outcomes(Rc11, || {
        let woken = StdArc::new(Woken(AtomicUsize::new(0)));
        let waker = AtomicWaker::new();
        waker.register(Waker::from(StdArc::clone(&woken)));
        let (taken, ()) = both(
            waker,
            |waker| waker.take_waker().is_some(),
            |waker| waker.wake(),
        );
        (taken, woken.0.load(Relaxed))
    });
    assert_eq!(seen, [(true, 0), (false, 1)].into());
}

#[test]
fn a_cell_may_be_used_by_one_thread_at_a_time() {
    /// A cell that threads share.
    struct Shared(Cell<usize>);
    // SAFETY: that is what the test is about.
    unsafe impl Sync for Shared {}
    verified(Rc11, || {
        let (a, b) = (Cell::new(1), Cell::new(2));
        a.swap(&b);
        assert_eq!((a.replace(3), b.take(), a.get()), (2, 1, 3));
        assert!(a.clone() > b && a.into_inner() == 3);
    });
    let found = failure(Rc11, || {
        both(Shared(Cell::new(0)), |c| c.0.set(1), |c| c.0.get());
    });
    assert_eq!(found.kind, "data-race", "{found}");
}

#[test]
fn hints_change_nothing() {
    let count = |hint: fn()| {
        let wait = move |flag: &AtomicBool| {
            while !flag.load(Acquire) {
                hint();
            }
        };
        verified(Rc11, move || {
            both(AtomicBool::new(false), wait, |flag| {
                flag.store(true, Release);
            });
        })
        .executions
    };
    assert_eq!(count(hint::spin_loop), 1);
    assert_eq!(count(thread::yield_now), 1);
}

#[test]
fn zeroed_memory_is_zero_in_every_execution() {
    use selvedge::alloc::{Layout, alloc_zeroed, dealloc};
    let seen = outcomes(Rc11, || {
        let layout = Layout::new::<[u8; 24]>();
        // SAFETY: a block of 24 bytes, all of them set, and freed once.
        let sum: usize = unsafe {
            let block = alloc_zeroed(layout);
            let sum = (0..24).map(|n| usize::from(block.add(n).read())).sum();
            block.write_bytes(1, 24);
            dealloc(block, layout);
            sum
        };
        let order = both(
            AtomicUsize::new(0),
            |x| x.fetch_add(1, Relaxed),
            |x| x.fetch_add(1, Relaxed),
        );
        (sum, order)
    });
    assert_eq!(seen, [(0, (0, 1)), (0, (1, 0))].into());
}
