//! What `selvedge irs build` notes in the executable; `Notes` on the host's side is the same.

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
}

/// Where a function of the program is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Function {
    /// The hash of its name and of its number among those of that name.
    pub(crate) name: u64,
    /// Its address in the executable.
    pub(crate) start: u32,
    /// How many bytes it has.
    pub(crate) size: u32,
}

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
};
#[cfg(test)]
static HEADER: [u8; 64] = [0; 64];

/// The notes' beginning.
pub(crate) fn head() -> &'static Head {
    let notes = &raw const IMAGE;
    // SAFETY: the notes are part of every program that the library is linked with.
    unsafe { &*notes }
}

/// The functions of the program, sorted by name.
pub(crate) fn functions() -> &'static [Function] {
    let head = head();
    let start = (&raw const *head).wrapping_add(1).cast();
    // SAFETY: so many follow the head.
    unsafe { core::slice::from_raw_parts(start, head.functions as usize) }
}

/// Tells places where a fence is left from those where nothing is.
pub(crate) const UNCOUNTED: u32 = 1 << 31;

/// The places whose callbacks were taken out, as addresses in the executable, sorted.
pub(crate) fn removed() -> &'static [u32] {
    let start = functions().as_ptr_range().end.cast();
    // SAFETY: so many follow the functions.
    unsafe { core::slice::from_raw_parts(start, head().removed as usize) }
}

/// What to do when the program leaves what was verified.
pub(crate) fn policy() -> Policy {
    match head().policy {
        1 => Policy::Warn,
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
