//! The heap of a model execution: names for its blocks that do not depend on the interleaving.
//!
//! A pointer that a thread stores in an atomic is a value that explorers compare across executions,
//! but the system's allocator gives the same object another address each time. So the blocks that
//! the threads of a model allocate have names: a block is known by the thread that allocated it,
//! what that thread had done by then, and the block's size. A name has the same
//! [home](super::arena) in every execution, with few exceptions, because of which an atomic pointer
//! is presented as (block, offset). Freed blocks are kept until the execution ends: an address is
//! never used twice in one execution, which keeps pointers apart that the program keeps apart, and
//! a block that is freed twice is noticed. They are overwritten, and in some executions protected,
//! so that uses of them are noticed as well.
//!
//! At the end of an execution its blocks are gone, freed or not, except those that something outside
//! of the model leads to (see [`reach`](super::reach)): a static or
//! what the closure captured may keep what a thread of the model allocated.
//!
//! The crate's global allocator does this. Outside of a model it is the system's, and notes where
//! blocks are (see [`blocks`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_core::{ThreadId, Value};

use super::arena::Homes;
use super::block::{Block, FREED, Name, is_as_left};
use super::gone::End;
use super::spin::Words;
use super::{arena, blocks, engine, gone, stop};

/// The owner of the allocations of an OS thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Not a model's.
    Outside,
    /// The checker's, which no model can reach.
    Checker,
    /// A thread's of a model.
    Model,
}

thread_local! {
    static OWNER: Cell<Owner> = const { Cell::new(Owner::Outside) };
}

/// From now on allocations of this OS thread are `owner`'s. Returns whose they were before.
pub(super) fn allocate_for(owner: Owner) -> Owner {
    OWNER.replace(owner)
}

/// The system's allocator, which tells a running model what its threads do.
struct Allocator;

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every block comes from the system's allocator and goes back to it, at most once, or has a
// home in the arena, where no other block lives at the same time. Blocks that are held back are
// given back at the end of the execution.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if OWNER.get() == Owner::Model {
            return allocate_in_model(layout);
        }
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        allocated(block)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if OWNER.get() == Owner::Model {
            let block = allocate_in_model(layout);
            if !block.is_null() {
                // SAFETY: a block of this layout.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            return block;
        }
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc_zeroed(layout) };
        allocated(block)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if OWNER.get() == Owner::Model && freed(block) {
            return;
        }
        blocks::forget(block.addr());
        if !arena::contains(block.addr()) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if OWNER.get() != Owner::Model && !arena::contains(block.addr()) {
            blocks::forget(block.addr());
            // SAFETY: the caller's promise.
            let larger = unsafe { System.realloc(block, layout, size) };
            return match larger.is_null() {
                true => {
                    allocated(block);
                    larger
                }
                false => allocated(larger),
            };
        }
        // SAFETY: the caller's promise: `size` is valid for this alignment, and `block` has `layout`.
        unsafe {
            let larger = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !larger.is_null() {
                block.copy_to_nonoverlapping(larger, layout.size().min(size));
                self.dealloc(block, layout);
            }
            larger
        }
    }
}

/// Notes a block that belongs to no model.
fn allocated(block: *mut u8) -> *mut u8 {
    if OWNER.get() == Owner::Outside && !block.is_null() {
        blocks::note(block.expose_provenance());
    }
    block
}

#[cold]
fn allocate_in_model(layout: Layout) -> *mut u8 {
    OWNER.set(Owner::Checker);
    let address = engine::host(|state| state.allocate(layout));
    OWNER.set(Owner::Model);
    std::ptr::with_exposed_provenance_mut(address)
}

/// Whether the block is held back.
#[cold]
fn freed(block: *mut u8) -> bool {
    let address = block.addr();
    OWNER.set(Owner::Checker);
    let freed = Cell::new(Freed::Unknown);
    gone::ends(|state, last_owner| {
        freed.set(state.freed(address, last_owner)?);
        Ok(())
    });
    OWNER.set(Owner::Model);
    match freed.get() {
        Freed::Unknown => false,
        Freed::HeldBack { .. } => true,
        Freed::Twice(first, second) => stop::fail_double_free(first, second),
    }
}

/// The result of freeing a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freed {
    /// It was not allocated by a thread of this execution.
    Unknown,
    HeldBack {
        /// Whether nobody can access it.
        is_protected: bool,
    },
    /// The first end of the block, and this second one.
    Twice(End, End),
}

