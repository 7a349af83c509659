//! The parts of `std` that loom does not have: the sets of outcomes that they allow.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::catch_unwind;
use std::time::Duration;

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Once, OnceLock, RwLock, RwLockWriteGuard, Weak};
use selvedge::{future, thread};

use crate::common::{MODELS, builder, failure, outcomes, verified};

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

#[test]
fn what_an_exclusive_reference_wrote_is_all_that_others_see() {
    for model in MODELS {
        let seen = outcomes(model, || {
            let mut count = AtomicUsize::new(0);
            count.store(1, Relaxed);
            *count.get_mut() += 1;
            assert_eq!(*count.get_mut(), 2);
            *count.get_mut() *= 5;
            let count = Arc::new(count);
            let other = Arc::clone(&count);
            let thread = thread::spawn(move || (other.load(Relaxed), other.fetch_add(1, Relaxed)));
            let own = count.fetch_add(1, Relaxed);
            let (first, second) = thread.join().unwrap();
            let mut count = Arc::try_unwrap(count).unwrap();
            assert_eq!(*count.get_mut(), 12);
            *count.get_mut() = 7;
            assert_eq!(count.into_inner(), 7);
            (own, first, second)
        });
        let expected = [(10, 10, 11), (10, 11, 11), (11, 10, 10)];
        assert_eq!(seen, expected.into(), "{model:?}");
    }
}

#[test]
fn booleans_and_pointers_can_be_changed_through_a_reference() {
    let report = verified(Rc11, || {
        let mut flag = AtomicBool::new(false);
        *flag.get_mut() = true;
        let mut values = [1, 2];
        let mut pointer = AtomicPtr::new(&raw mut values[0]);
        *pointer.get_mut() = &raw mut values[1];
        let boxed = Box::into_raw(Box::new(3));
        let mut owner = AtomicPtr::new(std::ptr::null_mut());
        *owner.get_mut() = boxed;
        let shared = Arc::new((flag, owner));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            assert!(other.0.load(Relaxed));
            other.1.swap(std::ptr::null_mut(), Relaxed)
        });
        // SAFETY: both point to what is there.
        assert_eq!(unsafe { *pointer.load(Relaxed) }, 2);
        let found = thread.join().unwrap();
        assert_eq!(found, boxed);
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(found) });
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn a_reference_that_is_not_exclusive_is_a_race() {
    struct Shared(std::cell::UnsafeCell<AtomicUsize>);
    // SAFETY: that is what the test is about.
    unsafe impl Sync for Shared {}
    let failure = failure(Rc11, || {
        let shared = Arc::new(Shared(AtomicUsize::new(0).into()));
        let other = Arc::clone(&shared);
        // SAFETY: it is not: the two are at the same time.
        let thread = thread::spawn(move || unsafe { &*other.0.get() }.load(Relaxed));
        // SAFETY: as above.
        *unsafe { &mut *shared.0.get() }.get_mut() = 1;
        thread.join().unwrap();
    });
    assert_eq!(failure.kind, "data-race", "{failure}");
}

#[test]
fn a_thread_that_has_finished_need_not_be_seen_to_have_done_all() {
    let seen = outcomes(Rc11, || {
        let done = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&done);
        let thread = thread::spawn(move || other.store(1, Relaxed));
        let seen = thread.is_finished().then(|| done.load(Relaxed));
        thread.join().unwrap();
        assert_eq!(done.load(Relaxed), 1);
        seen
    });
    assert_eq!(seen, [None, Some(0), Some(1)].into());
}

