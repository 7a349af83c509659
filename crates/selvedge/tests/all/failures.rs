//! A failing model prints a report, and fails again when it is replayed.

use std::panic::catch_unwind;

use selvedge::cell::UnsafeCell;
use selvedge::model::{MemoryModel::Rc11, Random, Strategy, Verdict};
use selvedge::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Mutex};
use selvedge::thread;

use crate::common::{builder, failure, verified};

/// A cell that threads share.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: that is what the tests are about.
unsafe impl<T: Send> Sync for Shared<T> {}

fn message_of(test: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = catch_unwind(test).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

/// A lost update.
fn lost_update() {
    let count = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || {
        let read = other.load(SeqCst);
        other.store(read + 1, SeqCst);
    });
    let read = count.load(SeqCst);
    count.store(read + 1, SeqCst);
    thread.join().unwrap();
    assert_eq!(count.load(SeqCst), 2, "an update was lost");
}

#[test]
fn a_failure_is_a_panic_that_tells_how_it_came_about() {
    let message = message_of(|| selvedge::model(lost_update));
    assert!(message.contains("an update was lost"), "{message}");
    assert!(message.contains("schedule: S0"), "{message}");
    assert!(message.contains("tests/all/failures.rs:"), "{message}");
    assert!(message.contains("selvedge::replay(\"rc11 0 "), "{message}");
}

#[test]
fn a_failure_comes_again_when_it_is_replayed() {
    let failure = failure(Rc11, lost_update);
    assert_eq!(failure.kind, "assertion");
    assert!(failure.preemptions > 0, "{failure}");
    let schedule = failure.replay.clone();
    let again = message_of(move || selvedge::replay(&schedule, lost_update));
    assert!(again.contains("an update was lost"), "{again}");
}

#[test]
fn a_schedule_that_does_not_fit_is_refused() {
    let message = message_of(|| selvedge::replay("rc11 0 0 7", lost_update));
    assert!(message.contains("does not fit"), "{message}");
    let message = message_of(|| selvedge::replay("rc11 0 0 ?", lost_update));
    assert!(message.contains("not a schedule"), "{message}");
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let deadlock = || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let thread = thread::spawn(move || {
            let _second = other.1.lock().unwrap();
            let _first = other.0.lock().unwrap();
        });
        let first = locks.0.lock().unwrap();
        let second = locks.1.lock().unwrap();
        drop((first, second));
        thread.join().unwrap();
    };
    let failure = failure(Rc11, deadlock);
    assert_eq!(failure.kind, "deadlock");
    let text = failure.to_string();
    for (waits, has) in [("T0", "T1"), ("T1", "T0")] {
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(&format!("{waits} waits to lock Mutex@")));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(&format!(", which {has} has, at ")), "{text}");
    }
    let schedule = failure.replay.clone();
    let again = message_of(move || selvedge::replay(&schedule, deadlock));
    assert!(again.contains("no thread can go on"), "{again}");
}

#[test]
fn unordered_accesses_to_a_cell_are_a_race() {
    let race = |order| {
        move || {
            let shared = Arc::new((Shared(UnsafeCell::new(0)), AtomicBool::new(false)));
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || {
                // SAFETY: only if the order says so.
                other.0.0.with_mut(|value| unsafe { *value = 1 });
                other.1.store(true, order);
            });
            if shared.1.load(Acquire) {
                // SAFETY: as above.
                assert_eq!(shared.0.0.with(|value| unsafe { *value }), 1);
            }
            thread.join().unwrap();
            // SAFETY: the other thread has ended.
            assert_eq!(shared.0.0.with(|value| unsafe { *value }), 1);
        }
    };
    let failure = failure(Rc11, race(Relaxed));
    assert_eq!(failure.kind, "data-race", "{failure}");
    assert_eq!(verified(Rc11, race(Release)).executions, 2);
}

#[test]
fn a_cell_that_is_borrowed_across_a_switch_is_a_race() {
    let failure = failure(Rc11, || {
        let shared = Arc::new((Shared(UnsafeCell::new(0)), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let pointer = other.0.0.get_mut();
            other.1.store(true, Release);
            drop(pointer);
        });
        if shared.1.load(Acquire) {
            drop(shared.0.0.get());
        }
        thread.join().unwrap();
    });
    assert_eq!(failure.kind, "data-race", "{failure}");
}

