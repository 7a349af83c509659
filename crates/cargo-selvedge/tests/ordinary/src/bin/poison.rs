//! A thread that panics with a mutex poisons it.

use std::sync::Mutex;
use std::thread;

fn main() {
    let value = Mutex::new(0);
    let panicked = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _guard = value.lock().unwrap();
            panic!("on purpose");
        });
        thread.join().is_err()
    });
    assert!(panicked);
    assert!(value.is_poisoned());
}
