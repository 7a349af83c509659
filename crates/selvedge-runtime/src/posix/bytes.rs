//! Functions on bytes. `memcpy`, `memmove` and `memset` themselves are among the callbacks of the
//! instrumentation, which calls them by other names.

use std::ffi::c_int;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use selvedge_core::{FailureKind, Site};

use super::program::check_not_null;
use crate::current;

entry_points![
    mempcpy(3),
    memcmp(3),
    bcmp(3),
    bcopy(3),
    bzero(2),
    explicit_bzero(2),
    memchr(3),
    memrchr(3),
    rawmemchr(2),
    memmem(4),
    memccpy(4),
    __memcpy_chk(4),
    __memmove_chk(4),
    __memset_chk(4),
    __mempcpy_chk(4),
    __explicit_bzero_chk(3),
];

/// Copies `size` bytes, which may overlap, as the program's own access.
pub(crate) fn copy(to: usize, from: usize, size: usize, site: Site) {
    if size == 0 {
        return;
    }
    current::touch(from, size, false, site);
    current::touch(to, size, true, site);
    check_not_null(from, site);
    check_not_null(to, site);
    // SAFETY: neither is null; wild addresses fault, and the fault is the program's.
    unsafe {
        let from = with_exposed_provenance::<u8>(from);
        libc::memmove(with_exposed_provenance_mut(to), from.cast(), size);
    }
}

/// Writes bytes of the runtime's own to the program's memory, as the program's own access.
pub(crate) fn write(to: usize, bytes: &[u8], site: Site) {
    if bytes.is_empty() {
        return;
    }
    current::touch(to, bytes.len(), true, site);
    check_not_null(to, site);
    // SAFETY: not null; a wild address faults, and the fault is the program's.
    unsafe { with_exposed_provenance_mut::<u8>(to).copy_from(bytes.as_ptr(), bytes.len()) };
}

/// Sets `size` bytes as the program's own access.
pub(crate) fn set(to: usize, byte: c_int, size: usize, site: Site) {
    if size == 0 {
        return;
    }
    current::touch(to, size, true, site);
    check_not_null(to, site);
    // SAFETY: not null; a wild address faults, and the fault is the program's.
    unsafe { libc::memset(with_exposed_provenance_mut(to), byte, size) };
}

/// The bytes from `at` on, for a search that stops within `size`.
fn view<'a>(at: usize, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    check_not_null(at, current::site());
    // SAFETY: not null; nothing writes while the slice is in use, because nothing else runs. The
    // program claims `size` bytes; if they are not there, reading them faults.
    unsafe {
        std::slice::from_raw_parts(with_exposed_provenance(at), size.min(isize::MAX as usize))
    }
}

/// Reports a call that would overrun a destination whose size the compiler knew.
pub(crate) fn check_fits(size: usize, room: usize, site: Site) {
    if size > room {
        let what = format!("a C library function writes {size} bytes into an object of {room}");
        current::fail(FailureKind::WildAccess, what, site);
    }
}

extern "C" fn mempcpy(to: usize, from: usize, size: usize) -> usize {
    copy(to, from, size, current::site());
    to + size
}

extern "C" fn bcopy(from: usize, to: usize, size: usize) {
    copy(to, from, size, current::site());
}

extern "C" fn bzero(to: usize, size: usize) {
    set(to, 0, size, current::site());
}

extern "C" fn explicit_bzero(to: usize, size: usize) {
    set(to, 0, size, current::site());
}

extern "C" fn memcmp(one: usize, other: usize, size: usize) -> c_int {
    let site = current::site();
    current::touch(one, size, false, site);
    current::touch(other, size, false, site);
    let (one, other) = (view(one, size), view(other, size));
    let differing = one.iter().zip(other).find(|(a, b)| a != b);
    differing.map_or(0, |(&a, &b)| c_int::from(a) - c_int::from(b))
}

extern "C" fn bcmp(one: usize, other: usize, size: usize) -> c_int {
    memcmp(one, other, size)
}

extern "C" fn memchr(at: usize, byte: c_int, size: usize) -> usize {
    let site = current::site();
    let found = find(at, byte, size, site);
    current::touch(at, found.map_or(size, |offset| offset + 1), false, site);
    found.map_or(0, |offset| at + offset)
}

/// Where `byte` comes first; bytes beyond that need not exist.
fn find(at: usize, byte: c_int, size: usize, site: Site) -> Option<usize> {
    if size == 0 {
        return None;
    }
    check_not_null(at, site);
    // SAFETY: not null; if the memory ends before the byte, reading faults.
    let found = unsafe { libc::memchr(with_exposed_provenance(at), byte, size) };
    (!found.is_null()).then(|| found.addr() - at)
}

extern "C" fn memrchr(at: usize, byte: c_int, size: usize) -> usize {
    current::touch(at, size, false, current::site());
    view(at, size)
        .iter()
        .rposition(|&b| b == byte as u8)
        .map_or(0, |offset| at + offset)
}

extern "C" fn rawmemchr(at: usize, byte: c_int) -> usize {
    memchr(at, byte, usize::MAX - at)
}

extern "C" fn memmem(at: usize, size: usize, wanted: usize, length: usize) -> usize {
    let site = current::site();
    current::touch(at, size, false, site);
    current::touch(wanted, length, false, site);
    if length == 0 {
        return at;
    }
    let wanted = view(wanted, length);
    let found = view(at, size)
        .windows(length)
        .position(|window| window == wanted);
    found.map_or(0, |offset| at + offset)
}

extern "C" fn memccpy(to: usize, from: usize, byte: c_int, size: usize) -> usize {
    let site = current::site();
    let found = find(from, byte, size, site);
    let size = found.map_or(size, |offset| offset + 1);
    copy(to, from, size, site);
    found.map_or(0, |_| to + size)
}

extern "C" fn __memcpy_chk(to: usize, from: usize, size: usize, room: usize) -> usize {
    let site = current::site();
    check_fits(size, room, site);
    copy(to, from, size, site);
    to
}

extern "C" fn __memmove_chk(to: usize, from: usize, size: usize, room: usize) -> usize {
    __memcpy_chk(to, from, size, room)
}

extern "C" fn __mempcpy_chk(to: usize, from: usize, size: usize, room: usize) -> usize {
    __memcpy_chk(to, from, size, room) + size
}

extern "C" fn __memset_chk(to: usize, byte: c_int, size: usize, room: usize) -> usize {
    let site = current::site();
    check_fits(size, room, site);
    set(to, byte, size, site);
    to
}

extern "C" fn __explicit_bzero_chk(to: usize, size: usize, room: usize) {
    __memset_chk(to, 0, size, room);
}
