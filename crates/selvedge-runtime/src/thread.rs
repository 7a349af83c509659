//! What the runtime keeps about each thread of the program.

use std::ffi::c_void;
use std::ptr;

use selvedge_core::{Outcome, Pending};

use crate::arena::{self, GUARD, HEAPS, HEAPS_END, PAGE, STACKS, round_up};
use crate::fiber::Context;
use crate::heap::Region;

/// A thread, for the whole search: the same place in the spawn tree has the same number, stack,
/// heap region and thread-local block in every execution.
pub(crate) struct Thread {
    /// The execution it was last created in.
    pub(crate) run: u32,
    /// What it is about to do.
    pub(crate) pending: Pending,
    /// Where it is about to do it.
    pub(crate) site: usize,
    /// How its last operation ended.
    pub(crate) outcome: Outcome,
    /// Where it goes on.
    pub(crate) context: Context,
    /// How many events of each thread happen before its present point.
    pub(crate) clock: Vec<u32>,
    /// The threads it ever created, in order.
    pub(crate) children: Vec<u32>,
    /// How many of them in this execution.
    pub(crate) spawned: u32,
    /// What it returned.
    pub(crate) result: *mut c_void,
    /// Its part of the stack area.
    pub(crate) slot: Slot,
    /// The lowest stack pointer seen in this execution.
    pub(crate) lowest: usize,
    /// Its heap.
    pub(crate) heap: Region,
}

impl Thread {
    /// Thread number `index`, not created yet.
    pub(crate) fn new(index: usize, layout: &Layout) -> Thread {
        let slot = layout.slot(index);
        Thread {
            run: 0,
            pending: Pending::Absent,
            site: 0,
            outcome: Outcome::default(),
            context: Context::NONE,
            clock: Vec::new(),
            children: Vec::new(),
            spawned: 0,
            result: ptr::null_mut(),
            slot,
            lowest: slot.stack_top,
            heap: Region::new(index, layout.heap_region),
        }
    }

    /// The number of its own events so far.
    pub(crate) fn events(&self, index: usize) -> u32 {
        self.clock[index]
    }
}

/// The sizes that decide where a thread's things lie.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    stack_size: usize,
    tls_size: usize,
    tls_align: usize,
    slot_size: usize,
    /// Bytes of address space per thread's heap.
    pub(crate) heap_region: usize,
}

/// Space above the thread-local block for what libc keeps per thread.
const CONTROL: usize = 64;

impl Layout {
    /// The layout for stacks and thread-local blocks of these sizes.
    pub(crate) fn new(stack_size: usize, tls: (usize, usize), heap_limit: usize) -> Layout {
        let stack_size = round_up(stack_size.max(4 * PAGE), PAGE);
        let (tls_size, tls_align) = (round_up(tls.0, 16), tls.1.clamp(64, PAGE));
        let slot_size = GUARD + stack_size + round_up(tls_size + tls_align + CONTROL, PAGE);
        let heap_region = round_up(heap_limit + (1 << 20), 2 << 20);
        Layout {
            stack_size,
            tls_size,
            tls_align,
            slot_size,
            heap_region,
        }
    }

    /// Bytes of address space for the stacks of `threads` threads.
    pub(crate) fn stacks_size(&self, threads: usize) -> usize {
        self.slot_size * threads
    }

    /// The thread whose slot contains `address`, and the slot.
    pub(crate) fn owner(&self, address: usize) -> Option<usize> {
        (address >= STACKS).then(|| (address - STACKS) / self.slot_size)
    }

    /// The thread whose heap region contains `address`.
    pub(crate) fn heap_owner(&self, address: usize) -> Option<usize> {
        (HEAPS..HEAPS_END)
            .contains(&address)
            .then(|| (address - HEAPS) / self.heap_region)
    }

    /// Where thread `index` has its stack.
    pub(crate) fn slot(&self, index: usize) -> Slot {
        let start = STACKS + index * self.slot_size;
        let stack_top = start + GUARD + self.stack_size;
        let tls = round_up(stack_top, self.tls_align);
        Slot {
            start,
            end: start + self.slot_size,
            stack_low: start + GUARD,
            stack_top,
            tls,
            control: tls + self.tls_size,
        }
    }
}

/// A thread's part of the stack area: guard, stack, thread-local block, control words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) stack_low: usize,
    pub(crate) stack_top: usize,
    pub(crate) tls: usize,
    pub(crate) control: usize,
}

impl Slot {
    /// Commits it; once per thread number.
    pub(crate) fn open(&self) -> std::io::Result<()> {
        arena::open(self.stack_low, self.end - self.stack_low)
    }

    /// Where `errno` lies.
    pub(crate) fn errno(&self) -> usize {
        self.control
    }
}
