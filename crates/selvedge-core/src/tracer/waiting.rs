//! Loops that only wait.
//!
//! An iteration that changes nothing never makes an execution of its own, so a read of such a loop is an
//! operation that waits: for a value that gets its thread out of the loop. Which values do not is
//! learned by reading them. Like other operations that wait it is performed only when nothing else can go on.
//! It then either reads one of the writes that are there, or it *leaves its turn* to others and
//! reads none of them ever. The two share no execution, so the read needs no schedules, and no iteration has
//! to be kept in the graph for the sake of what others do beside it.
//!
//! Leaving one's turn is worth a try only if there can be something to be read later on, or if waiting can
//! last for ever. That is ruled out where, with the read in place, nobody else turned up who writes
//! its location without knowing of it, and where the last write in every coherence order is one that
//! lets it through: whatever the others do without the read, up to the first write of its location, they then do
//! beside it as well.
//!
//! The reads of such loops are known by where they stand in the program. A loop that is met for the first time
//! makes the search start over. An iteration that may take part in a data race is an execution like any other.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::frame::{NOWHERE, Turn, is_left};
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{EventId, Location, Site, ThreadId};
use crate::machine::{Machine, Pending, Stop};
use crate::op::{Op, Value};
use crate::report::{Ending, Observer};
use crate::trust::again::Spins;
use crate::trust::maximal;
use crate::trust::replay::outcome;

/// What is known of such loops.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Where their reads stand.
    sites: Vec<Site>,
    /// Some were found since this was last asked.
    learned: bool,
    /// Values that threads were seen to spin on, by where they read them. They may go on with them elsewhere.
    spins: Spins,
    threads: Vec<Waiter>,
}

#[derive(Clone, Debug, Default)]
struct Waiter {
    /// What it is about to do is a read of such a loop.
    repeats: bool,
    /// It is spinning, and nobody needs to see that.
    gave_up: bool,
    /// Values that do not get it out of a loop, by the index of the read, which grows.
    futile: Vec<(u32, Value)>,
}

