//! Where statics and thread-locals are.
//!
//! Statics of the standard library and of this crate are left out: no program counts in them, but
//! every OS thread of the process, and the test harness, use them all the time. They are told by
//! the symbols of the program; if it has none, they are not left out.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Crates whose statics are left out.
const LEFT_OUT: [&str; 8] = [
    "std",
    "core",
    "alloc",
    "test",
    "std_detect",
    "selvedge",
    "selvedge_core",
    "selvedge_fiber",
];

/// The statics of the program and its libraries, and the thread-locals of this OS thread. Whether
/// those of some crates are left out, `some` says.
pub(super) fn find(found: &mut Vec<Range<usize>>, some: bool) {
    let pointer: *mut Vec<Range<usize>> = found;
    let add = match some {
        true => add_some,
        false => add_all,
    };
    // SAFETY: the callback is given the vector it expects, and calls nothing that loads libraries.
    unsafe { libc::dl_iterate_phdr(Some(add), pointer.cast()) };
    found.retain(|range| !range.is_empty());
}

unsafe extern "C" fn add_some(
    info: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: what `dl_iterate_phdr` promises, and what `find` passes.
    unsafe { add_object(info, true, found) }
}

unsafe extern "C" fn add_all(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { add_object(info, false, found) }
}

/// The addresses of the words of this OS thread's thread-locals, by object.
pub(super) fn thread_locals() -> Vec<impl Iterator<Item = usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let pointer: *mut Vec<Range<usize>> = &raw mut found;
    // SAFETY: as in `find`.
    unsafe { libc::dl_iterate_phdr(Some(add_thread_locals), pointer.cast()) };
    let words = |range: Range<usize>| (range.start.next_multiple_of(8)..range.end & !7).step_by(8);
    found.into_iter().map(words).collect()
}

/// Adds the thread-locals of one object.
unsafe extern "C" fn add_thread_locals(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: what `dl_iterate_phdr` promises, and what `thread_locals` passes.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Range<usize>>>()) };
    // SAFETY: the table of program headers of a loaded object.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let segment = headers
        .iter()
        .find(|header| header.p_type == libc::PT_TLS && !info.dlpi_tls_data.is_null());
    if let Some(segment) = segment {
        let begin = info.dlpi_tls_data.expose_provenance();
        found.push(begin..begin + segment.p_memsz as usize);
    }
    0
}

/// Adds what is writable of one object. The C library's own is left out: every allocation of every
/// OS thread changes it.
///
/// # Safety
///
/// As for a callback of `dl_iterate_phdr` that is given a vector of ranges.
unsafe fn add_object(info: *mut libc::dl_phdr_info, some: bool, found: *mut c_void) -> c_int {
    // SAFETY: what the caller promises.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Range<usize>>>()) };
    // SAFETY: a string of the dynamic linker; empty for the program itself.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
    let file = name.rsplit('/').next().unwrap_or_default();
    if ["libc.", "ld-", "libgcc_s"]
        .iter()
        .any(|known| file.starts_with(known))
    {
        return 0;
    }
    // SAFETY: the table of program headers of a loaded object.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let span = |header: &libc::Elf64_Phdr| {
        let begin = base + header.p_vaddr as usize;
        begin..begin + header.p_memsz as usize
    };
    let constant = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_RELRO);
    let mut left_out: Vec<Range<usize>> = constant.map(span).into_iter().collect();
    if some && name.is_empty() {
        static KNOWN: OnceLock<Vec<Range<usize>>> = OnceLock::new();
        let known = KNOWN.get_or_init(|| symbols(base).unwrap_or_default());
        left_out.extend(known.iter().cloned());
    }
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
            without(span(header), &mut left_out, found);
        } else if header.p_type == libc::PT_TLS && !info.dlpi_tls_data.is_null() {
            let begin = info.dlpi_tls_data.addr();
            found.push(begin..begin + header.p_memsz as usize);
        }
    }
    0
}

/// Adds what is left of `all`.
fn without(all: Range<usize>, left_out: &mut [Range<usize>], found: &mut Vec<Range<usize>>) {
    left_out.sort_by_key(|range| range.start);
    let mut from = all.start;
    for range in left_out
        .iter()
        .filter(|range| range.start < all.end && range.end > all.start)
    {
        // Ranges are widened to whole words when they are read.
        let end = range.start & !7;
        if from < end {
            found.push(from..end);
        }
        from = from.max(range.end.next_multiple_of(8));
    }
    if from < all.end {
        found.push(from..all.end);
    }
}

