//! What `std` has and loom has not: what it allows, as sets of outcomes.

use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::time::Duration;

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Once, OnceLock, RwLock, RwLockWriteGuard, Weak};
use selvedge::{future, thread};

use crate::common::{builder, failure, outcomes, verified};

#[test]
fn a_weak_reference_finds_the_value_or_not() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(7);
        let weak = Arc::downgrade(&value);
        let thread = thread::spawn(move || weak.upgrade().map(|value| *value));
        drop(value);
        thread.join().unwrap()
    });
    assert_eq!(seen, [None, Some(7)].into());
    verified(Rc11, || {
        let value = Arc::new(7);
        let weak = Arc::downgrade(&value);
        assert!(
            weak.upgrade()
                .is_some_and(|again| Arc::ptr_eq(&again, &value))
        );
        drop(value);
        assert!(weak.clone().upgrade().is_none());
        assert!(Weak::<u32>::new().upgrade().is_none());
    });
}

#[test]
fn whoever_upgrades_is_an_owner() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(AtomicUsize::new(0));
        let weak = Arc::downgrade(&value);
        let thread = thread::spawn(move || {
            let value = weak.upgrade();
            value.map(|value| value.fetch_add(1, Relaxed))
        });
        value.fetch_add(1, Relaxed);
        drop(value);
        thread.join().unwrap()
    });
    assert_eq!(seen, [None, Some(0), Some(1)].into());
}

#[test]
fn a_value_can_know_itself() {
    struct Node {
        itself: Weak<Node>,
    }
    verified(Rc11, || {
        let node = Arc::new_cyclic(|itself| {
            assert!(itself.upgrade().is_none());
            let itself = itself.clone();
            Node { itself }
        });
        let again = node.itself.upgrade().unwrap();
        assert!(Arc::ptr_eq(&node, &again));
    });
    let leak = failure(Rc11, || {
        let node = Arc::new_cyclic(|itself| Node {
            itself: itself.clone(),
        });
        std::mem::forget(node.itself.upgrade());
    });
    assert_eq!(leak.kind, "leak", "{leak}");
}

#[test]
fn a_shared_value_is_cloned_before_it_is_changed() {
    verified(Rc11, || {
        let mut value = Arc::new(1);
        *Arc::make_mut(&mut value) += 1;
        let other = Arc::clone(&value);
        *Arc::make_mut(&mut value) += 1;
        assert_eq!((*value, *other), (3, 2));
    });
}

#[test]
fn once_is_once() {
    let seen = outcomes(Rc11, || {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0)));
        let call = |shared: &(Once, AtomicUsize)| {
            let done = shared.0.is_completed();
            shared
                .0
                .call_once(|| assert_eq!(shared.1.fetch_add(1, Relaxed), 0));
            done
        };
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || call(&other));
        let first = call(&shared);
        shared.0.wait();
        let second = thread.join().unwrap();
        assert_eq!(shared.1.load(Relaxed), 1);
        (first, second)
    });
    assert_eq!(seen, [(false, false), (false, true), (true, false)].into());
}

#[test]
fn a_value_that_is_set_once_can_be_waited_for() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(OnceLock::new());
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || other.set(5).unwrap());
        let read = *value.wait();
        thread.join().unwrap();
        read
    });
    assert_eq!(seen, [5].into());
}

#[test]
fn a_writer_that_becomes_a_reader_lets_no_writer_in() {
    let seen = outcomes(Rc11, || {
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || *other.write().unwrap() += 10);
        let mut guard = lock.write().unwrap();
        let before = *guard;
        *guard += 1;
        let guard = RwLockWriteGuard::downgrade(guard);
        let after = *guard;
        drop(guard);
        thread.join().unwrap();
        (before, after)
    });
    assert_eq!(seen, [(0, 1), (10, 11)].into());
}

#[test]
fn threads_are_as_in_std() {
    selvedge::thread_local! {
        static COUNT: Cell<u32> = Cell::new(1);
        static TEXT: RefCell<String> = RefCell::new(String::from("a"));
    }
    verified(Rc11, || {
        thread::sleep(Duration::from_secs(1));
        assert_eq!(thread::available_parallelism().unwrap().get(), 2);
        COUNT.set(COUNT.get() + 1);
        TEXT.with_borrow_mut(|text| text.push('b'));
        let value = AtomicUsize::new(0);
        let name: thread::Result<_> = thread::scope(|scope| {
            let named = thread::Builder::new().name("scoped".to_owned());
            let thread = named.spawn_scoped(scope, || {
                value.store(1, Relaxed);
                assert_eq!((COUNT.get(), TEXT.take()), (1, "a".to_owned()));
                thread::current().name().map(str::to_owned)
            });
            thread.unwrap().join()
        });
        assert_eq!(name.unwrap().as_deref(), Some("scoped"));
        assert_eq!(
            (value.load(Relaxed), COUNT.take(), COUNT.replace(3)),
            (1, 2, 0)
        );
        TEXT.with_borrow(|text| assert_eq!(text, "ab"));
        let thread = future::spawn(async { 4 });
        assert_eq!(thread.join().unwrap(), 4);
    });
}

#[test]
fn a_check_that_a_limit_stopped_fails_unless_that_is_allowed() {
    let test = || {
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || other.fetch_add(1, Relaxed));
        count.fetch_add(1, Relaxed);
        thread.join().unwrap();
    };
    let limited = |allowed| {
        let mut builder = builder(Rc11);
        builder.max_permutations = Some(1);
        builder.allow_incomplete = allowed;
        catch_unwind(move || builder.check(test))
    };
    let message = limited(false).unwrap_err();
    let message = message.downcast_ref::<&str>().unwrap();
    assert!(message.contains("allow_incomplete"), "{message}");
    assert!(limited(true).is_ok());
}
