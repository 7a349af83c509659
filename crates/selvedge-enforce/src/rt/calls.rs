//! Functions that may keep a thread for long: what it did before has to be told first.

use core::ffi::c_int;

use super::event;
use super::stub::stubs;
use super::sys;

stubs![
    "__wrap_sched_yield" => sched_yield,
    "__wrap_nanosleep" => nanosleep,
    "__wrap_clock_nanosleep" => clock_nanosleep,
    "__wrap_usleep" => usleep,
    "__wrap_sleep" => sleep,
    "__wrap_thrd_sleep" => thrd_sleep,
    "__wrap_thrd_yield" => sched_yield,
    "__wrap_pthread_yield" => sched_yield,
];

extern "C" fn sched_yield() -> c_int {
    // SAFETY: as the program asks, here and below.
    event::sleep(|| unsafe { sys::sched_yield() })
}

extern "C" fn nanosleep(duration: usize, remaining: usize) -> c_int {
    // SAFETY: as above.
    event::sleep(|| unsafe { sys::nanosleep(duration, remaining) })
}

extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    duration: usize,
    remaining: usize,
) -> c_int {
    // SAFETY: as above.
    event::sleep(|| unsafe { sys::clock_nanosleep(clock, flags, duration, remaining) })
}

extern "C" fn usleep(microseconds: u32) -> c_int {
    // SAFETY: as above.
    event::sleep(|| unsafe { sys::usleep(microseconds) })
}

extern "C" fn sleep(seconds: u32) -> u32 {
    // SAFETY: as above.
    event::sleep(|| unsafe { sys::sleep(seconds) })
}

extern "C" fn thrd_sleep(duration: usize, remaining: usize) -> c_int {
    // SAFETY: as above.
    event::sleep(|| unsafe { sys::thrd_sleep(duration, remaining) })
}
