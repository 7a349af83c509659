//! Demands on schedules: sets of waits.

use serde::{Deserialize, Serialize};

use crate::ids::ThreadId;

/// Before `thread` performs its counted event `event`, `source` has performed `count` counted
/// events, or has ended, or will never exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Demand {
    /// The event that waits.
    pub thread: ThreadId,
    /// The event that it waits for.
    pub source: ThreadId,
    /// Before which of its counted events, from zero.
    pub event: u32,
    /// For how many of the other's.
    pub count: u32,
}

impl Demand {
    /// Whether every execution that satisfies `self` satisfies `other`.
    pub fn implies(&self, other: &Demand) -> bool {
        (self.thread, self.source) == (other.thread, other.source)
            && self.event <= other.event
            && self.count >= other.count
    }
}

/// A set of demands, none of which implies another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demands(Vec<Demand>);

impl Demands {
    /// The strongest of `all`.
    pub fn new(all: impl IntoIterator<Item = Demand>) -> Demands {
        let mut all: Vec<Demand> = all.into_iter().collect();
        // Among those of one event the one for most comes first.
        all.sort_unstable_by_key(|d| (d.thread, d.source, d.event, u32::MAX - d.count));
        let mut kept: Vec<Demand> = Vec::with_capacity(all.len());
        for demand in all {
            let implied = kept.last().is_some_and(|last| last.implies(&demand));
            if !implied && demand.count > 0 {
                kept.push(demand);
            }
        }
        Demands(kept)
    }

    /// All of them, by thread, source and event.
    pub fn iter(&self) -> impl Iterator<Item = &Demand> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether every schedule will do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same without `old`, but with `new`.
    pub fn replaced(&self, old: &Demand, new: impl IntoIterator<Item = Demand>) -> Demands {
        let others = self.0.iter().filter(|&demand| demand != old).copied();
        Demands::new(others.chain(new))
    }

    /// Whether some demand implies `demand`.
    pub fn implies(&self, demand: &Demand) -> bool {
        self.0.iter().any(|own| own.implies(demand))
    }

    /// How many threads ever wait.
    pub fn waiting_threads(&self) -> usize {
        let mut threads: Vec<ThreadId> = self.0.iter().map(|demand| demand.thread).collect();
        threads.dedup();
        threads.len()
    }

    /// How many counted events of `thread` matter.
    pub fn limit(&self, thread: ThreadId) -> u32 {
        let ends = self.0.iter().filter_map(|demand| {
            if demand.thread == thread {
                Some(demand.event + 1)
            } else {
                (demand.source == thread).then_some(demand.count)
            }
        });
        ends.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(event: u32, count: u32) -> Demand {
        Demand {
            thread: ThreadId(1),
            source: ThreadId(2),
            event,
            count,
        }
    }

    #[test]
    fn only_what_is_not_implied_is_kept() {
        let all = [demand(3, 2), demand(1, 2), demand(4, 3), demand(1, 1)];
        let demands = Demands::new(all);
        assert_eq!(demands, Demands(vec![demand(1, 2), demand(4, 3)]));
        let weaker = demands.replaced(&demand(1, 2), [demand(1, 1), demand(2, 2)]);
        let expected = vec![demand(1, 1), demand(2, 2), demand(4, 3)];
        assert_eq!(weaker, Demands(expected));
        assert!(weaker.iter().all(|d| demands.implies(d)));
    }
}
