//! The virtual clock: every thread has its own, and only reading it or sleeping moves it.

use std::ffi::{c_int, c_long};

use libc::{EINVAL, timespec, timeval};
use selvedge_core::Site;

use super::program::{self, error};
use super::state::local;
use crate::current;

entry_points![
    clock_gettime(2),
    clock_getres(2),
    gettimeofday(2),
    time(1),
    timespec_get(2),
    clock(0),
    times(1),
    getrusage(2),
    nanosleep(2),
    clock_nanosleep(4),
    usleep(1),
    sleep(1),
    selvedge_cycles(0),
];

const BILLION: u64 = 1_000_000_000;
/// The cost of the first readings. After this many readings of a thread it costs twice as much, and so on: a
/// loop that waits for some moment comes to its end.
const TICK: u64 = 1_000;
const READINGS: u32 = 32;
/// The first of January 2024.
const REALTIME_START: u64 = 1_704_067_200 * BILLION;
/// Machines have been up for a while when a program starts.
const MONOTONIC_START: u64 = 1_000 * BILLION;

fn start(clock: c_int) -> u64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => REALTIME_START,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        _ => MONOTONIC_START,
    }
}

fn read(clock: c_int) -> u64 {
    current::impure();
    let passes = current::time_passes();
    let passed = local(|local| {
        if passes {
            let tick = TICK << (local.readings / READINGS).min(32);
            local.nanoseconds = local.nanoseconds.saturating_add(tick);
            local.readings += 1;
        }
        local.nanoseconds
    });
    start(clock) + passed
}

fn split(nanoseconds: u64) -> timespec {
    timespec {
        tv_sec: (nanoseconds / BILLION) as c_long,
        tv_nsec: (nanoseconds % BILLION) as c_long,
    }
}

fn nanoseconds(time: timespec) -> Option<u64> {
    let fraction = u64::try_from(time.tv_nsec).ok().filter(|&n| n < BILLION)?;
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Some(seconds.saturating_mul(BILLION).saturating_add(fraction))
}

/// The deadline stored at `address` as a moment of the running thread, `None` if it is malformed.
pub(crate) fn deadline(clock: c_int, address: usize, site: Site) -> Option<u64> {
    let time: timespec = program::read(address, site);
    nanoseconds(time).map(|at| at.saturating_sub(start(clock)))
}

/// The moment of the running thread that comes after the duration stored at `address`, `None` if
/// that is malformed.
pub(crate) fn after(address: usize, site: Site) -> Option<u64> {
    let duration: timespec = program::read(address, site);
    let now = local(|local| local.nanoseconds);
    nanoseconds(duration).map(|passing| now.saturating_add(passing))
}

/// Lets time pass up to `moment`.
pub(crate) fn pass(moment: u64) {
    if !current::time_passes() {
        return;
    }
    local(|local| local.nanoseconds = local.nanoseconds.max(moment));
}

fn sleep_for(nanoseconds: u64) {
    let now = local(|local| local.nanoseconds);
    pass(now.saturating_add(nanoseconds));
}

extern "C" fn clock_gettime(clock: c_int, result: usize) -> c_int {
    let site = current::site();
    program::write(result, split(read(clock)), site);
    0
}

extern "C" fn clock_getres(_clock: c_int, result: usize) -> c_int {
    if result != 0 {
        program::write(result, split(1), current::site());
    }
    0
}

extern "C" fn gettimeofday(result: usize, zone: usize) -> c_int {
    let site = current::site();
    let now = split(read(libc::CLOCK_REALTIME));
    if result != 0 {
        let now = timeval {
            tv_sec: now.tv_sec,
            tv_usec: now.tv_nsec / 1_000,
        };
        program::write(result, now, site);
    }
    if zone != 0 {
        program::write(zone, 0_u64, site);
    }
    0
}

extern "C" fn time(result: usize) -> c_long {
    let site = current::site();
    let now = split(read(libc::CLOCK_REALTIME)).tv_sec;
    if result != 0 {
        program::store_word(result, now as usize, site);
    }
    now
}

extern "C" fn timespec_get(result: usize, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    if base != TIME_UTC {
        return 0;
    }
    clock_gettime(libc::CLOCK_REALTIME, result);
    base
}

extern "C" fn clock() -> c_long {
    const CLOCKS_PER_SECOND: u64 = 1_000_000;
    (read(libc::CLOCK_PROCESS_CPUTIME_ID) / (BILLION / CLOCKS_PER_SECOND)) as c_long
}

extern "C" fn times(result: usize) -> c_long {
    const TICKS_PER_SECOND: u64 = 100;
    let site = current::site();
    let now = (read(libc::CLOCK_MONOTONIC) / (BILLION / TICKS_PER_SECOND)) as c_long;
    if result != 0 {
        program::write(result, [now, 0, 0, 0], site);
    }
    now
}

/// Only the processor time is told.
extern "C" fn getrusage(_who: c_int, result: usize) -> c_int {
    const WORDS: usize = size_of::<libc::rusage>() / 8;
    let site = current::site();
    let used = split(read(libc::CLOCK_PROCESS_CPUTIME_ID));
    let mut words = [0; WORDS];
    words[..2].copy_from_slice(&[used.tv_sec, used.tv_nsec / 1_000]);
    program::write(result, words, site);
    0
}

extern "C" fn nanosleep(duration: usize, _remaining: usize) -> c_int {
    match sleep_at(libc::CLOCK_REALTIME, 0, duration) {
        0 => 0,
        number => error(number),
    }
}

extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    duration: usize,
    _remaining: usize,
) -> c_int {
    sleep_at(clock, flags, duration)
}

/// Sleeps for the duration (or up to the moment) at `address`; 0 or an error number.
pub(crate) fn sleep_at(clock: c_int, flags: c_int, address: usize) -> c_int {
    let site = current::site();
    if flags & libc::TIMER_ABSTIME != 0 {
        let Some(deadline) = deadline(clock, address, site) else {
            return EINVAL;
        };
        pass(deadline);
        return 0;
    }
    let duration: timespec = program::read(address, site);
    match nanoseconds(duration) {
        Some(nanoseconds) if duration.tv_sec >= 0 => sleep_for(nanoseconds),
        _ => return EINVAL,
    }
    0
}

extern "C" fn usleep(microseconds: u32) -> c_int {
    sleep_for(u64::from(microseconds) * 1_000);
    0
}

extern "C" fn sleep(seconds: u32) -> u32 {
    sleep_for(u64::from(seconds) * BILLION);
    0
}

/// The function in the place of `rdtsc`: a cycle for each nanosecond.
extern "C" fn selvedge_cycles() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}
