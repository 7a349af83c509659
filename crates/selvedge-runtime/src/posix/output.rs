//! Output: it is formatted in every execution, and shown only on replay.

use std::ffi::{c_char, c_int};
use std::ptr::with_exposed_provenance;

use selvedge_core::Site;

use super::format::{Arguments, announce_print};
use super::host;
use super::program::{check_not_null, read};
use super::state::local;
use super::strings;
use crate::current;

entry_points![
    selvedge_vfprintf(4),
    selvedge_vprintf(3),
    selvedge_vdprintf(4),
    vprintf(2),
    vfprintf(3),
    vdprintf(3),
    __vprintf_chk(3),
    __vfprintf_chk(4),
    __vdprintf_chk(4),
    puts(1),
    putchar(1),
    putchar_unlocked(1),
    putc(2),
    putc_unlocked(2),
    _IO_putc(2),
    fputc(2),
    fputc_unlocked(2),
    fputs(2),
    fputs_unlocked(2),
    fwrite(4),
    fwrite_unlocked(4),
    fflush(1),
    fflush_unlocked(1),
    perror(1),
    write(3),
    writev(3),
    setvbuf(4),
    setbuf(2),
    setbuffer(3),
    setlinebuf(1),
    fileno(1),
    fileno_unlocked(1),
    isatty(1),
    ferror(1),
    ferror_unlocked(1),
    feof(1),
    feof_unlocked(1),
    clearerr(1),
    flockfile(1),
    funlockfile(1),
    ftrylockfile(1),
    selvedge_warn(4),
];

const STDOUT: c_int = 1;
const STDERR: c_int = 2;

/// The descriptor behind a stream. Files cannot be opened, so there are only the standard ones.
fn descriptor(stream: usize, site: Site) -> c_int {
    check_not_null(stream, site);
    if stream == host::standard_output() {
        STDOUT
    } else if stream == host::standard_error() {
        STDERR
    } else {
        current::refuse(
            String::from("output to a stream other than stdout and stderr"),
            site,
        )
    }
}

/// Writes `size` bytes of the program's memory, which were announced.
pub(crate) fn emit(descriptor: c_int, bytes: usize, size: usize, site: Site) {
    current::impure();
    if descriptor != STDOUT && descriptor != STDERR {
        current::refuse(format!("output to descriptor {descriptor}"), site);
    }
    if !current::output_shown() {
        return;
    }
    let (mut from, end) = (bytes, bytes + size);
    while from < end {
        // SAFETY: the program's bytes; a bad address is an error of the call, not a fault.
        let wrote = unsafe { libc::write(descriptor, with_exposed_provenance(from), end - from) };
        match usize::try_from(wrote) {
            Ok(count) if count > 0 => from += count,
            _ => return,
        }
    }
}

/// Formats and writes; the number of characters.
fn print(descriptor: c_int, format: usize, arguments: usize, site: Site) -> c_int {
    let arguments: Arguments = read(arguments, site);
    announce_print(format, arguments, site);
    current::impure();
    if !current::output_shown() {
        return host::format(0, 0, format, arguments);
    }
    let length = host::format(0, 0, format, arguments);
    let mut text = vec![0_u8; usize::try_from(length).unwrap_or(0) + 1];
    let start = text.as_mut_ptr().expose_provenance();
    host::format(start, text.len(), format, arguments);
    emit(descriptor, start, text.len() - 1, site);
    length
}

extern "C" fn selvedge_vprintf(format: usize, arguments: usize, site: usize) -> c_int {
    print(STDOUT, format, arguments, Site(site as u64))
}

extern "C" fn selvedge_vfprintf(
    stream: usize,
    format: usize,
    arguments: usize,
    site: usize,
) -> c_int {
    let site = Site(site as u64);
    print(descriptor(stream, site), format, arguments, site)
}

extern "C" fn selvedge_vdprintf(
    descriptor: c_int,
    format: usize,
    arguments: usize,
    site: usize,
) -> c_int {
    print(descriptor, format, arguments, Site(site as u64))
}

extern "C" fn vprintf(format: usize, arguments: usize) -> c_int {
    print(STDOUT, format, arguments, current::site())
}

extern "C" fn vfprintf(stream: usize, format: usize, arguments: usize) -> c_int {
    let site = current::site();
    print(descriptor(stream, site), format, arguments, site)
}

extern "C" fn vdprintf(descriptor: c_int, format: usize, arguments: usize) -> c_int {
    print(descriptor, format, arguments, current::site())
}

extern "C" fn __vprintf_chk(_flag: c_int, format: usize, arguments: usize) -> c_int {
    vprintf(format, arguments)
}

extern "C" fn __vfprintf_chk(
    stream: usize,
    _flag: c_int,
    format: usize,
    arguments: usize,
) -> c_int {
    vfprintf(stream, format, arguments)
}

extern "C" fn __vdprintf_chk(
    descriptor: c_int,
    _flag: c_int,
    format: usize,
    arguments: usize,
) -> c_int {
    vdprintf(descriptor, format, arguments)
}

fn put_string(descriptor: c_int, string: usize, site: Site) {
    let length = strings::read_length(string, site);
    emit(descriptor, string, length, site);
}

fn put_byte(descriptor: c_int, byte: c_int, site: Site) -> c_int {
    let byte = byte as u8;
    emit(descriptor, (&raw const byte).expose_provenance(), 1, site);
    byte.into()
}

