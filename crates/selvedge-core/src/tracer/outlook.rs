//! What threads that left their turn to others can still hope for.
//!
//! Who leaves a turn says: I will read something that is not there yet, or wait for ever. That is
//! an observation like any other, so nothing is done that contradicts it. After a read, an attempt
//! or a schedule the thread must be able to keep its word, at once or with the help of others:
//! * with the writes that are last in some coherence order it spins, or it gets through with a
//!   write that was not there when it left its turn. If everybody goes on with the writes that are
//!   last in that order, it keeps its word in the end;
//! * or some *rival* can still write something for it to read. All that can help is known from the
//!   attempts that the thread made before it left its turn: as long as it cannot keep its word, one
//!   of them is possible beside whatever the others do, so that was explored. Rivals are remembered
//!   with all that they need: see `rivals.rs`.
//!
//! Nothing is lost by that: each class in which the thread keeps its word has only such traces on
//! the way. A read that has nothing to read for the time being is put off; whoever helps goes first.
//! A write that an earlier read should be told of may turn up only beside reads that are refused,
//! if the help that is hoped for depends on that read. Then the rival says so itself: a read that
//! is begun is offered the schedules by which it takes part in what rivals do.
//!
//! That takes time and memory, and few programs need it: those with writes to the same variable
//! that nothing orders. So the search is not *careful* before an execution came to nothing. Then it
//! starts over.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::ending::collect;
use super::frame::{Turn, alternatives, is_left};
use super::rivals::Tried;
use super::routine::{BEGIN, Then, What};
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind};
use crate::ids::ThreadId;
use crate::machine::Machine;
use crate::op::Op;
use crate::report::{Ending, Observer};

/// Where a thread stands that left its turn.
#[derive(Clone, Copy)]
struct Stand {
    thread: ThreadId,
    op: Op,
    /// Its first event there.
    begins: u32,
    /// How many events there were when it left its turn.
    left: usize,
    /// What it has read since.
    before: u32,
    /// All of that was there then.
    old: bool,
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// An execution came to nothing: somebody who left a turn to others did not keep his word.
    /// Breaks if the search has to start over.
    pub(super) fn came_to_nothing(&mut self) -> Flow {
        self.counts.blocked += 1;
        match self.loops.be_careful() {
            true => ControlFlow::Break(Ending::Stopped),
            false => ControlFlow::Continue(()),
        }
    }

    /// The thread of the last frame leaves its turn to others. False if that would be in vain.
    pub(super) fn leave(&mut self) -> bool {
        let frame = &mut self.frames[self.depth - 1];
        let Some(Turn::Taken { rivals }) = frame.turn.replace(Turn::Left) else {
            return false;
        };
        if !self.loops.careful() {
            let newest = |at| self.model.newest(&self.graph, at);
            return rivals || !frame.paths.through(newest);
        }
        self.turns.leaving.push(self.depth as u32 - 1);
        self.may_keep_word()
    }

    /// Whether all threads that left their turn to others can keep their word.
    pub(super) fn may_keep_word(&mut self) -> bool {
        if self.turns.leaving.is_empty() || self.may_without_help() {
            return true;
        }
        let mut helpers = Vec::new();
        for &left in self
            .turns
            .leaving
            .iter()
            .filter(|&&left| self.is_current(left))
        {
            let rivals = &self.frames[left as usize].rivals;
            if rivals.forgotten {
                return true;
            }
            helpers.extend((0..rivals.len()).map(|rival| (left, rival)));
        }
        let events = self.graph.len();
        self.may_with_help(helpers, &mut Tried::after(events))
    }

    /// The same if the others do nothing before that.
    pub(super) fn may_without_help(&mut self) -> bool {
        let stands = self.stands_left();
        for stand in &stands {
            self.loops.routine(stand.thread, stand.begins).make_room();
        }
        if stands.iter().all(|&stand| self.goes_on_with_newest(stand)) {
            return true;
        }
        let events = self.graph.len();
        let keeps = self.find_ways(&stands, events, &mut Vec::new());
        self.undo(events);
        keeps
    }

    /// Whether the thread that left its turn in a frame is still there.
    pub(super) fn is_current(&self, frame: u32) -> bool {
        let frame = &self.frames[frame as usize];
        self.graph.next_id(frame.thread).index == frame.index
    }

