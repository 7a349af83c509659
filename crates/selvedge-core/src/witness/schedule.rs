//! The order of the steps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::Switch;
use crate::failure::{Failure, FailureKind};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::ThreadId;
use crate::linear::{self, operation_end};
use crate::op::{Function, Op};

/// How many states the search for the best schedule may visit before it settles for a good one.
const STATES: usize = 200_000;
/// How many events it may look at meanwhile: the time that a state takes grows with the graph.
const EVENTS: usize = 50_000_000;

/// The writes that are newer than what the operation at `slot` reads or writes.
pub(super) fn newer_writes(graph: &Graph, slot: Slot) -> &[Slot] {
    let event = graph.event(slot);
    let Some(location) = event.op.location() else {
        return &[];
    };
    match operation_end(graph, slot) {
        end if graph.event(end).kind.writes() => graph.later_writes(location, end),
        _ => graph.later_writes(location, event.source),
    }
}

/// A causally closed part of a graph.
pub(super) struct Part<'g> {
    graph: &'g Graph,
    /// Of each thread, how many events belong to it.
    ends: Vec<u32>,
    /// Whether preemptions count for more than switches, and leaving a thread that has further events in the graph counts.
    by_preemptions: bool,
    /// Of each write, its place in the coherence order of its location, counted from one.
    positions: Vec<u32>,
}

/// A frontier, and the running thread.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    done: Vec<u32>,
    running: ThreadId,
}

/// Steps that pass newer writes by, then context switches, then preemptions; or the latter two the other way round.
type Cost = (u32, u32, u32);

/// Decides which steps may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Steps that see the newest write.
    InTurn,
    /// All steps whose causes have been performed.
    Caused,
}

/// The result of a search.
enum Searched {
    Found(Vec<(Slot, Switch)>),
    None,
    TooLarge,
}

