//! A counter behind a mutex.

use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let count = Arc::new(Mutex::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || *other.lock().unwrap() += 1);
    *count.lock().unwrap() += 1;
    thread.join().unwrap();
    assert_eq!(*count.lock().unwrap(), 2);
}
