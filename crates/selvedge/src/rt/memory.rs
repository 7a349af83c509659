//! The heap of a model execution: names for its blocks that do not depend on the interleaving.
//!
//! A pointer that a thread stores in an atomic is a value that explorers compare across executions,
//! but the system's allocator gives the same object another address each time. So the blocks that
//! the threads of a model allocate have names: a block is known by the thread that allocated it,
//! what that thread had done by then, and the block's size. A name has the same
//! [home](super::arena) in every execution, with few exceptions, because of which an atomic pointer
//! is presented as (block, offset). Freed blocks are kept until the execution ends: an address is
//! never used twice in one execution, which keeps pointers apart that the program keeps apart, and
//! a block that is freed twice is noticed.
//!
//! That is what the crate's global allocator is for. Outside of a model it is the system's, and
//! notes where blocks are (see [`blocks`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rustc_hash::FxHashMap;
use selvedge_core::{Site, ThreadId, Value};

use super::arena::Homes;
use super::spin::Words;
use super::{arena, blocks, engine, stop};

/// Whose allocations those of an OS thread are.
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
    let freed = engine::host(|state| state.freed(address));
    OWNER.set(Owner::Model);
    match freed {
        Freed::Unknown => false,
        Freed::HeldBack => true,
        Freed::Twice(thread, site) => {
            stop::fail_double_free(thread, site);
            true
        }
    }
}

/// What becomes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freed {
    /// It was not allocated by a thread of this execution.
    Unknown,
    HeldBack,
    /// By this thread, after this operation, the first time.
    Twice(ThreadId, Site),
}

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

struct Block {
    address: usize,
    layout: Layout,
    name: Name,
    /// Who freed it, and the last operation before that.
    freed: Option<(ThreadId, Site)>,
}

/// The blocks of an execution.
#[derive(Default)]
pub(super) struct Memory {
    blocks: Vec<Block>,
    homes: Homes,
    /// Those that were freed, in this order.
    held_back: Vec<u32>,
    /// From address to the block that begins there.
    at: FxHashMap<usize, u32>,
    /// Numbers of names, for the whole search.
    numbers: FxHashMap<Name, u32>,
    /// The address that the block with a number has in this execution.
    addresses: Vec<usize>,
}

impl Memory {
    /// Forgets the execution and gives back what was freed in it. What was not is no model's any more.
    pub(super) fn reset(&mut self) {
        for block in self.blocks.drain(..) {
            if block.freed.is_none() {
                blocks::note(block.address);
                continue;
            }
            if arena::contains(block.address) {
                continue;
            }
            let address = std::ptr::with_exposed_provenance_mut(block.address);
            // SAFETY: allocated with this layout by the system's allocator, and freed by the
            // program, which `freed` kept from reaching that allocator.
            unsafe { System.dealloc(address, block.layout) };
        }
        self.held_back.clear();
        self.at.clear();
        self.addresses.fill(0);
    }

    /// A new block; its address is null if there is no memory for it.
    pub(super) fn allocate(&mut self, layout: Layout, name: Name) -> usize {
        let address = self.homes.find(name, layout).unwrap_or_else(|| {
            // SAFETY: the layout that the program asked its allocator for.
            unsafe { System.alloc(layout) }.expose_provenance()
        });
        if address != 0 {
            self.allocated(address, layout, name);
        }
        address
    }

    fn allocated(&mut self, address: usize, layout: Layout, name: Name) {
        self.at.insert(address, self.blocks.len() as u32);
        self.blocks.push(Block {
            address,
            layout,
            name,
            freed: None,
        });
    }

    pub(super) fn freed(&mut self, address: usize, by: ThreadId, site: Site) -> Freed {
        let Some(&index) = self.at.get(&address) else {
            return Freed::Unknown;
        };
        let block = &mut self.blocks[index as usize];
        match block.freed {
            Some((thread, site)) => Freed::Twice(thread, site),
            None => {
                block.freed = Some((by, site));
                self.held_back.push(index);
                Freed::HeldBack
            }
        }
    }

    /// The block of this layout that `by` freed last, which is in use again. It keeps its name.
    pub(super) fn reused(&mut self, by: ThreadId, layout: Layout) -> Option<usize> {
        let fits = |&index: &u32| {
            let block = &self.blocks[index as usize];
            block.layout == layout && block.freed.is_some_and(|(thread, _)| thread == by)
        };
        let last = self.held_back.iter().rposition(fits)?;
        let block = &mut self.blocks[self.held_back.remove(last) as usize];
        block.freed = None;
        Some(block.address)
    }

    /// The value that stands for `address`: itself, unless it is in a block of this execution.
    pub(super) fn value_of(&mut self, address: usize) -> Value {
        let index = self.at.get(&address).copied().or_else(|| {
            let inside = |block: &Block| address.wrapping_sub(block.address) < block.layout.size();
            let index = self.blocks.iter().rposition(inside);
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

    /// What the blocks that are in use contain.
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
