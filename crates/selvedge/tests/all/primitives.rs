//! The set of outcomes that each primitive allows.

use std::collections::BTreeSet;
use std::time::Duration;

use selvedge::model::MemoryModel::{Rc11, Sc};
use selvedge::model::Verdict;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Barrier, Condvar, Mutex, Notify, RwLock};
use selvedge::thread;

use crate::common::{builder, failure, outcomes, verified};

/// The orders in which two threads append their letters, each in the scope of `lock`.
fn appended(
    twice: impl Fn(&Mutex<String>, &str) + Send + Sync + Copy + 'static,
) -> BTreeSet<String> {
    outcomes(Rc11, move || {
        let text = Arc::new(Mutex::new(String::new()));
        let other = Arc::clone(&text);
        let thread = thread::spawn(move || twice(&other, "b"));
        twice(&text, "a");
        thread.join().unwrap();
        let text = text.lock().unwrap();
        text.clone()
    })
}

#[test]
fn critical_sections_do_not_mix() {
    let seen = appended(|text, letter| {
        let mut text = text.lock().unwrap();
        text.push_str(letter);
        text.push_str(letter);
    });
    assert_eq!(seen, ["aabb", "bbaa"].map(String::from).into());
    let seen = appended(|text, letter| {
        text.lock().unwrap().push_str(letter);
        text.lock().unwrap().push_str(letter);
    });
    assert_eq!(seen.len(), 6);
}

#[test]
fn try_lock_fails_exactly_while_the_lock_is_held() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || *other.lock().unwrap() = 1);
        let read = lock.try_lock().map(|value| *value).ok();
        thread.join().unwrap();
        read
    });
    assert_eq!(seen, [None, Some(0), Some(1)].into());
}

#[test]
fn readers_share_and_writers_do_not() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new((RwLock::new(0), AtomicUsize::new(0)));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    let value = lock.0.read().unwrap();
                    let inside = lock.1.fetch_add(1, SeqCst) + 1;
                    let result = (*value, inside);
                    lock.1.fetch_sub(1, SeqCst);
                    result
                })
            })
            .collect();
        {
            let mut value = lock.0.write().unwrap();
            assert_eq!(lock.1.load(SeqCst), 0, "a reader is inside");
            *value = 1;
        }
        let readers: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        (readers[0], readers[1])
    });
    assert!(seen.contains(&((0, 1), (1, 1))) && seen.contains(&((1, 1), (0, 1))));
    assert!(seen.contains(&((0, 2), (0, 1))) && seen.contains(&((1, 1), (1, 2))));
    assert!(!seen.iter().any(|seen| seen.0.1 == 2 && seen.1.1 == 2));
}

#[test]
fn a_writer_is_kept_out_by_a_reader_and_a_reader_by_a_writer() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(RwLock::new(()));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || drop(other.write()));
        let reader = lock.try_read().ok();
        let got = (reader.is_some(), lock.try_write().is_ok());
        drop(reader);
        thread.join().unwrap();
        got
    });
    assert_eq!(seen, [(true, false), (false, true), (false, false)].into());
}

#[test]
fn a_waiter_wakes_up_after_a_notification() {
    let report = verified(Rc11, || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let mut ready = pair.0.lock().unwrap();
        while !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
        drop(ready);
        thread.join().unwrap();
    });
    assert!(report.executions >= 2);
}

#[test]
fn a_notification_before_the_wait_is_lost() {
    let failure = failure(Rc11, || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || other.1.notify_one());
        let guard = pair.0.lock().unwrap();
        drop(pair.1.wait(guard));
        thread.join().unwrap();
    });
    assert_eq!(failure.kind, "deadlock", "{failure}");
}

#[test]
fn notify_one_wakes_any_of_the_waiters_and_notify_all_wakes_both() {
    let woken = |all: bool| {
        move || {
            let pair = Arc::new((Mutex::new(0), Condvar::new()));
            let order = Arc::new(Mutex::new(Vec::new()));
            let waiters: Vec<_> = (0..2)
                .map(|n| {
                    let (pair, order) = (Arc::clone(&pair), Arc::clone(&order));
                    thread::spawn(move || {
                        let mut waiting = pair.0.lock().unwrap();
                        *waiting += 1;
                        pair.1.notify_all();
                        while *waiting < 10 {
                            waiting = pair.1.wait(waiting).unwrap();
                        }
                        order.lock().unwrap().push(n);
                    })
                })
                .collect();
            let mut waiting = pair.0.lock().unwrap();
            while *waiting < 2 {
                waiting = pair.1.wait(waiting).unwrap();
            }
            *waiting = 10;
            match all {
                true => pair.1.notify_all(),
                false => pair.1.notify_one(),
            }
            drop(waiting);
            for waiter in waiters {
                waiter.join().unwrap();
            }
            let order = order.lock().unwrap();
            order.clone()
        }
    };
    assert_eq!(outcomes(Sc, woken(true)), [vec![0, 1], vec![1, 0]].into());
    let one = woken(false);
    assert_eq!(failure(Sc, move || drop(one())).kind, "deadlock");
}

