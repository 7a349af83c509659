//! The functions on wide strings that C++'s standard library is built on.

use std::ffi::c_int;

use super::bytes;
use super::program::{peek, poke};
use crate::current;

entry_points![
    wcslen(1),
    wcscmp(2),
    wcscpy(2),
    wmemcpy(3),
    wmemmove(3),
    wmemset(3),
    wmemcmp(3),
    wmemchr(3),
];

/// The size of a wide character.
pub(crate) const WIDE: usize = 4;

fn length(string: usize) -> usize {
    bounded_length(string, usize::MAX)
}

/// The length of a string, looking at no more than `limit` characters.
pub(crate) fn bounded_length(string: usize, limit: usize) -> usize {
    let mut length = 0;
    while length < limit && peek::<i32>(string + WIDE * length) != 0 {
        length += 1;
    }
    length
}

extern "C" fn wcslen(string: usize) -> usize {
    let site = current::site();
    let length = length(string);
    current::touch(string, WIDE * (length + 1), false, site);
    length
}

extern "C" fn wcscmp(one: usize, other: usize) -> c_int {
    let site = current::site();
    let shared = length(one).min(length(other)) + 1;
    compare(one, other, shared, site)
}

fn compare(one: usize, other: usize, count: usize, site: selvedge_core::Site) -> c_int {
    current::touch(one, WIDE * count, false, site);
    current::touch(other, WIDE * count, false, site);
    let at = |start: usize, index: usize| peek::<i32>(start + WIDE * index);
    let order = (0..count)
        .map(|i| at(one, i).cmp(&at(other, i)))
        .find(|order| order.is_ne());
    order.map_or(0, |order| order as c_int)
}

extern "C" fn wcscpy(to: usize, from: usize) -> usize {
    let site = current::site();
    bytes::copy(to, from, WIDE * (length(from) + 1), site);
    to
}

extern "C" fn wmemcpy(to: usize, from: usize, count: usize) -> usize {
    bytes::copy(to, from, WIDE * count, current::site());
    to
}

extern "C" fn wmemmove(to: usize, from: usize, count: usize) -> usize {
    wmemcpy(to, from, count)
}

extern "C" fn wmemset(to: usize, value: i32, count: usize) -> usize {
    current::touch(to, WIDE * count, true, current::site());
    for index in 0..count {
        poke(to + WIDE * index, value);
    }
    to
}

extern "C" fn wmemcmp(one: usize, other: usize, count: usize) -> c_int {
    compare(one, other, count, current::site())
}

extern "C" fn wmemchr(at: usize, value: i32, count: usize) -> usize {
    current::touch(at, WIDE * count, false, current::site());
    let found = (0..count).find(|&index| peek::<i32>(at + WIDE * index) == value);
    found.map_or(0, |index| at + WIDE * index)
}
