//! A flag that is published with an order that is too weak: the value behind it may not be there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

static VALUE: AtomicUsize = AtomicUsize::new(0);
static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let thread = thread::spawn(|| {
        VALUE.store(42, Ordering::Relaxed);
        READY.store(true, Ordering::Relaxed);
    });
    if READY.load(Ordering::Acquire) {
        assert_eq!(VALUE.load(Ordering::Relaxed), 42);
    }
    thread.join().unwrap();
}
