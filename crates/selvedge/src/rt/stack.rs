//! The stacks that fibers run on.

use std::io;

/// How many bytes a thread's stack has. Pages that are never touched cost nothing.
const SIZE: usize = 2 << 20;
/// Below it lies memory that may not be touched, so that an overflow is noticed.
const GUARD: usize = 64 << 10;

/// A stack, given back to the system when it is dropped.
pub(super) struct Stack {
    low: usize,
}

impl Stack {
    /// A new one.
    pub(super) fn new() -> io::Result<Stack> {
        // SAFETY: a fresh anonymous mapping at an address of the system's choice.
        let low = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SIZE + GUARD,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if low == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Stack {
            low: low.expose_provenance(),
        };
        // SAFETY: the upper part of the mapping just made.
        let open = unsafe {
            libc::mprotect(
                low.byte_add(GUARD),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        match open {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first address above it.
    pub(super) fn top(&self) -> usize {
        self.low + GUARD + SIZE
    }

    /// Whether `address` lies on it.
    pub(super) fn contains(&self, address: usize) -> bool {
        (self.low + GUARD..self.top()).contains(&address)
    }

    /// Zeroes what may have been used when the lowest stack pointer seen was `lowest`. No fiber may be suspended
    /// on it.
    pub(super) fn clear(&mut self, lowest: usize) {
        /// What functions that never came by the checker may have used below.
        const DEEP: usize = 32 << 10;
        let from = lowest.saturating_sub(DEEP).max(self.low + GUARD);
        let bytes = self.top() - from;
        // SAFETY: within the mapping, which this stack owns; nothing on it is in use.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(from).write_bytes(0, bytes) };
    }

    /// The words from `from` to the top.
    pub(super) fn words(&self, from: usize) -> impl Iterator<Item = u64> + '_ {
        debug_assert!(self.contains(from) && from.is_multiple_of(8));
        (from..self.top()).step_by(8).map(|word| {
            // SAFETY: an aligned word of the mapping. The fiber on it is suspended, so nothing changes it.
            unsafe { std::ptr::with_exposed_provenance::<u64>(word).read_volatile() }
        })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let low = std::ptr::with_exposed_provenance_mut(self.low);
        // SAFETY: the mapping made in `new`, which nothing refers to any more.
        unsafe { libc::munmap(low, SIZE + GUARD) };
    }
}
