//! Whether a graph has a linearisation with so few preemptions (Marmanis et al., "Reconciling Preemption
//! Bounding with DPOR", §3.1 and §5).
//!
//! Leaving a thread is a preemption if it has a further event in the graph and could go on: its next event
//! is not a lock that would have to wait there, nor a join of a thread that is not done. Main runs first.
//! Parked reads are left out. The question is NP-complete; what keeps the answer cheap here:
//! * a lower bound: where the path from one operation of a thread to a later one leads through another thread, the
//!   thread has to be left in between. As many such gaps as do not overlap, so many preemptions;
//! * a depth-first search over (how far each thread has come, who runs) that remembers with what budget a
//!   state failed, gives up where the lower bound of what is left exceeds the budget, and lets the
//!   running thread go on wherever that cannot be wrong.

use rustc_hash::FxHashMap;

use super::{Part, operation_end, performed_events};
use crate::graph::{Graph, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::model::Model;
use crate::objects::ObjectFunction;
use crate::op::{Function, Op};

/// What the search remembers, kept for its memory.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) ends: Vec<u32>,
    done: Vec<u32>,
    failed: FxHashMap<(u128, ThreadId), u32>,
    /// The linearisation so far.
    order: Vec<Slot>,
    /// Of each thread, for each number of performed events, how often it must still be left; the
    /// thread's part begins at `offsets`.
    needed: Vec<u32>,
    offsets: Vec<usize>,
    /// How many threads join others.
    joiners: u32,
}

/// The search for a linearisation.
pub(crate) struct Linear<'a, C> {
    graph: &'a Graph,
    model: &'a C,
    scratch: &'a mut Scratch,
}

impl<'a, C: Model> Linear<'a, C> {
    /// Over all of `graph`.
    pub(crate) fn new(graph: &'a Graph, model: &'a C, scratch: &'a mut Scratch) -> Linear<'a, C> {
        scratch.failed.clear();
        performed_events(graph, &mut scratch.ends);
        let mut linear = Linear {
            graph,
            model,
            scratch,
        };
        linear.measure();
        linear
    }

    /// No linearisation has fewer preemptions than this.
    pub(crate) fn at_least(&self) -> u32 {
        let first = self.scratch.offsets.iter();
        first.map(|&first| self.scratch.needed[first]).sum()
    }

    /// The cost and the operations of a linearisation within `budget`, if there is one.
    pub(crate) fn search(&mut self, budget: u32) -> Option<(u32, &[Slot])> {
        if self.at_least() > budget {
            return None;
        }
        let threads = self.graph.threads();
        let mut done = std::mem::take(&mut self.scratch.done);
        done.clear();
        done.resize(threads, 0);
        self.scratch.order.clear();
        let left = self.complete(&mut done, ThreadId::MAIN, budget);
        self.scratch.done = done;
        Some((budget - left?, &self.scratch.order))
    }

    /// Finds out how often each thread must be left.
    fn measure(&mut self) {
        let Scratch {
            ends,
            needed,
            offsets,
            joiners,
            ..
        } = &mut *self.scratch;
        needed.clear();
        offsets.clear();
        *joiners = 0;
        for (thread, &end) in ends.iter().enumerate() {
            let events = &self.graph.thread(ThreadId(thread as u32))[..end as usize];
            let offset = needed.len();
            offsets.push(offset);
            // First, for each event, the nearest end of a gap that begins there.
            needed.resize(offset + events.len() + 1, u32::MAX);
            let mut waited = None;
            let mut joins = false;
            for (at, &slot) in events.iter().enumerate() {
                let event = self.graph.event(slot);
                if event.kind == Kind::WriteHalf {
                    continue;
                }
                if event.op.may_wait() {
                    waited = Some(at);
                    joins |= matches!(event.op, Op::Join { .. } | Op::JoinAll);
                    continue;
                }
                let before = self
                    .model
                    .linear_order(self.graph, operation_end(self.graph, slot));
                let mut known = 0;
                for (other, &count) in before.iter().enumerate() {
                    let count = count.min(ends[other]) as usize;
                    if other != thread && count > 0 {
                        let last = self.graph.thread(ThreadId(other as u32))[count - 1];
                        known = known.max(self.model.linear_order(self.graph, last)[thread]);
                    }
                }
                // A thread that waits somewhere in the gap can be left for nothing there.
                let Some(begin) = (known as usize).checked_sub(1) else {
                    continue;
                };
                if waited.is_none_or(|waited| waited <= begin) {
                    let nearest = &mut needed[offset + begin];
                    *nearest = (*nearest).min(at as u32);
                }
            }
            *joiners += u32::from(joins);
            // Then, from the back, how many gaps that do not overlap follow.
            let mut nearest = u32::MAX;
            needed[offset + events.len()] = 0;
            for at in (0..events.len()).rev() {
                nearest = nearest.min(needed[offset + at]);
                needed[offset + at] = match nearest {
                    u32::MAX => 0,
                    end => 1 + needed[offset + end as usize],
                };
            }
        }
    }

    fn part(&self) -> Part<'_> {
        Part {
            graph: self.graph,
            ends: &self.scratch.ends,
        }
    }

