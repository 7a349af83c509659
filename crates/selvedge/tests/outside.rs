//! Loops that wait and meanwhile change memory that is no part of the model: they must not be cut
//! short.

#[path = "all/common.rs"]
mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize as Counter, Ordering::Relaxed};

use common::{builder, verified};
use selvedge::model::{MemoryModel::Rc11, Report, Verdict};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicBool, Ordering::*};
use selvedge::thread;

/// Waits for a flag, with `begin` called before and `look` after each time that it is not set.
fn waits(
    begin: impl Fn() + Send + Sync + 'static,
    look: impl Fn() + Send + Sync + 'static,
) -> Report {
    let both = std::sync::Arc::new((begin, look));
    builder(Rc11).explore(move || {
        let flag = Arc::new(AtomicBool::new(false));
        let (other, both) = (Arc::clone(&flag), std::sync::Arc::clone(&both));
        let thread = thread::spawn(move || {
            both.0();
            while !other.load(Acquire) {
                both.1();
            }
        });
        flag.store(true, Release);
        thread.join().unwrap();
    })
}

/// Gives up after the third look, which must be found.
fn gives_up(count: impl Fn(bool) -> usize + Send + Sync + 'static) {
    let count = std::sync::Arc::new(count);
    let begin = std::sync::Arc::clone(&count);
    let report = waits(
        move || {
            begin(true);
        },
        move || assert!(count(false) < 3, "gave up"),
    );
    match report.verdict {
        Verdict::Failed(failure) => assert!(failure.to_string().contains("gave up"), "{failure}"),
        other => panic!("{other:?}"),
    }
}

/// Begins anew, or counts one more.
fn next(count: &Counter, anew: bool) -> usize {
    if anew {
        count.store(0, Relaxed);
        return 0;
    }
    count.fetch_add(1, Relaxed) + 1
}

#[test]
fn a_loop_that_counts_in_a_static_is_not_cut_short() {
    static LOOKS: Counter = Counter::new(0);
    gives_up(|anew| next(&LOOKS, anew));
}

#[test]
fn a_loop_that_counts_in_a_thread_local_of_std_is_not_cut_short() {
    std::thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }
    gives_up(|anew| {
        LOOKS.set(if anew { 0 } else { LOOKS.get() + 1 });
        LOOKS.get()
    });
}

#[test]
fn a_loop_that_counts_in_what_the_closure_captured_is_not_cut_short() {
    let looks = std::sync::Arc::new(Counter::new(0));
    gives_up(move |anew| next(&looks, anew));
}

#[test]
fn a_loop_that_counts_behind_a_pointer_into_captured_memory_is_not_cut_short() {
    let looks: &'static [Counter] = (0..9).map(|_| Counter::new(0)).collect::<Vec<_>>().leak();
    let fifth = &looks[5];
    gives_up(move |anew| next(fifth, anew));
}

#[test]
fn a_loop_that_notes_once_that_it_waited_is_not_cut_short() {
    static WAITED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let seen = common::outcomes(Rc11, || {
        WAITED.store(false, Relaxed);
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || {
            while !other.load(Acquire) {
                WAITED.store(true, Relaxed);
            }
            WAITED.load(Relaxed)
        });
        flag.store(true, Release);
        thread.join().unwrap()
    });
    assert_eq!(seen, [false, true].into());
}

#[test]
fn a_loop_that_counts_on_the_stack_of_another_thread_is_not_cut_short() {
    let report = builder(Rc11).explore(|| {
        let (flag, looks) = (AtomicBool::new(false), Counter::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !flag.load(Acquire) {
                    assert!(looks.fetch_add(1, Relaxed) < 2, "gave up");
                }
            });
            flag.store(true, Release);
        });
    });
    assert!(
        matches!(report.verdict, Verdict::Failed(_)),
        "{:?}",
        report.verdict
    );
}

#[test]
fn a_loop_that_counts_in_a_static_for_ever_is_refused() {
    static LOOKS: Counter = Counter::new(0);
    let mut builder = builder(Rc11);
    builder.max_branches = 100;
    let report = builder.explore(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        thread::spawn(move || {
            while !other.load(Acquire) {
                LOOKS.fetch_add(1, Relaxed);
            }
        });
        flag.store(true, Release);
    });
    match report.verdict {
        Verdict::Incomplete(why) => assert!(why.contains("outside.rs:"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loop_that_puts_back_what_it_changes_only_waits() {
    static LOCK: std::sync::Mutex<usize> = std::sync::Mutex::new(7);
    let captured = std::sync::Arc::new(std::sync::Mutex::new(7));
    let report = waits(
        || {},
        move || assert_eq!(*captured.lock().unwrap(), *LOCK.lock().unwrap()),
    );
    assert_eq!(report.verdict, Verdict::Verified);
}

#[test]
fn other_threads_of_the_process_do_no_harm() {
    static BUSY: Counter = Counter::new(0);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&stop);
    let noise = std::thread::spawn(move || {
        while !seen.load(Relaxed) {
            BUSY.fetch_add(1, Relaxed);
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
    });
    for _ in 0..100 {
        let report = verified(Rc11, || {
            let flag = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&flag);
            let thread = thread::spawn(move || while !other.load(Acquire) {});
            flag.store(true, Release);
            thread.join().unwrap();
        });
        assert_eq!(report.executions, 1);
    }
    stop.store(true, Relaxed);
    noise.join().unwrap();
}

#[test]
fn a_change_that_is_seen_only_when_the_first_execution_is_run_again_does_no_harm() {
    static NOISE: Counter = Counter::new(0);
    let explore = |noisy_run: usize| {
        let runs = std::sync::Arc::new(Counter::new(0));
        let run = std::sync::Arc::clone(&runs);
        verified(Rc11, move || {
            let noisy = run.fetch_add(1, Relaxed) == noisy_run;
            let flag = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&flag);
            let thread = thread::spawn(move || {
                for _ in 0..2 {
                    other.load(Acquire);
                    NOISE.fetch_add(noisy.into(), Relaxed);
                }
            });
            flag.store(true, Release);
            thread.join().unwrap();
        });
        runs.load(Relaxed)
    };
    let last = explore(usize::MAX) - 1;
    explore(last);
}
