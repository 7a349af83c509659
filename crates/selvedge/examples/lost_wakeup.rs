//! A future that looks before it registers: `cargo run --release -p selvedge --example lost_wakeup`
//! finds the schedule in which nobody wakes it.

use std::future::poll_fn;
use std::task::Poll;

use selvedge::future::{AtomicWaker, block_on};
use selvedge::model::{Builder, Verdict};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicBool, Ordering};
use selvedge::thread;

fn main() {
    let report = Builder::new().explore(|| {
        let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(true, Ordering::Release);
            other.0.wake();
        });
        block_on(poll_fn(|context| {
            if shared.1.load(Ordering::Acquire) {
                return Poll::Ready(());
            }
            // Too late: the flag may be set, and the task woken, before this.
            shared.0.register_by_ref(context.waker());
            Poll::Pending
        }));
        thread.join().unwrap();
    });
    match report.verdict {
        Verdict::Failed(failure) => println!("{failure}"),
        other => println!("{other:?}"),
    }
}
