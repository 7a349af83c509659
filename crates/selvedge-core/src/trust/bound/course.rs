//! The order in which the machine performs a small graph is made a linearisation with few preemptions: so it mostly
//! shows, for nothing, whether an execution is within the bound.
//!
//! In a replay each thread goes on until something has to come first that has not been performed yet. The next is one
//! that comes to its end, or one that has to be left in any case: what it needs next comes after something that it
//! does now. Nearly always that makes for the fewest preemptions; and those that have to be in any case are a lower
//! bound.
//!
//! The next graph mostly differs in little. As much of the order as still holds is kept then, and the rest laid out anew:
//! that is half the work. If it is not within the bound, the order is made from scratch.
//!
//! What is added after a replay conflicts with nothing that comes after it. So it can be put at the end of all; or
//! where its thread was left last, if all that has to come before it was performed by then.

use super::Level;
use super::slack::was_newest;
use crate::graph::{Graph, Kind, LANES, Slot};
use crate::ids::ThreadId;
use crate::model::Model;
use crate::op::Op;

/// Of each thread, how many events.
type Counts = [u32; LANES];

/// Stands for all events of a thread: its own are there when they are needed.
const ALL: u32 = i32::MAX as u32;

/// All events of one thread, and none of the others.
const ONLY: [Counts; LANES] = {
    let mut only = [[0; LANES]; LANES];
    let mut thread = 0;
    while thread < LANES {
        only[thread][thread] = ALL;
        thread += 1;
    }
    only
};

/// What is known of the order in which the machine performs a graph.
#[derive(Debug, Default)]
pub(in crate::trust) struct Course {
    /// Whether the order is a linearisation.
    known: bool,
    /// How many preemptions it has, at most.
    preemptions: u32,
    /// Whether the last one that was asked for was within the bound.
    was_within: bool,
    /// How many stretches end where their thread has to be left, waiting aside.
    forced: u32,
    /// The thread that goes on at the end.
    running: usize,
    /// What was performed.
    done: Counts,
    /// What had been performed when a thread was left.
    left: [Counts; LANES],
    /// The order of a replay.
    stretches: Vec<Stretch>,
}

/// Events of one thread, one after the other.
#[derive(Clone, Copy, Debug)]
pub(in crate::trust) struct Stretch {
    pub(in crate::trust) thread: ThreadId,
    pub(in crate::trust) from: u32,
    pub(in crate::trust) to: u32,
    /// If its thread has to be left here, or waits: the event after which that must be, at the latest the last one.
    after: Option<u32>,
}

impl Course {
    /// Nothing has been performed, and no order is known.
    pub(in crate::trust) fn begin(&mut self) {
        self.start();
        self.stretches.clear();
    }

    /// Nothing has been performed.
    fn start(&mut self) {
        self.known = true;
        self.preemptions = 0;
        self.forced = 0;
        self.running = 0;
        self.done = [0; LANES];
    }

    /// The machine takes steps in another order.
    pub(in crate::trust) fn forget(&mut self) {
        self.known = false;
        self.forced = 0;
    }

    /// Whether something is known of it.
    pub(in crate::trust) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether `bound` preemptions are certainly enough.
    pub(in crate::trust) fn is_within(&self, bound: u32) -> bool {
        self.known && self.preemptions <= bound
    }

    /// Whether `bound` preemptions are certainly not enough for `graph`, which has grown at most since the course was
    /// laid. What threads are left in does not overlap, so each of these is a preemption unless something in between
    /// may wait.
    pub(in crate::trust) fn is_beyond(&self, graph: &Graph, bound: u32) -> bool {
        self.forced > bound && {
            let is_preemption = |stretch: &&Stretch| {
                stretch.after.is_some_and(|after| {
                    let events = graph.thread(stretch.thread);
                    let mut next = events[after as usize + 1..=stretch.to as usize].iter();
                    next.all(|&slot| !graph.event(slot).op.may_wait())
                })
            };
            self.stretches.iter().filter(is_preemption).count() > bound as usize
        }
    }

    /// Finds an order for a replay, and tells whether it is within the bound. If the last one was, so will this one be: it is
    /// not made from scratch then.
    pub(in crate::trust) fn find<C: Model>(&mut self, level: &Level<C>, bound: u32) -> bool {
        if self.was_within {
            self.adapt(level);
        }
        if !self.was_within || !self.is_within(bound) {
            self.lay(level);
        }
        self.was_within = self.is_within(bound);
        self.was_within
    }

    /// Finds an order for a replay, if the graph is small and has one.
    pub(in crate::trust) fn lay<C: Model>(&mut self, level: &Level<C>) {
        self.stretches.clear();
        self.adapt(level);
    }

