//! Where a thread's stack, thread-local block and heap lie, as a function of its number.

use crate::arena::{self, GUARD, HEAPS, PAGE, STACKS, pointer, round_up};
use crate::loader::Range;

/// The sizes that decide where things lie.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    stack_size: usize,
    /// Bytes of address space for a stack.
    stack_room: usize,
    locals_size: usize,
    locals_align: usize,
    slot_size: usize,
    threads: usize,
    /// Bytes of address space per thread's heap.
    pub(crate) heap_region: usize,
}

/// Space above the thread-local block for what libc keeps per thread.
const CONTROL: usize = 64;

/// The largest stack that a thread can ask for.
const LARGEST_STACK: usize = 64 << 20;

impl Layout {
    /// The layout for `threads` stacks and thread-local blocks (size, alignment) of these sizes.
    pub(crate) fn new(
        stack_size: usize,
        locals: (usize, usize),
        heap_limit: usize,
        threads: usize,
    ) -> Layout {
        let stack_size = round_up(stack_size.max(4 * PAGE), PAGE);
        let (locals_size, locals_align) = (round_up(locals.0, 16), locals.1.clamp(64, PAGE));
        let share = (HEAPS - STACKS) / 2 / threads;
        let stack_room = LARGEST_STACK.min(share & !(PAGE - 1)).max(stack_size);
        let slot_size = GUARD + stack_room + round_up(locals_size + locals_align + CONTROL, PAGE);
        let heap_region = round_up(heap_limit + (1 << 20), 2 << 20);
        Layout {
            stack_size,
            stack_room,
            locals_size,
            locals_align,
            slot_size,
            threads,
            heap_region,
        }
    }

    /// Bytes of address space for all stacks.
    pub(crate) fn stacks(&self) -> usize {
        self.slot_size * self.threads
    }

    /// Bytes of address space for all heaps, if they fit where they and their shadow have to go.
    pub(crate) fn heaps(&self) -> Option<usize> {
        let all = self.heap_region.checked_mul(self.threads)?;
        (all <= arena::HEAPS_END - HEAPS).then_some(all)
    }

    /// The thread whose slot contains `address`.
    pub(crate) fn stack_owner(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(STACKS)?;
        (offset < self.stacks()).then(|| offset / self.slot_size)
    }

    /// The thread whose heap region contains `address`.
    pub(crate) fn heap_owner(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(HEAPS)?;
        (offset < self.heap_region * self.threads).then(|| offset / self.heap_region)
    }

    /// Where thread `index` has its stack.
    pub(crate) fn slot(&self, index: usize) -> Slot {
        let start = STACKS + index * self.slot_size;
        let stack_top = start + GUARD + self.stack_room;
        let locals = round_up(stack_top, self.locals_align);
        Slot {
            start,
            end: start + self.slot_size,
            stack_low: stack_top - self.stack_size,
            stack_top,
            locals,
            control: locals + self.locals_size,
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
    pub(crate) locals: usize,
    control: usize,
}

/// The bytes that the runtime itself may use of a stack below the lowest stack pointer it saw.
pub(crate) const MARGIN: usize = 1024;
/// How much below that is looked at, in case something went deeper.
const STRIP: usize = 256;

impl Slot {
    /// Commits it; once per thread number.
    pub(crate) fn open(&self) -> std::io::Result<()> {
        arena::open(self.stack_low, self.end - self.stack_low)
    }

    /// Whether `address` lies on the stack where its thread has returned from a function, given its stack
    /// pointer, which is zero if it is not known.
    #[inline(always)]
    pub(crate) fn is_left(&self, address: usize, stack_pointer: usize) -> bool {
        address < stack_pointer && address >= self.stack_low && stack_pointer <= self.stack_top
    }

    /// Makes the stack `size` bytes large at least. False if there is no room for that.
    pub(crate) fn grow(&mut self, size: usize) -> bool {
        let size = round_up(size, PAGE);
        if size <= self.stack_top - self.stack_low {
            return true;
        }
        if size > self.stack_top - (self.start + GUARD) {
            return false;
        }
        let low = self.stack_top - size;
        let opened = arena::open(low, self.stack_low - low);
        self.stack_low = low;
        opened.is_ok()
    }

    /// Whether `address` lies in the stack, the thread-local block or the control words.
    #[inline(always)]
    pub(crate) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.stack_low) < self.end - self.stack_low
    }

    /// The thread-local block with the control words.
    pub(crate) fn locals_range(&self) -> Range {
        Range {
            start: self.locals,
            end: self.control + CONTROL,
        }
    }

    /// The area there.
    pub(crate) fn local_bytes(&self) -> &[u8] {
        let Range { start, end } = self.locals_range();
        // SAFETY: mapped as long as the slot is open, and no fiber runs.
        unsafe { std::slice::from_raw_parts(pointer(start), end - start) }
    }

    /// Where `errno` lies.
    pub(crate) fn errno(&self) -> usize {
        self.control
    }

    /// Zeroes the stack from `lowest` up, and what was used below.
    pub(crate) fn clear(&self, lowest: usize) {
        let clean = |from: usize, to: usize| {
            // SAFETY: part of the committed stack; no fiber runs.
            unsafe { pointer::<u8>(from).write_bytes(0, to - from) };
        };
        let mut from = (lowest & !63).saturating_sub(MARGIN).max(self.stack_low);
        clean(from, self.stack_top);
        while from >= self.stack_low + STRIP && !is_zero(from - STRIP, STRIP) {
            let next = from.saturating_sub(PAGE).max(self.stack_low);
            clean(next, from);
            from = next;
        }
        clean(self.control, self.control + CONTROL);
    }
}

/// Whether `size` bytes at `address`, multiples of 8, are zero.
fn is_zero(address: usize, size: usize) -> bool {
    // SAFETY: callers pass a part of a committed stack.
    let words = unsafe { std::slice::from_raw_parts(pointer::<u64>(address), size / 8) };
    words.iter().fold(0, |all, word| all | word) == 0
}
