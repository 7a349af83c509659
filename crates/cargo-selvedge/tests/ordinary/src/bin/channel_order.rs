//! Nothing says that the thread's message is the first one.

use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    let thread = thread::spawn(move || other.send(1).unwrap());
    sender.send(2).unwrap();
    thread.join().unwrap();
    assert_eq!(receiver.recv(), Ok(1));
}
