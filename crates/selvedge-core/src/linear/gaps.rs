//! A lower bound on preemptions. Where the path from one operation of a thread to a later one leads through another
//! thread, the thread has to be left in between: a gap. As many gaps as do not overlap, so many
//! preemptions, the threads taken together, since a switch leaves one thread only. A gap that holds an operation which
//! may have to wait does not count: leaving there may be free.

use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::ThreadId;
use crate::model::Model;
use crate::op::Op;

/// How often each thread must be left.
#[derive(Default)]
pub(crate) struct Gaps {
    /// Where the places of each thread begin in the table; a thread has one more than events.
    pub(super) offsets: Vec<usize>,
    /// From each place on, how many gaps that do not overlap follow.
    needed: Vec<u32>,
    /// How many threads join others.
    pub(super) joiners: u32,
}

impl Gaps {
    /// For the first `ends[t]` events of each thread *t*.
    pub(super) fn measure(&mut self, graph: &Graph, model: &impl Model, ends: &[u32]) {
        self.offsets.clear();
        self.needed.clear();
        self.joiners = 0;
        for (own, &end) in ends.iter().enumerate() {
            self.offsets.push(self.needed.len());
            self.measure_thread(graph, model, own, end as usize);
        }
    }

    /// In all.
    pub(super) fn total(&self) -> u32 {
        let first = self.offsets.iter();
        first.map(|&first| self.needed[first]).sum()
    }

    /// What is left where so many events of each thread are done.
    pub(super) fn left(&self, done: &[u32]) -> u32 {
        let places = self.offsets.iter().zip(done);
        places
            .map(|(&first, &at)| self.needed[first + at as usize])
            .sum()
    }

    fn measure_thread(&mut self, graph: &Graph, model: &impl Model, own: usize, end: usize) {
        let offset = self.needed.len();
        let events = &graph.thread(ThreadId(own as u32))[..end];
        // First, for each event, the nearest end of a gap that begins there.
        self.needed.resize(offset + end + 1, u32::MAX);
        let nearest = &mut self.needed[offset..];
        let mut joins = false;
        let mut waited = None;
        let mut known = 0;
        for (at, &slot) in events.iter().enumerate() {
            let event = graph.event(slot);
            if event.kind == Kind::WriteHalf {
                continue;
            }
            let before = known;
            direct_causes(graph, slot, event, |cause| {
                if graph.event(cause).id.thread.index() != own {
                    known = known.max(model.linear_order(graph, cause)[own]);
                }
            });
            let news = known > before;
            if event.op.may_wait() {
                waited = Some(at);
                joins |= matches!(event.op, Op::Join { .. } | Op::JoinAll);
            }
            if let Some(begin) = (known as usize).checked_sub(1)
                && news
                && waited.is_none_or(|waited| waited <= begin)
            {
                nearest[begin] = nearest[begin].min(at as u32);
            }
        }
        self.joiners += u32::from(joins);
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

/// No part of `graph` has more preemptions than this. If each thread goes on for as long as it can, it is left where its next operation has
/// to come after one of another thread, once for each such operation. Before a join that is free.
pub(crate) fn at_most(graph: &Graph) -> u32 {
    let mut number = 0;
    for (slot, event) in graph.events().iter().enumerate() {
        if event.id.index == 0 || event.kind == Kind::WriteHalf {
            continue;
        }
        let mut waits = false;
        direct_causes(graph, slot as Slot, event, |cause| {
            waits |= graph.event(cause).id.thread != event.id.thread;
        });
        number += u32::from(waits);
    }
    number
}

/// The events that come directly before an operation because of what it reads or overwrites. What comes before a
/// join is left out: a join waits.
fn direct_causes(graph: &Graph, slot: Slot, event: &Event, mut visit: impl FnMut(Slot)) {
    let Some(location) = event.op.location() else {
        return;
    };
    let overwritten = match event.kind {
        Kind::Write => graph.write_at(location, graph.position(location, slot) - 1),
        _ => event.source,
    };
    if overwritten != INIT {
        visit(overwritten);
    }
    if event.kind != Kind::Read {
        for reader in graph.readers(location, overwritten) {
            let parked = graph.event(reader).kind == Kind::Parked;
            if reader != slot && !parked {
                visit(reader);
            }
        }
    }
}