#[test]
fn an_atomic_that_is_read_without_an_order_must_not_be_written() {
    let racy = failure(Rc11, || {
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || other.store(1, Relaxed));
        // SAFETY: none, that is the point.
        unsafe { count.unsync_load() };
        thread.join().unwrap();
    });
    assert_eq!(racy.kind, "data-race", "{racy}");
    verified(Rc11, || {
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || other.store(1, Relaxed));
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(unsafe { count.unsync_load() }, 1);
    });
}

#[test]
fn an_atomic_behind_a_pointer_that_nothing_orders_is_a_race() {
    let publish = |order| {
        move || {
            let slot = Arc::new(AtomicPtr::<AtomicUsize>::default());
            let other = Arc::clone(&slot);
            let thread = thread::spawn(move || {
                let value = Box::into_raw(Box::new(AtomicUsize::new(7)));
                other.store(value, order);
            });
            let value = slot.load(Acquire);
            if !value.is_null() {
                // SAFETY: it is freed below only.
                assert_eq!(unsafe { &*value }.load(Relaxed), 7);
            }
            thread.join().unwrap();
            // SAFETY: nobody uses it any more.
            drop(unsafe { Box::from_raw(slot.load(Relaxed)) });
        }
    };
    assert_eq!(failure(Rc11, publish(Relaxed)).kind, "data-race");
    assert_eq!(verified(Rc11, publish(Release)).executions, 2);
}

#[test]
fn a_block_that_is_freed_twice_is_noticed() {
    let failure = failure(Rc11, || {
        let slot = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(5))));
        let other = Arc::clone(&slot);
        // A load and a store where a swap is needed.
        let take = |slot: &AtomicPtr<i32>| {
            let value = slot.load(Acquire);
            slot.store(std::ptr::null_mut(), Release);
            if !value.is_null() {
                // SAFETY: none, that is the point.
                drop(unsafe { Box::from_raw(value) });
            }
        };
        let thread = thread::spawn(move || take(&other));
        take(&slot);
        thread.join().unwrap();
    });
    assert_eq!(failure.kind, "double-free", "{failure}");
}

#[test]
fn an_arc_that_is_never_dropped_is_a_leak() {
    let leak = || std::mem::forget(Arc::new(1));
    let failure = failure(Rc11, leak);
    assert_eq!(failure.kind, "leak");
    let mut builder = builder(Rc11);
    builder.check_leaks = false;
    assert_eq!(builder.explore(leak).verdict, Verdict::Verified);
}

#[test]
fn a_loop_that_waits_for_what_never_comes_is_a_livelock() {
    let failure = failure(Rc11, || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || while !other.load(Acquire) {});
        thread.join().unwrap();
        flag.store(true, Release);
    });
    assert_eq!(failure.kind, "livelock", "{failure}");
}

#[test]
fn a_model_that_depends_on_something_else_is_refused() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = builder(Rc11).explore(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || other.fetch_add(1, SeqCst));
        count.fetch_add(RUNS.fetch_add(1, SeqCst), SeqCst);
        thread.join().unwrap();
    });
    let Verdict::Incomplete(why) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(why.contains("did not behave the same"), "{why}");
    assert!(why.contains("tests/all/failures.rs:"), "{why}");
}

#[test]
fn a_model_with_one_execution_that_depends_on_something_else_is_refused() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = builder(Rc11).explore(|| {
        let count = AtomicUsize::new(0);
        for _ in 0..RUNS.fetch_add(1, SeqCst) {
            count.fetch_add(1, SeqCst);
        }
    });
    let Verdict::Incomplete(why) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(why.contains("did not behave the same"), "{why}");
}

#[test]
fn an_object_of_an_earlier_execution_is_refused() {
    static KEPT: std::sync::Mutex<Option<AtomicUsize>> = std::sync::Mutex::new(None);
    let report = builder(Rc11).explore(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || other.store(true, SeqCst));
        flag.load(SeqCst);
        let count = KEPT.lock().unwrap().take();
        let count = count.unwrap_or_else(|| AtomicUsize::new(0));
        count.load(SeqCst);
        *KEPT.lock().unwrap() = Some(count);
        thread.join().unwrap();
    });
    let Verdict::Incomplete(why) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(why.contains("earlier execution"), "{why}");
}

#[test]
fn a_loop_without_an_end_is_refused_with_its_place() {
    let report = builder(Rc11).explore(|| {
        let count = AtomicUsize::new(0);
        while count.fetch_add(1, Relaxed) < usize::MAX {}
    });
    let Verdict::Incomplete(why) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(why.contains("tests/all/failures.rs"), "{why}");
}

