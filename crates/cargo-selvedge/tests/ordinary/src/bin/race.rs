//! A lock with an order that is too weak to guard anything.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Lock {
    held: AtomicBool,
    value: UnsafeCell<usize>,
}

// The lock is to make it so.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock {
    held: AtomicBool::new(false),
    value: UnsafeCell::new(0),
};

fn add() {
    while LOCK.held.swap(true, Ordering::Relaxed) {}
    unsafe { *LOCK.value.get() += 1 };
    LOCK.held.store(false, Ordering::Release);
}

fn main() {
    let thread = thread::spawn(add);
    add();
    thread.join().unwrap();
}
