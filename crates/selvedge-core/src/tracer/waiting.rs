//! Loops that only wait.
//!
//! An iteration that changes nothing never makes an execution of its own, so the reads of such a
//! loop are an operation that waits: for values that get its thread out of the loop. Which values
//! do not is learned by reading them. Like other operations that wait it is performed only when
//! nothing else can go on.
//!
//! An *attempt* is all that a thread reads there, one read after the other, until it does something
//! else: that is made at once, of writes that are there, or not at all. So nobody goes on beside
//! the first reads of an iteration that comes to nothing. A thread either makes one of the attempts
//! that are possible, or it *leaves its turn* to others and makes none of them ever: later on, some
//! read has to take a write that was not there yet. The two share no execution, so these reads need
//! no schedules, and no iteration has to be kept in the graph for the sake of what others do beside
//! it.
//!
//! Leaving one's turn is worth a try only if there can be something to be read later on, or if
//! waiting can last for ever. That is ruled out where, with an attempt in place, nobody else turned
//! up who writes what was read in any attempt without knowing of it, and where the thread gets
//! through with the writes that are last in every coherence order: whatever the others do without
//! the attempt, up to the first such write, they then do beside it as well. What follows has to keep
//! with it that the turn was left: see `outlook.rs`.
//!
//! The reads of such loops are known by where they stand in the program. A loop that is met for the
//! first time makes the search start over. An iteration that may take part in a data race is an
//! execution like any other.

use std::ops::ControlFlow;

