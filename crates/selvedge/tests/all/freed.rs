//! Freed memory is gone: who uses it afterwards, or without an order, fails; correct siblings do not.

use std::panic::catch_unwind;

use selvedge::alloc::{Layout, alloc, dealloc};
use selvedge::cell::UnsafeCell;
use selvedge::model::{Failure, MemoryModel::Rc11, Verdict};
use selvedge::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*, fence};
use selvedge::sync::{Arc, Mutex};
use selvedge::thread;

use crate::common::builder;

/// Something on the heap that threads know by its address.
pub(crate) struct Shared<T>(pub(crate) *mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: that is what the tests are about.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Shared<T> {
        Shared(Box::into_raw(Box::new(value)))
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: only if it was not freed.
        unsafe { &*self.0 }
    }

    pub(crate) fn free(self) {
        // SAFETY: only if nobody uses it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

fn failure(reuse: bool, test: impl Fn() + Send + Sync + 'static) -> Failure {
    let mut builder = builder(Rc11);
    builder.reuse_memory = reuse;
    match builder.explore(test).verdict {
        Verdict::Failed(failure) => *failure,
        other => panic!("{other:?}"),
    }
}

fn verified(reuse: bool, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = builder(Rc11);
    builder.reuse_memory = reuse;
    assert_eq!(builder.explore(test).verdict, Verdict::Verified);
}

/// A use of a value that one thread frees and another uses: after the join, at the same time, and
/// the other way round. In the correct sibling it is freed when both have ended.
fn check<T: 'static>(make: fn() -> T, uses: fn(Shared<T>)) {
    for reuse in [false, true] {
        let after = failure(reuse, move || {
            let value = Shared::new(make());
            thread::spawn(move || value.free()).join().unwrap();
            uses(value);
        });
        let child_frees = failure(reuse, move || {
            let value = Shared::new(make());
            let thread = thread::spawn(move || value.free());
            uses(value);
            thread.join().unwrap();
        });
        let child_uses = failure(reuse, move || {
            let value = Shared::new(make());
            let thread = thread::spawn(move || uses(value));
            value.free();
            thread.join().unwrap();
        });
        for found in [after, child_frees, child_uses] {
            assert_eq!(found.kind, "use-after-free", "{found}");
            let places = found.to_string().matches("tests/all/freed.rs:").count();
            assert!(places >= 2, "{found}");
        }
        verified(reuse, move || {
            let value = Shared::new(make());
            let thread = thread::spawn(move || uses(value));
            uses(value);
            thread.join().unwrap();
            value.free();
        });
    }
}

#[test]
fn an_atomic_load_of_freed_memory_is_found() {
    check(
        || AtomicUsize::new(0),
        |value| assert!(value.get().load(Relaxed) < 9),
    );
}

#[test]
fn an_atomic_update_of_freed_memory_is_found() {
    check(
        || AtomicUsize::new(0),
        |value| assert!(value.get().fetch_add(1, SeqCst) < 9),
    );
}

#[test]
fn a_cell_in_freed_memory_is_found() {
    check(
        || UnsafeCell::new(0),
        |value| value.get().with(|value| assert!(!value.is_null())),
    );
}

#[test]
fn locking_a_freed_mutex_is_found() {
    check(|| Mutex::new(0), |value| drop(value.get().lock()));
}

#[test]
fn a_write_through_a_pointer_to_freed_memory_is_found() {
    // SAFETY: none, if it was freed.
    let write = |value: Shared<u64>| unsafe { value.0.write_volatile(7) };
    for reuse in [false, true] {
        let after = failure(reuse, move || {
            let value = Shared::new(1_u64);
            thread::spawn(move || value.free()).join().unwrap();
            write(value);
        });
        let child_writes = failure(reuse, move || {
            let value = Shared::new(1_u64);
            let thread = thread::spawn(move || write(value));
            value.free();
            thread.join().unwrap();
        });
        let child_frees = failure(reuse, move || {
            let value = Shared::new(1_u64);
            let thread = thread::spawn(move || value.free());
            write(value);
            thread.join().unwrap();
        });
        for found in [after, child_writes, child_frees] {
            assert_eq!(found.kind, "use-after-free", "{found}");
            let places = found.to_string().matches("tests/all/freed.rs:").count();
            assert!(places >= 2, "{found}");
        }
        verified(reuse, move || {
            let value = Shared::new(1_u64);
            thread::spawn(move || write(value)).join().unwrap();
            value.free();
        });
    }
}

#[test]
fn a_raw_access_and_a_free_that_only_run_after_events_are_found_in_both_orders() {
    let programs: [fn(Shared<u64>, &AtomicUsize, bool); 2] = [
        // SAFETY: none, if it was freed.
        |value, _, _| unsafe { assert!(value.0.read_volatile() < 9) },
        |value, count, frees| {
            count.fetch_add(1, Relaxed);
            match frees {
                true => value.free(),
                // SAFETY: as above.
                false => unsafe { value.0.write_volatile(7) },
            }
        },
    ];
    for main_frees in [false, true] {
        let found = failure(false, move || {
            let value = Shared::new(1_u64);
            let count = Arc::new(AtomicUsize::new(0));
            let other = Arc::clone(&count);
            programs[0](value, &count, false);
            let thread = thread::spawn(move || programs[1](value, &other, !main_frees));
            programs[1](value, &count, main_frees);
            thread.join().unwrap();
        });
        assert_eq!(found.kind, "use-after-free", "{found}");
    }
}

#[test]
fn a_write_to_freed_memory_is_found_beyond_the_executions_that_protect_it() {
    let test = |rounds: usize| {
        move || {
            let value = Shared::new([0_u64; 4]);
            let count = Arc::new(AtomicUsize::new(0));
            let other = Arc::clone(&count);
            let thread = thread::spawn(move || {
                for _ in 0..rounds {
                    other.fetch_add(1, Relaxed);
                }
                value.free();
            });
            let mine: Vec<usize> = (0..rounds).map(|_| count.fetch_add(1, Relaxed)).collect();
            thread.join().unwrap();
            // The other thread ran first: that comes last.
            if mine[0] == rounds {
                // SAFETY: none, it was freed.
                unsafe { (*value.0)[2] = 7 };
            }
        }
    };
    let found = failure(false, test(5));
    assert_eq!(found.kind, "use-after-free", "{found}");
    let schedule = found.replay.clone();
    let again = catch_unwind(move || selvedge::replay(&schedule, test(5))).unwrap_err();
    let again = again.downcast_ref::<String>().unwrap();
    assert!(again.contains("that was freed"), "{again}");
}

/// A thread frees what another one reads afterwards, in one of 924 executions.
fn read_late() {
    let value = Shared::new(0_u64);
    let count = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || {
        for _ in 0..6 {
            other.fetch_add(1, Relaxed);
        }
        value.free();
    });
    let mine: Vec<usize> = (0..6).map(|_| count.fetch_add(1, Relaxed)).collect();
    thread.join().unwrap();
    if mine == [1, 3, 5, 7, 9, 11] {
        // SAFETY: none, it was freed.
        assert!(unsafe { value.0.read_volatile() } < u64::MAX);
    }
}

