//! What threads do in loops that only wait, by what they read there.
//!
//! Which write it was matters as well as its value, since others may have put something where the
//! thread looks for it only if it reads that write. It does not matter in an iteration that was
//! seen to come to nothing: that looks at nothing else.

use super::Search;
use super::consistency::Consistency;
use super::frame::NOWHERE;
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Pending, Stop};
use crate::op::{Op, Value};
use crate::report::Observer;
use crate::trust::replay::{expect, outcome};

/// What is known of one thread, from where it stood once.
#[derive(Clone, Debug)]
pub(super) struct Routine {
    /// Its first event there.
    pub(super) begins: u32,
    reads: Vec<Read>,
}

/// After the reads up to `before` there was one more.
#[derive(Clone, Copy, Debug)]
struct Read {
    before: u32,
    what: What,
    /// Which event of the thread it is.
    index: u32,
    then: Then,
    /// It is part of an iteration that comes to nothing.
    idle: bool,
}

/// What a read returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct What {
    pub(super) value: Value,
    pub(super) choice: u32,
    /// The write, or [`NOWHERE`] if that has been taken back.
    pub(super) source: Slot,
}

/// What the thread does after a read, or a fence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// It is out of its loop.
    Through,
    /// It spins since its event of that number.
    Spins(u32),
    /// It goes on with this.
    Reads(Op),
}

/// Where a routine begins.
pub(super) const BEGIN: u32 = u32::MAX;

/// How much to remember of writes that were taken back.
const REMEMBERED: usize = 256;

impl Routine {
    pub(super) fn new(begins: u32) -> Routine {
        Routine {
            begins,
            reads: Vec::new(),
        }
    }

    /// Only the first `events` events of the graph remain.
    pub(super) fn undo(&mut self, events: usize) {
        for Read { what, .. } in &mut self.reads {
            if what.source != INIT && what.source as usize >= events {
                what.source = NOWHERE;
            }
        }
    }

    /// What is known to come after a read.
    pub(super) fn find(&self, before: u32, what: What) -> Option<(u32, Then)> {
        let known = |read: &Read| {
            let same = (read.before, read.what.value, read.what.choice);
            same == (before, what.value, what.choice)
                && (read.idle || read.what.source == what.source)
        };
        let found = self.reads.iter().position(known)?;
        Some((found as u32, self.reads[found].then))
    }

    /// Whether some other write of that value did not leave the thread where it was.
    fn helped(&self, before: u32, what: What) -> bool {
        let same = |read: &Read| {
            let same = (read.before, read.what.value, read.what.choice);
            same == (before, what.value, what.choice) && !read.idle
        };
        self.reads.iter().any(same)
    }

    fn add(&mut self, before: u32, what: What, then: Then) -> u32 {
        if let Some((known, _)) = self.find(before, what) {
            return known;
        }
        let index = match before {
            BEGIN => self.begins,
            before => self.reads[before as usize].index + 1,
        };
        self.reads.push(Read {
            before,
            what,
            index,
            then,
            idle: false,
        });
        let new = self.reads.len() as u32 - 1;
        if let Then::Spins(since) = then {
            let mut next = new;
            while next != BEGIN && self.reads[next as usize].index >= since {
                self.reads[next as usize].idle = true;
                next = self.reads[next as usize].before;
            }
        }
        new
    }

    /// What is read after the first read.
    pub(super) fn read_on(&self) -> impl Iterator<Item = Location> {
        self.reads.iter().filter_map(|read| match read.then {
            Then::Reads(op) => op.location(),
            Then::Through | Then::Spins(_) => None,
        })
    }

    /// Makes room. What was found before means nothing then.
    pub(super) fn make_room(&mut self) {
        if self.reads.len() > REMEMBERED {
            self.reads.clear();
        }
    }
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// What the event in `slot` returned.
    fn what(&self, slot: Slot) -> What {
        let event = self.graph.event(slot);
        let source = match event.kind.reads() {
            true => event.source,
            false => INIT,
        };
        What {
            value: event.read,
            choice: event.choice,
            source,
        }
    }

    /// Notes what came of the read of an attempt in `slot`, and of the fences that follow it.
    pub(super) fn note_routine(
        &mut self,
        (thread, begins): (ThreadId, u32),
        mut before: u32,
        slot: Slot,
        last: Then,
    ) -> u32 {
        if !self.loops.careful() {
            return BEGIN;
        }
        let mut rest = slot..self.graph.len() as Slot;
        while let Some(slot) = rest.next() {
            if self.graph.event(slot).kind == Kind::WriteHalf {
                continue;
            }
            let mut next = rest.clone().map(|slot| self.graph.event(slot));
            let next = next.find(|event| event.kind != Kind::WriteHalf);
            let then = next.map_or(last, |next| Then::Reads(next.op));
            let what = self.what(slot);
            before = self.loops.routine(thread, begins).add(before, what, then);
        }
        before
    }

    /// What `thread` does after the operation in `slot`, the last one. If it was not there when the
    /// thread left its turn, `new`, it is enough to know that another of the same value helped.
    pub(super) fn routine_read(
        &mut self,
        (thread, begins): (ThreadId, u32),
        before: u32,
        slot: Slot,
        new: bool,
    ) -> (u32, Then) {
        let what = self.what(slot);
        let routine = self.loops.routine(thread, begins);
        if let Some(known) = routine.find(before, what) {
            return known;
        }
        if new && routine.helped(before, what) {
            return (BEGIN, Then::Through);
        }
        let then = self.try_out(thread);
        let routine = self.loops.routine(thread, begins);
        (routine.add(before, what, then), then)
    }

    /// Runs the graph to see what `thread` does after it. Nobody hears of what else happens.
    fn try_out(&mut self, thread: ThreadId) -> Then {
        self.machine.reset();
        self.stands = None;
        for (slot, event) in self.graph.events().iter().enumerate() {
            if event.kind == Kind::ReadHalf {
                continue;
            }
            if expect(self.machine, event).is_err() {
                // Somebody ran into undefined behaviour.
                return Then::Through;
            }
            let clock = self.graph.causality(slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        let events = self.graph.thread(thread).iter().rev();
        let mut kinds = events.map(|&slot| self.graph.event(slot).kind);
        let read = kinds.find(|&kind| kind != Kind::Silent) == Some(Kind::Read);
        match self.machine.pending(thread) {
            Pending::Stopped(Stop::Spinning { since }) if self.is_idle(thread, since) => {
                Then::Spins(since)
            }
            Pending::Op(op @ Op::Fence { .. }) => Then::Reads(op),
            Pending::Op(op @ (Op::Load { .. } | Op::Update { .. }))
                if read && self.loops.knows(self.machine.site(thread)) =>
            {
                Then::Reads(op)
            }
            _ => Then::Through,
        }
    }
}
