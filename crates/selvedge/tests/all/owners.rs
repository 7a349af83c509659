//! The last owner of a `std::sync::Arc` is ordered after what the other owners did, and after nothing else.

use std::sync::{Arc as StdArc, Weak as StdWeak};

use selvedge::model::MemoryModel::Rc11;
use selvedge::sync::atomic::{AtomicUsize, Ordering, Ordering::*};
use selvedge::sync::{Arc, Mutex};
use selvedge::thread;

use crate::common::{builder, failure, verified};
use crate::freed::Shared;

/// A value with a reference count of its own.
struct Inner {
    count: AtomicUsize,
    data: AtomicUsize,
}

/// An owner of one.
struct Owner {
    inner: Shared<Inner>,
    /// The order of its decrement.
    order: Ordering,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let inner = self.inner.get();
        inner.data.fetch_add(1, Relaxed);
        if inner.count.fetch_sub(1, self.order) == 1 {
            self.inner.free();
        }
    }
}

/// Two threads own a value with a count of its own, inside of an `Arc` for each if that is wanted.
fn owners(order: Ordering, wrapped: bool) -> impl Fn() + Send + Sync {
    move || {
        let inner = Shared::new(Inner {
            count: AtomicUsize::new(2),
            data: AtomicUsize::new(0),
        });
        let owner = || Owner { inner, order };
        let thread = match wrapped {
            true => {
                let owner = StdArc::new(owner());
                thread::spawn(move || drop(owner))
            }
            false => {
                let owner = owner();
                thread::spawn(move || drop(owner))
            }
        };
        match wrapped {
            true => drop(StdArc::new(owner())),
            false => drop(owner()),
        }
        thread.join().unwrap();
    }
}

#[test]
fn a_count_inside_of_a_std_arc_that_orders_nothing_is_found() {
    for wrapped in [false, true] {
        let found = failure(Rc11, owners(Relaxed, wrapped));
        assert_eq!(found.kind, "use-after-free", "{wrapped}: {found}");
        verified(Rc11, owners(AcqRel, wrapped));
    }
}

/// Frees what it points to when it is dropped.
struct Guard(Shared<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.free();
    }
}

/// A thread frees, as the only owner of a guard, what another thread has used before it set a flag.
fn flag(write: Ordering, read: Ordering, wrapped: bool) -> impl Fn() + Send + Sync {
    move || {
        let value = Shared::new(AtomicUsize::new(0));
        let flag = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&flag);
        let guard = Guard(value);
        let is_set = move || other.load(read) == 1;
        let thread = match wrapped {
            true => {
                let guard = StdArc::new(guard);
                thread::spawn(move || match is_set() {
                    true => drop(guard),
                    false => std::mem::forget(guard),
                })
            }
            false => thread::spawn(move || match is_set() {
                true => drop(guard),
                false => std::mem::forget(guard),
            }),
        };
        value.get().fetch_add(1, Relaxed);
        flag.store(1, write);
        thread.join().unwrap();
    }
}

#[test]
fn what_a_thread_used_that_owned_nothing_is_not_ordered_by_a_std_arc() {
    for wrapped in [false, true] {
        let found = failure(Rc11, flag(Relaxed, Relaxed, wrapped));
        assert_eq!(found.kind, "use-after-free", "{wrapped}: {found}");
        verified(Rc11, flag(Release, Acquire, wrapped));
    }
}

/// A thread uses a value of a `StdArc` through a pointer, before it lets go of it or after that.
fn through_a_pointer(late: bool) -> impl Fn() + Send + Sync {
    move || {
        let value = StdArc::new(AtomicUsize::new(0));
        let mine = StdArc::clone(&value);
        let events = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&events);
        let thread = thread::spawn(move || {
            let pointer = Shared(StdArc::as_ptr(&mine).cast_mut());
            let mine = (!late).then_some(mine);
            others.fetch_add(1, Relaxed);
            pointer.get().fetch_add(1, Relaxed);
            drop(mine);
        });
        events.fetch_add(1, Relaxed);
        drop(value);
        thread.join().unwrap();
    }
}

#[test]
fn what_a_thread_does_after_it_has_let_go_is_not_ordered() {
    let found = failure(Rc11, through_a_pointer(true));
    assert_eq!(found.kind, "use-after-free", "{found}");
    verified(Rc11, through_a_pointer(false));
}

/// A thread borrows the value from an `Arc` of this crate, which another thread drops as its last owner before it
/// drops the value.
#[test]
fn what_borrowers_did_is_ordered_before_the_end_of_the_value() {
    verified(Rc11, || {
        let value = StdArc::new(AtomicUsize::new(0));
        let lender = Arc::new(StdArc::clone(&value));
        let done = Arc::new(AtomicUsize::new(0));
        let (borrowed, other) = (Arc::clone(&lender), Arc::clone(&done));
        let thread = thread::spawn(move || {
            borrowed.fetch_add(1, Relaxed);
            other.store(1, Relaxed);
        });
        done.load(Relaxed);
        drop(lender);
        drop(value);
        drop(thread);
    });
}

