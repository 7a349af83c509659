//! Tests of an ordinary package, as its authors write them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

struct Message {
    ready: AtomicBool,
    text: AtomicUsize,
}

fn send(order: Ordering) -> usize {
    let message = Arc::new(Message {
        ready: AtomicBool::new(false),
        text: AtomicUsize::new(1),
    });
    let other = Arc::clone(&message);
    let sender = thread::spawn(move || {
        other.text.store(2, Ordering::Relaxed);
        other.ready.store(true, order);
    });
    let seen = match message.ready.load(Ordering::Acquire) {
        true => message.text.load(Ordering::Relaxed),
        false => 2,
    };
    sender.join().unwrap();
    seen
}

#[test]
fn release_is_enough() {
    assert_eq!(send(Ordering::Release), 2);
}

mod weak {
    #[test]
    fn relaxed_is_not() {
        assert_eq!(super::send(std::sync::atomic::Ordering::Relaxed), 2);
    }
}

#[test]
fn tests_may_return_results() -> Result<(), std::num::ParseIntError> {
    let number = thread::spawn(|| "7".parse::<u32>()).join();
    number.expect("it does not panic")?;
    Ok(())
}

#[test]
#[should_panic(expected = "not a number")]
fn panics_may_be_expected() {
    "seven".parse::<u32>().expect("not a number");
}

#[test]
#[should_panic]
fn an_expected_panic_must_come() {
    assert_eq!(send(Ordering::Release), 2);
}

#[test]
#[ignore = "takes long"]
fn ignored() {
    panic!("it is run");
}
