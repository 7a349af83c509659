//! Frontiers: how many events of each thread have been performed.
//!
//! The algorithms of this module are written once, for any [`Frontier`]. With up to two blocks of [`LANES`] threads a
//! frontier is an array that fits into vector registers; otherwise it is a boxed slice.

use std::hash::Hash;

use crate::graph::{Clocks, Graph, LANES, Slot, join};

/// Counts every event of a thread, however many there are.
pub(crate) const ALL: u32 = i32::MAX as u32;

/// Of each thread, how many events have been performed.
pub(crate) trait Frontier: Clone + Eq + Hash + AsRef<[u32]> + AsMut<[u32]> {
    /// No event of any of `threads` threads.
    fn none(threads: usize) -> Self;

    /// How many events of `thread`.
    #[inline]
    fn get(&self, thread: usize) -> u32 {
        self.as_ref()[thread]
    }

    /// Sets the number of events of `thread`.
    #[inline]
    fn set(&mut self, thread: usize, count: u32) {
        self.as_mut()[thread] = count;
    }

    /// Whether everything that the clock of `slot` counts has been performed.
    fn covers(&self, clocks: &Clocks, slot: Slot) -> bool;

    /// A thread of which the clock of `slot` counts more than has been performed, and how many events it counts.
    fn lacking(&self, clocks: &Clocks, slot: Slot) -> Option<(usize, u32)> {
        let clock = clocks.of(slot);
        let mut lanes = self.as_ref().iter().zip(clock).enumerate();
        lanes.find_map(|(thread, (&done, &needed))| (needed > done).then_some((thread, needed)))
    }

    /// Adds everything that the clock of `slot` counts.
    fn join(&mut self, clocks: &Clocks, slot: Slot) {
        join(self.as_mut(), clocks.of(slot));
    }

    /// Adds, for each event, everything that its clock counts. Clocks are transitive, so one round is enough.
    fn close(&mut self, graph: &Graph, clocks: &Clocks) {
        for thread in 0..graph.threads() {
            let events = graph.thread(crate::ids::ThreadId(thread as u32));
            let count = (self.get(thread) as usize).min(events.len());
            if let Some(&last) = events[..count].last() {
                self.join(clocks, last);
            }
        }
    }
}

/// For each lane, all bits of that lane and none of the others.
const ONLY: [[u32; LANES]; LANES] = {
    let mut only = [[0; LANES]; LANES];
    let mut lane = 0;
    while lane < LANES {
        only[lane][lane] = u32::MAX;
        lane += 1;
    }
    only
};

/// A frontier of up to [`LANES`] threads for each of `B` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blocks<const B: usize>([[u32; LANES]; B]);

impl<const B: usize> Default for Blocks<B> {
    fn default() -> Blocks<B> {
        Blocks([[0; LANES]; B])
    }
}

impl<const B: usize> AsRef<[u32]> for Blocks<B> {
    #[inline]
    fn as_ref(&self) -> &[u32] {
        self.0.as_flattened()
    }
}

impl<const B: usize> AsMut<[u32]> for Blocks<B> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u32] {
        self.0.as_flattened_mut()
    }
}

impl<const B: usize> Frontier for Blocks<B> {
    #[inline]
    fn none(_: usize) -> Blocks<B> {
        Blocks([[0; LANES]; B])
    }

    /// Writes all lanes of a block at once: they are read at once, and a processor stalls if only one of them was written
    /// before.
    #[inline]
    fn set(&mut self, thread: usize, count: u32) {
        let only = &ONLY[thread % LANES];
        let block = &mut self.0[if B == 1 { 0 } else { thread / LANES }];
        *block = std::array::from_fn(|lane| block[lane] & !only[lane] | count & only[lane]);
    }

    #[inline]
    fn covers(&self, clocks: &Clocks, slot: Slot) -> bool {
        let mut differences = 0;
        let mut compare = |done: &[u32; LANES], clock: &[u32; LANES]| {
            for lane in 0..LANES {
                differences |= done[lane].wrapping_sub(clock[lane]);
            }
        };
        if B == 1 {
            compare(&self.0[0], clocks.block(slot));
        } else {
            let blocks = self.0.iter().zip(clocks.blocks(slot));
            blocks.for_each(|(done, clock)| compare(done, clock));
        }
        // No count is so large that its highest bit is set.
        (differences as i32) >= 0
    }
}

impl Frontier for Box<[u32]> {
    fn none(threads: usize) -> Box<[u32]> {
        vec![0; threads].into_boxed_slice()
    }

    fn covers(&self, clocks: &Clocks, slot: Slot) -> bool {
        let mut lanes = self.iter().zip(clocks.of(slot));
        lanes.all(|(done, needed)| done >= needed)
    }
}