impl Loops {
    /// Whether loops were found since this was last asked.
    pub(super) fn learned(&mut self) -> bool {
        std::mem::take(&mut self.learned)
    }

    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Whether `thread` is about to perform a read of such a loop.
    pub(super) fn repeats(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.repeats)
    }

    /// Whether `thread` is spinning, and nobody needs to see that.
    pub(super) fn gave_up(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.gave_up)
    }

    /// Looks where `thread` stands now.
    pub(super) fn check<M: Machine>(&mut self, machine: &M, thread: ThreadId) {
        let reads = matches!(
            machine.pending(thread),
            Pending::Op(Op::Load { .. } | Op::Update { .. })
        );
        let known = |site: Site| self.sites.contains(&site);
        let repeats = reads && !self.sites.is_empty() && known(machine.site(thread));
        let waiter = self.waiter(thread);
        waiter.repeats = repeats;
        waiter.gave_up = false;
    }

    /// An event was taken back.
    pub(super) fn popped(&mut self, event: EventId) {
        if let Some(waiter) = self.threads.get_mut(event.thread.index()) {
            while waiter
                .futile
                .pop_if(|(read, _)| *read > event.index)
                .is_some()
            {}
        }
    }

    fn waiter(&mut self, thread: ThreadId) -> &mut Waiter {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Waiter::default());
        }
        &mut self.threads[thread.index()]
    }

    /// Whether reading `value` with the read `id` leaves its thread in its loop, as far as is known.
    fn is_futile(&self, id: EventId, value: Value) -> bool {
        let waiter = self.threads.get(id.thread.index());
        waiter.is_some_and(|waiter| waiter.futile.contains(&(id.index, value)))
    }
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Whether the iteration of `thread` since its event `since` need not be kept. It must if it may take part in a
    /// race with something that has not happened yet. Updates that leave the value as it was are not missed: who
    /// reads such a one can read what was there before.
    pub(super) fn gives_up(&mut self, thread: ThreadId, since: u32) -> bool {
        let graph = &self.graph;
        let machine = &mut *self.machine;
        let gives_up = machine.quiet(thread)
            && (maximal::waits_for_one(graph, thread, since)
                || maximal::locations(graph, thread, since).all(|at| machine.never_races(at)));
        self.loops.waiter(thread).gave_up = gives_up;
        gives_up
    }

    /// Remembers where the reads of the loop stand that `thread` is in since its event `since`. Breaks if they were
    /// not known; the search has to start over.
    pub(super) fn learn(&mut self, thread: ThreadId, since: u32) -> Flow {
        let trying = self.frames[..self.depth].last();
        if trying.is_some_and(|frame| frame.turn.is_some() && frame.thread == thread) {
            return ControlFlow::Continue(());
        }
        self.machine.reset();
        for (slot, event) in self.graph.events().iter().enumerate() {
            if event.kind == Kind::ReadHalf {
                continue;
            }
            let inside = event.id.thread == thread && event.id.index >= since;
            // An update that writes is looked at once, with its write half.
            if inside && event.op.location().is_some() {
                let site = self.machine.site(thread);
                if !self.loops.sites.contains(&site) {
                    self.loops.sites.push(site);
                    self.loops.learned = true;
                }
            }
            let clock = self.graph.causality(slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        match self.loops.learned {
            true => ControlFlow::Break(Ending::Stopped),
            false => ControlFlow::Continue(()),
        }
    }

    /// Lets the read of a loop go on if some write gets its thread out, or at least further. False if there is none.
    pub(super) fn open_loop(&mut self, thread: ThreadId, op: Op) -> Flow<bool> {
        self.open(thread, op);
        let id = self.graph.next_id(thread);
        let left = self.left_at(thread);
        let initial = self.frames[self.depth - 1].initial;
        let mut sources = std::mem::take(&mut self.frames[self.depth - 1].sources);
        sources.retain(|&source| {
            let value = value_of(&self.graph, source, initial);
            !is_left(left, source) && !self.loops.is_futile(id, value)
        });
        // What will not help is tried first, while the machine stands here: that takes no replay.
        if !self.loops.spins.is_empty()
            && op.location().is_some_and(|at| self.machine.can_retry(at))
        {
            let site = self.machine.site(thread);
            let value = |source| value_of(&self.graph, source, initial);
            sources.sort_by_key(|&source| self.loops.spins.expected(site, value(source)));
        }
        let frame = &mut self.frames[self.depth - 1];
        frame.turn = Some(Turn::Taken { rivals: false });
        frame.sources = sources;
        while let Some(slot) = self.advance() {
            self.frames[self.depth - 1].slot = slot;
            self.resume(slot)?;
            if !self.take_back() {
                self.announce(slot);
                return ControlFlow::Continue(true);
            }
        }
        self.close();
        ControlFlow::Continue(false)
    }

    /// Goes on with the read of a loop, the last frame, in another way. False if there is none.
    pub(super) fn backtrack_loop(&mut self) -> Flow<bool> {
        // Whether the machine stands before the read, or has just performed it.
        let mut here = false;
        while let Some(slot) = self.advance() {
            self.frames[self.depth - 1].slot = slot;
            match here {
                true => self.resume(slot)?,
                false => self.replay()?,
            }
            here = true;
            if !self.take_back() {
                self.announce(slot);
                return ControlFlow::Continue(true);
            }
        }
        let frame = &self.frames[self.depth - 1];
        let Some(Turn::Taken { rivals }) = frame.turn else {
            return ControlFlow::Continue(false);
        };
        if !rivals && frame.location().is_some_and(|at| self.goes_on(at)) {
            return ControlFlow::Continue(false);
        }
        self.frames[self.depth - 1].turn = Some(Turn::Left);
        if !here || self.ahead {
            self.replay()?;
        }
        ControlFlow::Continue(true)
    }

    /// Whether the read of the last frame gets its thread on as soon as nobody writes `at` any more.
    fn goes_on(&self, at: Location) -> bool {
        let frame = &self.frames[self.depth - 1];
        let id = self.graph.next_id(frame.thread);
        self.model.newest(&self.graph, at).is_some_and(|newest| {
            let value = value_of(&self.graph, newest, frame.initial);
            !is_left(self.left_at(frame.thread), newest) && !self.loops.is_futile(id, value)
        })
    }

    /// How many events there were when `thread` last left its turn to others, with the read it is at.
    fn left_at(&self, thread: ThreadId) -> Option<usize> {
        let before = self.graph.last(thread);
        let mut frames = self.frames[..self.depth].iter().rev();
        frames.find_map(|frame| frame.left_by(thread, before))
    }

    /// Takes the read of the last frame back if it left its thread spinning. False if it did not.
    fn take_back(&mut self) -> bool {
        let frame = &mut self.frames[self.depth - 1];
        let thread = frame.thread;
        let waiter = self.loops.waiter(thread);
        if !waiter.gave_up {
            return false;
        }
        let event = self.graph.event(frame.slot);
        let (id, value) = (event.id, event.read);
        // An iteration of one read ends where it began: the machine need not be brought back there.
        let since = id.index;
        let again = event.kind == Kind::Read
            && self.machine.pending(thread) == Pending::Stopped(Stop::Spinning { since })
            && frame
                .location()
                .is_some_and(|at| self.machine.can_retry(at));
        waiter.futile.push((id.index, value));
        waiter.gave_up = false;
        waiter.repeats = true;
        frame.slot = NOWHERE;
        let (events, initial) = (frame.events, frame.initial);
        self.pending[thread.index()] = Pending::Op(frame.op);
        if again {
            self.machine.retry(thread);
            self.loops.spins.note(self.machine.site(thread), value);
        } else {
            self.ahead = true;
        }
        self.undo(events);
        let graph = &self.graph;
        let frame = &mut self.frames[self.depth - 1];
        let helps = |&source: &Slot| value_of(graph, source, initial) != value;
        frame.sources.retain(helps);
        frame.next_choice = 0;
        true
    }

    /// Counts an execution that ends with threads that wait in such loops.
    pub(super) fn finish_in_loops(&mut self) -> Flow {
        let threads = (0..self.pending.len() as u32).map(ThreadId);
        let waiting: Vec<(ThreadId, Op)> = threads
            .filter_map(|thread| match self.pending[thread.index()] {
                Pending::Op(op) if self.loops.repeats(thread) => Some((thread, op)),
                _ => None,
            })
            .collect();
        let begun = self.has_begun();
        let ended = self.spin(&waiting, self.graph.len())?;
        self.counts.blocked += u64::from(begun && !ended);
        ControlFlow::Continue(())
    }

    /// Whether anything was done in this execution besides trying iterations of one loop in vain.
    fn has_begun(&self) -> bool {
        let frames = &self.frames[..self.depth];
        let Some(last) = frames.last() else {
            return true;
        };
        let tries = frames.iter().rev();
        let tries = tries.take_while(|frame| frame.turn.is_some() && frame.thread == last.thread);
        let since = tries.last().map_or(0, |frame| frame.events);
        let events = &self.graph.events()[since..];
        last.turn.is_none() || events.iter().any(|event| event.id.thread != last.thread)
    }

    /// Ends the execution, which had so many events, with each of these threads spinning on what may be newest, in
    /// every way. False if there is none. Where one of them replaces a value by itself, that is not a write
    /// of its own to the others, unless they have to come after it.
    fn spin(&mut self, waiting: &[(ThreadId, Op)], before: usize) -> Flow<bool> {
        let Some((&(thread, op), rest)) = waiting.split_first() else {
            self.replay()?;
            return self.finish_waiting();
        };
        let Some(at) = op.location() else {
            return ControlFlow::Continue(false);
        };
        let events = self.graph.len();
        let initial = self.machine.initial(at);
        let id = self.graph.next_id(thread);
        let mut sources = Vec::new();
        self.model.sources(&self.graph, thread, at, &mut sources);
        let mut ended = false;
        for source in sources {
            let value = value_of(&self.graph, source, initial);
            let newest = (at, self.graph.last_equal(at, source));
            if self.loops.is_futile(id, value)
                && self.model.orders(&self.graph, &[newest]).is_some()
                && let Some(slot) = self.push(thread, op, source, 0, initial)
                && (source == INIT
                    || (source as usize) < before
                    || self.graph.event(slot).kind == Kind::ReadHalf)
            {
                ended |= self.spin(rest, before)?;
            }
            self.undo(events);
        }
        ControlFlow::Continue(ended)
    }
}
