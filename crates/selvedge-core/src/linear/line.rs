//! One linearisation of a graph, kept while the graph grows and shrinks: its cost is an upper bound on the least
//! number of preemptions, and mostly decides whether a bound is kept.
//!
//! What is left of a linearisation when events are taken away is a linearisation of the rest, and not a dearer
//! one: so nothing has to be put back when the search goes back, and a revisit starts from the line of
//! the graph it cuts down.

use super::{Part, operation_begin, operation_end, performed_events};
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::model::Model;
use crate::op::{Function, Op};

/// A linearisation, as the first events of its operations. Parked reads are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    order: Vec<Slot>,
    /// How many events of the graph were looked at, and those among them that still have to be put in.
    covered: usize,
    missing: Vec<Slot>,
    /// At least the number of preemptions; exactly that if `exact`.
    cost: u32,
    exact: bool,
    /// It has to be laid anew.
    stale: bool,
    done: Vec<u32>,
    ends: Vec<u32>,
}

impl Line {
    /// The line of the empty graph.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.missing.clear();
        self.covered = 0;
        self.cost = 0;
        self.exact = true;
        self.stale = false;
    }

    /// Only the first `events` events of the graph remain.
    pub(crate) fn shrink(&mut self, events: usize) {
        if self.covered <= events {
            return;
        }
        self.covered = events;
        self.order.retain(|&slot| (slot as usize) < events);
        self.missing.retain(|&slot| (slot as usize) < events);
        self.exact = false;
    }

    /// The line of `graph`, which was cut down from one that has the line `from`. The read in slot `read`
    /// sees the newest event now.
    pub(crate) fn restrict(&mut self, from: (&Line, &Graph), graph: &Graph, read: Slot) {
        let (line, old) = from;
        self.clear();
        // What is missing in a line that was not kept up cannot be put in by the order of slots: a read that was revisited
        // may come before what it sees.
        self.stale = line.stale || line.covered != old.len() || !line.missing.is_empty();
        if self.stale {
            return;
        }
        self.cost = line.cost;
        self.exact = false;
        self.covered = graph.len();
        let kept = &mut self.done;
        kept.clear();
        kept.resize(graph.len(), 0);
        for &slot in &line.order {
            let id = old.event(slot).id;
            let Some(&new) = graph.thread(id.thread).get(id.index as usize) else {
                continue;
            };
            if new != read && graph.event(new).kind != Kind::Parked {
                self.order.push(new);
                kept[new as usize] = 1;
            }
        }
        let slots = 0..graph.len() as Slot;
        let missing = slots.filter(|&slot| kept[slot as usize] == 0 && slot != read);
        self.missing.extend(missing);
        self.missing.push(read);
    }

    /// A line of all of `graph`: each thread goes on until it has to wait for another one.
    pub(crate) fn lay(&mut self, graph: &Graph, model: &impl Model) {
        self.clear();
        self.covered = graph.len();
        self.cost = u32::MAX;
        self.exact = false;
        performed_events(graph, &mut self.ends);
        self.done.clear();
        self.done.resize(graph.threads(), 0);
        let mut progress = true;
        while std::mem::take(&mut progress) {
            for own in 0..graph.threads() {
                let events = graph.thread(ThreadId(own as u32));
                while self.done[own] < self.ends[own] {
                    let slot = events[self.done[own] as usize];
                    let last = operation_end(graph, slot);
                    let before = model.linear_order(graph, last).iter().enumerate();
                    let ready = before.clone().all(|(other, &before)| {
                        other == own || before.min(self.ends[other]) <= self.done[other]
                    });
                    if !ready {
                        break;
                    }
                    self.order.push(slot);
                    self.done[own] = graph.event(last).id.index + 1;
                    progress = true;
                }
            }
        }
    }

    /// Puts in what was added to the graph. No update may be half done.
    pub(crate) fn extend(&mut self, graph: &Graph, model: &impl Model) {
        if self.stale {
            self.lay(graph, model);
            return;
        }
        let missing = std::mem::take(&mut self.missing);
        for &slot in &missing {
            self.insert(graph, model, slot, graph.len() as Slot);
        }
        self.missing = missing;
        self.missing.clear();
        for slot in self.covered as Slot..graph.len() as Slot {
            self.insert(graph, model, slot, slot);
        }
        self.covered = graph.len();
    }

    /// Whether it has at most `budget` preemptions, as far as the cheap count tells.
    pub(crate) fn is_within(&self, budget: u32) -> bool {
        self.cost <= budget
    }

    /// The same for certain.
    pub(crate) fn counts_within(
        &mut self,
        graph: &Graph,
        ends: &mut Vec<u32>,
        budget: u32,
    ) -> bool {
        if !self.exact && self.cost > budget {
            performed_events(graph, ends);
            self.cost = self.count(Part { graph, ends });
            self.exact = true;
        }
        self.cost <= budget
    }

    /// Takes over a linearisation of the whole graph with so many preemptions.
    pub(crate) fn replace(&mut self, order: &[Slot], cost: u32) {
        self.order.clear();
        self.order.extend_from_slice(order);
        self.cost = cost;
        self.exact = true;
    }

    fn count(&mut self, part: Part<'_>) -> u32 {
        self.done.clear();
        self.done.resize(part.graph.threads(), 0);
        let mut running = ThreadId::MAIN;
        let mut cost = 0;
        for &slot in &self.order {
            let event = part.graph.event(slot);
            let thread = event.id.thread;
            if thread != running {
                cost += u32::from(!part.leaves_freely(&self.done, running));
                running = thread;
            }
            let halves = u32::from(event.kind == Kind::ReadHalf);
            self.done[thread.index()] = event.id.index + 1 + halves;
        }
        cost
    }

    /// Puts the operation at `slot` in. Of the writes that are newer, only those in slots below `limit` are
    /// in the line.
    fn insert(&mut self, graph: &Graph, model: &impl Model, slot: Slot, limit: Slot) {
        let event = graph.event(slot);
        if matches!(event.kind, Kind::Parked | Kind::WriteHalf) {
            return;
        }
        match overwriting(graph, slot, event, limit) {
            Some(target) => self.insert_before(graph, model, slot, operation_begin(graph, target)),
            None => self.append(graph, model, slot, event),
        }
    }

    /// Puts an operation in that nothing has to come after: behind the last one of its thread, where that costs nothing, or else at
    /// the end.
    fn append(&mut self, graph: &Graph, model: &impl Model, slot: Slot, event: &Event) {
        let thread = event.id.thread;
        let last = self.order.last().map(|&last| graph.event(last).id.thread);
        if last.unwrap_or(ThreadId::MAIN) != thread
            && (event.id.index > 0 || thread == ThreadId::MAIN)
        {
            if !affects_waiting(graph, &event.op) {
                let before = model.linear_order(graph, operation_end(graph, slot));
                let stays = |&other: &Slot| {
                    graph.event(other).id.thread == thread || graph.counted(before, other)
                };
                let behind = self.order.iter().rposition(stays).map_or(0, |at| at + 1);
                let own = match behind {
                    0 => thread == ThreadId::MAIN,
                    behind => graph.event(self.order[behind - 1]).id.thread == thread,
                };
                if own {
                    self.order.insert(behind, slot);
                    return;
                }
            }
            self.cost = self.cost.saturating_add(1);
            self.exact &= !event.op.may_wait();
        }
        self.order.push(slot);
    }

    /// Puts the operation at `slot` somewhere before `target`, which has to move back together with what
    /// comes after it if the operation itself comes after something further back.
    fn insert_before(&mut self, graph: &Graph, model: &impl Model, slot: Slot, target: Slot) {
        let before = model.linear_order(graph, operation_end(graph, slot));
        let is_before = |&other: &Slot| other != slot && graph.counted(before, other);
        let earliest = self
            .order
            .iter()
            .rposition(is_before)
            .map_or(0, |at| at + 1);
        let latest = self.order.iter().position(|&other| other == target);
        let latest = latest.unwrap_or(self.order.len());
        if earliest <= latest {
            let own = |at: usize| graph.event(self.order[at]).id.thread;
            let event = graph.event(slot);
            let thread = event.id.thread;
            let boundary = (earliest..=latest)
                .find(|&at| at == 0 || at == self.order.len() || own(at - 1) != own(at));
            let at = match earliest > 0 && own(earliest - 1) == thread {
                true => earliest,
                false => {
                    // Its thread is left where it ended until now, and another one where this comes in between.
                    let began = event.id.index > 0 || thread == ThreadId::MAIN;
                    let grows = u32::from(began) + u32::from(boundary.is_none());
                    self.cost = self.cost.saturating_add(grows);
                    boundary.unwrap_or(latest)
                }
            };
            if affects_waiting(graph, &event.op) {
                self.cost = u32::MAX;
                self.exact = false;
            }
            self.order.insert(at, slot);
            return;
        }
        self.cost = u32::MAX;
        self.exact = false;
        let begin = latest;
        let moved = |other: Slot| {
            let order = model.linear_order(graph, operation_end(graph, other));
            graph.counted(order, target)
        };
        let segment: Vec<Slot> = self.order[begin..earliest].to_vec();
        let stays = segment.iter().copied().filter(|&other| !moved(other));
        let goes = segment.iter().copied().filter(|&other| moved(other));
        let all: Vec<Slot> = stays.chain([slot]).chain(goes).collect();
        self.order.splice(begin..earliest, all);
    }
}

/// Whether the operation may have to wait, or may end or begin the waiting of others.
fn affects_waiting(graph: &Graph, op: &Op) -> bool {
    may_free(op) || !super::search::goes_first(graph, op)
}

/// Whether the operation may change who has to wait.
fn may_free(op: &Op) -> bool {
    match op {
        Op::Update { function, .. } => matches!(function, Function::Object(_)),
        Op::Join { .. } | Op::JoinAll => true,
        _ => false,
    }
}

/// The first write in a slot below `limit` that must come after the operation at `slot`.
fn overwriting(graph: &Graph, slot: Slot, event: &Event, limit: Slot) -> Option<Slot> {
    let location = event.op.location()?;
    let write = match event.kind {
        Kind::Read => event.source,
        _ => operation_end(graph, slot),
    };
    let newest = graph.coherence(location).last()?;
    if *newest == write {
        return None;
    }
    let later = graph.later_writes(location, write).iter();
    later.copied().find(|&write| write < limit)
}
