//! Waits for a flag with a condition variable.

use std::sync::{Condvar, Mutex};
use std::thread;

fn main() {
    let (flag, changed) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            *flag.lock().unwrap() = true;
            changed.notify_one();
        });
        let mut set = flag.lock().unwrap();
        while !*set {
            set = changed.wait(set).unwrap();
        }
    });
}
