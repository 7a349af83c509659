//! Parks until a flag is set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let (other, main) = (Arc::clone(&flag), thread::current());
    let thread = thread::spawn(move || {
        other.store(true, Ordering::Release);
        main.unpark();
    });
    while !flag.load(Ordering::Acquire) {
        thread::park();
    }
    thread.join().unwrap();
}
