//! Statics, thread-locals, values that are made once, futures, and memory.

use std::future::poll_fn;
use std::task::Poll;

use selvedge::alloc::{Layout, Track, alloc, dealloc};
use selvedge::cell::{Cell, UnsafeCell};
use selvedge::future::{AtomicWaker, block_on};
use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicBool, AtomicI8, AtomicPtr, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, LazyLock, OnceLock};
use selvedge::thread;

use crate::common::{failure, outcomes, verified};

selvedge::lazy_static! {
    static ref COUNT: AtomicUsize = AtomicUsize::new(0);
    /// With a comment.
    pub(crate) static ref TEXT: Arc<String> = Arc::new("text".to_owned());
}

selvedge::thread_local! {
    static OWN: Cell<usize> = Cell::new(0);
    static OTHER: Drops = const { Drops };
}

struct Drops;

impl Drop for Drops {
    fn drop(&mut self) {
        COUNT.fetch_add(10, SeqCst);
    }
}

#[test]
fn a_lazy_static_is_made_once_in_each_execution() {
    let seen = outcomes(Rc11, || {
        let thread = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
        let before = COUNT.fetch_add(1, SeqCst);
        assert_eq!(TEXT.len(), 4);
        thread.join().unwrap();
        assert_eq!(COUNT.load(SeqCst), 2);
        before
    });
    assert_eq!(seen, [0, 1].into());
}

#[test]
fn thread_locals_are_per_thread_and_end_with_it() {
    verified(Rc11, || {
        let add = || {
            OWN.with(|own| {
                own.set(own.get() + 1);
                own.get()
            })
        };
        assert_eq!(add(), 1);
        let thread = thread::spawn(move || {
            OTHER.with(|_| ());
            (add(), add())
        });
        assert_eq!(thread.join().unwrap(), (1, 2));
        assert_eq!(add(), 2);
        assert_eq!(COUNT.load(SeqCst), 10);
    });
}

#[test]
fn a_once_lock_is_set_once() {
    let seen = outcomes(Rc11, || {
        let once = Arc::new(OnceLock::new());
        let other = Arc::clone(&once);
        let thread = thread::spawn(move || other.set(1).is_ok());
        let early = once.get().copied();
        let value = *once.get_or_init(|| 2);
        (early, value, thread.join().unwrap())
    });
    assert_eq!(
        seen,
        [(None, 1, true), (None, 2, false), (Some(1), 1, true)].into()
    );
}