    /// Completes the linearisation from the state that ends `done`, a stack of states, and leaves the
    /// stack as it was; returns the budget left.
    fn complete(&mut self, done: &mut Vec<u32>, running: ThreadId, budget: u32) -> Option<u32> {
        let top = done.len() - self.graph.threads();
        let now = &mut done[top..];
        while let Some(slot) = self.part().next(now, running) {
            let forced = self.goes_first(slot) && self.ready(now, slot);
            if !forced {
                break;
            }
            self.part().perform(now, slot);
            self.scratch.order.push(slot);
        }
        if now == &self.scratch.ends[..] {
            return Some(budget);
        }
        let offsets = self.scratch.offsets.iter().zip(&*now);
        let needed = offsets.map(|(&offset, &at)| self.scratch.needed[offset + at as usize]);
        if needed.sum::<u32>() > budget {
            return None;
        }
        let key = (self.key(now), running);
        let failed = self.scratch.failed.get(&key);
        if failed.is_some_and(|&failed| budget <= failed) {
            return None;
        }
        let found = self.branch(done, running, budget);
        if found.is_none() {
            self.scratch.failed.insert(key, budget);
        }
        found
    }

    /// Tries every thread that can go on, the running one first.
    fn branch(&mut self, done: &mut Vec<u32>, running: ThreadId, budget: u32) -> Option<u32> {
        let threads = self.graph.threads();
        let top = done.len() - threads;
        let own = self.part().next(&done[top..], running);
        let stays = own.filter(|&slot| self.ready(&done[top..], slot));
        if let Some(slot) = stays
            && let Some(found) = self.attempt(done, slot, budget)
        {
            return Some(found);
        }
        let price = u32::from(!self.part().leaves_freely(&done[top..], running));
        let left = budget.checked_sub(price)?;
        for thread in (0..threads as u32).map(ThreadId) {
            let next = self.part().next(&done[top..], thread);
            if let Some(slot) = next.filter(|_| thread != running)
                && self.ready(&done[top..], slot)
                && let Some(found) = self.attempt(done, slot, left)
            {
                return Some(found);
            }
        }
        None
    }

    /// Takes the operation at `slot` and goes on from there.
    fn attempt(&mut self, done: &mut Vec<u32>, slot: Slot, budget: u32) -> Option<u32> {
        let top = done.len() - self.graph.threads();
        done.extend_from_within(top..);
        let after = done.len() - self.graph.threads();
        let placed = self.scratch.order.len();
        self.part().perform(&mut done[after..], slot);
        self.scratch.order.push(slot);
        let found = self.complete(done, self.graph.event(slot).id.thread, budget);
        done.truncate(after);
        if found.is_none() {
            self.scratch.order.truncate(placed);
        }
        found
    }

    /// Whether everything that comes before the operation is done.
    fn ready(&self, done: &[u32], slot: Slot) -> bool {
        let thread = self.graph.event(slot).id.thread.index();
        let end = operation_end(self.graph, slot);
        let before = self.model.linear_order(self.graph, end);
        let ends = &self.scratch.ends;
        (0..done.len())
            .all(|other| other == thread || done[other] >= before[other].min(ends[other]))
    }

    /// Whether the running thread loses nothing by taking this operation at once: nobody's waiting
    /// depends on it. Its last one may end the waiting of those that join it; if only one thread does, that
    /// makes up for the preemption saved.
    fn goes_first(&self, slot: Slot) -> bool {
        let last = self.graph.event(operation_end(self.graph, slot)).id;
        let ends = self.scratch.ends[last.thread.index()];
        if last.index + 1 == ends && self.scratch.joiners > 1 {
            return false;
        }
        match self.graph.event(slot).op {
            Op::Update {
                function: Function::Object(function),
                ..
            } => matches!(function, ObjectFunction::MutexLock { .. }),
            Op::Store { at, .. } => !self.is_object(at),
            _ => true,
        }
    }

    fn is_object(&self, location: Location) -> bool {
        let first = self.graph.reads(location).first();
        first.is_some_and(|&read| {
            let op = self.graph.event(read).op;
            matches!(
                op,
                Op::Update {
                    function: Function::Object(_),
                    ..
                }
            )
        })
    }

    /// One number for how far each thread has come. It is exact as long as the product of the
    /// threads' lengths fits into 128 bits, and a hash of that many bits beyond.
    fn key(&self, done: &[u32]) -> u128 {
        done.iter()
            .zip(&self.scratch.ends)
            .fold(0, |key: u128, (&done, &end)| {
                key.wrapping_mul(u128::from(end) + 1)
                    .wrapping_add(u128::from(done))
            })
    }
}
