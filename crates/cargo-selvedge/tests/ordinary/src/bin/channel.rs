//! Two producers and a channel: every message arrives once.

use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    let thread = thread::spawn(move || other.send(1).unwrap());
    sender.send(2).unwrap();
    drop(sender);
    let sum: i32 = receiver.iter().sum();
    thread.join().unwrap();
    assert_eq!(sum, 3);
}
