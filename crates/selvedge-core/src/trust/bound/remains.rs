//! What is left of a small graph after revisits, at least.
//!
//! With the names of `slack.rs`: *P* is a part of *F*, so it has no more preemptions than *F*. If it has more than
//! the bound allows, whatever thread is the first to revisit and whatever read the earliest that is changed, *G* leads
//! to nothing within the bound.
//! * *E* was added maximally, also with respect to *P*. So nothing that has to come before an event of *P* is in *E*.
//! * In *F*, *r* reads a write that has all in its prefix that the first thread to revisit has done in *G*: a later
//!   revisit cannot delete what an earlier one made stable, so its write has that in its own prefix. If events of *r*'s
//!   thread come before some of that, the thread is left between these and *r*. (Under a weak model, *r* may be in none
//!   of the parts of *F* that count.)
//! * The later *r*, the larger *P*. So the reads are looked at in the order of addition, until *P* alone is too much.
//!
//! This does not depend on the order in which threads are extended.

use super::slack::{follow_joins, was_newest};
use crate::graph::{Graph, Slot};
use crate::ids::ThreadId;
use crate::linear::packed::{Lanes, Packed, lane, of_thread, union};

/// What decides whether revisits may lead from a graph that exceeds the bound to executions that do not.
pub(super) struct Remains<'a> {
    pub(super) packed: &'a Packed,
    pub(super) graph: &'a Graph,
    /// Counts the events that no revisit deletes.
    pub(super) stable: &'a [u32],
    pub(super) bound: u32,
    /// Whether every execution has linearisations.
    pub(super) sequential: bool,
}

impl Remains<'_> {
    /// Whether revisits may lead to executions within the bound.
    pub(super) fn may_return(&self) -> bool {
        let (graph, packed) = (self.graph, self.packed);
        let kept = self.kept();
        let mut revisers = (0..graph.threads() as u32).map(ThreadId);
        revisers.any(|reviser| {
            let mut prefix = 0;
            let revisits = follow_joins(graph, reviser, |thread| {
                let thread = thread.index();
                prefix = union(prefix, packed.closed(thread, lane(packed.all(), thread)));
            });
            revisits && self.may_return_by(kept, prefix)
        })
    }

    /// What no revisit deletes or changes.
    fn kept(&self) -> Lanes {
        let (graph, packed) = (self.graph, self.packed);
        let threads = self.stable.iter().enumerate();
        let stable = threads.fold(0, |all, (thread, &count)| {
            all | of_thread(thread, count as usize)
        });
        let mut kept = packed.closure(stable);
        for (slot, event) in graph.events().iter().enumerate() {
            let (thread, index) = (event.id.thread.index(), event.id.index as usize);
            let is_kept = || event.choice != 0 || !was_newest(graph, slot as Slot);
            if index >= lane(kept, thread) && is_kept() {
                kept = union(kept, packed.closed(thread, index + 1));
            }
        }
        kept
    }

    /// The same as `may_return` if the first write that revisits has a certain prefix.
    fn may_return_by(&self, kept: Lanes, prefix: Lanes) -> bool {
        let packed = self.packed;
        let mut left = union(kept, prefix);
        let mut earlier = 0;
        for event in self.graph.events() {
            let (thread, index) = (event.id.thread.index(), event.id.index as usize);
            if event.kind.reads() && index >= lane(left, thread) {
                left = packed.closure(union(left, earlier));
                if index >= lane(left, thread) {
                    let least = packed.at_least(left);
                    if least > self.bound {
                        return false;
                    }
                    let more =
                        self.sequential && packed.gap_follows(thread, index, lane(prefix, thread));
                    if least + u32::from(more) <= self.bound {
                        return true;
                    }
                }
            }
            earlier += of_thread(thread, 1);
        }
        false
    }
}
