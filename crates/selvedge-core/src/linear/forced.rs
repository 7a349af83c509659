//! Forced switches: a lower bound on the least number of preemptions.
//!
//! If a path from one event of a thread to a later one leads through another thread, the first thread has to be left in
//! between: a *gap*. A switch leaves one thread only, so gaps that do not overlap need a preemption each. A gap that
//! contains an operation that may have to wait does not count, since leaving there may be free.

use super::frontier::{ALL, Frontier};
use super::steps::Steps;

/// Of the first events of a thread: how many gaps do not overlap, and where the next one may begin.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    gaps: u32,
    free: u32,
}

/// The forced switches of a graph and of each of its parts.
#[derive(Debug, Default)]
pub(crate) struct ForcedSwitches {
    /// Where the counts of each thread begin; a thread has one more than events.
    offsets: Vec<usize>,
    counts: Vec<Count>,
    /// Of each thread, how many events remain after the first this many.
    remaining: Vec<u32>,
}

impl ForcedSwitches {
    /// Looks for the gaps of `steps`.
    pub(crate) fn measure<F: Frontier>(&mut self, steps: &Steps<'_, F>) {
        self.offsets.clear();
        self.counts.clear();
        for thread in 0..steps.threads() {
            self.offsets.push(self.counts.len());
            let mut count = Count::default();
            for_each_place(steps, thread, |at, waits, gap| {
                if waits {
                    count.free = count.free.max(at as u32);
                }
                self.counts.push(count);
                // Gaps come in the order of their ends, so taking each that fits makes the most of them.
                if let Some(begin) = gap
                    && begin >= count.free
                {
                    count.free = at as u32;
                    count.gaps += 1;
                }
            });
            self.counts.push(count);
        }
    }

    /// No linearization of `part` has fewer preemptions than this.
    pub(crate) fn at_least<F: Frontier>(&self, part: &F) -> u32 {
        let places = self.offsets.iter().zip(part.as_ref());
        places
            .map(|(&offset, &end)| self.counts[offset + end as usize].gaps)
            .sum()
    }

    /// Whether there is one gap more if event `index` of `thread` comes after something of another thread that comes after
    /// the first `known` events of `thread`.
    pub(crate) fn gap_follows(&self, thread: usize, index: usize, known: u32) -> bool {
        known > self.counts[self.offsets[thread] + index].free
    }

    /// Counts the forced switches that remain at each place of `steps`.
    pub(super) fn measure_remaining<F: Frontier>(&mut self, steps: &Steps<'_, F>) {
        self.offsets.clear();
        self.remaining.clear();
        for thread in 0..steps.threads() {
            let offset = self.remaining.len();
            let end = steps.ends.get(thread) as usize;
            self.offsets.push(offset);
            // First, for each event, the nearest end of a gap that begins there.
            self.remaining.resize(offset + end + 1, u32::MAX);
            let nearest = &mut self.remaining[offset..];
            for_each_place(steps, thread, |at, _, gap| {
                if let Some(begin) = gap {
                    let nearest = &mut nearest[begin as usize];
                    *nearest = (*nearest).min(at as u32);
                }
            });
            // Then, from the back, how many follow.
            let mut next = u32::MAX;
            nearest[end] = 0;
            for at in (0..end).rev() {
                next = next.min(nearest[at]);
                nearest[at] = match next {
                    u32::MAX => 0,
                    next => 1 + nearest[next as usize],
                };
            }
        }
    }

    /// How many forced switches remain where so much of `steps` is done.
    pub(super) fn remaining<F: Frontier>(&self, steps: &Steps<'_, F>, done: &F) -> u32 {
        let threads = self.offsets.iter().enumerate();
        threads
            .map(|(thread, &offset)| {
                let at = done.get(thread).min(steps.ends.get(thread));
                self.remaining[offset + at as usize]
            })
            .sum()
    }
}

/// Visits each event of `thread`: its index, whether it may have to wait, and the latest event that a gap which ends here
/// begins with.
fn for_each_place<F: Frontier>(
    steps: &Steps<'_, F>,
    thread: usize,
    mut visit: impl FnMut(usize, bool, Option<u32>),
) {
    let mut seen = F::none(steps.threads());
    seen.set(thread, ALL);
    let mut known = 0;
    let mut waited = 0;
    for (at, &slot) in steps.events(thread).iter().enumerate() {
        if seen.covers(steps.clocks, slot) {
            // Nothing of another thread comes directly before it, so it never waits.
            visit(at, false, None);
            continue;
        }
        let waits = steps.graph.event(slot).op.may_wait();
        if waits {
            waited = at as u32 + 1;
        }
        let before = known;
        for (other, &count) in steps.clocks.of(slot).iter().enumerate() {
            let count = count.min(steps.ends.get(other));
            if other != thread && count > seen.get(other) {
                let cause = steps.events(other)[count as usize - 1];
                known = known.max(steps.clocks.of(cause)[thread]);
            }
        }
        seen.join(steps.clocks, slot);
        let gap = known > before && known >= waited;
        visit(at, waits, gap.then(|| known - 1));
    }
}
