//! Scoped threads that share a counter with the function that starts them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn main() {
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| count.fetch_add(1, Ordering::Relaxed));
        scope.spawn(|| count.fetch_add(1, Ordering::Relaxed));
    });
    assert_eq!(count.into_inner(), 2);
}
