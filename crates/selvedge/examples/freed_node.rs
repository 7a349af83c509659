//! A stack that frees its nodes at once, although another thread may be about to read one:
//! `cargo run --release -p selvedge --example freed_node`.

use std::ptr;

use selvedge::model::{Builder, Verdict};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicPtr, Ordering};
use selvedge::thread;

struct Node {
    value: u32,
    next: *mut Node,
}

/// A stack. Popping reads `next` of a node that another thread may have freed.
struct Stack {
    top: AtomicPtr<Node>,
}

impl Stack {
    fn push(&self, value: u32) {
        let node = Box::into_raw(Box::new(Node {
            value,
            next: ptr::null_mut(),
        }));
        loop {
            let top = self.top.load(Ordering::Acquire);
            // SAFETY: nobody else knows the node yet.
            unsafe { (*node).next = top };
            let pushed = self
                .top
                .compare_exchange(top, node, Ordering::AcqRel, Ordering::Relaxed);
            if pushed.is_ok() {
                return;
            }
        }
    }

    fn pop(&self) -> Option<Box<Node>> {
        loop {
            let top = self.top.load(Ordering::Acquire);
            if top.is_null() {
                return None;
            }
            // SAFETY: there is none: that is the fault.
            let next = unsafe { (*top).next };
            let popped = self
                .top
                .compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed);
            if popped.is_ok() {
                // SAFETY: no longer on the stack.
                return Some(unsafe { Box::from_raw(top) });
            }
        }
    }
}

fn value(node: &Option<Box<Node>>) -> Option<u32> {
    node.as_ref().map(|node| node.value)
}

/// One thread pops while the other pops twice and pushes. No value may be popped twice.
fn check() {
    let stack = Arc::new(Stack {
        top: AtomicPtr::new(ptr::null_mut()),
    });
    stack.push(1);
    stack.push(2);
    let other = Arc::clone(&stack);
    let thread = thread::spawn(move || {
        let (first, second) = (other.pop(), other.pop());
        let values = [value(&first), value(&second)];
        drop(second);
        drop(first);
        other.push(3);
        values
    });
    let mut popped = vec![value(&stack.pop())];
    popped.extend(thread.join().unwrap());
    popped.push(value(&stack.pop()));
    popped.sort_unstable();
    popped.dedup();
    assert!(popped.len() > 3, "a value was popped twice: {popped:?}");
}

fn main() {
    let mut builder = Builder::new();
    builder.check_leaks = false;
    match builder.explore(check).verdict {
        Verdict::Failed(failure) => println!("{failure}"),
        verdict => println!("{verdict:?}"),
    }
}