#[test]
fn waiting_for_a_thread_to_finish_ends() {
    let report = verified(Rc11, || {
        let thread = thread::spawn(|| 7);
        while !thread.is_finished() {}
        assert_eq!(thread.join().unwrap(), 7);
        thread::scope(|scope| {
            let thread = scope.spawn(|| 8);
            while !thread.is_finished() {}
            assert_eq!(thread.join().unwrap(), 8);
        });
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn unsized_values_are_shared_as_boxes_and_slices() {
    trait Counts {
        fn count(&self) -> usize;
    }
    impl Counts for AtomicUsize {
        fn count(&self) -> usize {
            self.fetch_add(1, Relaxed)
        }
    }
    let report = verified(Rc11, || {
        let shared: Arc<dyn Counts> = Arc::from(Box::new(AtomicUsize::new(0)) as Box<dyn Counts>);
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || other.count());
        let sum = shared.count() + thread.join().unwrap();
        assert_eq!(sum, 1);
        let texts: Arc<[Arc<str>]> = Arc::from(vec![Arc::from("a"), Arc::from("b".to_owned())]);
        assert_eq!(texts.concat(), "ab");
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn a_coerced_arc_owns_the_same_value() {
    trait Readable {
        fn read(&self) -> usize;
    }
    impl Readable for AtomicUsize {
        fn read(&self) -> usize {
            self.load(Relaxed)
        }
    }
    let seen = outcomes(Rc11, || {
        let value = Arc::new(AtomicUsize::new(0));
        let readable = Arc::coerce(Arc::clone(&value), |arc| {
            arc as std::sync::Arc<dyn Readable>
        });
        assert_eq!(Arc::strong_count(&value), 2);
        let thread = thread::spawn(move || readable.read());
        value.store(1, Relaxed);
        drop(value);
        thread.join().unwrap()
    });
    assert_eq!(seen, [0, 1].into());
    let other = catch_unwind(|| {
        selvedge::model(|| {
            Arc::coerce(Arc::new(1), |_| std::sync::Arc::new(2));
        });
    });
    assert!(other.is_err());
}

#[test]
fn arcs_can_be_compared_hashed_printed_and_collected() {
    verified(Rc11, || {
        let value = Arc::new(1);
        assert_eq!(format!("{value:p}"), format!("{:p}", Arc::as_ptr(&value)));
        assert!(value < Arc::new(2) && value.max(Arc::new(0)) == Arc::new(1));
        let set = HashSet::from([Arc::new(3), Arc::new(3)]);
        assert!(set.len() == 1 && set.contains(&3));
        let array: Arc<[i32]> = [1, 2].into();
        let collected: Arc<[i32]> = (1..3).collect();
        assert_eq!(array, collected);
        let error: Arc<dyn std::error::Error> =
            Arc::from(Box::from("text") as Box<dyn std::error::Error>);
        assert_eq!(error.to_string(), "text");
    });
}

#[test]
fn the_last_owner_gets_the_value_and_others_a_clone() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(Cell::new(7));
        let pointer = Arc::as_ptr(&value).addr();
        let cell = Arc::unwrap_or_clone(Arc::clone(&value));
        cell.set(8);
        assert!(value.get() == 7 && Arc::as_ptr(&value).addr() == pointer);
        Arc::unwrap_or_clone(value).get()
    });
    assert_eq!(seen, [7].into());
}

#[test]
fn a_weak_reference_counts_owners_and_can_be_a_raw_pointer() {
    let seen = outcomes(Rc11, || {
        let value = Arc::new(7);
        let weak = Arc::downgrade(&value);
        let raw = weak.clone().into_raw();
        assert_eq!(raw, Arc::as_ptr(&value));
        let thread = thread::spawn(move || drop(value));
        let owners = weak.strong_count();
        thread.join().unwrap();
        // SAFETY: it comes from `into_raw`.
        let again = unsafe { Weak::from_raw(raw) };
        assert!(again.strong_count() == 0 && again.upgrade().is_none());
        owners
    });
    assert_eq!(seen, [0, 1].into());
    verified(Rc11, || {
        let value = Arc::new(7);
        // SAFETY: it comes from `into_raw`.
        let again = unsafe { Weak::from_raw(Arc::downgrade(&value).into_raw()) };
        assert_eq!(again.upgrade().as_deref(), Some(&7));
        let none = Weak::<u64>::new();
        assert_eq!(none.strong_count(), 0);
        // SAFETY: as above.
        let none = unsafe { Weak::from_raw(none.into_raw()) };
        assert!(none.upgrade().is_none());
    });
}

#[test]
fn a_value_that_is_set_once_can_be_cloned_and_taken() {
    verified(Rc11, || {
        let mut value = OnceLock::from(1);
        let copy = value.clone();
        assert!(copy == value && copy.set(2) == Err(2));
        assert_eq!(value.take(), Some(1));
        assert!(value.get().is_none() && value.set(3).is_ok() && value != copy);
        assert_eq!(OnceLock::<u8>::new().clone().into_inner(), None);
    });
}

#[test]
fn atomics_are_updated_by_functions() {
    let seen = outcomes(Rc11, || {
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || other.update(Relaxed, Relaxed, |count| count + 1));
        let mine = count.try_update(Relaxed, Relaxed, |count| (count == 1).then_some(5));
        (thread.join().unwrap(), mine, count.load(Relaxed))
    });
    assert_eq!(seen, [(0, Err(0), 1), (0, Ok(1), 5)].into());
}
