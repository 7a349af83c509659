//! A block of a model.

use std::alloc::Layout;
use std::ops::Range;

use super::arena;
use super::gone::End;

/// A block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) thread: u32,
    /// How many events its thread had performed.
    pub(super) events: u32,
    pub(super) size: usize,
    /// How many blocks of this size it had allocated since its last event.
    pub(super) ordinal: u32,
}

pub(super) struct Block {
    pub(super) address: usize,
    pub(super) layout: Layout,
    pub(super) name: Name,
    /// The thread that freed it, and the place.
    pub(super) freed: Option<End>,
    /// Whether nobody can access it.
    pub(super) protected: bool,
    /// The same for the last time that it was freed and then used again.
    pub(super) freed_before: Option<End>,
}

/// The byte that freed memory is filled with. No pointer consists of it.
pub(super) const FREED: u8 = 0xD7;

impl Block {
    pub(super) fn bytes(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Its pages, if it has no home.
    pub(super) fn pages(&self) -> Option<Range<usize>> {
        let size = arena::of_pages(self.layout).size();
        (!arena::contains(self.address)).then(|| self.address..self.address + size)
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.address) < self.layout.size()
    }
}

/// Whether a block that was freed was not written to since.
pub(super) fn is_as_left(block: &Block) -> bool {
    if block.protected {
        return true;
    }
    // SAFETY: the bytes of a block that is held back; no fiber runs.
    let bytes = unsafe { std::slice::from_raw_parts(block.bytes(), block.layout.size()) };
    bytes.iter().fold(FREED, |all, byte| all & byte) == FREED
        && bytes.iter().fold(FREED, |any, byte| any | byte) == FREED
}