#[test]
fn a_lazy_lock_is_made_by_one_of_two() {
    let report = verified(Rc11, || {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let lazy = Arc::new(LazyLock::new(move || count.fetch_add(1, Relaxed)));
        let other = Arc::clone(&lazy);
        let thread = thread::spawn(move || assert_eq!(**other, 0));
        assert_eq!(**lazy, 0);
        thread.join().unwrap();
        assert_eq!(made.load(Relaxed), 1);
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn a_future_is_woken_in_every_order() {
    verified(Rc11, || {
        let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(true, Release);
            other.0.wake();
        });
        block_on(poll_fn(|context| {
            shared.0.register_by_ref(context.waker());
            match shared.1.load(Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
        thread.join().unwrap();
    });
}

#[test]
fn a_future_that_registers_too_late_is_found() {
    let failure = failure(Rc11, || {
        let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(true, Release);
            other.0.wake();
        });
        block_on(poll_fn(|context| {
            if shared.1.load(Acquire) {
                return Poll::Ready(());
            }
            shared.0.register_by_ref(context.waker());
            Poll::Pending
        }));
        thread.join().unwrap();
    });
    assert_eq!(failure.kind, "deadlock", "{failure}");
}

#[test]
fn memory_that_is_not_freed_is_a_leak() {
    let forget = failure(Rc11, || std::mem::forget(Track::new(1)));
    assert_eq!(forget.kind, "leak");
    let layout = Layout::new::<u64>();
    // SAFETY: the block is not used.
    let block = failure(Rc11, move || assert!(!unsafe { alloc(layout) }.is_null()));
    assert_eq!(block.kind, "leak");
    verified(Rc11, move || {
        assert_eq!(Track::new(1).into_inner(), 1);
        // SAFETY: the block is not used.
        unsafe { dealloc(alloc(layout), layout) };
    });
}

#[test]
fn atomics_compute_as_their_types_do() {
    verified(Rc11, || {
        let signed = AtomicI8::new(-3);
        assert_eq!(signed.fetch_max(2, SeqCst), -3);
        assert_eq!(signed.fetch_min(-5, SeqCst), 2);
        assert_eq!(signed.fetch_sub(125, SeqCst), -5);
        assert_eq!(signed.fetch_add(-1, SeqCst), 126);
        assert_eq!(
            signed.fetch_update(SeqCst, SeqCst, |v| v.checked_mul(2)),
            Err(125)
        );
        assert_eq!(signed.into_inner(), 125);
        let flag = AtomicBool::new(true);
        assert!(flag.fetch_nand(true, SeqCst));
        assert!(!flag.fetch_nand(false, SeqCst));
        assert!(flag.fetch_xor(true, SeqCst));
        assert_eq!(
            flag.compare_exchange(true, false, SeqCst, SeqCst),
            Err(false)
        );
        let mut count = AtomicUsize::new(1);
        count.with_mut(|count| *count += 1);
        assert_eq!(count.swap(7, SeqCst), 2);
        assert_eq!(count.compare_exchange(7, 8, AcqRel, Relaxed), Ok(7));
        let mut text = [1_u8, 2];
        let pointer = AtomicPtr::new(&raw mut text[1]);
        // SAFETY: it points into `text`.
        assert_eq!(unsafe { *pointer.swap(std::ptr::null_mut(), SeqCst) }, 2);
        assert!(pointer.load(SeqCst).is_null());
    });
}

/// A stack of boxes, popped and pushed by two threads: pointers have the same names in every
/// execution, and a block that is freed is not used again in the same one.
#[test]
fn pointers_to_the_heap_are_values_that_stay_the_same() {
    struct Node {
        value: usize,
        next: UnsafeCell<*mut Node>,
    }
    #[derive(Default)]
    struct Stack(AtomicPtr<Node>);
    impl Stack {
        fn push(&self, value: usize) {
            let node = Box::into_raw(Box::new(Node {
                value,
                next: UnsafeCell::new(std::ptr::null_mut()),
            }));
            loop {
                let head = self.0.load(Relaxed);
                // SAFETY: nobody else has seen the node.
                unsafe { (*node).next.with_mut(|next| *next = head) };
                if self
                    .0
                    .compare_exchange(head, node, Release, Relaxed)
                    .is_ok()
                {
                    return;
                }
            }
        }

        fn take_all(&self) -> Vec<usize> {
            let mut node = self.0.swap(std::ptr::null_mut(), Acquire);
            let mut values = Vec::new();
            while !node.is_null() {
                // SAFETY: taken off as a whole.
                let boxed = unsafe { Box::from_raw(node) };
                values.push(boxed.value);
                // SAFETY: as above.
                node = boxed.next.with(|next| unsafe { *next });
            }
            values
        }
    }
    let seen = outcomes(Rc11, || {
        let stack = Arc::new(Stack::default());
        let other = Arc::clone(&stack);
        let thread = thread::spawn(move || {
            other.push(1);
            other.push(2);
        });
        let mut taken = stack.take_all();
        stack.push(3);
        thread.join().unwrap();
        taken.push(0);
        taken.extend(stack.take_all());
        taken
    });
    let expected = [
        vec![0, 3, 2, 1],
        vec![0, 2, 3, 1],
        vec![0, 2, 1, 3],
        vec![1, 0, 3, 2],
        vec![1, 0, 2, 3],
        vec![2, 1, 0, 3],
    ];
    assert_eq!(seen, expected.into());
}

#[test]
fn addresses_in_integers_are_the_same_in_every_execution() {
    const TAG: usize = 1;
    let report = verified(Rc11, || {
        let slot = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (1..=2_u64)
            .map(|number| {
                let slot = Arc::clone(&slot);
                thread::spawn(move || {
                    let block = Box::into_raw(Box::new(number)).expose_provenance();
                    slot.swap(block | TAG, AcqRel)
                })
            })
            .collect();
        let mut left: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        left.push(slot.load(Acquire));
        let mut numbers = Vec::new();
        for block in left.into_iter().filter(|&block| block != 0) {
            assert_eq!(block & TAG, TAG);
            let block = std::ptr::with_exposed_provenance_mut::<u64>(block & !TAG);
            // SAFETY: each block was swapped out once, or is the one left.
            numbers.push(*unsafe { Box::from_raw(block) });
        }
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn what_earlier_executions_left_on_the_heap_is_gone() {
    let report = verified(Rc11, || {
        let layout = Layout::new::<u64>();
        // SAFETY: a block of this layout, which is never freed, so that nothing overwrites it.
        let block = unsafe { std::alloc::alloc(layout) }.cast::<u64>();
        // SAFETY: all bits are valid, and the checker has initialised them.
        assert_eq!(unsafe { block.read_volatile() }, 0);
        let choice = selvedge::explore::choose(3);
        // SAFETY: as above.
        unsafe { block.write_volatile(u64::from(choice) + 1) };
    });
    assert_eq!(report.executions, 3);
}