#[test]
fn a_read_of_freed_memory_is_found_in_all_executions_if_that_is_asked_for() {
    let mut builder = builder(Rc11);
    let report = builder.explore(read_late);
    // The report says that reads were not looked for.
    let seen = (report.verdict, report.executions, report.unprotected);
    assert_eq!(seen, (Verdict::Verified, 924, true));
    builder.protect_memory = true;
    let report = builder.explore(read_late);
    let Verdict::Failed(found) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(found.kind == "use-after-free" && report.executions > 256 && !report.unprotected);
}

#[test]
fn a_read_of_a_large_freed_block_is_found() {
    let test = |frees_first: bool| {
        move || {
            let value = Shared::new([0_u64; 20_000]);
            let thread = thread::spawn(move || frees_first.then(|| value.free()));
            thread.join().unwrap();
            // SAFETY: only if it was not freed.
            assert!(unsafe { (&raw const (*value.0)[9_999]).read_volatile() } < u64::MAX);
            if !frees_first {
                value.free();
            }
        }
    };
    for reuse in [false, true] {
        let found = failure(reuse, test(true));
        assert_eq!(found.kind, "use-after-free", "{found}");
        verified(reuse, test(false));
    }
    let report = builder(Rc11).explore(test(false));
    assert!(report.executions == 1 && !report.unprotected);
}

#[test]
fn memory_from_alloc_is_gone_when_it_is_freed() {
    let layout = Layout::new::<u64>();
    // SAFETY: only if it is not freed before.
    let read = |block: Shared<u8>| unsafe { block.0.read_volatile() };
    // SAFETY: only if nobody uses it any more.
    let free = move |block: Shared<u8>| unsafe { dealloc(block.0, layout) };
    // SAFETY: the layout is not empty.
    let make = move || Shared(unsafe { alloc(layout) });
    for reuse in [false, true] {
        let after = failure(reuse, move || {
            let block = make();
            thread::spawn(move || free(block)).join().unwrap();
            read(block);
        });
        assert_eq!(after.kind, "use-after-free", "{after}");
        let concurrent = failure(reuse, move || {
            let block = make();
            let thread = thread::spawn(move || read(block));
            free(block);
            thread.join().unwrap();
        });
        assert_eq!(concurrent.kind, "use-after-free", "{concurrent}");
        verified(reuse, move || {
            let block = make();
            thread::spawn(move || read(block)).join().unwrap();
            free(block);
        });
    }
}