    /// The threads that have to keep their word.
    fn stands_left(&self) -> Vec<Stand> {
        let mut stands: Vec<Stand> = Vec::new();
        for &number in self.turns.leaving.iter().rev() {
            let frame = &self.frames[number as usize];
            let known = stands.iter().any(|stand| stand.thread == frame.thread);
            if !known && self.is_current(number) {
                stands.push(Stand {
                    thread: frame.thread,
                    op: frame.op,
                    begins: frame.index,
                    left: frame.events,
                    before: BEGIN,
                    old: true,
                });
            }
        }
        stands
    }

    /// Whether a thread keeps its word with the writes that are last in every coherence order, as
    /// far as is known. Who then reads something new gets through, or spins for good.
    fn goes_on_with_newest(&mut self, mut stand: Stand) -> bool {
        loop {
            let mut what = What {
                value: 0,
                choice: 0,
                source: INIT,
            };
            if let Some(at) = stand.op.location() {
                let Some(newest) = self.model.newest(&self.graph, at) else {
                    return false;
                };
                if !is_left(Some(stand.left), newest) {
                    return true;
                }
                what.value = value_of(&self.graph, newest, self.machine.initial(at));
                what.source = newest;
            }
            let routine = self.loops.routine(stand.thread, stand.begins);
            match routine.find(stand.before, what) {
                Some((read, Then::Reads(op))) => {
                    stand.before = read;
                    stand.op = op;
                }
                Some((_, Then::Spins(_))) => return true,
                Some((_, Then::Through)) | None => return false,
            }
        }
    }

    /// Whether each of these threads can get through with something new, or spin for ever, beside
    /// those that do so already. There were so many events `before` they began to read.
    fn find_ways(
        &mut self,
        stands: &[Stand],
        before: usize,
        spinning: &mut Vec<(ThreadId, u32)>,
    ) -> bool {
        if let Some((&first, rest)) = stands.split_first() {
            return self.find_way(first, rest, before, spinning);
        }
        let mut newest = Vec::new();
        let mut all = spinning.iter();
        all.all(|&(thread, since)| collect(&self.graph, thread, since, &mut newest))
            && (newest.is_empty() || self.model.orders(&self.graph, &newest).is_some())
    }

    /// The same where the first of them has made some of its reads.
    fn find_way(
        &mut self,
        stand: Stand,
        rest: &[Stand],
        before: usize,
        spinning: &mut Vec<(ThreadId, u32)>,
    ) -> bool {
        let Stand { thread, op, .. } = stand;
        let events = self.graph.len();
        let mut initial = 0;
        let mut sources = Vec::new();
        match op.location() {
            Some(at) => {
                initial = self.machine.initial(at);
                self.model.sources(&self.graph, thread, at, &mut sources);
            }
            None => sources.push(INIT),
        }
        let graph = &self.graph;
        let ways = sources.iter().rev().flat_map(|&source| {
            let value = value_of(graph, source, initial);
            (0..alternatives(&op, value)).map(move |choice| (source, choice))
        });
        let ways: Vec<_> = ways.collect();
        let mut found = false;
        for (source, choice) in ways {
            self.undo(events);
            let Some(slot) = self.push(thread, op, source, choice, initial) else {
                continue;
            };
            let event = self.graph.event(slot);
            // Who replaces a value by itself writes nothing that the others could read.
            let imagined = source != INIT && source as usize >= before;
            if imagined && event.kind != Kind::ReadHalf {
                continue;
            }
            let old = stand.old && (!event.kind.reads() || is_left(Some(stand.left), source));
            let whose = (thread, stand.begins);
            let (read, then) = self.routine_read(whose, stand.before, slot, !old);
            found = match then {
                Then::Through if old => false,
                Then::Through => {
                    self.undo_update(thread);
                    self.find_ways(rest, before, spinning)
                }
                Then::Spins(since) => {
                    spinning.push((thread, since));
                    let found = self.find_ways(rest, before, spinning);
                    spinning.pop();
                    found
                }
                Then::Reads(op) => {
                    let stand = Stand {
                        op,
                        before: read,
                        old,
                        ..stand
                    };
                    self.find_way(stand, rest, before, spinning)
                }
            };
            if found {
                break;
            }
        }
        // Nothing is left to be taken back if it got through with an update before a fence.
        self.undo(events.min(self.graph.len()));
        found
    }

    /// Takes an update back with which `thread` got through: what it writes comes after all this,
    /// and others may hope for what it takes.
    fn undo_update(&mut self, thread: ThreadId) {
        let events = self.graph.thread(thread).iter().rev();
        let mut reads = events.filter(|&&slot| self.graph.event(slot).kind.reads());
        if let Some(&last) = reads.next()
            && self.graph.event(last).kind == Kind::ReadHalf
        {
            self.undo(last as usize);
        }
    }
}
