//! Two threads that read and write a counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn main() {
    let count = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || {
        let before = other.load(Ordering::SeqCst);
        other.store(before + 1, Ordering::SeqCst);
    });
    let before = count.load(Ordering::SeqCst);
    count.store(before + 1, Ordering::SeqCst);
    thread.join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