/// Where the statics are, in the program that is loaded at `base`, that are left out.
fn symbols(base: usize) -> io::Result<Vec<Range<usize>>> {
    let file = File::open("/proc/self/exe")?;
    let bytes = |at: u64, length: u64| {
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, at).map(|()| bytes)
    };
    let number = |bytes: &[u8], at: usize, length: usize| {
        let part = bytes.get(at..at + length).unwrap_or_default().iter();
        part.rev()
            .fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let header = bytes(0, 64)?;
    let (table, size) = (number(&header, 40, 8), number(&header, 58, 2));
    let sections = bytes(table, size * number(&header, 60, 2))?;
    let section = |index: usize| {
        let header = &sections[index * size as usize..];
        (
            number(header, 24, 8),
            number(header, 32, 8),
            number(header, 40, 4) as usize,
        )
    };
    /// The type of a table of symbols.
    const SYMBOLS: u64 = 2;
    let is_table = |&index: &usize| number(&sections, index * size as usize + 4, 4) == SYMBOLS;
    let Some(index) = (0..sections.len() / (size.max(1) as usize)).find(is_table) else {
        return Ok(Vec::new());
    };
    let (at, length, names) = section(index);
    let (table, (at, length, _)) = (bytes(at, length)?, section(names));
    let names = bytes(at, length)?;
    let symbols = table.chunks_exact(24).filter_map(|symbol| {
        let (name, kind) = (number(symbol, 0, 4) as usize, symbol[4] & 15);
        let name = names.get(name..)?.split(|&byte| byte == 0).next()?;
        let known = kind == 1 && is_left_out(std::str::from_utf8(name).ok()?);
        let begin = base + number(symbol, 8, 8) as usize;
        known.then(|| begin..begin + number(symbol, 16, 8) as usize)
    });
    Ok(symbols.collect())
}

/// Whether the symbol is one of a crate that is left out.
fn is_left_out(symbol: &str) -> bool {
    let path = match symbol.strip_prefix("_R") {
        None => symbol.strip_prefix("_ZN"),
        // Nested paths, each with the kind of its last part, then the crate with what tells it from
        // others.
        Some(mut path) => {
            loop {
                path = match path.bytes().next() {
                    Some(b'N') => path.get(2..).unwrap_or_default(),
                    // The path of an item in an implementation begins with the path of the
                    // implementation.
                    Some(b'M') => path[1..].strip_prefix('s').map_or(&path[1..], |path| {
                        path.split_once('_').map_or("", |(_, path)| path)
                    }),
                    _ => break,
                };
            }
            path.strip_prefix('C')
                .and_then(|root| match root.strip_prefix('s') {
                    Some(root) => root.split_once('_').map(|(_, name)| name),
                    None => Some(root),
                })
        }
    };
    let Some(path) = path else { return false };
    let digits = path.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = path[..digits].parse().unwrap_or(0);
    let name = path.get(digits..digits + length);
    name.is_some_and(|name| LEFT_OUT.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_told_by_symbols() {
        let names = [
            "_ZN3std9panicking11panic_count18GLOBAL_PANIC_COUNT17hc9c0f9d1a4b1d2eaE",
            "_RNvNtNtCsaBc9_3std9panicking11panic_count18GLOBAL_PANIC_COUNT",
            "_RNvCs1_4test5COUNT",
            "_RNvNvMs0_NtNtNtCsjr9_3std12backtrace_rs9symbolize5gimliNtB7_5Cache11with_global14MAPPINGS_CACHE",
        ];
        assert!(names.into_iter().all(is_left_out));
        let others = [
            "_ZN4user5COUNT17h0E",
            "_RNvCs3std_4user5COUNT",
            "environ",
            "_RNvMs_NtC4user",
        ];
        assert!(!others.into_iter().any(is_left_out));
    }

    #[test]
    fn what_is_left_out_is_cut_out_in_whole_words() {
        let mut found = Vec::new();
        without(16..100, &mut [60..62, 8..20, 90..200], &mut found);
        assert_eq!(found, [24..56, 64..88]);
    }
}