#[test]
fn what_owners_did_is_ordered_however_they_own_the_value() {
    /// A value with another alignment than its counts.
    #[repr(align(64))]
    struct Aligned(Vec<[Box<AtomicUsize>; 1]>);
    let make = || Aligned((0..2).map(|n| [Box::new(AtomicUsize::new(n))]).collect());
    let uses = |value: &Aligned| {
        value.0.iter().flatten().for_each(|count| {
            count.fetch_add(1, Relaxed);
        });
    };
    verified(Rc11, move || {
        let value = StdArc::new(make());
        let first = StdArc::clone(&value);
        let thread = thread::spawn(move || {
            let again = StdArc::clone(&first);
            uses(&first);
            drop(first);
            uses(&again);
        });
        uses(&value);
        drop(value);
        drop(thread);
    });
    // A thread that borrows lets go by ending.
    verified(Rc11, move || {
        let value = StdArc::new(make());
        let other = StdArc::clone(&value);
        let thread = thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| uses(&other));
            });
        });
        drop(value);
        drop(thread);
    });
    verified(Rc11, || {
        let values: StdArc<[AtomicUsize]> = (0..2).map(AtomicUsize::new).collect();
        let other: StdArc<[AtomicUsize]> = StdArc::clone(&values);
        thread::spawn(move || other[1].fetch_add(1, Relaxed));
        values[1].fetch_add(1, Relaxed);
    });
    /// A value that knows itself.
    struct Cyclic(AtomicUsize, StdWeak<Cyclic>);
    verified(Rc11, || {
        let value = StdArc::new_cyclic(|weak| Cyclic(AtomicUsize::new(0), StdWeak::clone(weak)));
        let other = StdArc::clone(&value);
        thread::spawn(move || {
            let again = other.1.upgrade();
            drop(other);
            again.map(|value| value.0.fetch_add(1, Relaxed))
        });
        value.0.fetch_add(1, Relaxed);
    });
}

#[test]
fn memory_that_is_used_again_has_owners_of_its_own() {
    let mut builder = builder(Rc11);
    builder.reuse_memory = true;
    let report = builder.explore(|| {
        for _ in 0..2 {
            let value = StdArc::new(AtomicUsize::new(0));
            let other = StdArc::clone(&value);
            let thread = thread::spawn(move || {
                other.fetch_add(1, Relaxed);
            });
            value.fetch_add(1, Relaxed);
            drop(value);
            thread.join().unwrap();
        }
    });
    assert_eq!(report.verdict, selvedge::model::Verdict::Verified);
}

#[test]
fn the_last_owner_of_a_std_arc_is_ordered_after_the_others() {
    verified(Rc11, || {
        let value = std::sync::Arc::new((AtomicUsize::new(0), Mutex::new(0)));
        let other = std::sync::Arc::clone(&value);
        thread::spawn(move || {
            other.0.fetch_add(1, Relaxed);
            drop(other.1.lock());
        });
        value.0.fetch_add(1, Relaxed);
        drop(value.1.lock());
    });
}

/// A value that the last owner of a `std::sync::Arc` drops, and one of the same line of source that a thread frees
/// while another uses it. `arc_first` is which of them ends first.
fn two_of_one_place(arc_first: bool) -> impl Fn() + Send + Sync {
    move || {
        let make = || AtomicUsize::new(0);
        let owned = std::sync::Arc::new(make());
        let other = std::sync::Arc::clone(&owned);
        let freed = Shared::new(make());
        let by_arc = move || {
            let thread = thread::spawn(move || {
                other.fetch_add(1, Relaxed);
            });
            owned.fetch_add(1, Relaxed);
            drop(owned);
            thread
        };
        let by_hand = move || {
            let thread = thread::spawn(move || {
                AtomicUsize::new(0).load(Relaxed);
                freed.free();
            });
            freed.get().fetch_add(1, Relaxed);
            thread
        };
        let (first, second) = match arc_first {
            true => (by_arc().join(), by_hand().join()),
            false => (by_hand().join(), by_arc().join()),
        };
        first.and(second).unwrap();
    }
}

#[test]
fn a_std_arc_hides_no_free_of_what_was_created_at_the_same_place() {
    for arc_first in [true, false] {
        let found = failure(Rc11, two_of_one_place(arc_first));
        assert_eq!(found.kind, "use-after-free", "{found}");
    }
}

#[test]
fn an_arc_of_this_crate_inside_of_a_std_arc_is_ordered() {
    verified(Rc11, || {
        let value = std::sync::Arc::new(Arc::new(AtomicUsize::new(0)));
        let other = std::sync::Arc::clone(&value);
        thread::spawn(move || other.fetch_add(1, Relaxed));
        value.fetch_add(1, Relaxed);
    });
}
