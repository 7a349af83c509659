//! Two mutexes that are locked in two orders.

use std::sync::Mutex;
use std::thread;

static A: Mutex<()> = Mutex::new(());
static B: Mutex<()> = Mutex::new(());

fn main() {
    let thread = thread::spawn(|| {
        let _b = B.lock().unwrap();
        let _a = A.lock().unwrap();
    });
    {
        let _a = A.lock().unwrap();
        let _b = B.lock().unwrap();
    }
    thread.join().unwrap();
}
