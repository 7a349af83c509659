//! The notes of `selvedge irs build` in the executable; `Notes` on the host's side is the same.

use super::composed::{Code, Executable};
use super::diverge::Policy;
use super::sys::Header;

/// The beginning of the notes.
#[repr(C)]
pub(crate) struct Head {
    /// Zero in a program that was not completed.
    pub(crate) version: u32,
    policy: u32,
    pub(crate) fingerprint: [u8; 16],
    functions: u32,
    removed: u32,
    /// How many words the prefix has that the program was built with, as it was composed then, and
    /// how many bytes the file; zero if there is none.
    composed: u32,
    file: u32,
    /// The identity of that file.
    pub(crate) identity: Identity,
}

/// The identity of a file, which differs from that of the file it replaces: device, number, and
/// when it was written.
pub(crate) type Identity = [u64; 4];

#[cfg(not(test))]
unsafe extern "C" {
    #[link_name = "selvedge_image"]
    static IMAGE: Head;
    #[link_name = "__ehdr_start"]
    static HEADER: [u8; 64];
}

#[cfg(test)]
static IMAGE: Head = Head {
    version: 1,
    policy: 0,
    fingerprint: [0; 16],
    functions: 0,
    removed: 0,
    composed: 0,
    file: 0,
    identity: [0; 4],
};
#[cfg(test)]
static HEADER: [u8; 64] = [0; 64];

/// The notes' beginning.
pub(crate) fn head() -> &'static Head {
    let notes = &raw const IMAGE;
    // SAFETY: the notes are part of every program that the library is linked with.
    unsafe { &*notes }
}

/// The functions of the program, and what was taken out of it.
pub(crate) fn executable() -> Executable<'static> {
    let head = head();
    let functions = (&raw const *head).wrapping_add(1).cast::<Code>();
    // SAFETY: this many follow the head.
    let functions = unsafe { core::slice::from_raw_parts(functions, head.functions as usize) };
    let removed = functions.as_ptr_range().end.cast();
    // SAFETY: this many follow the functions.
    let removed = unsafe { core::slice::from_raw_parts(removed, head.removed as usize) };
    Executable { functions, removed }
}

/// The prefix that the program was built with, as it was composed then.
pub(crate) fn composed() -> &'static [u32] {
    let first = executable().removed.as_ptr_range().end;
    // SAFETY: this many words follow what was removed.
    unsafe { core::slice::from_raw_parts(first, head().composed as usize) }
}

/// The file that it was.
pub(crate) fn file() -> &'static [u8] {
    let first = composed().as_ptr_range().end.cast();
    // SAFETY: this many bytes follow the prefix.
    unsafe { core::slice::from_raw_parts(first, head().file as usize) }
}

/// The reaction when the program leaves the verified schedules.
pub(crate) fn policy() -> Policy {
    match head().policy {
        1 => Policy::Warn,
        2 => Policy::Serial,
        _ => Policy::Abort,
    }
}

/// Where the executable was loaded.
pub(crate) fn base() -> usize {
    (&raw const HEADER).addr()
}

/// The executable's program headers.
pub(crate) fn program_headers() -> (*const Header, usize) {
    let header = &raw const HEADER;
    // SAFETY: the linker puts the file's header there, which begins every executable in memory.
    unsafe {
        let offset: u64 = header.byte_add(32).cast::<u64>().read_unaligned();
        let count: u16 = header.byte_add(56).cast::<u16>().read_unaligned();
        (header.byte_add(offset as usize).cast(), count.into())
    }
}
