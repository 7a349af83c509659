//! Channels: the set of outcomes.

use std::time::Duration;

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use selvedge::thread;

use crate::common::{failure, outcomes, verified};

#[test]
fn messages_of_one_sender_keep_their_order_and_those_of_two_mix() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let other = sender.clone();
        let thread = thread::spawn(move || {
            other.send('a').unwrap();
            other.send('b').unwrap();
        });
        sender.send('x').unwrap();
        drop(sender);
        thread.join().unwrap();
        receiver.iter().collect::<String>()
    });
    assert_eq!(seen, ["abx", "axb", "xab"].map(String::from).into());
}

#[test]
fn a_message_brings_along_what_happened_before_it() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let value = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || {
            other.store(1, Relaxed);
            sender.send(()).unwrap();
        });
        receiver.recv().unwrap();
        let read = value.load(Relaxed);
        thread.join().unwrap();
        read
    });
    assert_eq!(seen, [1].into());
}

#[test]
fn receiving_without_waiting_sees_nothing_a_message_or_the_end() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let first = receiver.try_recv();
        let second = receiver.try_recv();
        thread.join().unwrap();
        let known = |result| match result {
            Ok(value) => value,
            Err(TryRecvError::Empty) => -1,
            Err(TryRecvError::Disconnected) => -2,
        };
        (known(first), known(second))
    });
    assert_eq!(seen, [(-1, -1), (-1, 1), (1, -1), (1, -2)].into());
}

#[test]
fn a_timed_receive_may_time_out() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let first = receiver.recv_timeout(Duration::from_secs(1));
        thread.join().unwrap();
        first == Err(RecvTimeoutError::Timeout)
    });
    assert_eq!(seen, [true, false].into());
}

#[test]
fn a_sender_learns_that_nobody_receives() {
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || drop(receiver));
        let sent = sender.send(1).is_ok();
        thread.join().unwrap();
        assert!(sender.send(2).is_err());
        sent
    });
    assert_eq!(seen, [true, false].into());
}

#[test]
fn a_bounded_channel_makes_its_sender_wait() {
    verified(Rc11, || {
        let (sender, receiver) = mpsc::sync_channel(1);
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let thread = thread::spawn(move || {
            for n in 0..3 {
                sender.send(n).unwrap();
                count.fetch_add(1, SeqCst);
            }
        });
        for n in 0..3 {
            assert!(sent.load(SeqCst) <= n + 1);
            assert_eq!(receiver.recv(), Ok(n));
        }
        assert!(receiver.recv().is_err());
        thread.join().unwrap();
    });
    let failure = failure(Rc11, || {
        let (sender, _receiver) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        sender.send(3).unwrap();
    });
    assert_eq!(failure.kind, "deadlock", "{failure}");
}

#[test]
fn a_channel_without_room_hands_over() {
    verified(Rc11, || {
        let (sender, receiver) = mpsc::sync_channel(0);
        let received = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&received);
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            assert_eq!(seen.load(Relaxed), 1);
        });
        received.store(1, Relaxed);
        assert_eq!(receiver.recv(), Ok(1));
        thread.join().unwrap();
    });
    let seen = outcomes(Rc11, || {
        let (sender, receiver) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || sender.send(1).map_err(|error| error.0));
        drop(receiver);
        thread.join().unwrap()
    });
    assert_eq!(seen, [Err(1)].into());
}
