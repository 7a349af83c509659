//! Awaits: loops that only wait.
//!
//! An iteration of such a loop that stays in the loop changes nothing, so it is not part of an
//! execution. The loop is treated as one blocking operation, the *await*, whose reads are the reads
//! of its last iteration. Like a lock it is performed when nothing else can run.
//!
//! * An iteration is performed as a whole, with writes that are in the graph: no other thread runs
//!   between its reads. An iteration that stays in the loop is taken back at once. So no execution
//!   is blocked because a thread is in the middle of such an iteration.
//! * After all iterations that leave the loop, the await is *skipped*: the thread commits to
//!   reading a later write in its next iteration, or to waiting forever. A skipped await and its
//!   iterations share no execution, so the reads of awaits get no schedules.
//! * An execution in which a skipped await finds no later write, although its thread would not wait
//!   forever, is blocked and counted as such.
//!
//! Skipping is pointless, and left out, if
//! * there is no *candidate write*: no write by another thread, concurrent with an iteration, to a
//!   location that an iteration read; and
//! * the iteration that reads the newest writes leaves the loop; and
//! * the thread cannot wait forever in a second loop that it reads on in.
//!
//! The reason: a read of the newest write is consistent with whatever the other threads do. So up to
//! their first candidate write they do the same with and without such an iteration. If there is no
//! candidate write, a skipped await has nothing to read later, and with the newest writes the thread
//! does not wait.
//!
//! The paper has no loops that wait: it cuts every loop at a bound. The loops are found while the
//! search runs, by their first iteration that stays in the loop; the search then starts over. The
//! reads of such loops are known by their program points.

mod blocked;
mod iterations;
mod known;

pub(super) use iterations::Iterations;
pub(super) use known::Awaits;

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::ending::collect;
use super::frame::NOWHERE;
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::machine::{Pending, SpinLoops, Stop};
use crate::op::Op;
use crate::report::Observer;
use iterations::Outcome;

