//! Functions on strings. What they read and write is announced as the program's own accesses.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::with_exposed_provenance;

use selvedge_core::Site;

use super::bytes::{check_fits, copy, set};
use super::program::{self, check_not_null, peek};
use crate::current;

entry_points![
    strlen(1),
    strnlen(2),
    strcmp(2),
    strncmp(3),
    strcasecmp(2),
    strncasecmp(3),
    strcoll(2),
    __strcoll_l(3),
    strxfrm(3),
    __strxfrm_l(4),
    strcpy(2),
    stpcpy(2),
    strncpy(3),
    stpncpy(3),
    strcat(2),
    strncat(3),
    strchr(2),
    strchrnul(2),
    index(2),
    strrchr(2),
    rindex(2),
    strstr(2),
    strcasestr(2),
    strspn(2),
    strcspn(2),
    strpbrk(2),
    strtok_r(3),
    strsep(2),
    strlcpy(3),
    strlcat(3),
    __strcpy_chk(3),
    __stpcpy_chk(3),
    __strncpy_chk(4),
    __strcat_chk(3),
    __strncat_chk(4),
    __strtok_r(3),
    selvedge_strtok(4),
];

/// The length of a string, without announcing that it is read.
pub(crate) fn length(string: usize) -> usize {
    check_not_null(string, current::site());
    // SAFETY: not null; if there is no end, reading faults.
    unsafe { libc::strlen(with_exposed_provenance(string)) }
}

/// The same, looking at no more than `limit` bytes.
pub(crate) fn bounded_length(string: usize, limit: usize) -> usize {
    if limit == 0 {
        return 0;
    }
    check_not_null(string, current::site());
    // SAFETY: not null; if there is no end, reading faults.
    unsafe { libc::strnlen(with_exposed_provenance(string), limit) }
}

/// The string's bytes without its end.
fn view<'a>(string: usize) -> &'a [u8] {
    check_not_null(string, current::site());
    // SAFETY: not null; nothing writes while the slice is in use, because nothing else runs.
    unsafe { CStr::from_ptr(with_exposed_provenance::<c_char>(string)) }.to_bytes()
}

/// The length of a string that is read to its end.
pub(crate) fn read_length(string: usize, site: Site) -> usize {
    let length = length(string);
    current::touch(string, length + 1, false, site);
    length
}

/// The string's bytes, read to its end.
pub(crate) fn read_view<'a>(string: usize, site: Site) -> &'a [u8] {
    let bytes = view(string);
    current::touch(string, bytes.len() + 1, false, site);
    bytes
}

fn compare(one: usize, other: usize, limit: usize, fold: fn(u8) -> u8) -> c_int {
    let site = current::site();
    let mut result = 0;
    let mut looked_at = 0;
    while looked_at < limit && result == 0 {
        let a = fold(peek(one + looked_at));
        let b = fold(peek(other + looked_at));
        looked_at += 1;
        result = c_int::from(a) - c_int::from(b);
        if a == 0 {
            break;
        }
    }
    current::touch(one, looked_at, false, site);
    current::touch(other, looked_at, false, site);
    result
}

fn same(byte: u8) -> u8 {
    byte
}

