//! The spurious events that a builder allows.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use selvedge::model::{Builder, MemoryModel::Rc11, Verdict};
use selvedge::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Condvar, Mutex, mpsc};
use selvedge::thread;

use crate::common::{MODELS, builder};

const LONG: Duration = Duration::from_secs(1);

/// The values that `test` returns in all of its executions, and the result of the exploration.
fn outcomes<T: Ord + Send + 'static>(
    builder: &Builder,
    test: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeSet<T>, Verdict) {
    let seen = std::sync::Arc::new(StdMutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let report = builder.explore(move || {
        let outcome = test();
        all.lock().unwrap().insert(outcome);
    });
    (std::mem::take(&mut *seen.lock().unwrap()), report.verdict)
}

#[test]
fn a_weak_compare_exchange_fails_without_a_reason_only_if_asked_for() {
    let test = || {
        let x = AtomicUsize::new(1);
        let first = x.compare_exchange_weak(1, 2, Relaxed, Relaxed);
        (first, x.compare_exchange_weak(1, 2, Relaxed, Relaxed))
    };
    for model in MODELS {
        let mut builder = builder(model);
        let never = outcomes(&builder, test);
        assert_eq!(never, ([(Ok(1), Err(2))].into(), Verdict::Verified));
        builder.spurious_failures = true;
        let once = [(Ok(1), Err(2)), (Err(1), Ok(1))].into();
        assert_eq!(outcomes(&builder, test), (once, Verdict::Verified));
    }
}

#[test]
fn a_failure_without_a_reason_may_read_an_old_value() {
    let mut builder = builder(Rc11);
    builder.spurious_failures = true;
    let (seen, _) = outcomes(&builder, || {
        let x = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&x);
        let thread = thread::spawn(move || other.store(1, Relaxed));
        let read = x.compare_exchange_weak(0, 5, Relaxed, Relaxed);
        thread.join().unwrap();
        (read, x.load(Relaxed))
    });
    // Exchanged before and after the store in the order of modification, failed because of it, and
    // for no reason.
    let all = [(Ok(0), 1), (Err(1), 1), (Err(0), 1)];
    assert_eq!(seen, all.into());
}

#[test]
fn a_loop_that_tries_again_ends_although_it_may_fail_without_a_reason() {
    let mut builder = builder(Rc11);
    builder.spurious_failures = true;
    let (seen, verdict) = outcomes(&builder, || {
        let lock = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&lock);
        let locked = |lock: &AtomicUsize| {
            while lock.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {}
            lock.store(0, Release);
        };
        let thread = thread::spawn(move || locked(&other));
        locked(&lock);
        thread.join().unwrap();
        lock.load(Relaxed)
    });
    assert_eq!((seen, verdict), ([0].into(), Verdict::Verified));
}

#[test]
fn any_timed_wait_may_time_out_as_often_as_is_allowed() {
    let test = || {
        let pair = (Mutex::new(()), Condvar::new());
        let (_sender, receiver) = mpsc::channel::<()>();
        let mut timeouts = Vec::new();
        let thread = thread::current();
        thread.unpark();
        thread::park_timeout(LONG);
        let guard = pair.0.lock().unwrap();
        timeouts.push(pair.1.wait_timeout(guard, LONG).unwrap().1.timed_out());
        timeouts.push(receiver.recv_timeout(LONG).is_err());
        thread::park_timeout(LONG);
        timeouts
    };
    let mut builder = builder(Rc11);
    // All three time out, for nothing else ends them; the token of the first park was there.
    for (most, verdict) in [(2, Verdict::Stopped), (3, Verdict::Verified)] {
        builder.max_timeouts = most;
        let complete = usize::from(most == 3);
        let (seen, found) = outcomes(&builder, test);
        assert_eq!((seen.len(), found), (complete, verdict), "{most}");
    }
}

#[test]
fn the_second_timed_wait_may_be_the_one_that_times_out() {
    let (seen, verdict) = outcomes(&builder(Rc11), || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            for message in [1, 2] {
                sender.send(message).unwrap();
            }
        });
        let first = receiver.recv_timeout(LONG).ok();
        let second = receiver.recv_timeout(LONG).ok();
        thread.join().unwrap();
        (first, second)
    });
    let all = [(Some(1), Some(2)), (Some(1), None), (None, Some(1))];
    assert_eq!((seen, verdict), (all.into(), Verdict::Verified));
}

#[test]
fn a_wait_that_cannot_time_out_any_more_is_no_deadlock() {
    let test = || {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&pair);
        // Nobody is told.
        let thread = thread::spawn(move || *other.0.lock().unwrap() = true);
        let mut ready = pair.0.lock().unwrap();
        let mut timeouts = 0;
        while !*ready {
            ready = pair.1.wait_timeout(ready, LONG).unwrap().0;
            timeouts += 1;
        }
        drop(ready);
        thread.join().unwrap();
        timeouts
    };
    let mut builder = builder(Rc11);
    for most in [1, 3] {
        builder.max_timeouts = most;
        let all: BTreeSet<_> = (0..=most).collect();
        assert_eq!(outcomes(&builder, test), (all, Verdict::Stopped));
    }
}

/// A stack whose nodes are freed as soon as they are taken.
struct Stack(AtomicPtr<Node>);

struct Node {
    value: usize,
    next: *mut Node,
}

impl Stack {
    fn push(&self, value: usize) {
        let next = self.0.load(Acquire);
        let node = Box::into_raw(Box::new(Node { value, next }));
        let pushed = self.0.compare_exchange(next, node, AcqRel, Acquire);
        assert!(pushed.is_ok(), "one thread pushes, while it is alone");
    }

    /// The node on top, and the next one.
    fn top(&self) -> [*mut Node; 2] {
        let top = self.0.load(Acquire);
        // SAFETY: nobody frees it meanwhile.
        [top, unsafe { (*top).next }]
    }

    /// Takes the node on top, if it is still there.
    fn take(&self, [top, next]: [*mut Node; 2]) -> Option<Box<Node>> {
        let taken = self.0.compare_exchange(top, next, AcqRel, Acquire);
        // SAFETY: it is not on the stack any more.
        taken.ok().map(|top| unsafe { Box::from_raw(top) })
    }
}

#[test]
fn the_aba_problem_is_found_where_memory_is_used_again() {
    let test = || {
        let stack = Arc::new(Stack(AtomicPtr::default()));
        stack.push(1);
        stack.push(2);
        let seen = stack.top();
        let other = Arc::clone(&stack);
        let thread = thread::spawn(move || {
            let Some(two) = other.take(seen) else { return };
            let one = other.take(other.top()).unwrap();
            drop((one, two));
            other.push(3);
        });
        thread.join().unwrap();
        let mine = stack.take(seen).map(|node| node.value);
        assert!(mine != Some(3), "ABA");
    };
    let mut builder = builder(Rc11);
    builder.check_leaks = false;
    assert_eq!(builder.explore(test).verdict, Verdict::Verified);
    builder.reuse_memory = true;
    match builder.explore(test).verdict {
        Verdict::Failed(failure) => assert!(failure.replay.ends_with("reuse"), "{failure}"),
        other => panic!("{other:?}"),
    }
}