/// A read of an await.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitRead {
    /// The frame of the first read of the iteration.
    pub(super) first: u32,
    /// The frame in which the await was last skipped.
    skipped_in: Option<u32>,
}

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Performs the await that `thread` is at, with its first iteration that leaves the loop.
    /// False if there is none.
    pub(super) fn open_await(&mut self, thread: ThreadId, op: Op) -> Flow<bool> {
        let first = self.depth as u32;
        let skipped_in = self.skipped_in(thread);
        self.awaits.frames.push(first);
        self.open_await_read(thread, op, AwaitRead { first, skipped_in });
        let performed = self.iterate()?;
        if !performed {
            self.close();
        }
        ControlFlow::Continue(performed)
    }

    /// The next alternative of the await of the last frame: another iteration, then skipping it.
    /// False if there is none.
    pub(super) fn backtrack_await(&mut self) -> Flow<bool> {
        if self.iterate()? {
            return ControlFlow::Continue(true);
        }
        let frame = &mut self.frames[self.depth - 1];
        let newest = |at| self.model.newest(&self.graph, at);
        let at = frame.location().filter(|_| !frame.skipped);
        let can_skip = at.is_some_and(|at| frame.iterations.can_skip(at, newest));
        if can_skip {
            frame.skipped = true;
            self.catch_up()?;
        }
        ControlFlow::Continue(can_skip)
    }

    /// The frame in which the await that `thread` is at was last skipped.
    fn skipped_in(&self, thread: ThreadId) -> Option<u32> {
        let id = self.graph.next_id(thread);
        let mut frames = self.awaits.frames.iter().rev().copied();
        frames.find(|&frame| {
            let frame = &self.frames[frame as usize];
            frame.skipped && frame.id() == id
        })
    }

    /// Opens a frame for the next read of an iteration.
    fn open_await_read(&mut self, thread: ThreadId, op: Op, read: AwaitRead) {
        self.open(thread, op);
        let last = self.depth - 1;
        let id = self.frames[last].id();
        let initial = self.frames[last].initial;
        let mut sources = std::mem::take(&mut self.frames[last].sources);
        sources.retain(|&source| {
            let value = value_of(&self.graph, source, initial);
            if self.awaits.is_futile(&self.graph, id, value) {
                self.add_stay(read.first, source);
                return false;
            }
            !self.left_before_skip(read.skipped_in, id, source)
        });
        // Values that have stayed in the loop before are tried first: while the machine is in step
        // with the graph, that takes no replay.
        if !self.awaits.spins.is_empty()
            && self.performed.is_some()
            && op.location().is_some_and(|at| self.machine.can_retry(at))
        {
            let site = self.machine.site(thread);
            let value = |source| value_of(&self.graph, source, initial);
            sources.sort_by_key(|&source| self.awaits.spins.expected(site, value(source)));
        }
        let frame = &mut self.frames[last];
        frame.awaits = Some(read);
        frame.sources = sources;
    }

    /// Whether the iteration so far and the read `id` of `source` next make an iteration that left
    /// the loop before the await was skipped.
    fn left_before_skip(&self, skipped_in: Option<u32>, id: EventId, source: Slot) -> bool {
        skipped_in.is_some_and(|frame| {
            let frame = &self.frames[frame as usize];
            let read = (frame.id(), id.index);
            let outcome = || frame.iterations.outcome(&self.graph, read, source);
            frame.excludes(&self.graph, id, source)
                && !matches!(outcome(), Some(Outcome::ReadsOn(_) | Outcome::Stays))
        })
    }

    /// Goes on until the iteration of the last frame leaves the loop, with the next writes. False
    /// if there is no such iteration any more; the frame of its first read is then the last one.
    fn iterate(&mut self) -> Flow<bool> {
        loop {
            let slot = self.advance();
            let frame = &mut self.frames[self.depth - 1];
            let (thread, op) = (frame.thread, frame.op);
            let first = frame.awaits.map_or(NOWHERE, |read| read.first);
            let Some(slot) = slot else {
                if first as usize + 1 == self.depth {
                    self.pending[thread.index()] = Pending::Op(op);
                    self.awaits.set(thread, true);
                    return ControlFlow::Continue(false);
                }
                self.close();
                self.rewind();
                continue;
            };
            frame.slot = slot;
            self.catch_up()?;
            self.pass_fences(thread)?;
            if self.awaits.stays(thread) {
                self.take_back();
            } else if let Some((op, at)) = self.reads_on(slot) {
                self.add_outcome(Outcome::ReadsOn(at));
                let read = self.frames[self.depth - 1].awaits;
                self.open_await_read(thread, op, read.expect("it is a read of an await"));
                self.compete(self.graph.next_id(thread), op, at);
            } else {
                self.add_outcome(Outcome::Leaves);
                self.declare_since(self.frames[first as usize].events);
                return ControlFlow::Continue(true);
            }
        }
    }

    /// Performs the pending fences of `thread`: they may be part of an iteration.
    pub(super) fn pass_fences(&mut self, thread: ThreadId) -> Flow {
        while let Pending::Op(op @ Op::Fence { .. }) = self.pending[thread.index()]
            && !self.undefined
            && let Some(slot) = self.push(thread, op, INIT, 0, 0)
        {
            self.resume(slot)?;
        }
        ControlFlow::Continue(())
    }

    /// The operation after the read in `slot`, the last one, if it is a read of the same iteration.
    fn reads_on(&self, slot: Slot) -> Option<(Op, Location)> {
        let event = self.graph.event(slot);
        let thread = event.id.thread;
        if event.kind != Kind::Read || !self.awaits.at_await(thread) || self.undefined {
            return None;
        }
        match self.pending[thread.index()] {
            Pending::Op(op) => Some((op, op.location()?)),
            _ => None,
        }
    }

    /// Records the outcome of the read of the last frame.
    fn add_outcome(&mut self, outcome: Outcome) {
        let frame = &self.frames[self.depth - 1];
        let (index, source) = (frame.index, self.graph.event(frame.slot).source);
        if let Some(AwaitRead { first, .. }) = frame.awaits {
            let frame = &mut self.frames[first as usize];
            let read = (frame.id(), index);
            frame.iterations.add(&self.graph, read, source, outcome);
        }
    }

    /// Records that the iteration in the graph, whose first read has the frame `first`, stays in
    /// its loop if it reads `source` next.
    fn add_stay(&mut self, first: u32, source: Slot) {
        let frame = &mut self.frames[first as usize];
        let read = (frame.id(), self.graph.next_id(frame.thread).index);
        frame
            .iterations
            .add(&self.graph, read, source, Outcome::Stays);
    }

    /// Takes back the read of the last frame, with which its thread stays in the loop.
    fn take_back(&mut self) {
        let frame = &self.frames[self.depth - 1];
        let (thread, initial, location) = (frame.thread, frame.initial, frame.location());
        let (events, slot) = (frame.events, frame.slot);
        let first = frame.awaits.map_or(NOWHERE, |read| read.first);
        let Pending::Stopped(Stop::Spinning { since }) = self.pending[thread.index()] else {
            unreachable!("{thread} stays in its loop");
        };
        let event = *self.graph.event(slot);
        let await_frame = &mut self.frames[first as usize];
        // Whether the await consists of this loop only; otherwise it left another one before.
        let single_loop = since <= await_frame.index;
        if single_loop {
            let iteration = &self.graph.thread(thread)[since as usize..=event.id.index as usize];
            let values = iteration.iter().map(|&slot| self.graph.event(slot).read);
            self.awaits.add_futile(thread, since, values);
        } else if !await_frame.iterations.stays_later {
            let mut newest = Vec::new();
            await_frame.iterations.stays_later = collect(&self.graph, thread, since, &mut newest)
                && self.model.orders(&self.graph, &newest).is_some();
        }
        // An iteration of one read ends where it began: the machine need not be replayed.
        let single_read = event.kind == Kind::Read
            && since == event.id.index
            && self.graph.len() == slot as usize + 1;
        if single_read && location.is_some_and(|at| self.machine.can_retry(at)) {
            self.machine.retry(thread);
            self.performed = Some(events);
            let site = self.machine.site(thread);
            self.awaits.spins.note(site, event.read);
        }
        self.rewind();
        let mut sources = std::mem::take(&mut self.frames[self.depth - 1].sources);
        sources.retain(|&source| {
            let same_value = value_of(&self.graph, source, initial) == event.read;
            let stays = source == event.source || single_loop && same_value;
            if stays {
                self.add_stay(first, source);
            }
            !stays
        });
        let frame = &mut self.frames[self.depth - 1];
        frame.sources = sources;
        frame.next_choice = 0;
    }
}
