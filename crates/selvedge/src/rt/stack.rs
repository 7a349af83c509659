//! The stacks that fibers run on.

use std::io;

/// Below it lies memory that may not be touched, so that an overflow is noticed.
const GUARD: usize = 64 << 10;

/// A stack, given back to the system when it is dropped.
pub(super) struct Stack {
    low: usize,
    size: usize,
}

impl Stack {
    /// A new one of at least this many bytes. Pages that are never touched cost nothing.
    pub(super) fn new(size: usize) -> io::Result<Stack> {
        let size = size.max(16 << 10).next_multiple_of(4 << 10);
        // SAFETY: a fresh anonymous mapping at an address of the system's choice.
        let low = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size + GUARD,
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
            size,
        };
        // SAFETY: the upper part of the mapping just made.
        let open = unsafe {
            libc::mprotect(
                low.byte_add(GUARD),
                size,
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
        self.low + GUARD + self.size
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether `address` lies where an overflow ends.
    pub(super) fn guards(&self, address: usize) -> bool {
        (self.low..self.low + GUARD).contains(&address)
    }

    /// Whether `address` lies on it.
    pub(super) fn contains(&self, address: usize) -> bool {
        (self.low + GUARD..self.top()).contains(&address)
    }

    /// Zeroes what may have been used when the lowest stack pointer seen was `lowest`. No fiber may
    /// be suspended on it.
    pub(super) fn clear(&mut self, lowest: usize) {
        /// The stack below that functions which never called the checker may have used.
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
            // SAFETY: an aligned word of the mapping. The fiber on it is suspended, so nothing
            // changes it.
            unsafe { std::ptr::with_exposed_provenance::<u64>(word).read_volatile() }
        })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let low = std::ptr::with_exposed_provenance_mut(self.low);
        // SAFETY: the mapping made in `new`, which nothing refers to any more.
        unsafe { libc::munmap(low, self.size + GUARD) };
    }
}
