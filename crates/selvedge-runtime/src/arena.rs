//! Fixed addresses for all memory whose address the program can see.
//!
//! | from | what |
//! |---|---|
//! | [`STACKS`] | one slot per thread: guard, stack, thread-local block |
//! | [`HEAPS`] | one region per thread |
//! | [`LIVENESS`] | one byte per 8 bytes of heap |
//! | [`FRAMES`] | shadow call stacks |
//! | [`BOOT_STACK`] | what constructors run on |
//! | [`SHADOW`] | access history of stacks and heaps |
//! | [`IMAGE_SHADOW`] | access history of the program's globals |
//!
//! All of it is reserved once; pages are committed when they are first touched.

use std::io;
use std::ptr;

use crate::loader::Range;

/// Slots of the threads' stacks.
pub(crate) const STACKS: usize = 0x1000_0000_0000;
/// Regions of the threads' heaps.
pub(crate) const HEAPS: usize = 0x1100_0000_0000;
/// The end of what [`SHADOW`] covers.
pub(crate) const HEAPS_END: usize = 0x1500_0000_0000;
/// The bytes of the heaps that may be accessed.
pub(crate) const LIVENESS: usize = 0x1a00_0000_0000;
/// Shadow call stacks.
pub(crate) const FRAMES: usize = 0x1b00_0000_0000;
/// Access history of everything from [`STACKS`] to [`HEAPS_END`].
pub(crate) const SHADOW: usize = 0x2000_0000_0000;
/// Access history of the program's own segments.
pub(crate) const IMAGE_SHADOW: usize = 0x4a00_0000_0000;

/// The stack that the program's constructors run on.
pub(crate) const BOOT_STACK: Range = Range {
    start: 0x1c00_0000_0000,
    end: 0x1c00_0080_0000,
};

/// The size of a page.
pub(crate) const PAGE: usize = 4096;
/// Unmapped bytes below each stack.
pub(crate) const GUARD: usize = 64 << 10;

/// Rounds up to a multiple of `unit`, a power of two.
pub(crate) fn round_up(size: usize, unit: usize) -> usize {
    (size + unit - 1) & !(unit - 1)
}

/// Reserves address space at a fixed place, without access.
pub(crate) fn reserve(at: usize, size: usize) -> io::Result<()> {
    map(at, size, libc::PROT_NONE)
}

/// Reserves address space at a fixed place; it reads as zero and costs memory where it is written.
pub(crate) fn reserve_zeroed(at: usize, size: usize) -> io::Result<()> {
    map(at, size, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(at: usize, size: usize, protection: i32) -> io::Result<()> {
    let wanted = ptr::without_provenance_mut(at);
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a fresh anonymous mapping that may not replace an existing one.
    let got = unsafe { libc::mmap(wanted, round_up(size, PAGE), protection, flags, -1, 0) };
    if got == wanted {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Opens reserved pages for reading and writing.
pub(crate) fn open(at: usize, size: usize) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the range lies in an area that `reserve` mapped and that nothing else uses.
    let result = unsafe { libc::mprotect(pointer(at), round_up(size, PAGE), protection) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes pages read as zero again and gives their memory back.
pub(crate) fn discard(at: usize, size: usize) {
    // SAFETY: the range was mapped by `reserve_zeroed`, and losing its contents is the purpose.
    unsafe { libc::madvise(pointer(at), round_up(size, PAGE), libc::MADV_DONTNEED) };
}

/// Gives address space back.
pub(crate) fn unreserve(at: usize, size: usize) {
    // SAFETY: the range was mapped by `reserve` and is no longer used.
    unsafe { libc::munmap(pointer(at), round_up(size, PAGE)) };
}

/// An address as a pointer.
#[inline(always)]
pub(crate) fn pointer<T>(address: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(address)
}
