//! Tells which memory a program may access.

use super::{Access, Problem};
use crate::arena::{BOOT_STACK, HEAPS, LIVENESS, STACKS, pointer};
use crate::loader::Range;
use crate::outside;
use crate::runtime::{Phase, Runtime};
use crate::shadow::words;

/// The state of a word of heap: this many of its bytes may be accessed, or this.
pub(crate) const FREED: u8 = 0xff;

impl Runtime {
    /// Whether the `size` bytes at `address` may be read, or written if `writes`, as far as the runtime knows.
    #[inline(always)]
    pub(crate) fn check_address(
        &self,
        address: usize,
        size: usize,
        writes: bool,
    ) -> Result<(), Problem> {
        let heap = address.wrapping_sub(HEAPS);
        if heap < self.heaps {
            let first = liveness(address);
            if size <= 8 && first == 8 && (address & 7) + size <= 8 {
                return Ok(());
            }
            return check_heap(address, size);
        }
        let stacks = Range {
            start: STACKS,
            end: STACKS + self.stacks,
        };
        if stacks.contains_all(address, size) || self.image.whole.contains_all(address, size) {
            return Ok(());
        }
        self.check_outside(address, size, writes)
    }

    /// Whether `address` lies in the area of stacks.
    #[inline(always)]
    pub(crate) fn is_on_stack(&self, address: usize) -> bool {
        address.wrapping_sub(STACKS) < self.stacks
    }

    /// Whether memory that is not the program's own may be accessed. What the C library keeps is the worker's as
    /// well, so the program may only read it.
    #[cold]
    fn check_outside(&self, address: usize, size: usize, writes: bool) -> Result<(), Problem> {
        let whole = |range: &Range| range.contains_all(address, size);
        let outside = self.exposed.iter().any(whole) || !writes && self.outside.iter().any(whole);
        match address {
            _ if outside || self.phase == Phase::Host => Ok(()),
            0..4096 => Err(Problem::Null),
            _ => Err(Problem::Wild),
        }
    }

    /// Notes what the dynamic linker has loaded for the program: the program may do there what it likes.
    pub(crate) fn meet_libraries(&mut self) {
        for range in outside::shared() {
            if !self.outside.contains(&range) && !self.exposed.contains(&range) {
                self.exposed.push(range);
            }
        }
    }

    /// Whether a constructor of the program may make an access: it may not reach for the checker's memory.
    #[cold]
    pub(crate) fn check_early(&mut self, access: Access) -> Result<(), Problem> {
        if self.phase != Phase::Boot || access.size == 0 {
            return Ok(());
        }
        if BOOT_STACK.contains_all(access.address, access.size) {
            return Ok(());
        }
        // The dynamic linker has not told yet where the program lies, nor which libraries it needs.
        self.meet_libraries();
        self.check_address(access.address, access.size, access.kind.writes())
    }

    /// Whether `address` lies on the stack of the running thread.
    #[inline(always)]
    pub(crate) fn on_own_stack(&self, address: usize) -> bool {
        let slot = &self.threads[self.running].slot;
        address >= slot.stack_low && address < slot.stack_top
    }
}

/// The state of the word of heap that contains `address`.
#[inline(always)]
pub(crate) fn liveness(address: usize) -> u8 {
    // SAFETY: mapped for all of the heap while a program is loaded; callers checked the address.
    unsafe { pointer::<u8>(LIVENESS + ((address - HEAPS) >> 3)).read() }
}

fn check_heap(address: usize, size: usize) -> Result<(), Problem> {
    for (word, mask) in words(address, size) {
        let live = liveness(word);
        if live == FREED {
            return Err(Problem::Freed);
        }
        let accessible = (0xff_u16 >> (8 - u16::from(live.min(8)))) as u8;
        if mask & !accessible != 0 {
            return Err(Problem::Overflow);
        }
    }
    Ok(())
}
