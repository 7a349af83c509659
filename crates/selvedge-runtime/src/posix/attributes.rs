//! Thread attributes. All are accepted. Only the detach state and the stack size have an effect.
//!
//! Attributes without an effect are kept all the same: setting one while another thread reads the attributes is a race,
//! and an object that was freed may not be used.

use std::ffi::c_int;

use libc::{EINVAL, ENOTSUP, PTHREAD_EXPLICIT_SCHED, PTHREAD_INHERIT_SCHED};

use super::program::{read, store_int, store_word, write};
use super::system_values::is_priority;
use crate::current;

entry_points![
    pthread_attr_init(1),
    pthread_attr_destroy(1),
    pthread_attr_setdetachstate(2),
    pthread_attr_getdetachstate(2),
    pthread_attr_setstacksize(2),
    pthread_attr_getstacksize(2),
    pthread_attr_setguardsize(2),
    pthread_attr_getguardsize(2),
    pthread_attr_setschedpolicy(2),
    pthread_attr_setschedparam(2),
    pthread_attr_setinheritsched(2),
    pthread_attr_setscope(2),
    pthread_attr_setaffinity_np(3),
];

const SIZE: usize = 56;
const DETACH_OFFSET: usize = 0;
const STACK_SIZE_OFFSET: usize = 8;
const GUARD_SIZE_OFFSET: usize = 16;
const POLICY_OFFSET: usize = 24;
const PRIORITY_OFFSET: usize = 28;
const INHERIT_OFFSET: usize = 32;
const SCOPE_OFFSET: usize = 36;
const AFFINITY_OFFSET: usize = 40;
const DEFAULT_STACK_SIZE: usize = 8 << 20;
const SMALLEST_STACK: usize = 16 << 10;
const PTHREAD_SCOPE_SYSTEM: c_int = 0;
const PTHREAD_SCOPE_PROCESS: c_int = 1;

/// The attributes that `pthread_create` heeds.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Whether nobody joins the thread.
    pub(crate) detached: bool,
    /// How large a stack it has.
    pub(crate) stack_size: Option<usize>,
}

/// Reads the attributes at `address` (or null).
pub(crate) fn wanted(address: usize) -> Wanted {
    if address == 0 {
        return Wanted::default();
    }
    let words: [usize; SIZE / 8] = read(address, current::site());
    Wanted {
        detached: words[DETACH_OFFSET / 8] as c_int == libc::PTHREAD_CREATE_DETACHED,
        stack_size: Some(words[STACK_SIZE_OFFSET / 8]),
    }
}

/// Ends the life of an attributes object of `size` bytes, or changes an attribute that has no effect.
pub(crate) fn change(attributes: usize, size: usize) -> c_int {
    current::touch(attributes, size, true, current::site());
    0
}

extern "C" fn pthread_attr_init(attributes: usize) -> c_int {
    let mut words = [0_usize; SIZE / 8];
    words[STACK_SIZE_OFFSET / 8] = DEFAULT_STACK_SIZE;
    write(attributes, words, current::site());
    0
}

extern "C" fn pthread_attr_destroy(attributes: usize) -> c_int {
    change(attributes, SIZE)
}

extern "C" fn pthread_attr_setdetachstate(attributes: usize, state: c_int) -> c_int {
    if state != libc::PTHREAD_CREATE_DETACHED && state != libc::PTHREAD_CREATE_JOINABLE {
        return EINVAL;
    }
    store_int(attributes + DETACH_OFFSET, state, current::site());
    0
}

extern "C" fn pthread_attr_getdetachstate(attributes: usize, state: usize) -> c_int {
    let site = current::site();
    store_int(state, read(attributes + DETACH_OFFSET, site), site);
    0
}

extern "C" fn pthread_attr_setstacksize(attributes: usize, size: usize) -> c_int {
    if size < SMALLEST_STACK {
        return EINVAL;
    }
    store_word(attributes + STACK_SIZE_OFFSET, size, current::site());
    0
}

extern "C" fn pthread_attr_getstacksize(attributes: usize, size: usize) -> c_int {
    let site = current::site();
    store_word(size, read(attributes + STACK_SIZE_OFFSET, site), site);
    0
}

extern "C" fn pthread_attr_setguardsize(attributes: usize, size: usize) -> c_int {
    store_word(attributes + GUARD_SIZE_OFFSET, size, current::site());
    0
}

extern "C" fn pthread_attr_getguardsize(attributes: usize, size: usize) -> c_int {
    let site = current::site();
    store_word(size, read(attributes + GUARD_SIZE_OFFSET, site), site);
    0
}

extern "C" fn pthread_attr_setschedpolicy(attributes: usize, policy: c_int) -> c_int {
    if !(libc::SCHED_OTHER..=libc::SCHED_RR).contains(&policy) {
        return EINVAL;
    }
    store_int(attributes + POLICY_OFFSET, policy, current::site());
    0
}

extern "C" fn pthread_attr_setschedparam(attributes: usize, parameters: usize) -> c_int {
    let site = current::site();
    let priority = read(parameters, site);
    if !is_priority(priority, read(attributes + POLICY_OFFSET, site)) {
        return EINVAL;
    }
    store_int(attributes + PRIORITY_OFFSET, priority, site);
    0
}

extern "C" fn pthread_attr_setinheritsched(attributes: usize, inherit: c_int) -> c_int {
    if inherit != PTHREAD_INHERIT_SCHED && inherit != PTHREAD_EXPLICIT_SCHED {
        return EINVAL;
    }
    store_int(attributes + INHERIT_OFFSET, inherit, current::site());
    0
}

extern "C" fn pthread_attr_setscope(attributes: usize, scope: c_int) -> c_int {
    match scope {
        PTHREAD_SCOPE_SYSTEM => store_int(attributes + SCOPE_OFFSET, scope, current::site()),
        PTHREAD_SCOPE_PROCESS => return ENOTSUP,
        _ => return EINVAL,
    }
    0
}

extern "C" fn pthread_attr_setaffinity_np(attributes: usize, size: usize, set: usize) -> c_int {
    let site = current::site();
    let is_set = set != 0 && size != 0;
    if is_set {
        current::touch(set, size, false, site);
    }
    store_word(attributes + AFFINITY_OFFSET, is_set.into(), site);
    0
}
