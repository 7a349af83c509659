//! Takes a count of owners for a promise: the other thread may still be an owner.

use std::sync::Arc;
use std::thread;

fn main() {
    let value = Arc::new(1);
    let other = Arc::clone(&value);
    let thread = thread::spawn(move || assert_eq!(*other, 1));
    assert_eq!(Arc::strong_count(&value), 1);
    thread.join().unwrap();
}