use super::consistency::{Consistency, Newest};
use super::frame::{Attempt, Frame, NOWHERE, START, Turn, is_left};
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::ThreadId;
use crate::machine::{Machine, Pending, Stop};
use crate::op::{Op, Value};
use crate::report::Observer;

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Begins an attempt with the pending read of a loop. False if there is none that gets the
    /// thread through.
    pub(super) fn open_loop(&mut self, thread: ThreadId, op: Op) -> Flow<bool> {
        let left = self.left_at(thread);
        let site = self.loops.waiter(thread).site;
        let attempt = Attempt {
            first: self.depth as u32,
            path: START,
            left,
            old: left.map(|_| START),
            site,
        };
        self.open_read(thread, op, attempt);
        if self.loops.heads.contains(&site) {
            self.watching.push(attempt.first);
        }
        if self.attempt()? {
            return ControlFlow::Continue(true);
        }
        self.close();
        ControlFlow::Continue(false)
    }

    /// Begins a frame for a read of an attempt.
    fn open_read(&mut self, thread: ThreadId, op: Op, attempt: Attempt) {
        self.open(thread, op);
        let mut sources = std::mem::take(&mut self.frames[self.depth - 1].sources);
        let initial = self.frames[self.depth - 1].initial;
        let id = self.graph.next_id(thread);
        sources.retain(|&source| {
            let value = value_of(&self.graph, source, initial);
            let futile = self.loops.futile_since(&self.graph, id, value);
            match futile.or_else(|| self.was_futile(attempt, value)) {
                Some(since) => {
                    self.note_sticking(attempt, since, (thread, op), source);
                    false
                }
                None => self.is_open(attempt, source),
            }
        });
        // What will not help is tried first, while the machine stands here: that takes no replay.
        if !self.loops.spins.is_empty()
            && self.stands.is_some()
            && op.location().is_some_and(|at| self.machine.can_retry(at))
        {
            let site = self.machine.site(thread);
            let value = |source| value_of(&self.graph, source, initial);
            sources.sort_by_key(|&source| self.loops.spins.expected(site, value(source)));
        }
        let frame = &mut self.frames[self.depth - 1];
        frame.turn = Some(Turn::Taken { rivals: false });
        frame.attempt = attempt;
        frame.sources = sources;
    }

    /// Since when a thread that left its turn to others was seen to spin if it reads `value` next,
    /// having got through one loop before.
    pub(super) fn was_futile(&self, attempt: Attempt, value: Value) -> Option<u32> {
        let (left, old) = attempt.left.zip(attempt.old)?;
        self.frames[left as usize].paths.futile_since(old, value)
    }

    /// A thread spins with the iteration since its event `since` that ends with `op` reading
    /// `source`. If it first got through another loop, that has to be remembered with what it read
    /// there, and it may spin for good whatever it can do with what is newest.
    fn note_sticking(
        &mut self,
        attempt: Attempt,
        since: u32,
        (thread, op): (ThreadId, Op),
        source: Slot,
    ) {
        let graph = &self.graph;
        let first = attempt.first as usize;
        if self.frames[first].index >= since {
            return;
        }
        let initial = op.location().map_or(0, |at| self.machine.initial(at));
        let value = value_of(graph, source, initial);
        let paths = &mut self.frames[first].paths;
        paths.add_futile(attempt.path, value, since);
        let rivals = Some(Turn::Taken { rivals: true });
        if self.frames[first].turn == rivals {
            return;
        }
        let iteration = graph.thread(thread)[since as usize..].iter();
        let reads = iteration.filter_map(|&slot| {
            let event = graph.event(slot);
            let at = event.op.location().filter(|_| event.kind.reads())?;
            Some((at, graph.last_equal(at, event.source)))
        });
        let last = op.location().map(|at| (at, graph.last_equal(at, source)));
        let newest: Vec<Newest> = reads.chain(last).collect();
        if self.model.orders(&self.graph, &newest).is_some() {
            self.frames[first].turn = rivals;
        }
    }

    /// Whether `source` may be read next in an attempt: not if the thread left just that to others.
    pub(super) fn is_open(&self, attempt: Attempt, source: Slot) -> bool {
        let (Some(left), Some(old)) = (attempt.left, attempt.old) else {
            return true;
        };
        let left = &self.frames[left as usize];
        !is_left(Some(left.events), source) || left.paths.further(old, source).is_some()
    }

    /// Goes on with the attempt that the last frame is part of until its thread is through. False
    /// if there is no other attempt with the same first read; its frame then is the last one.
    fn attempt(&mut self) -> Flow<bool> {
        loop {
            let Some(slot) = self.advance() else {
                let Frame {
                    attempt,
                    thread,
                    op,
                    ..
                } = self.frames[self.depth - 1];
                if attempt.first as usize + 1 == self.depth {
                    self.pending[thread.index()] = Pending::Op(op);
                    self.loops.waits_at_loop(thread, attempt.site);
                    return ControlFlow::Continue(false);
                }
                self.close();
                let frame = &mut self.frames[self.depth - 1];
                frame.slot = NOWHERE;
                let events = frame.events;
                self.undo(events);
                continue;
            };
            let frame = &mut self.frames[self.depth - 1];
            frame.slot = slot;
            let thread = frame.thread;
            self.catch_up()?;
            self.pass_fences(thread)?;
            if self.loops.gave_up(thread) {
                self.take_back();
            } else if let Some(op) = self.reads_on(slot) {
                self.read_on(op);
            } else {
                self.note_path(true);
                self.announce_attempt();
                return ControlFlow::Continue(true);
            }
        }
    }

    /// Fences may be part of an iteration.
    pub(super) fn pass_fences(&mut self, thread: ThreadId) -> Flow {
        while let Pending::Op(op @ Op::Fence { .. }) = self.pending[thread.index()]
            && !self.undefined
            && let Some(slot) = self.push(thread, op, INIT, 0, 0)
        {
            self.resume(slot)?;
        }
        ControlFlow::Continue(())
    }

    /// What follows the read in `slot`, the last one, if that is one more read of a loop.
    pub(super) fn reads_on(&self, slot: Slot) -> Option<Op> {
        let event = self.graph.event(slot);
        let thread = event.id.thread;
        match self.pending[thread.index()] {
            Pending::Op(op) => {
                let reads_on = event.kind == Kind::Read && self.loops.repeats(thread);
                (reads_on && !self.undefined).then_some(op)
            }
            _ => None,
        }
    }

    /// Goes on with `op` in the attempt that the last frame is part of.
    fn read_on(&mut self, op: Op) {
        let path = self.note_path(false);
        let frame = &self.frames[self.depth - 1];
        let thread = frame.thread;
        let attempt = self.after(frame.attempt, self.graph.event(frame.slot).source);
        let attempt = Attempt { path, ..attempt };
        self.open_read(thread, op, attempt);
        let Some(at) = op.location() else {
            return;
        };
        let first = &mut self.frames[attempt.first as usize];
        let mut missed = first.written.contains(&at);
        if !first.watched.contains(&at) {
            first.watched.push(at);
        }
        if self.watching.last() != Some(&attempt.first) {
            // Nobody looked who wrote what while other attempts were in place.
            missed |= first.paths.any_through();
            self.watching.push(attempt.first);
            if !self.loops.heads.contains(&attempt.site) {
                self.loops.heads.push(attempt.site);
            }
        }
        if missed && let Some(Turn::Taken { rivals }) = &mut first.turn {
            *rivals = true;
        }
        self.compete(self.graph.next_id(thread), op, at);
    }

    /// How an attempt stands after a read of `source`.
    pub(super) fn after(&self, attempt: Attempt, source: Slot) -> Attempt {
        let old = attempt.left.zip(attempt.old).and_then(|(left, old)| {
            let left = &self.frames[left as usize];
            let old = left.paths.further(old, source);
            old.filter(|_| is_left(Some(left.events), source))
        });
        Attempt { old, ..attempt }
    }

    /// Remembers what came of the read of the last frame.
    fn note_path(&mut self, through: bool) -> u32 {
        let frame = &self.frames[self.depth - 1];
        let source = self.graph.event(frame.slot).source;
        let Some(at) = frame.location() else {
            return START;
        };
        let Attempt { first, path, .. } = frame.attempt;
        let paths = &mut self.frames[first as usize].paths;
        paths.add(path, at, source, through)
    }

    /// Looks what an attempt makes possible.
    fn announce_attempt(&mut self) {
        let first = self.frames[self.depth - 1].attempt.first;
        let events = self.frames[first as usize].events;
        for slot in events as Slot..self.graph.len() as Slot {
            // A write half comes with its read half.
            if self.graph.event(slot).kind != Kind::WriteHalf {
                self.announce(slot);
            }
        }
    }

    /// Goes on with the attempts that the last frame is part of in another way. False if there is
    /// none.
    pub(super) fn backtrack_loop(&mut self) -> Flow<bool> {
        if self.attempt()? {
            return ControlFlow::Continue(true);
        }
        let frame = &mut self.frames[self.depth - 1];
        let Some(Turn::Taken { rivals }) = frame.turn.replace(Turn::Left) else {
            return ControlFlow::Continue(false);
        };
        let newest = |at| self.model.newest(&self.graph, at);
        if !rivals && frame.paths.through(newest) {
            return ControlFlow::Continue(false);
        }
        self.catch_up()?;
        ControlFlow::Continue(true)
    }

    /// The frame in which `thread` last left the turn to others that it is at.
    pub(super) fn left_at(&self, thread: ThreadId) -> Option<u32> {
        let index = self.graph.next_id(thread).index;
        let left = |frame: &Frame| {
            (frame.thread, frame.index, frame.turn) == (thread, index, Some(Turn::Left))
        };
        let found = self.frames[..self.depth].iter().rposition(left);
        found.map(|frame| frame as u32)
    }

    /// Takes the read of the last frame back, which left its thread spinning.
    fn take_back(&mut self) {
        let thread = self.frames[self.depth - 1].thread;
        let Pending::Stopped(Stop::Spinning { since }) = self.pending[thread.index()] else {
            unreachable!("{thread} spins");
        };
        let frame = &mut self.frames[self.depth - 1];
        let event = self.graph.event(frame.slot);
        let (id, value) = (event.id, event.read);
        let iteration = &self.graph.thread(thread)[since as usize..=id.index as usize];
        let values = iteration.iter().map(|&slot| self.graph.event(slot).read);
        self.loops.waiter(thread).note_futile(since, values);
        // An iteration of one read ends where it began: the machine need not be brought back there.
        let alone = event.kind == Kind::Read && self.graph.len() == frame.slot as usize + 1;
        let again = alone
            && since == id.index
            && frame
                .location()
                .is_some_and(|at| self.machine.can_retry(at));
        if again {
            self.machine.retry(thread);
            self.stands = Some(frame.events);
            self.loops.spins.note(self.machine.site(thread), value);
        }
        frame.slot = NOWHERE;
        let (attempt, op, initial) = (frame.attempt, frame.op, frame.initial);
        let mut sources = std::mem::take(&mut frame.sources);
        let events = frame.events;
        self.undo(events);
        sources.retain(|&source| {
            let helps = value_of(&self.graph, source, initial) != value;
            if !helps {
                self.note_sticking(attempt, since, (thread, op), source);
            }
            helps
        });
        let frame = &mut self.frames[self.depth - 1];
        frame.sources = sources;
        frame.next_choice = 0;
    }
}