extern "C" fn puts(string: usize) -> c_int {
    let site = current::site();
    put_string(STDOUT, string, site);
    put_byte(STDOUT, b'\n'.into(), site);
    1
}

extern "C" fn putchar(byte: c_int) -> c_int {
    put_byte(STDOUT, byte, current::site())
}

extern "C" fn putchar_unlocked(byte: c_int) -> c_int {
    putchar(byte)
}

extern "C" fn putc(byte: c_int, stream: usize) -> c_int {
    let site = current::site();
    put_byte(descriptor(stream, site), byte, site)
}

extern "C" fn putc_unlocked(byte: c_int, stream: usize) -> c_int {
    putc(byte, stream)
}

#[expect(non_snake_case, reason = "that is its name")]
extern "C" fn _IO_putc(byte: c_int, stream: usize) -> c_int {
    putc(byte, stream)
}

extern "C" fn fputc(byte: c_int, stream: usize) -> c_int {
    putc(byte, stream)
}

extern "C" fn fputc_unlocked(byte: c_int, stream: usize) -> c_int {
    putc(byte, stream)
}

extern "C" fn fputs(string: usize, stream: usize) -> c_int {
    let site = current::site();
    put_string(descriptor(stream, site), string, site);
    1
}

extern "C" fn fputs_unlocked(string: usize, stream: usize) -> c_int {
    fputs(string, stream)
}

extern "C" fn fwrite(bytes: usize, size: usize, count: usize, stream: usize) -> usize {
    let site = current::site();
    let total = size.saturating_mul(count);
    current::touch(bytes, total, false, site);
    emit(descriptor(stream, site), bytes, total, site);
    if size == 0 { 0 } else { count }
}

extern "C" fn fwrite_unlocked(bytes: usize, size: usize, count: usize, stream: usize) -> usize {
    fwrite(bytes, size, count, stream)
}

extern "C" fn fflush(_stream: usize) -> c_int {
    0
}

extern "C" fn fflush_unlocked(_stream: usize) -> c_int {
    0
}

extern "C" fn perror(string: usize) {
    let site = current::site();
    if string != 0 && read::<u8>(string, site) != 0 {
        put_string(STDERR, string, site);
        emit_text(": ", site);
    }
    emit_error(site);
    emit_text("\n", site);
}

/// Writes words of the runtime's own to the program's standard error.
fn emit_text(text: &str, site: Site) {
    emit(STDERR, text.as_ptr().expose_provenance(), text.len(), site);
}

/// Writes what the running thread's `errno` means.
fn emit_error(site: Site) {
    let number = local(|local| local.errno);
    // SAFETY: returns a string for every number.
    let message: *const c_char = unsafe { libc::strerror(number) };
    let message = message.expose_provenance();
    emit(STDERR, message, strings::length(message), site);
}

/// `warn` and its relatives: a line on standard error.
extern "C" fn selvedge_warn(format: usize, arguments: usize, with_error: c_int, site: usize) {
    let site = Site(site as u64);
    emit_text("program: ", site);
    if format != 0 {
        print(STDERR, format, arguments, site);
    }
    if with_error != 0 {
        emit_text(if format == 0 { "" } else { ": " }, site);
        emit_error(site);
    }
    emit_text("\n", site);
}

extern "C" fn write(descriptor: c_int, bytes: usize, size: usize) -> isize {
    let site = current::site();
    current::touch(bytes, size, false, site);
    emit(descriptor, bytes, size, site);
    size.cast_signed()
}

extern "C" fn writev(descriptor: c_int, pieces: usize, count: c_int) -> isize {
    let site = current::site();
    let mut total = 0;
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let [bytes, size]: [usize; 2] = read(pieces + 16 * index, site);
        current::touch(bytes, size, false, site);
        emit(descriptor, bytes, size, site);
        total += size;
    }
    total.cast_signed()
}

// Nothing is buffered and nothing goes wrong.

extern "C" fn setvbuf(_stream: usize, _buffer: usize, _mode: c_int, _size: usize) -> c_int {
    0
}

extern "C" fn setbuf(_stream: usize, _buffer: usize) {}

extern "C" fn setbuffer(_stream: usize, _buffer: usize, _size: usize) {}

extern "C" fn setlinebuf(_stream: usize) {}

extern "C" fn fileno(stream: usize) -> c_int {
    let site = current::site();
    if stream == host::standard_input() {
        0
    } else {
        descriptor(stream, site)
    }
}

extern "C" fn fileno_unlocked(stream: usize) -> c_int {
    fileno(stream)
}

extern "C" fn isatty(_descriptor: c_int) -> c_int {
    0
}

extern "C" fn ferror(_stream: usize) -> c_int {
    0
}

extern "C" fn ferror_unlocked(_stream: usize) -> c_int {
    0
}

extern "C" fn feof(_stream: usize) -> c_int {
    0
}

extern "C" fn feof_unlocked(_stream: usize) -> c_int {
    0
}

extern "C" fn clearerr(_stream: usize) {}

extern "C" fn flockfile(_stream: usize) {}

extern "C" fn funlockfile(_stream: usize) {}

extern "C" fn ftrylockfile(_stream: usize) -> c_int {
    0
}
