//! Thread-specific data.

use std::ffi::c_int;

use libc::{EAGAIN, EINVAL};
use serde::{Deserialize, Serialize};

use super::program;
use super::state::{local, process};
use crate::abi::EntryPoint;
use crate::current;

entry_points![
    pthread_key_create(2),
    pthread_key_delete(1),
    pthread_getspecific(1),
    pthread_setspecific(2),
];
/// glibc's other name of the first one, which libgcc's thread support asks for.
pub(crate) fn aliases() -> Vec<EntryPoint> {
    let create = pthread_key_create as *const () as usize;
    vec![("__pthread_key_create", create, 2)]
}

const KEYS_PER_THREAD: u32 = 1024;
const DESTRUCTOR_ITERATIONS: u32 = 4;

/// A key that exists. Its number is made of its creator's and of how many that one had created
/// before, so that it does not depend on the interleaving.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    number: u32,
    destructor: usize,
}

/// A thread's value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Specific {
    key: u32,
    value: usize,
}

/// Creates a key; `None` if the thread has created too many.
pub(crate) fn create(destructor: usize) -> Option<u32> {
    let index = local(|local| {
        local.keys += 1;
        local.keys - 1
    });
    if index >= KEYS_PER_THREAD {
        return None;
    }
    let number = current::thread().0 * KEYS_PER_THREAD + index;
    process(|process| process.keys.push(Key { number, destructor }));
    Some(number)
}

/// Deletes a key; says whether it existed.
pub(crate) fn delete(number: u32) -> bool {
    process(|process| {
        let before = process.keys.len();
        process.keys.retain(|key| key.number != number);
        process.keys.len() < before
    })
}

/// The running thread's value of a key.
pub(crate) fn get(key: u32) -> usize {
    local(|local| {
        local
            .specific
            .iter()
            .find(|s| s.key == key)
            .map_or(0, |s| s.value)
    })
}

/// Sets the running thread's value of a key; says whether the key exists.
pub(crate) fn set(key: u32, value: usize) -> bool {
    if !process(|process| process.keys.iter().any(|k| k.number == key)) {
        return false;
    }
    current::impure();
    local(
        |local| match local.specific.iter_mut().find(|s| s.key == key) {
            Some(specific) => specific.value = value,
            None => local.specific.push(Specific { key, value }),
        },
    );
    true
}

/// Runs the destructors of the running thread's values.
pub(crate) fn run_destructors() {
    for _ in 0..DESTRUCTOR_ITERATIONS {
        if !run_destructors_once() {
            return;
        }
    }
}

fn run_destructors_once() -> bool {
    let mut ran = false;
    let mut index = 0;
    while let Some(specific) = take_value(index) {
        index += 1;
        let destructor = process(|process| {
            process
                .keys
                .iter()
                .find(|k| k.number == specific.key)
                .map_or(0, |k| k.destructor)
        });
        if destructor != 0 && specific.value != 0 {
            program::call(destructor, specific.value);
            ran = true;
        }
    }
    ran
}

/// The `index`-th value, which becomes null before its destructor runs.
fn take_value(index: usize) -> Option<Specific> {
    local(|local| {
        let slot = local.specific.get_mut(index)?;
        let specific = *slot;
        slot.value = 0;
        Some(specific)
    })
}

extern "C" fn pthread_key_create(result: usize, destructor: usize) -> c_int {
    let site = current::site();
    match create(destructor) {
        Some(number) => {
            program::store_int(result, number.cast_signed(), site);
            0
        }
        None => EAGAIN,
    }
}

extern "C" fn pthread_key_delete(key: u32) -> c_int {
    if delete(key) { 0 } else { EINVAL }
}

extern "C" fn pthread_getspecific(key: u32) -> usize {
    get(key)
}

extern "C" fn pthread_setspecific(key: u32, value: usize) -> c_int {
    if set(key, value) { 0 } else { EINVAL }
}