impl<'g> Part<'g> {
    /// The events before the failure. A deadlock needs everything, other failures only what
    /// their threads know of.
    pub(super) fn of(graph: &'g Graph, failure: &Failure) -> Part<'g> {
        let mut ends = vec![0; graph.threads()];
        let stuck = matches!(
            failure.kind,
            FailureKind::Deadlock | FailureKind::Livelock | FailureKind::Leak
        );
        if stuck {
            for (thread, end) in ends.iter_mut().enumerate() {
                *end = graph.thread(ThreadId(thread as u32)).len() as u32;
            }
        } else {
            let other = failure.other.as_ref().map(|other| other.thread);
            for thread in [failure.thread].into_iter().chain(other) {
                let Some(last) = graph.last(thread) else {
                    continue;
                };
                for (end, &counted) in ends.iter_mut().zip(graph.causality(last)) {
                    *end = (*end).max(counted);
                }
            }
        }
        Part::new(graph, ends)
    }

    /// All of the graph.
    pub(super) fn whole(graph: &'g Graph) -> Part<'g> {
        let threads = (0..graph.threads() as u32).map(ThreadId);
        let ends = threads.map(|thread| graph.thread(thread).len() as u32);
        Part::new(graph, ends.collect())
    }

    fn new(graph: &'g Graph, ends: Vec<u32>) -> Part<'g> {
        let mut positions = vec![0; graph.len()];
        for event in graph.events() {
            let Some(location) = event.op.location() else {
                continue;
            };
            let writes = graph.coherence(location);
            // Each location once.
            if writes
                .first()
                .is_some_and(|&first| positions[first as usize] == 0)
            {
                for (position, &write) in (1..).zip(writes) {
                    positions[write as usize] = position;
                }
            }
        }
        let mut part = Part {
            graph,
            ends,
            by_preemptions: false,
            positions,
        };
        part.drop_unfinished();
        part
    }

    /// Parked reads and lone read halves are not performed; a join counts one event too many.
    fn drop_unfinished(&mut self) {
        for (thread, end) in self.ends.iter_mut().enumerate() {
            let events = self.graph.thread(ThreadId(thread as u32));
            *end = (*end).min(events.len() as u32);
            if let Some(&last) = events[..*end as usize].last()
                && matches!(self.graph.event(last).kind, Kind::Parked | Kind::ReadHalf)
            {
                *end -= 1;
            }
        }
    }

    fn performed(&self) -> linear::Part<'_> {
        linear::Part {
            graph: self.graph,
            ends: &self.ends,
        }
    }

    /// The first event of the next operation of `thread`.
    fn next(&self, done: &[u32], thread: ThreadId) -> Option<Slot> {
        self.performed().next(done, thread)
    }

    /// The place of a write in coherence order; nothing comes before the initial contents.
    fn position(&self, write: Slot) -> u32 {
        match write {
            INIT => 0,
            write => self.positions[write as usize],
        }
    }

    fn inside(&self, slot: Slot) -> bool {
        slot != INIT && self.graph.counted(&self.ends, slot)
    }

    /// Whether everything that causes the operation at `slot` is done.
    fn is_caused(&self, done: &[u32], slot: Slot) -> bool {
        let graph = self.graph;
        let performed = |slot: Slot| slot == INIT || graph.counted(done, slot);
        let event = graph.event(slot);
        if event.id.index == 0 && !graph.predecessor(event.id).is_none_or(performed) {
            return false;
        }
        if matches!(event.op, Op::Join { .. } | Op::JoinAll) {
            return !self.performed().waits(done, slot);
        }
        !event.kind.reads() || performed(event.source)
    }

    /// How many writes that are newer than what the operation at `slot` reads or writes are done.
    fn passed(&self, done: &[u32], slot: Slot) -> u32 {
        let newer = newer_writes(self.graph, slot).iter();
        newer.filter(|&&w| self.graph.counted(done, w)).count() as u32
    }

    /// Whether the operation at `slot` sees what is newest, and hides nothing from a read that is yet
    /// to come.
    fn is_in_turn(&self, done: &[u32], slot: Slot) -> bool {
        let graph = self.graph;
        let performed = |slot: Slot| graph.counted(done, slot);
        let Some(location) = graph.event(slot).op.location() else {
            return true;
        };
        if self.passed(done, slot) > 0 {
            return false;
        }
        let write = operation_end(graph, slot);
        if !graph.event(write).kind.writes() {
            return true;
        }
        let position = self.position(write);
        let earlier = &graph.coherence(location)[..position as usize - 1];
        let written = earlier.iter().all(|&w| !self.inside(w) || performed(w));
        let reads = graph.reads(location).iter().all(|&read| {
            let source = graph.event(read).source;
            read == slot
                || !self.inside(read)
                || performed(read)
                || self.position(source) >= position
        });
        written && reads
    }

    /// Whether leaving `thread` at this point is free: it has nothing left to do here, or would
    /// have to wait.
    fn leaves_freely(&self, done: &[u32], thread: ThreadId) -> bool {
        let at = done[thread.index()];
        let Some(&slot) = self.graph.thread(thread).get(at as usize) else {
            return true;
        };
        let event = self.graph.event(slot);
        // Where a thread parks in the end it may still have been able to go on before.
        let belongs = self.by_preemptions || at < self.ends[thread.index()];
        if !belongs && event.kind != Kind::Parked {
            return true;
        }
        if event.kind == Kind::Parked && !event.op.may_wait() {
            // A compare-exchange that fails for ever once it sees this write.
            return event.source == INIT || self.graph.counted(done, event.source);
        }
        self.performed().waits(done, slot)
    }

    fn advance(&self, state: &State, slot: Slot) -> State {
        let mut done = state.done.clone();
        self.performed().perform(&mut done, slot);
        State {
            done,
            running: self.graph.event(slot).id.thread,
        }
    }

    /// The operations that can come next, with how the switch to them counts. If the running
    /// thread can go on, it does, unless leaving it later could be dearer.
    fn successors(&self, state: &State, rule: Rule) -> Vec<(Slot, Switch)> {
        let running = state.running;
        let done = &state.done;
        let ready = |&slot: &Slot| {
            self.is_caused(done, slot) && (rule == Rule::Caused || self.is_in_turn(done, slot))
        };
        let own = self.next(done, running).filter(ready);
        if let Some(slot) = own.filter(|&slot| self.is_in_turn(done, slot)) {
            let event = self.graph.event(slot);
            let last = event.id.index + 1 >= self.ends[running.index()];
            // A step on an object may end the waiting of others, after which they can no longer be left freely.
            let wakes = event.kind == Kind::Write || (self.by_preemptions && is_object_step(event));
            if !last && !wakes {
                return vec![(slot, Switch::Same)];
            }
        }
        let switch = if self.leaves_freely(done, running) {
            Switch::Free
        } else {
            Switch::Preemption
        };
        let others = (0..done.len() as u32).map(ThreadId);
        let others = others
            .filter(|&thread| thread != running)
            .filter_map(|thread| self.next(done, thread))
            .filter(ready)
            .map(|slot| (slot, switch));
        own.map(|slot| (slot, Switch::Same))
            .into_iter()
            .chain(others)
            .collect()
    }

    fn start(&self) -> State {
        State {
            done: vec![0; self.ends.len()],
            running: ThreadId::MAIN,
        }
    }

    /// The best schedule in which each step sees what is newest; if there is none, the best one that
    /// respects causality; where the search grows too large, a greedy one.
    pub(super) fn best_schedule(&self) -> Vec<(Slot, Switch)> {
        let found = match self.search(Rule::InTurn) {
            Searched::None => self.search(Rule::Caused),
            found => found,
        };
        match found {
            Searched::Found(schedule) => schedule,
            _ => self.greedy_schedule(),
        }
    }

    /// The same with as few preemptions as possible.
    pub(super) fn fewest_preemptions(mut self) -> Vec<(Slot, Switch)> {
        self.by_preemptions = true;
        self.best_schedule()
    }

    /// Dijkstra's search over states.
    fn search(&self, rule: Rule) -> Searched {
        let mut queue = BinaryHeap::new();
        let mut best: HashMap<State, Cost> = HashMap::new();
        let mut reached: HashMap<State, (State, Slot, Switch)> = HashMap::new();
        let limit = STATES.min(EVENTS / self.graph.len().max(1));
        let start = self.start();
        best.insert(start.clone(), (0, 0, 0));
        queue.push(Reverse(((0, 0, 0), start)));
        while let Some(Reverse((cost, state))) = queue.pop() {
            if best[&state] < cost {
                continue;
            }
            if state.done == self.ends {
                return Searched::Found(unwind(&reached, state));
            }
            if best.len() > limit {
                return Searched::TooLarge;
            }
            for (slot, switch) in self.successors(&state, rule) {
                let next = self.advance(&state, slot);
                let cost = self.add(cost, self.passed(&state.done, slot), switch);
                if best.get(&next).is_none_or(|&known| cost < known) {
                    best.insert(next.clone(), cost);
                    reached.insert(next.clone(), (state.clone(), slot, switch));
                    queue.push(Reverse((cost, next)));
                }
            }
        }
        Searched::None
    }

    fn greedy_schedule(&self) -> Vec<(Slot, Switch)> {
        let mut state = self.start();
        let mut schedule = Vec::new();
        loop {
            let in_turn = self.successors(&state, Rule::InTurn).first().copied();
            let next = in_turn.or_else(|| {
                let all = self.successors(&state, Rule::Caused).into_iter();
                all.min_by_key(|&(slot, _)| self.passed(&state.done, slot))
            });
            let Some((slot, switch)) = next else {
                return schedule;
            };
            schedule.push((slot, switch));
            state = self.advance(&state, slot);
        }
    }
}

impl Part<'_> {
    fn add(&self, (passed, first, second): Cost, newer: u32, switch: Switch) -> Cost {
        let passed = passed + u32::from(newer > 0);
        let switches = u32::from(switch != Switch::Same);
        let preemptions = u32::from(switch == Switch::Preemption);
        match self.by_preemptions {
            true => (passed, first + preemptions, second + switches),
            false => (passed, first + switches, second + preemptions),
        }
    }
}

fn is_object_step(event: &Event) -> bool {
    let Op::Update { function, .. } = event.op else {
        return false;
    };
    matches!(function, Function::Object(_))
}

fn unwind(
    reached: &HashMap<State, (State, Slot, Switch)>,
    mut state: State,
) -> Vec<(Slot, Switch)> {
    let mut schedule = Vec::new();
    while let Some((before, slot, switch)) = reached.get(&state) {
        schedule.push((*slot, *switch));
        state = before.clone();
    }
    schedule.reverse();
    schedule
}