    /// The same with as much of the last order as still holds. That is cheaper, but may take more preemptions than
    /// needed, and fewer of them are known to be forced.
    fn adapt<C: Model>(&mut self, level: &Level<C>) {
        self.start();
        let graph = &level.graph;
        let mut layer = level
            .narrow_clocks()
            .map(|clocks| Layer::new(graph, clocks));
        if !layer.as_mut().is_some_and(|layer| layer.lay(self)) {
            self.forget();
        }
    }

    /// That order.
    pub(in crate::trust) fn stretches(&self) -> Option<&[Stretch]> {
        self.known.then_some(&self.stretches)
    }

    /// The machine goes on with the newest operation, of which the last event is in slot `last`.
    pub(in crate::trust) fn go_on<C: Model>(&mut self, level: &Level<C>, last: Slot) {
        if !self.known {
            return;
        }
        let graph = &level.graph;
        if graph.threads() > LANES || !level.is_linear() || !was_newest(graph, last) {
            self.forget();
            return;
        }
        let event = graph.event(last);
        let own = event.id.thread.index() % LANES;
        if own == self.running {
            self.done[own] = event.id.index + 1;
            return;
        }
        let Some(clocks) = level.narrow_clocks() else {
            self.forget();
            return;
        };
        let first = event.id.index - u32::from(event.kind == Kind::WriteHalf);
        if first > 0 && has_all(&self.left[own], own, &clocks[last as usize]) {
            // Those that were left later were left with this performed.
            for left in &mut self.left {
                if left[own] == first {
                    left[own] = event.id.index + 1;
                }
            }
        } else {
            let free = first == 0 || waits_for_end(event.op);
            self.preemptions += u32::from(!free);
            self.left[self.running % LANES] = self.done;
            self.running = own;
        }
        self.done[own] = event.id.index + 1;
    }
}

/// What lays a course.
struct Layer<'a> {
    graph: &'a Graph,
    clocks: &'a [Counts],
    /// What is to be performed of each thread.
    events: [&'a [Slot]; LANES],
    /// How far a thread is known to get.
    reach: Counts,
    /// Whether it can be left there without a preemption.
    free: [bool; LANES],
    /// Something that it needs to get further: so many events of a thread.
    lacks: [(usize, u32); LANES],
}

