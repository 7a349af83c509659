//! Thread attributes. All are accepted. Only the detach state and the stack size have an effect.

use std::ffi::c_int;

use libc::EINVAL;

use super::program::{read, store_int, store_word, write};
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
const DEFAULT_STACK_SIZE: usize = 8 << 20;
const SMALLEST_STACK: usize = 16 << 10;

/// Whether the attributes at `address` (or null) ask for a thread that nobody joins.
pub(crate) fn detached(address: usize) -> bool {
    address != 0
        && read::<c_int>(address + DETACH_OFFSET, current::site()) == libc::PTHREAD_CREATE_DETACHED
}

/// How large a stack the attributes at `address` (or null) ask for.
pub(crate) fn stack_size(address: usize) -> Option<usize> {
    (address != 0).then(|| read(address + STACK_SIZE_OFFSET, current::site()))
}

extern "C" fn pthread_attr_init(attributes: usize) -> c_int {
    let mut words = [0_usize; SIZE / 8];
    words[STACK_SIZE_OFFSET / 8] = DEFAULT_STACK_SIZE;
    write(attributes, words, current::site());
    0
}

extern "C" fn pthread_attr_destroy(_attributes: usize) -> c_int {
    0
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

extern "C" fn pthread_attr_setschedpolicy(_attributes: usize, _policy: c_int) -> c_int {
    0
}

extern "C" fn pthread_attr_setschedparam(_attributes: usize, _parameters: usize) -> c_int {
    0
}

extern "C" fn pthread_attr_setinheritsched(_attributes: usize, _inherit: c_int) -> c_int {
    0
}

extern "C" fn pthread_attr_setscope(_attributes: usize, _scope: c_int) -> c_int {
    0
}

extern "C" fn pthread_attr_setaffinity_np(_attributes: usize, _size: usize, _set: usize) -> c_int {
    0
}
