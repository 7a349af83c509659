//! How often a thread came by each visible operation, in each frame.

use crate::frames::Frames;

/// A visible operation in a frame.
#[derive(Clone, Copy, Default)]
struct Visit {
    run: u32,
    count: u32,
    site: usize,
    stack_pointer: usize,
}

/// A visible operation that was visited more often than any other, and the calls that it was in.
#[derive(Default)]
pub(crate) struct Hottest {
    pub(crate) site: usize,
    pub(crate) count: u32,
    /// Return addresses, innermost first; only so many that they lead out of a library.
    pub(crate) calls: Vec<usize>,
}

impl Hottest {
    const CALLS: usize = 32;

    /// Notes the operation at `site`, if `count` visits are more than any had before. The count only
    /// grows in a whole search, so that this is rarely more than a comparison.
    #[inline(always)]
    pub(crate) fn note(&mut self, site: usize, count: u32, frames: &Frames) {
        if count > self.count {
            (self.site, self.count) = (site, count);
            self.calls.clear();
            let calls = frames.return_addresses().take(Self::CALLS);
            self.calls.extend(calls);
        }
    }
}

/// The visits of one thread in the present execution. Entries of older executions count as free.
pub(crate) struct Visits {
    table: Vec<Visit>,
    used: usize,
    run: u32,
}

impl Visits {
    /// None yet.
    pub(crate) fn new() -> Visits {
        Visits {
            table: vec![Visit::default(); 64],
            used: 0,
            run: 0,
        }
    }

    /// The thread begins in execution `run`. If it began there before and that was taken back, all its visits
    /// were as well, and their places stay in the table.
    pub(crate) fn reset(&mut self, run: u32) {
        if self.run != run {
            self.run = run;
            self.used = 0;
        }
    }

    /// Forgets executions altogether, because their numbers start again.
    pub(crate) fn forget(&mut self) {
        self.table.fill(Visit::default());
        self.run = 0;
        self.used = 0;
    }

    /// Counts a visit and returns how many there were.
    #[inline(always)]
    pub(crate) fn count(&mut self, site: usize, stack_pointer: usize) -> u32 {
        let slot = self.find(site, stack_pointer);
        let visit = &mut self.table[slot];
        visit.count += 1;
        visit.count
    }

    /// Takes the last visit back.
    pub(crate) fn take_back(&mut self, site: usize, stack_pointer: usize) {
        let slot = self.find(site, stack_pointer);
        self.table[slot].count -= 1;
    }

    #[inline(always)]
    fn find(&mut self, site: usize, stack_pointer: usize) -> usize {
        let mask = self.table.len() - 1;
        let key = site.wrapping_add(stack_pointer.rotate_left(20));
        let mut slot = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & mask;
        loop {
            let visit = &self.table[slot];
            if visit.run != self.run {
                break;
            }
            if visit.site == site && visit.stack_pointer == stack_pointer {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
        if 2 * self.used > mask {
            self.grow();
            return self.find(site, stack_pointer);
        }
        self.used += 1;
        self.table[slot] = Visit {
            run: self.run,
            count: 0,
            site,
            stack_pointer,
        };
        slot
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Visit::default(); self.table.len() * 2];
        let old = std::mem::replace(&mut self.table, larger);
        self.used = 0;
        let run = self.run;
        for visit in old.into_iter().filter(|visit| visit.run == run) {
            let slot = self.find(visit.site, visit.stack_pointer);
            self.table[slot] = visit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_counted_per_site_and_frame() {
        let mut visits = Visits::new();
        for run in 1..4 {
            visits.reset(run);
            for round in 1..=3 {
                for place in 0..500 {
                    assert_eq!(visits.count(place, place % 7), round);
                    assert_eq!(visits.count(place, 100), round);
                }
            }
        }
        visits.forget();
        visits.reset(1);
        assert_eq!(visits.count(0, 0), 1);
    }

    #[test]
    fn a_thread_that_begins_again_in_an_execution_has_room() {
        let mut visits = Visits::new();
        for place in 0..1000 {
            visits.reset(1);
            assert_eq!(visits.count(place, 0), 1);
            visits.take_back(place, 0);
        }
    }
}
