//! A bounded queue of crossbeam's: what is pushed is popped, each item once.

use crossbeam_queue::ArrayQueue;
use std::thread;

fn main() {
    let queue = ArrayQueue::new(1);
    thread::scope(|scope| {
        scope.spawn(|| queue.push(1).unwrap());
        if let Some(value) = queue.pop() {
            assert_eq!(value, 1);
            assert!(queue.pop().is_none());
        }
    });
}
