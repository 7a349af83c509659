//! Barriers.

use std::ffi::c_int;

use libc::EINVAL;
use selvedge_core::MemoryOrder::{AcqRel, Acquire};
use selvedge_core::objects::{ObjectFunction, completes, generation};

use super::object::Object;
use super::program::{peek, poke, store_int, wipe};
use crate::current;
use crate::problem::PLACE;

entry_points![
    pthread_barrier_init(3),
    pthread_barrier_destroy(1),
    pthread_barrier_wait(1),
    pthread_barrierattr_init(1),
    pthread_barrierattr_destroy(1),
    pthread_barrierattr_setpshared(2),
];

const SIZE: usize = 32;
/// Where the number of parties is kept, behind the state.
const PARTIES_OFFSET: usize = 8;
const SERIAL_THREAD: c_int = -1;

fn barrier(address: usize) -> Object {
    Object::new(address, 8, "barrier")
}

extern "C" fn pthread_barrier_init(address: usize, _attributes: usize, parties: u32) -> c_int {
    if parties == 0 {
        return EINVAL;
    }
    barrier(address).initialise(0);
    wipe(address + 8, SIZE - 8);
    poke(address + PARTIES_OFFSET, parties);
    0
}

extern "C" fn pthread_barrier_destroy(address: usize) -> c_int {
    barrier(address).destroy(|value| value as u64 != 0, "that threads wait at");
    0
}

extern "C" fn pthread_barrier_wait(address: usize) -> c_int {
    let barrier = barrier(address);
    let parties = peek::<u32>(address + PARTIES_OFFSET);
    if parties == 0 {
        barrier.misuse(format_args!(
            "use of {PLACE}, a barrier that was not initialised"
        ));
    }
    let arrival = barrier
        .step(ObjectFunction::BarrierArrive { parties }, AcqRel)
        .read;
    if completes(arrival, parties) {
        return SERIAL_THREAD;
    }
    // The last thread may destroy the barrier before this one has left: that is allowed.
    let generation = generation(arrival);
    barrier.step_unchecked(ObjectFunction::BarrierAwait { generation }, Acquire);
    0
}

extern "C" fn pthread_barrierattr_init(attributes: usize) -> c_int {
    store_int(attributes, 0, current::site());
    0
}

extern "C" fn pthread_barrierattr_destroy(_attributes: usize) -> c_int {
    0
}

extern "C" fn pthread_barrierattr_setpshared(_attributes: usize, _shared: c_int) -> c_int {
    0
}