/// The blocks of an execution.
#[derive(Default)]
pub(super) struct Memory {
    blocks: Vec<Block>,
    homes: Homes,
    /// The blocks that came into use since the last call of `take_fresh`.
    fresh: Vec<u32>,
    /// The blocks that were freed, in this order.
    held_back: Vec<u32>,
    /// The blocks in use by address, when that is asked for: where they begin, and their sizes.
    sorted: Vec<(usize, usize)>,
    /// From address to the block that begins there.
    at: FxHashMap<usize, u32>,
    /// Numbers of names, for the whole search.
    numbers: FxHashMap<Name, u32>,
    /// The address that the block with a number has in this execution.
    addresses: Vec<usize>,
}

impl Memory {
    /// No blocks. `protects` says that all of them are to be protected when they are freed.
    pub(super) fn new(protects: bool) -> Memory {
        Memory {
            homes: Homes::new(protects),
            ..Memory::default()
        }
    }

    /// Whether blocks were allocated and not freed.
    pub(super) fn has_leftovers(&self) -> bool {
        self.held_back.len() < self.blocks.len()
    }

    /// The block in use that `address` leads into: where it begins, and how large it is.
    pub(super) fn find(&self, address: usize) -> Option<(usize, usize)> {
        let after = self.sorted.partition_point(|&(begin, _)| begin <= address);
        let (begin, size) = *self.sorted.get(after.checked_sub(1)?)?;
        (address - begin < size.max(1)).then_some((begin, size))
    }

    /// Makes [`find`](Memory::find) know the blocks that are in use.
    pub(super) fn sort(&mut self) {
        let used = self.blocks.iter().filter(|block| block.freed.is_none());
        self.sorted.clear();
        self.sorted
            .extend(used.map(|block| (block.address, block.layout.size())));
        self.sorted.sort_unstable();
    }

    /// These blocks, by where they begin, belong to no model any more.
    pub(super) fn keep(&mut self, kept: &FxHashSet<usize>) {
        if kept.is_empty() {
            return;
        }
        self.blocks.retain(|block| {
            let keep = block.freed.is_none() && kept.contains(&block.address);
            if keep {
                blocks::note(block.address);
            }
            !keep
        });
    }

    /// Forgets the execution and gives back its memory.
    pub(super) fn reset(&mut self) {
        self.homes.unprotect();
        for block in self.blocks.drain(..) {
            if let Some(pages) = block.pages() {
                if block.protected {
                    arena::set_access(&pages, libc::PROT_READ | libc::PROT_WRITE);
                }
                // SAFETY: allocated with this layout by the system's allocator, which the program
                // was kept from giving it back to.
                unsafe { System.dealloc(block.bytes(), arena::of_pages(block.layout)) };
            }
        }
        self.held_back.clear();
        self.fresh.clear();
        self.at.clear();
        self.addresses.fill(0);
    }

    /// A new block; its address is null if there is no memory for it. It is all zero: what an
    /// earlier execution left there would decide whether a write changes it.
    pub(super) fn allocate(&mut self, layout: Layout, name: Name) -> usize {
        let home = self.homes.find(name, layout);
        let address = match home {
            Some(home) => {
                let bytes = std::ptr::with_exposed_provenance_mut::<u8>(home);
                // SAFETY: a home has room for its block, and nobody uses it.
                unsafe { bytes.write_bytes(0, layout.size()) };
                home
            }
            // If it outlives its execution, the program gives it back with its own layout: the system's allocator
            // needs none.
            // SAFETY: a layout that is not empty.
            None => unsafe { System.alloc_zeroed(arena::of_pages(layout)) }.expose_provenance(),
        };
        if address != 0 {
            self.allocated(address, layout, name);
        }
        address
    }

    fn allocated(&mut self, address: usize, layout: Layout, name: Name) {
        let index = self.blocks.len() as u32;
        self.at.insert(address, index);
        self.fresh.push(index);
        self.blocks.push(Block {
            address,
            layout,
            name,
            freed: None,
            protected: false,
            freed_before: None,
        });
    }

