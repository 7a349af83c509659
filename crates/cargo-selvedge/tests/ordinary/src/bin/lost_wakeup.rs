//! Looks at the flag before it locks: the notification may come in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

fn main() {
    let (flag, lock, changed) = (AtomicBool::new(false), Mutex::new(()), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            flag.store(true, Ordering::SeqCst);
            changed.notify_one();
        });
        if !flag.load(Ordering::SeqCst) {
            drop(changed.wait(lock.lock().unwrap()).unwrap());
        }
    });
}
