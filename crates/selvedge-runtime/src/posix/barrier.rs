//! Barriers.

use std::ffi::c_int;

use libc::EINVAL;
use selvedge_core::MemoryOrder::{AcqRel, Acquire};
use selvedge_core::objects::{ObjectFunction, completes, generation};

use super::attributes::change;
use super::object::Object;
use super::program::{peek, poke, read, store_int, wipe};
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
const MARK_OFFSET: usize = 16;
const SERIAL_THREAD: c_int = -1;

fn barrier(address: usize) -> Object {
    Object::new(address, SIZE, "barrier")
}

extern "C" fn pthread_barrier_init(address: usize, attributes: usize, parties: u32) -> c_int {
    if parties == 0 {
        return EINVAL;
    }
    let barrier = barrier(address);
    if attributes != 0 {
        read::<c_int>(attributes, barrier.site);
    }
    if !current::is_on_stack(address) && peek::<usize>(address + MARK_OFFSET) == mark(address) {
        barrier.misuse(format_args!(
            "initialisation of {PLACE}, a barrier that is initialised"
        ));
    }
    barrier.renew(0, |value| value as u64 != 0, "that threads wait at");
    wipe(address + 8, SIZE - 8);
    poke(address + PARTIES_OFFSET, parties);
    poke(address + MARK_OFFSET, mark(address));
    0
}

/// The mark of an initialised barrier in its memory. Memory on a stack may have
/// belonged to a barrier of a function that has returned.
fn mark(address: usize) -> usize {
    const MARK: usize = 0x5e1f_ba22_1e25_ba22;
    MARK ^ address
}

extern "C" fn pthread_barrier_destroy(address: usize) -> c_int {
    barrier(address).destroy(|value| value as u64 != 0, "that threads wait at");
    poke(address + MARK_OFFSET, 0_usize);
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

extern "C" fn pthread_barrierattr_destroy(attributes: usize) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_barrierattr_setpshared(attributes: usize, _shared: c_int) -> c_int {
    change(attributes, 4)
}