#[test]
fn a_panic_that_is_caught_is_no_failure() {
    verified(Rc11, || {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            let caught = catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = other.lock();
                panic!("on purpose");
            }));
            assert!(caught.is_err());
        });
        drop(lock.lock());
        thread.join().unwrap();
        assert!(lock.is_poisoned());
    });
}

#[test]
fn types_outside_of_a_model_say_so() {
    let message = catch_unwind(|| AtomicUsize::new(0)).unwrap_err();
    let message = message.downcast_ref::<&str>().unwrap().to_owned();
    assert!(message.contains("inside of selvedge::model"), "{message}");
}

#[test]
fn a_model_inside_of_a_model_is_refused_and_does_no_harm() {
    let failure = failure(Rc11, || selvedge::model(|| {}));
    assert!(failure.message.contains("inside of a model"), "{failure}");
    verified(Rc11, || assert_eq!(AtomicUsize::new(0).into_inner(), 0));
}

#[test]
fn a_random_search_finds_a_lost_update_and_proves_nothing() {
    for strategy in [Strategy::Walk, Strategy::Pct { depth: 2 }, Strategy::Pos] {
        let mut builder = builder(Rc11);
        builder.random = Some(Random {
            strategy,
            seed: 1,
            runs: 200,
        });
        let report = builder.explore(lost_update);
        let Verdict::Failed(failure) = report.verdict else {
            panic!("{strategy:?}: {:?}", report.verdict);
        };
        let schedule = failure.replay.clone();
        let again = message_of(move || selvedge::replay(&schedule, lost_update));
        assert!(again.contains("an update was lost"), "{again}");
        let fine = builder.explore(|| assert_eq!(AtomicUsize::new(0).into_inner(), 0));
        assert_eq!(fine.verdict, Verdict::Stopped);
    }
}

#[test]
fn a_race_of_a_loop_that_waits_is_found() {
    type Waited = (Shared<i32>, AtomicBool);
    fn write(shared: &Waited) {
        // SAFETY: none, that is the point.
        shared.0.0.with_mut(|value| unsafe { *value = 1 });
        shared.1.store(true, Release);
    }
    fn wait(shared: &Waited) {
        while !shared.1.load(Acquire) {
            // SAFETY: as above.
            shared.0.0.with(|value| unsafe { value.read_volatile() });
        }
    }
    let both: [fn(&Waited); 2] = [write, wait];
    for (mine, theirs) in [(both[0], both[1]), (both[1], both[0])] {
        let failure = failure(Rc11, move || {
            let shared = (Shared(UnsafeCell::new(0)), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| theirs(&shared));
                mine(&shared);
            });
        });
        assert_eq!(failure.kind, "data-race", "{failure}");
    }
}

#[test]
fn a_thread_that_outgrows_its_stack_fails_with_its_schedule() {
    #[allow(unconditional_recursion, reason = "that is the fault")]
    fn deeper(depth: usize) -> usize {
        let frame = std::hint::black_box([depth; 64]);
        deeper(depth + 1) + frame[3]
    }
    let test = || {
        let ready = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&ready);
        let thread = thread::spawn(move || other.load(Relaxed).then(|| deeper(0)));
        ready.store(true, Relaxed);
        thread.join().unwrap();
    };
    let found = failure(Rc11, test);
    assert_eq!(found.kind, "stack-overflow", "{found}");
    assert!(found.to_string().contains("SELVEDGE_STACK_SIZE"), "{found}");
    assert!(found.schedule.contains("1-"), "{found}");
    let schedule = found.replay.clone();
    let again = message_of(move || selvedge::replay(&schedule, test));
    assert!(again.contains("outgrown its stack"), "{again}");
    // Nothing is left over.
    verified(Rc11, || drop(thread::spawn(|| {})));
}

#[test]
fn an_access_through_a_null_pointer_fails_with_its_schedule() {
    let found = failure(Rc11, || {
        let value = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(5_u32))));
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || {
            // SAFETY: there is none, if the other thread has taken the value away.
            unsafe { other.load(Acquire).read_volatile() }
        });
        let taken = value.swap(std::ptr::null_mut(), AcqRel);
        thread.join().unwrap();
        // SAFETY: nobody else has it any more.
        drop(unsafe { Box::from_raw(taken) });
    });
    assert_eq!(found.kind, "null-dereference", "{found}");
}
