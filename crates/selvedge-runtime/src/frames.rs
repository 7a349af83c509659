//! Call stacks, as the instrumentation announces them.

use crate::arena::{FRAMES, pointer};

/// How many frames of a thread are remembered; deeper ones are only counted.
const CAPACITY: usize = 1 << 14;
/// Address space per thread.
pub(crate) const AREA: usize = CAPACITY * size_of::<Frame>();

/// A call.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    /// Where it returns to.
    return_address: usize,
    /// The stack pointer at its beginning.
    stack_pointer: usize,
}

/// The call stack of one thread.
pub(crate) struct Frames {
    start: usize,
    depth: usize,
}

impl Frames {
    /// The call stack of thread `index`.
    pub(crate) fn new(index: usize) -> Frames {
        Frames {
            start: FRAMES + index * AREA,
            depth: 0,
        }
    }

    /// Forgets all calls.
    pub(crate) fn clear(&mut self) {
        self.depth = 0;
    }

    #[inline(always)]
    fn at(&self, index: usize) -> *mut Frame {
        pointer(self.start + index * size_of::<Frame>())
    }

    #[inline(always)]
    fn top(&self) -> Option<Frame> {
        let index = self.depth.checked_sub(1)?;
        // SAFETY: the area has `CAPACITY` frames, and those below the depth were written.
        (index < CAPACITY).then(|| unsafe { self.at(index).read() })
    }

    /// A function was entered.
    #[inline(always)]
    pub(crate) fn enter(&mut self, return_address: usize, stack_pointer: usize) {
        // Calls that were left by a jump or an exception lie at or below the new one.
        while self
            .top()
            .is_some_and(|top| top.stack_pointer <= stack_pointer)
        {
            self.depth -= 1;
        }
        if self.depth < CAPACITY {
            // SAFETY: the area has `CAPACITY` frames.
            unsafe {
                self.at(self.depth).write(Frame {
                    return_address,
                    stack_pointer,
                })
            };
        }
        self.depth += 1;
    }

    /// A function was left.
    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// How many functions the thread is inside of.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The calls as they lie in memory.
    pub(crate) fn bytes(&self) -> &[u8] {
        let size = self.depth.min(CAPACITY) * size_of::<Frame>();
        // SAFETY: the frames below the depth were written, and are plain words.
        unsafe { std::slice::from_raw_parts(pointer::<u8>(self.start), size) }
    }

    /// Makes the calls those that [`bytes`](Frames::bytes) returned.
    pub(crate) fn set_bytes(&mut self, bytes: &[u8]) {
        // SAFETY: they came from an area of the same size.
        unsafe { pointer::<u8>(self.start).copy_from(bytes.as_ptr(), bytes.len()) };
        self.depth = bytes.len() / size_of::<Frame>();
    }

    /// Makes the calls those that [`bytes`](Frames::bytes) returned when there were this many.
    pub(crate) fn restore(&mut self, bytes: &[u8], depth: usize) {
        self.set_bytes(bytes);
        self.depth = depth;
    }

    /// Where the calls return to, innermost first.
    pub(crate) fn return_addresses(&self) -> impl Iterator<Item = usize> + '_ {
        // SAFETY: as above.
        (0..self.depth.min(CAPACITY))
            .rev()
            .map(|i| unsafe { (*self.at(i)).return_address })
    }
}