fn lower(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

extern "C" fn strlen(string: usize) -> usize {
    read_length(string, current::site())
}

extern "C" fn strnlen(string: usize, limit: usize) -> usize {
    let site = current::site();
    let length = bounded_length(string, limit);
    current::touch(string, limit.min(length + 1), false, site);
    length
}

extern "C" fn strcmp(one: usize, other: usize) -> c_int {
    compare(one, other, usize::MAX, same)
}

extern "C" fn strncmp(one: usize, other: usize, limit: usize) -> c_int {
    compare(one, other, limit, same)
}

extern "C" fn strcasecmp(one: usize, other: usize) -> c_int {
    compare(one, other, usize::MAX, lower)
}

extern "C" fn strncasecmp(one: usize, other: usize, limit: usize) -> c_int {
    compare(one, other, limit, lower)
}

extern "C" fn strcoll(one: usize, other: usize) -> c_int {
    compare(one, other, usize::MAX, same)
}

extern "C" fn __strcoll_l(one: usize, other: usize, _locale: usize) -> c_int {
    strcoll(one, other)
}

/// In the one locale that there is, a string is its own key.
extern "C" fn strxfrm(to: usize, from: usize, size: usize) -> usize {
    let site = current::site();
    let length = read_length(from, site);
    copy(to, from, size.min(length + 1), site);
    length
}

extern "C" fn __strxfrm_l(to: usize, from: usize, size: usize, _locale: usize) -> usize {
    strxfrm(to, from, size)
}

/// Copies a string with its end; where the copy's end lies.
fn copy_string(to: usize, from: usize, site: Site) -> usize {
    let length = length(from);
    copy(to, from, length + 1, site);
    to + length
}

extern "C" fn strcpy(to: usize, from: usize) -> usize {
    copy_string(to, from, current::site());
    to
}

extern "C" fn stpcpy(to: usize, from: usize) -> usize {
    copy_string(to, from, current::site())
}

/// Copies up to `size` bytes of a string and fills the rest; where the copy's end lies.
fn copy_padded(to: usize, from: usize, size: usize, site: Site) -> usize {
    let length = bounded_length(from, size);
    copy(to, from, size.min(length + 1), site);
    set(to + length, 0, size - length, site);
    to + length
}

extern "C" fn strncpy(to: usize, from: usize, size: usize) -> usize {
    copy_padded(to, from, size, current::site());
    to
}

extern "C" fn stpncpy(to: usize, from: usize, size: usize) -> usize {
    copy_padded(to, from, size, current::site())
}

extern "C" fn strcat(to: usize, from: usize) -> usize {
    let site = current::site();
    copy_string(to + read_length(to, site), from, site);
    to
}

/// Appends up to `size` bytes of a string, and an end.
fn append(to: usize, from: usize, size: usize, site: Site) {
    let end = to + read_length(to, site);
    let length = bounded_length(from, size);
    current::touch(from, size.min(length + 1), false, site);
    copy(end, from, length, site);
    program::write::<u8>(end + length, 0, site);
}

extern "C" fn strncat(to: usize, from: usize, size: usize) -> usize {
    append(to, from, size, current::site());
    to
}

/// Where `byte` (or the string's end) comes first.
fn find(string: usize, byte: c_int, site: Site) -> usize {
    let bytes = view(string);
    let wanted = byte as u8;
    let offset = bytes
        .iter()
        .position(|&b| b == wanted)
        .unwrap_or(bytes.len());
    current::touch(string, offset + 1, false, site);
    string + offset
}

extern "C" fn strchr(string: usize, byte: c_int) -> usize {
    let found = find(string, byte, current::site());
    if peek::<u8>(found) == byte as u8 {
        found
    } else {
        0
    }
}

extern "C" fn strchrnul(string: usize, byte: c_int) -> usize {
    find(string, byte, current::site())
}

extern "C" fn index(string: usize, byte: c_int) -> usize {
    strchr(string, byte)
}

extern "C" fn strrchr(string: usize, byte: c_int) -> usize {
    let bytes = read_view(string, current::site());
    if byte as u8 == 0 {
        return string + bytes.len();
    }
    bytes
        .iter()
        .rposition(|&b| b == byte as u8)
        .map_or(0, |offset| string + offset)
}

extern "C" fn rindex(string: usize, byte: c_int) -> usize {
    strrchr(string, byte)
}

fn find_string(string: usize, wanted: usize, equal: fn(&[u8], &[u8]) -> bool) -> usize {
    let site = current::site();
    let (bytes, wanted) = (read_view(string, site), read_view(wanted, site));
    if wanted.is_empty() {
        return string;
    }
    let found = bytes
        .windows(wanted.len())
        .position(|window| equal(window, wanted));
    found.map_or(0, |offset| string + offset)
}

extern "C" fn strstr(string: usize, wanted: usize) -> usize {
    find_string(string, wanted, |a, b| a == b)
}

extern "C" fn strcasestr(string: usize, wanted: usize) -> usize {
    find_string(string, wanted, <[u8]>::eq_ignore_ascii_case)
}

/// How many bytes at the start of the string are (or are not) among those of `set`.
fn span(string: usize, set: usize, among: bool, site: Site) -> usize {
    let set = read_view(set, site);
    let bytes = view(string);
    let stop = bytes.iter().position(|b| set.contains(b) != among);
    let offset = stop.unwrap_or(bytes.len());
    current::touch(string, offset + 1, false, site);
    offset
}

extern "C" fn strspn(string: usize, set: usize) -> usize {
    span(string, set, true, current::site())
}

extern "C" fn strcspn(string: usize, set: usize) -> usize {
    span(string, set, false, current::site())
}

extern "C" fn strpbrk(string: usize, set: usize) -> usize {
    let found = string + span(string, set, false, current::site());
    if peek::<u8>(found) == 0 { 0 } else { found }
}

extern "C" fn strtok_r(string: usize, set: usize, rest: usize) -> usize {
    next_token(string, set, rest, current::site())
}

/// `strtok`, whose state is a variable of the shim.
extern "C" fn selvedge_strtok(string: usize, set: usize, rest: usize, site: usize) -> usize {
    next_token(string, set, rest, Site(site as u64))
}

fn next_token(string: usize, set: usize, rest: usize, site: Site) -> usize {
    let string = if string == 0 {
        program::read(rest, site)
    } else {
        string
    };
    if string == 0 {
        return 0;
    }
    let token = string + span(string, set, true, site);
    if peek::<u8>(token) == 0 {
        program::store_word(rest, token, site);
        return 0;
    }
    let end = token + span(token, set, false, site);
    let more = peek::<u8>(end) != 0;
    if more {
        program::write::<u8>(end, 0, site);
    }
    program::store_word(rest, end + usize::from(more), site);
    token
}

extern "C" fn __strtok_r(string: usize, set: usize, rest: usize) -> usize {
    strtok_r(string, set, rest)
}

extern "C" fn strsep(place: usize, set: usize) -> usize {
    let site = current::site();
    let token: usize = program::read(place, site);
    if token == 0 {
        return 0;
    }
    let end = token + span(token, set, false, site);
    let more = peek::<u8>(end) != 0;
    if more {
        program::write::<u8>(end, 0, site);
    }
    program::store_word(place, if more { end + 1 } else { 0 }, site);
    token
}

extern "C" fn strlcpy(to: usize, from: usize, size: usize) -> usize {
    copy_bounded(to, from, size, current::site())
}

extern "C" fn strlcat(to: usize, from: usize, size: usize) -> usize {
    let site = current::site();
    let used = bounded_length(to, size);
    current::touch(to, size.min(used + 1), false, site);
    used + copy_bounded(to + used, from, size - used, site)
}

/// Copies what fits into `size` bytes with an end; the length of the whole string.
fn copy_bounded(to: usize, from: usize, size: usize, site: Site) -> usize {
    let length = read_length(from, site);
    if size > 0 {
        let fits = length.min(size - 1);
        copy(to, from, fits, site);
        program::write::<u8>(to + fits, 0, site);
    }
    length
}

extern "C" fn __strcpy_chk(to: usize, from: usize, room: usize) -> usize {
    __stpcpy_chk(to, from, room);
    to
}

extern "C" fn __stpcpy_chk(to: usize, from: usize, room: usize) -> usize {
    let site = current::site();
    check_fits(length(from) + 1, room, site);
    copy_string(to, from, site)
}

extern "C" fn __strncpy_chk(to: usize, from: usize, size: usize, room: usize) -> usize {
    let site = current::site();
    check_fits(size, room, site);
    copy_padded(to, from, size, site);
    to
}

extern "C" fn __strcat_chk(to: usize, from: usize, room: usize) -> usize {
    check_fits(length(to) + length(from) + 1, room, current::site());
    strcat(to, from)
}

extern "C" fn __strncat_chk(to: usize, from: usize, size: usize, room: usize) -> usize {
    let site = current::site();
    check_fits(length(to) + bounded_length(from, size) + 1, room, site);
    append(to, from, size, site);
    to
}
