//! A value in a `OnceLock` is initialised once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static VALUE: OnceLock<usize> = OnceLock::new();

fn value() -> usize {
    *VALUE.get_or_init(|| CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}

fn main() {
    let thread = thread::spawn(value);
    assert_eq!(value(), 1);
    assert_eq!(thread.join().unwrap(), 1);
}