impl<'a> Layer<'a> {
    fn new(graph: &'a Graph, clocks: &'a [Counts]) -> Layer<'a> {
        let mut all: [&[Slot]; LANES] = [&[]; LANES];
        for (thread, events) in all.iter_mut().enumerate().take(graph.threads()) {
            *events = graph.thread(ThreadId(thread as u32));
            // What waits for others, and half an update, are not performed.
            if let Some((&last, others)) = events.split_last()
                && matches!(graph.event(last).kind, Kind::Parked | Kind::ReadHalf)
            {
                *events = others;
            }
        }
        let main = ThreadId::MAIN.index();
        let mut lacks = [(main, 1); LANES];
        lacks[main] = (main, 0);
        Layer {
            graph,
            clocks,
            events: all,
            reach: [0; LANES],
            free: [false; LANES],
            lacks,
        }
    }

    /// False if something has to come after what is not performed.
    fn lay(&mut self, course: &mut Course) -> bool {
        let mut left: usize = self.events.iter().map(|events| events.len()).sum();
        let first = self.keep(course);
        left -= course.done.iter().sum::<u32>() as usize;
        self.reach = course.done;
        self.go_far(&course.done, first);
        let mut thread = Some((first, self.left_after(&course.done, first)));
        while let Some((next, after)) = thread {
            let (from, to) = (course.done[next], self.reach[next]);
            course.stretches.push(Stretch {
                thread: ThreadId(next as u32),
                from,
                to,
                after,
            });
            course.forced += u32::from(after.is_some());
            course.preemptions += u32::from(!self.free[next]);
            course.done = with(&course.done, next, to);
            course.left[next] = course.done;
            course.running = next;
            left -= (to - from) as usize;
            if left == 0 {
                return true;
            }
            thread = self.next(&course.done, next);
        }
        false
    }

    /// Goes along the last order as far as it still holds, and returns the thread that goes on: the one at the end of
    /// that, since it may get further now.
    fn keep(&self, course: &mut Course) -> usize {
        let mut kept = 0;
        let mut last = (course.done, 0, ThreadId::MAIN.index());
        for stretch in &mut course.stretches {
            let thread = stretch.thread.index() % LANES;
            let (events, to) = (self.events[thread], stretch.to as usize);
            let Some(&end) = events.get(to - 1) else {
                break;
            };
            let half = self.graph.event(end).kind == Kind::ReadHalf;
            if half || !has_all(&course.done, thread, &self.clocks[end as usize]) {
                break;
            }
            let waits = |&ahead: &Slot| {
                waits_for_end(self.graph.event(ahead).op)
                    && !has_all(&course.done, thread, &self.clocks[ahead as usize])
            };
            let free = events.get(to).is_none_or(waits);
            last = (course.done, u32::from(!free), thread);
            stretch.after = None;
            course.preemptions += last.1;
            course.done = with(&course.done, thread, stretch.to);
            course.left[thread] = course.done;
            kept += 1;
        }
        course.stretches.truncate(kept);
        course.stretches.pop();
        course.done = last.0;
        course.preemptions -= last.1;
        last.2
    }

    /// Which thread goes on after `last`, and where it has to be left.
    #[inline]
    fn next(&mut self, done: &Counts, last: usize) -> Option<(usize, Option<u32>)> {
        let threads = self.graph.threads();
        let mut best = None;
        let mut most = 0;
        let mut thread = last % LANES;
        for _ in 1..threads {
            thread = (thread + 1) % LANES;
            if thread >= threads {
                thread = 0;
            }
            let (lane, needed) = self.lacks[thread];
            if done[lane % LANES] >= needed {
                self.go_far(done, thread);
            }
            let length = self.reach[thread] - done[thread];
            if length == 0 {
                continue;
            }
            if self.free[thread] {
                return Some((thread, None));
            }
            let after = self.left_after(done, thread);
            if after.is_some() {
                return Some((thread, after));
            }
            if length > most {
                most = length;
                best = Some((thread, None));
            }
        }
        best
    }

    /// Lets `thread` go on as far as it gets.
    fn go_far(&mut self, done: &Counts, thread: usize) {
        let thread = thread % LANES;
        let done = with_all(done, thread);
        let events = self.events[thread];
        let first = self.reach[thread] as usize;
        let mut at = first;
        while let Some(&ahead) = events.get(at) {
            let clock = &self.clocks[ahead as usize];
            if covers(&done, clock) {
                at += 1;
                continue;
            }
            self.lacks[thread] = lacking(&done, clock);
            if at > first {
                if self.graph.event(events[at - 1]).kind == Kind::ReadHalf {
                    at -= 1;
                }
                self.reach[thread] = at as u32;
                self.free[thread] = waits_for_end(self.graph.event(ahead).op);
            }
            return;
        }
        self.lacks[thread] = (thread, ALL);
        self.reach[thread] = at as u32;
        self.free[thread] = true;
    }

    /// If what `thread` needs to get further comes after something that it can do now, the latest such event: it has
    /// to be left after that.
    fn left_after(&self, done: &Counts, thread: usize) -> Option<u32> {
        let (other, needed) = self.lacks[thread];
        if other == thread {
            return None;
        }
        let events = self.graph.thread(ThreadId(other as u32));
        let last = events[needed as usize - 1];
        let before = self.clocks[last as usize][thread];
        (before > done[thread]).then(|| before - 1)
    }
}

/// Whether `done` has all of other threads that has to come before an event of `thread` with this `clock`.
fn has_all(done: &Counts, thread: usize, clock: &Counts) -> bool {
    covers(&with_all(done, thread), clock)
}

/// `done` with all events of `thread`. All lanes are written at once, since they are read at once: a processor has to
/// wait for single ones.
#[inline]
fn with_all(done: &Counts, thread: usize) -> Counts {
    std::array::from_fn(|lane| done[lane] | ONLY[thread % LANES][lane])
}

/// `done` with `count` events of `thread`.
#[inline]
fn with(done: &Counts, thread: usize, count: u32) -> Counts {
    let only = &ONLY[thread % LANES];
    std::array::from_fn(|lane| done[lane] & !only[lane] | count & only[lane])
}

/// Whether `done` counts all that `clock` does.
#[inline]
fn covers(done: &Counts, clock: &Counts) -> bool {
    let mut differences = 0;
    for lane in 0..LANES {
        differences |= done[lane].wrapping_sub(clock[lane]);
    }
    // No count is so large that its highest bit is set.
    (differences as i32) >= 0
}

/// What `clock` counts and `done` does not: so many events of a thread.
#[inline(never)]
fn lacking(done: &Counts, clock: &Counts) -> (usize, u32) {
    let lane = (0..LANES).find(|&lane| clock[lane] > done[lane]);
    let lane = lane.unwrap_or_default();
    (lane, clock[lane])
}

/// Whether an operation that cannot be performed yet makes its thread wait, whatever others do.
fn waits_for_end(op: Op) -> bool {
    matches!(op, Op::Join { .. } | Op::JoinAll)
}
