//! Formatting into memory, and reading from it: `snprintf`, `asprintf`, `sscanf`.

use std::ffi::c_int;

use selvedge_core::Site;

use super::bytes::check_fits;
use super::format::{Arguments, announce_print, announce_scan};
use super::program::{self, check_not_null, read};
use super::{heap, host};
use crate::current;

entry_points![
    selvedge_vsnprintf(5),
    selvedge_vsnprintf_chk(6),
    selvedge_vasprintf(4),
    selvedge_vsscanf(4),
    vsnprintf(4),
    vsprintf(3),
    vasprintf(3),
    vsscanf(3),
    __vsnprintf_chk(6),
    __vsprintf_chk(5),
    __vasprintf_chk(4),
];

/// The size of a buffer of which nothing is known.
const UNBOUNDED: usize = c_int::MAX as usize;

/// Formats into a buffer of `size` bytes of which the compiler knew that `room` exist.
fn print(
    buffer: usize,
    size: usize,
    room: usize,
    format: usize,
    arguments: usize,
    site: Site,
) -> c_int {
    let arguments: Arguments = read(arguments, site);
    announce_print(format, arguments, site);
    let length = host::format(0, 0, format, arguments);
    let wanted = usize::try_from(length).map_or(0, |length| length + 1);
    let written = wanted.min(size);
    if written > 0 {
        check_fits(written, room, site);
        current::touch(buffer, written, true, site);
        check_not_null(buffer, site);
        host::format(buffer, written, format, arguments);
    }
    length
}

fn allocate(result: usize, format: usize, arguments: usize, site: Site) -> c_int {
    let list: Arguments = read(arguments, site);
    announce_print(format, list, site);
    let length = host::format(0, 0, format, list);
    let Ok(size) = usize::try_from(length) else {
        return -1;
    };
    let block = heap::allocate(size + 1, 16, site);
    if block == 0 {
        return -1;
    }
    print(block, size + 1, UNBOUNDED, format, arguments, site);
    program::store_word(result, block, site);
    length
}

fn scan(text: usize, format: usize, arguments: usize, site: Site) -> c_int {
    let arguments: Arguments = read(arguments, site);
    announce_scan(text, format, arguments, site);
    host::scan(text, format, arguments)
}

extern "C" fn selvedge_vsnprintf(
    buffer: usize,
    size: usize,
    format: usize,
    arguments: usize,
    site: usize,
) -> c_int {
    print(
        buffer,
        size,
        UNBOUNDED,
        format,
        arguments,
        Site(site as u64),
    )
}

extern "C" fn selvedge_vsnprintf_chk(
    buffer: usize,
    size: usize,
    room: usize,
    format: usize,
    arguments: usize,
    site: usize,
) -> c_int {
    print(buffer, size, room, format, arguments, Site(site as u64))
}

extern "C" fn selvedge_vasprintf(
    result: usize,
    format: usize,
    arguments: usize,
    site: usize,
) -> c_int {
    allocate(result, format, arguments, Site(site as u64))
}

extern "C" fn selvedge_vsscanf(text: usize, format: usize, arguments: usize, site: usize) -> c_int {
    scan(text, format, arguments, Site(site as u64))
}

extern "C" fn vsnprintf(buffer: usize, size: usize, format: usize, arguments: usize) -> c_int {
    print(buffer, size, UNBOUNDED, format, arguments, current::site())
}

extern "C" fn vsprintf(buffer: usize, format: usize, arguments: usize) -> c_int {
    print(
        buffer,
        UNBOUNDED,
        UNBOUNDED,
        format,
        arguments,
        current::site(),
    )
}

extern "C" fn vasprintf(result: usize, format: usize, arguments: usize) -> c_int {
    allocate(result, format, arguments, current::site())
}

extern "C" fn vsscanf(text: usize, format: usize, arguments: usize) -> c_int {
    scan(text, format, arguments, current::site())
}

extern "C" fn __vsnprintf_chk(
    buffer: usize,
    size: usize,
    _flag: c_int,
    room: usize,
    format: usize,
    arguments: usize,
) -> c_int {
    print(buffer, size, room, format, arguments, current::site())
}

extern "C" fn __vsprintf_chk(
    buffer: usize,
    _flag: c_int,
    room: usize,
    format: usize,
    arguments: usize,
) -> c_int {
    print(buffer, UNBOUNDED, room, format, arguments, current::site())
}

extern "C" fn __vasprintf_chk(
    result: usize,
    _flag: c_int,
    format: usize,
    arguments: usize,
) -> c_int {
    allocate(result, format, arguments, current::site())
}
