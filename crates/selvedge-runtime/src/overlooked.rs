//! Behaviour of a program that only an option explores in full.

use crate::access::FREED;
use crate::access::liveness;
use crate::locations::Extent;
use crate::runtime::{Phase, Runtime};

/// Behaviour of a program that only an option explores in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlooked {
    /// It uses weak compare-exchanges, which may fail for no reason.
    pub weak_exchanges: bool,
    /// It compares pointers to memory that another thread frees, and that could be allocated again.
    pub freed_pointers: bool,
    /// The largest status that it ended with.
    pub status: i32,
    /// It starts threads.
    pub threads: bool,
    /// It accesses these bytes with different widths, and nothing orders these accesses.
    pub mixed: Option<Extent>,
}

/// Pointers to heap blocks, each with the thread that compared it.
pub(crate) type Compared = Vec<(usize, usize)>;

impl Runtime {
    /// The running thread compares `value` in a compare-exchange, or writes it by one.
    #[inline(always)]
    pub(crate) fn compares(&mut self, value: usize) {
        if self.layout.heap_owner(value).is_some()
            && !self.overlooked.freed_pointers
            && self.phase == Phase::Fiber
        {
            self.compares_pointer(value);
        }
    }

    #[cold]
    fn compares_pointer(&mut self, value: usize) {
        let freed = self.block_near(value).and_then(|block| block.freed);
        let by_other = freed.is_some_and(|(thread, _)| thread.index() != self.running);
        self.overlooked.freed_pointers |= by_other && liveness(value) == FREED;
        let known = (value, self.running);
        if !self.compared.contains(&known) {
            self.compared.push(known);
        }
    }

    /// The running thread frees `size` bytes at `address`.
    pub(crate) fn frees_compared(&mut self, address: usize, size: usize) {
        let block = address..address + size.max(1);
        let mut compared = self.compared.iter();
        self.overlooked.freed_pointers |=
            compared.any(|(value, thread)| block.contains(value) && *thread != self.running);
    }
}
