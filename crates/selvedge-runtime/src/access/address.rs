//! Which memory a program may access.

use super::Problem;
use crate::arena::{HEAPS, LIVENESS, STACKS, pointer};
use crate::runtime::{Phase, Runtime};
use crate::shadow::words;

/// The state of a word of heap: so many of its bytes may be accessed, or this.
pub(crate) const FREED: u8 = 0xff;

impl Runtime {
    /// Whether `size` bytes at `address` may be accessed, as far as the runtime knows.
    #[inline(always)]
    pub(crate) fn check_address(&self, address: usize, size: usize) -> Result<(), Problem> {
        let heap = address.wrapping_sub(HEAPS);
        if heap < self.heaps {
            let first = liveness(address);
            if size <= 8 && first == 8 && (address & 7) + size <= 8 {
                return Ok(());
            }
            return check_heap(address, size);
        }
        if self.is_on_stack(address) || self.image.whole.contains(address) {
            return Ok(());
        }
        self.check_outside(address)
    }

    /// Whether `address` lies in the area of stacks.
    #[inline(always)]
    pub(crate) fn is_on_stack(&self, address: usize) -> bool {
        address.wrapping_sub(STACKS) < self.stacks
    }

    /// Whether memory that is not the program's own may be accessed.
    #[cold]
    fn check_outside(&self, address: usize) -> Result<(), Problem> {
        let outside = self.outside.iter().any(|range| range.contains(address));
        match address {
            _ if outside || self.phase != Phase::Fiber => Ok(()),
            0..4096 => Err(Problem::Null),
            _ => Err(Problem::Wild),
        }
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