/// A stack whose nodes are freed as soon as they are taken, or kept until the end.
struct Stack {
    top: AtomicPtr<Node>,
    taken: AtomicPtr<Node>,
    frees: bool,
}

struct Node {
    next: *mut Node,
    next_taken: *mut Node,
}

impl Stack {
    fn push(list: &AtomicPtr<Node>, node: *mut Node, next: impl Fn(&mut Node) -> &mut *mut Node) {
        let mut top = list.load(Acquire);
        loop {
            // SAFETY: nobody else writes it.
            unsafe { *next(&mut *node) = top };
            match list.compare_exchange(top, node, AcqRel, Acquire) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn pop(&self) {
        loop {
            let top = self.top.load(Acquire);
            if top.is_null() {
                return;
            }
            // SAFETY: only if it was not freed.
            let next = unsafe { (*top).next };
            if self
                .top
                .compare_exchange(top, next, AcqRel, Acquire)
                .is_ok()
            {
                match self.frees {
                    // SAFETY: none: another thread may be about to read it.
                    true => drop(unsafe { Box::from_raw(top) }),
                    false => Stack::push(&self.taken, top, |node| &mut node.next_taken),
                }
                return;
            }
        }
    }
}

#[test]
fn a_stack_that_frees_what_it_pops_is_found() {
    let test = |frees| {
        move || {
            let stack = Arc::new(Stack {
                top: AtomicPtr::default(),
                taken: AtomicPtr::default(),
                frees,
            });
            for _ in 0..2 {
                let next = std::ptr::null_mut();
                let node = Box::new(Node {
                    next,
                    next_taken: next,
                });
                Stack::push(&stack.top, Box::into_raw(node), |node| &mut node.next);
            }
            let other = Arc::clone(&stack);
            let thread = thread::spawn(move || other.pop());
            stack.pop();
            thread.join().unwrap();
            let mut node = stack.taken.load(Acquire);
            while !node.is_null() {
                // SAFETY: both threads are done.
                node = unsafe { Box::from_raw(node) }.next_taken;
            }
        }
    };
    for reuse in [false, true] {
        let found = failure(reuse, test(true));
        assert_eq!(found.kind, "use-after-free", "{found}");
        verified(reuse, test(false));
    }
}

/// Two owners of a value with a count, one of which frees it.
fn counted(decrement: selvedge::sync::atomic::Ordering, fences: bool) -> impl Fn() + Send + Sync {
    move || {
        let value = Shared::new((AtomicUsize::new(2), AtomicUsize::new(0)));
        let release = move || {
            value.get().1.fetch_add(1, Relaxed);
            if value.get().0.fetch_sub(1, decrement) == 1 {
                fences.then(|| fence(Acquire));
                value.free();
            }
        };
        let thread = thread::spawn(release);
        release();
        thread.join().unwrap();
    }
}

#[test]
fn a_free_that_nothing_orders_after_the_other_owner_is_found() {
    for (order, fences) in [(Relaxed, false), (Relaxed, true), (Release, false)] {
        let found = failure(false, counted(order, fences));
        assert_eq!(found.kind, "use-after-free", "{found}");
        assert!(found.message.contains("not ordered"), "{found}");
    }
    for (order, fences) in [(Release, true), (AcqRel, false), (SeqCst, false)] {
        verified(false, counted(order, fences));
    }
}

#[test]
fn what_is_moved_out_of_freed_memory_lives_on() {
    verified(false, || {
        let boxed = Box::new((AtomicUsize::new(1), UnsafeCell::new(2), Mutex::new(3)));
        assert_eq!(boxed.0.load(Relaxed), 1);
        let (atomic, cell, mutex) = *boxed;
        let value = Arc::new((atomic, mutex));
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || other.0.fetch_add(1, Relaxed));
        drop(value.1.lock());
        thread.join().unwrap();
        assert_eq!(value.0.load(Relaxed), 2);
        cell.with(|cell| assert!(!cell.is_null()));
    });
}

#[test]
fn memory_that_is_freed_without_dropping_what_it_holds_is_gone() {
    let found = failure(false, || {
        let value = Shared::new(AtomicUsize::new(0));
        let thread = thread::spawn(move || value.get().store(1, Relaxed));
        value.get().load(Relaxed);
        Shared(value.0.cast::<std::mem::ManuallyDrop<AtomicUsize>>()).free();
        thread.join().unwrap();
    });
    assert_eq!(found.kind, "use-after-free", "{found}");
}