#[test]
fn a_timed_wait_ends_with_and_without_a_notification() {
    let seen = outcomes(Rc11, || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || other.1.notify_one());
        let guard = pair.0.lock().unwrap();
        let (guard, result) = pair.1.wait_timeout(guard, Duration::from_secs(1)).unwrap();
        drop(guard);
        thread.join().unwrap();
        result.timed_out()
    });
    assert_eq!(seen, [true, false].into());
}

#[test]
fn a_wait_without_a_loop_is_found_by_a_spurious_wakeup() {
    let test = || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let mut ready = pair.0.lock().unwrap();
        if !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
        assert!(*ready, "woken too early");
        drop(ready);
        thread.join().unwrap();
    };
    verified(Rc11, test);
    let mut builder = builder(Rc11);
    builder.spurious_wakeups = true;
    let Verdict::Failed(failure) = builder.explore(test).verdict else {
        panic!("it was not found");
    };
    assert!(failure.message.contains("woken too early"), "{failure}");
    let replayed = std::panic::catch_unwind(move || selvedge::replay(&failure.replay, test));
    let message = replayed.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("woken too early"), "{message}");
}

#[test]
fn parking_waits_for_one_token() {
    let seen = outcomes(Rc11, || {
        let order = Arc::new(AtomicUsize::new(0));
        let main = thread::current();
        let other = Arc::clone(&order);
        let thread = thread::spawn(move || {
            other.store(1, Relaxed);
            main.unpark();
            main.unpark();
        });
        thread::park();
        let read = order.load(Relaxed);
        thread.join().unwrap();
        read
    });
    assert_eq!(seen, [1].into());
    let failure = failure(Rc11, || {
        thread::current().unpark();
        thread::current().unpark();
        thread::park();
        thread::park();
    });
    assert_eq!(failure.kind, "deadlock");
}

#[test]
fn a_notify_synchronises_and_may_return_early_only_if_asked_for() {
    let test = || {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.notify();
        });
        shared.0.wait();
        let read = shared.1.load(Relaxed);
        thread.join().unwrap();
        read
    };
    assert_eq!(outcomes(Rc11, test), [1].into());
    let mut builder = builder(Rc11);
    builder.spurious_wakeups = true;
    let early = builder.explore(move || assert_eq!(test(), 1));
    assert!(matches!(early.verdict, Verdict::Failed(_)), "{early:?}");
}

#[test]
fn a_barrier_has_one_leader_and_holds_everybody() {
    let seen = outcomes(Rc11, || {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.fetch_add(1, Relaxed);
            let leads = other.0.wait().is_leader();
            assert_eq!(other.1.load(Relaxed), 2);
            leads
        });
        shared.1.fetch_add(1, Relaxed);
        let leads = shared.0.wait().is_leader();
        assert_eq!(shared.1.load(Relaxed), 2);
        (leads, thread.join().unwrap())
    });
    assert_eq!(seen, [(true, false), (false, true)].into());
}

#[test]
fn scoped_threads_spawn_others_that_are_waited_for() {
    let seen = outcomes(Rc11, || {
        let (first, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                if first.swap(1, Relaxed) == 0 {
                    scope.spawn(|| count.fetch_add(1, Relaxed));
                }
                count.fetch_add(1, Relaxed);
            });
            scope.spawn(|| first.swap(1, Relaxed));
        });
        count.load(Relaxed)
    });
    assert_eq!(seen, [1, 2].into());
}

#[test]
fn scoped_threads_borrow() {
    let seen = outcomes(Rc11, || {
        let count = AtomicUsize::new(0);
        let sum: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| count.fetch_add(1, Relaxed)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(count.load(Relaxed), 2);
        sum
    });
    assert_eq!(seen, [1].into());
}

#[test]
fn the_count_of_an_arc_is_seen_by_those_who_ask() {
    let seen = outcomes(Rc11, || {
        let mut value = Arc::new(0);
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || drop(other));
        let alone = Arc::get_mut(&mut value).is_some();
        thread.join().unwrap();
        assert!(Arc::get_mut(&mut value).is_some());
        alone
    });
    assert_eq!(seen, [true, false].into());
    let seen = outcomes(Rc11, || {
        let value = Arc::new(0);
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || Arc::try_unwrap(other).is_ok());
        let one = Arc::try_unwrap(value).is_ok();
        (one, thread.join().unwrap())
    });
    assert_eq!(seen, [(false, false), (false, true), (true, false)].into());
    let seen = outcomes(Rc11, || {
        let value = Arc::new(0);
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || Arc::into_inner(other).is_some());
        let one = Arc::into_inner(value).is_some();
        (one, thread.join().unwrap())
    });
    assert_eq!(seen, [(false, true), (true, false)].into());
}

#[test]
fn who_drops_a_shared_value_matters_only_if_others_can_tell() {
    struct Tells(std::sync::Arc<AtomicUsize>);
    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.store(1, Relaxed);
        }
    }
    let share = |told: bool| {
        move || {
            let log = std::sync::Arc::new(AtomicUsize::new(0));
            let value = Arc::new((told.then(|| Tells(log.clone())), vec![1]));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let value = Arc::clone(&value);
                    thread::spawn(move || drop(value))
                })
                .collect();
            drop(value);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(log.load(Relaxed), usize::from(told));
        }
    };
    assert_eq!(verified(Rc11, share(false)).executions, 1);
    // The second clone, and three times letting go.
    assert_eq!(verified(Rc11, share(true)).executions, 8);
}
