//! A spin lock, checked under each memory model: `cargo run --release -p selvedge --example spin_lock`.

use selvedge::cell::UnsafeCell;
use selvedge::model::{Builder, MemoryModel};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicBool, Ordering};
use selvedge::thread;

/// A value that one thread at a time may access.
struct SpinLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed only by the thread that holds the lock. The checker reports any other access.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    fn new(value: T) -> SpinLock<T> {
        SpinLock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // No hint is needed: a loop that only waits is recognised.
        while self.held.swap(true, Ordering::Acquire) {}
        // SAFETY: this thread holds the lock.
        let result = self.value.with_mut(|value| work(unsafe { &mut *value }));
        // With `Relaxed` here, `rc11` finds the race.
        self.held.store(false, Ordering::Release);
        result
    }
}

fn main() {
    for model in [
        MemoryModel::Sc,
        MemoryModel::Tso,
        MemoryModel::Ra,
        MemoryModel::Rc11,
    ] {
        let mut builder = Builder::new();
        builder.model = model;
        let report = builder.explore(|| {
            let lock = Arc::new(SpinLock::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || lock.with(|value| *value += 1))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(lock.with(|value| *value), 3);
        });
        println!(
            "{:5} {:?}, {} executions",
            model.name(),
            report.verdict,
            report.executions
        );
    }
}