    /// The blocks that came into use since this was last asked.
    pub(super) fn take_fresh(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.fresh)
    }

    /// Where the block begins, and its layout, if it is in use.
    pub(super) fn in_use(&self, block: u32) -> Option<(usize, Layout)> {
        let block = &self.blocks[block as usize];
        block
            .freed
            .is_none()
            .then_some((block.address, block.layout))
    }

    /// How many bytes the block has that begins at `address`, if it is in use.
    pub(super) fn size_of(&self, address: usize) -> Option<usize> {
        let block = &self.blocks[*self.at.get(&address)? as usize];
        block.freed.is_none().then(|| block.layout.size())
    }

    /// A block is freed. If `protects` says so, nobody can access it from now on, where possible.
    pub(super) fn freed(&mut self, address: usize, end: End, protects: bool) -> Freed {
        let Some(&index) = self.at.get(&address) else {
            return Freed::Unknown;
        };
        let block = &mut self.blocks[index as usize];
        if let Some(first) = block.freed {
            return Freed::Twice(first, end);
        }
        block.freed = Some(end);
        // SAFETY: the whole of a block that nobody may use any more.
        unsafe { block.bytes().write_bytes(FREED, block.layout.size()) };
        block.protected = protects
            && match block.pages() {
                Some(pages) => arena::set_access(&pages, libc::PROT_NONE),
                None => self.homes.protect(address),
            };
        self.held_back.push(index);
        Freed::HeldBack {
            is_protected: block.protected || block.layout.size() == 0,
        }
    }

    /// The thread that freed a block that was written to afterwards, and the place of the `free`.
    pub(super) fn overwritten(&self) -> Option<End> {
        let freed = self
            .held_back
            .iter()
            .map(|&index| &self.blocks[index as usize]);
        let mut changed = freed.filter(|block| !is_as_left(block));
        changed.next().and_then(|block| block.freed)
    }

    /// The thread that freed the memory at `address` last, and the place.
    pub(super) fn freed_at(&self, address: usize) -> Option<End> {
        let block = self.blocks.iter().rfind(|block| block.contains(address))?;
        block.freed.or(block.freed_before)
    }

    /// The block of this layout that `by` freed last, which is in use again. It keeps its name.
    pub(super) fn reused(&mut self, by: ThreadId, layout: Layout) -> Option<usize> {
        let fits = |&index: &u32| {
            let block = &self.blocks[index as usize];
            block.layout == layout
                && block.freed.is_some_and(|end| end.thread == by)
                // Otherwise what was written there would be forgotten.
                && is_as_left(block)
        };
        let last = self.held_back.iter().rposition(fits)?;
        let index = self.held_back.remove(last);
        self.fresh.push(index);
        let block = &mut self.blocks[index as usize];
        block.freed_before = block.freed.take();
        if std::mem::take(&mut block.protected) {
            match block.pages() {
                Some(pages) => {
                    arena::set_access(&pages, libc::PROT_READ | libc::PROT_WRITE);
                }
                None => self.homes.open(block.address),
            }
        }
        Some(block.address)
    }

    /// The value that stands for `address`: itself, unless it is in a block of this execution.
    pub(super) fn value_of(&mut self, address: usize) -> Value {
        let index = self.at.get(&address).copied().or_else(|| {
            let index = self
                .blocks
                .iter()
                .rposition(|block| block.contains(address));
            index.map(|index| index as u32)
        });
        let Some(index) = index else {
            return address as Value;
        };
        let block = &self.blocks[index as usize];
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(block.name).or_insert(next) as usize;
        if self.addresses.len() <= number {
            self.addresses.resize(number + 1, 0);
        }
        self.addresses[number] = block.address;
        (number as Value + 1) << 64 | (address - block.address) as Value
    }

    /// The address that `value` stands for in this execution.
    pub(super) fn address_of(&self, value: Value) -> usize {
        match (value >> 64) as usize {
            0 => value as usize,
            number => {
                let base = self.addresses.get(number - 1).copied().unwrap_or(0);
                base.wrapping_add(value as usize)
            }
        }
    }

    /// A fingerprint of the contents of the blocks in use.
    pub(super) fn fingerprint(&self) -> (u64, u64) {
        let mut hash = Words::new();
        for block in self.blocks.iter().filter(|block| block.freed.is_none()) {
            let from = std::ptr::with_exposed_provenance::<u8>(block.address);
            // SAFETY: the bytes of a block that is allocated; no fiber runs. They may be
            // uninitialised for the program, but they came from the system as some bytes.
            hash.bytes(unsafe { std::slice::from_raw_parts(from, block.layout.size()) });
        }
        hash.finish()
    }
}
