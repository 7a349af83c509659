//! Between bytes and wide characters. There is one locale, "C", in which a character is a byte.

use std::ffi::c_int;

use libc::EILSEQ;
use selvedge_core::Site;

use super::host;
use super::program::{self, peek, set_errno};
use super::{strings, wide};
use crate::current;

entry_points![
    mblen(2),
    mbtowc(3),
    mbrlen(3),
    mbrtowc(4),
    wctomb(2),
    wcrtomb(3),
    mbstowcs(3),
    wcstombs(3),
];

/// The result of functions that return a size on an error, and where there are no bytes to look at.
const INVALID: usize = usize::MAX;
const INCOMPLETE: usize = usize::MAX - 1;
/// The size of an `mbstate_t`, which never changes in this locale.
const STATE: usize = 8;

fn read_state(state: usize, site: Site) {
    if state != 0 {
        current::touch(state, STATE, false, site);
    }
}

/// Reads a character and stores what it means, unless `to` is null; how many bytes it takes.
fn decode(to: usize, from: usize, size: usize, site: Site) -> usize {
    if size == 0 {
        return INCOMPLETE;
    }
    let byte: u8 = program::read(from, site);
    let Some(character) = host::wide_of(byte) else {
        set_errno(EILSEQ);
        return INVALID;
    };
    if to != 0 {
        program::store_int(to, character, site);
    }
    usize::from(byte != 0)
}

/// The convention of functions that return an `int`.
fn or_minus_one(size: usize) -> c_int {
    match size {
        INVALID | INCOMPLETE => -1,
        size => size as c_int,
    }
}

extern "C" fn mblen(from: usize, size: usize) -> c_int {
    mbtowc(0, from, size)
}

extern "C" fn mbtowc(to: usize, from: usize, size: usize) -> c_int {
    match from {
        0 => 0,
        _ => or_minus_one(decode(to, from, size, current::site())),
    }
}

extern "C" fn mbrlen(from: usize, size: usize, state: usize) -> usize {
    mbrtowc(0, from, size, state)
}

extern "C" fn mbrtowc(to: usize, from: usize, size: usize, state: usize) -> usize {
    let site = current::site();
    read_state(state, site);
    match from {
        0 => 0,
        _ => decode(to, from, size, site),
    }
}

/// Stores the byte of a character; how many bytes that are.
fn encode(to: usize, character: c_int, site: Site) -> usize {
    let Some(byte) = host::byte_of(character) else {
        set_errno(EILSEQ);
        return INVALID;
    };
    program::write(to, byte, site);
    1
}

extern "C" fn wctomb(to: usize, character: c_int) -> c_int {
    match to {
        0 => 0,
        _ => or_minus_one(encode(to, character, current::site())),
    }
}

extern "C" fn wcrtomb(to: usize, character: c_int, state: usize) -> usize {
    let site = current::site();
    read_state(state, site);
    match to {
        0 => 1,
        _ => encode(to, character, site),
    }
}

/// Converts a string of `length` characters, and its end, as far as `room` characters go; how many
/// there are without the end.
fn convert<T: Copy>(
    (to, room): (usize, usize),
    length: usize,
    character: impl Fn(usize) -> Option<T>,
    site: Site,
) -> usize {
    let converted = if to == 0 { length } else { length.min(room) };
    if (0..converted).any(|nth| character(nth).is_none()) {
        set_errno(EILSEQ);
        return INVALID;
    }
    if to != 0 {
        let written = room.min(length + 1);
        current::touch(to, written * size_of::<T>(), true, site);
        for (nth, value) in (0..written).filter_map(|nth| Some((nth, character(nth)?))) {
            program::poke(to + nth * size_of::<T>(), value);
        }
    }
    converted
}

extern "C" fn mbstowcs(to: usize, from: usize, room: usize) -> usize {
    let site = current::site();
    let limit = if to == 0 { usize::MAX } else { room };
    let length = strings::bounded_length(from, limit);
    current::touch(from, limit.min(length.saturating_add(1)), false, site);
    let character = |nth: usize| host::wide_of(peek(from + nth));
    convert((to, room), length, character, site)
}

extern "C" fn wcstombs(to: usize, from: usize, room: usize) -> usize {
    let site = current::site();
    let limit = if to == 0 { usize::MAX } else { room };
    let length = wide::bounded_length(from, limit);
    current::touch(from, wide::WIDE * limit.min(length + 1), false, site);
    let character = |nth: usize| host::byte_of(peek(from + wide::WIDE * nth));
    convert((to, room), length, character, site)
}
