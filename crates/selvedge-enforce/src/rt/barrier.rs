//! Barriers: our own, so that a thread can be held between arriving and passing.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::event::{event, hidden};
use super::stub::stubs;
use super::sys;

stubs![
    "__wrap_pthread_barrier_init" => init,
    "__wrap_pthread_barrier_destroy" => destroy,
    "__wrap_pthread_barrier_wait" => wait,
];

const INVALID: c_int = 22;
const SERIAL_THREAD: c_int = -1;
const FOR_EVER: i64 = 1_000_000_000;

/// The contents of the program's `pthread_barrier_t`.
#[repr(C)]
struct Barrier {
    /// The number of threads that have arrived, and above that how often the barrier has opened.
    state: AtomicU64,
    parties: AtomicU32,
}

fn at(address: usize) -> &'static Barrier {
    // SAFETY: the program says that a barrier is there, which is larger than ours and aligned.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

extern "C" fn init(address: usize, _attributes: usize, parties: u32) -> c_int {
    if parties == 0 {
        return INVALID;
    }
    hidden(|| {
        at(address).state.store(0, Ordering::SeqCst);
        at(address).parties.store(parties, Ordering::SeqCst);
    });
    0
}

extern "C" fn destroy(_address: usize) -> c_int {
    event(|| 0)
}

extern "C" fn wait(address: usize) -> c_int {
    let barrier = at(address);
    let arrival = event(|| arrive(barrier));
    if arrival.last {
        sys::futex_wake_all(generation(barrier));
        return SERIAL_THREAD;
    }
    event(|| {
        let changed = |state: u64| (state >> 32) as u32 != arrival.generation;
        while !changed(barrier.state.load(Ordering::SeqCst)) {
            sys::futex_wait(generation(barrier), arrival.generation, FOR_EVER);
        }
    });
    0
}

struct Arrival {
    generation: u32,
    last: bool,
}

fn arrive(barrier: &Barrier) -> Arrival {
    let parties = u64::from(barrier.parties.load(Ordering::Relaxed));
    let next = |state: u64| {
        let generation = state >> 32;
        match (state & 0xffff_ffff) + 1 >= parties {
            true => (generation + 1) << 32,
            false => state + 1,
        }
    };
    let order = Ordering::SeqCst;
    let update = |state| Some(next(state));
    let (Ok(before) | Err(before)) = barrier.state.fetch_update(order, order, update);
    Arrival {
        generation: (before >> 32) as u32,
        last: (before & 0xffff_ffff) + 1 >= parties,
    }
}

/// The half of the state that changes when the barrier opens.
fn generation(barrier: &Barrier) -> *const u32 {
    barrier.state.as_ptr().cast::<u32>().wrapping_add(1)
}
