//! The skeleton that all interleaving engines share: nodes, sleep sets, replay, reports.

use std::ops::ControlFlow;

use super::act::{Act, Next};
use super::threads::ThreadSet;
use super::trace::{StepIndex, Trace};
use super::{Algorithm, Completed, Statistics};
use crate::bugs::Bugs;
use crate::failure::Failure;
use crate::ids::ThreadId;
use crate::machine::{Machine, Pending, may_join};
use crate::op::Op;
use crate::report::{self, Counts, Ending, Observer, Waiting};
use crate::rewind::Rewind;
use crate::settings::Settings;

/// A state on the way, before the step of the same number.
#[derive(Default)]
pub(super) struct Node {
    /// `enabled(E)`
    pub(super) enabled: ThreadSet,
    /// `back(E)`: the threads to explore from here.
    pub(super) back: ThreadSet,
    /// The threads of `back` that were explored or rejected.
    pub(super) done: ThreadSet,
    /// Steps that would lead to executions seen before.
    pub(super) sleep: Vec<Act>,
    /// Threads added for the bound's sake, not for a race.
    pub(super) conservative: ThreadSet,
    /// Threads that ended with the step they took from here.
    pub(super) ended: ThreadSet,
    /// `b(E)`: preemptions on the way here.
    pub(super) preemptions: u32,
    /// The thread being explored, with how many alternatives are untried.
    current: Option<(ThreadId, u32)>,
}

impl Node {
    pub(super) fn asleep(&self, thread: ThreadId) -> bool {
        self.sleep.iter().any(|act| act.thread == thread)
    }

    /// Some thread to explore, the oldest first.
    pub(super) fn untried(&self) -> Option<ThreadId> {
        let mut back = self.back.iter();
        back.find(|&thread| !self.done.contains(thread) && !self.asleep(thread))
    }

    fn clear(&mut self) {
        self.enabled.clear();
        self.back.clear();
        self.done.clear();
        self.sleep.clear();
        self.conservative.clear();
        self.ended.clear();
        self.preemptions = 0;
        self.current = None;
    }
}

/// The data that an algorithm works on.
#[derive(Default)]
pub(super) struct State {
    pub(super) trace: Trace,
    /// One for each step, and one for the end; those beyond are kept for their memory.
    nodes: Vec<Node>,
    /// `next(p)` at the end of the trace; meaningful while the machine stands there.
    next: Vec<Option<Next>>,
    /// The threads of `next` that can go on.
    enabled: ThreadSet,
    pub(super) statistics: Statistics,
    /// Scratch of the race detection.
    pub(super) places: Vec<StepIndex>,
}

impl State {
    /// The node at the end of the trace.
    pub(super) fn here(&mut self) -> &mut Node {
        &mut self.nodes[self.trace.len()]
    }

    pub(super) fn node(&self, place: StepIndex) -> &Node {
        &self.nodes[place]
    }

    pub(super) fn node_mut(&mut self, place: StepIndex) -> &mut Node {
        &mut self.nodes[place]
    }

    /// `next(p)`, if `thread` is about to do something.
    pub(super) fn next(&self, thread: ThreadId) -> Option<&Next> {
        self.next.get(thread.index())?.as_ref()
    }

    /// `b(E.p)`
    pub(super) fn preemptions_with(&self, thread: ThreadId) -> u32 {
        let node = &self.nodes[self.trace.len()];
        let running = self.trace.running();
        let preempts = running != thread && node.enabled.contains(running);
        node.preemptions + u32::from(preempts)
    }

    /// The enabled threads that do not sleep; with `running_first`, that one in front.
    pub(super) fn awake(&self, running_first: bool) -> impl Iterator<Item = ThreadId> + '_ {
        let node = &self.nodes[self.trace.len()];
        let running = running_first.then(|| self.trace.running());
        let awake = move |&thread: &ThreadId| node.enabled.contains(thread) && !node.asleep(thread);
        let rest = node
            .enabled
            .iter()
            .filter(move |&thread| Some(thread) != running);
        running.into_iter().chain(rest).filter(awake)
    }
}

/// An exploration of a machine by an algorithm.
pub(super) struct Search<'a, M, O, A> {
    pub(super) machine: Rewind<'a, M>,
    pub(super) observer: &'a mut O,
    pub(super) settings: Settings,
    pub(super) algorithm: A,
    pub(super) state: State,
    /// Whether the machine stands at the end of the trace.
    pub(super) in_step: bool,
    pub(super) counts: Counts,
    pub(super) bugs: Bugs,
    pub(super) unrolled: bool,
    /// The last step ran into something after which nothing has a meaning.
    pub(super) undefined: bool,
}

impl<M: Machine, O: Observer<M>, A: Algorithm> Search<'_, M, O, A> {
    /// `explore(⟨⟩, ∅)`, with a stack of nodes in place of the recursion.
    pub(super) fn run(&mut self) -> ControlFlow<Ending> {
        self.machine.reset();
        self.in_step = true;
        self.state.nodes.push(Node::default());
        self.look();
        self.check(ThreadId::MAIN)?;
        self.arrive()?;
        loop {
            if let Some((thread, choice)) = self.choose()? {
                self.take(thread, choice)?;
                self.arrive()?;
            } else if self.state.trace.len() == 0 {
                return ControlFlow::Continue(());
            } else {
                self.leave();
            }
        }
    }

    /// A new node: finds the enabled threads and the races, and picks the first thread to explore.
    fn arrive(&mut self) -> ControlFlow<Ending> {
        // A bug found on the way here took the machine somewhere else.
        self.replay()?;
        if std::mem::take(&mut self.undefined) {
            self.state.next.clear();
            self.state.enabled.clear();
            self.algorithm.arrive(&mut self.state);
            // It was cut short.
            self.counts.blocked += 1;
            return self.progress();
        }
        let state = &mut self.state;
        let here = state.trace.len();
        state.nodes[here].enabled.clone_from(&state.enabled);
        self.algorithm.arrive(state);
        if state.here().enabled.is_empty() {
            return self.finish();
        }
        if self.algorithm.begin(state) {
            return ControlFlow::Continue(());
        }
        let asleep = self.settings.preemptions.is_none() || state.awake(false).next().is_none();
        if asleep {
            state.statistics.sleep_blocked += 1;
            self.counts.blocked += 1;
        } else {
            state.statistics.rejected_schedulings += 1;
            self.counts.bound_blocked += 1;
        }
        self.progress()
    }

    /// The next step to explore from the last node, allowed by the bound.
    fn choose(&mut self) -> ControlFlow<Ending, Option<(ThreadId, u32)>> {
        if let Some((thread, left)) = self.state.here().current
            && left > 0
        {
            self.replay()?;
            let all = self.state.next(thread).map_or(0, |next| next.alternatives);
            self.state.here().current = Some((thread, left - 1));
            return ControlFlow::Continue(Some((thread, all - left)));
        }
        while let Some((thread, choice)) = self.algorithm.choose(&mut self.state) {
            self.replay()?;
            // A step that was seen after undefined behaviour need not be possible elsewhere.
            if !self.state.here().enabled.contains(thread) {
                continue;
            }
            if !self.algorithm.allows(&mut self.state, thread) {
                self.state.statistics.rejected_branches += 1;
                self.counts.bound_blocked += 1;
                continue;
            }
            self.algorithm.depart(&mut self.state, thread);
            let all = self.state.next(thread).map_or(0, |next| next.alternatives);
            let (choice, left) = match choice {
                Some(choice) => (choice, 0),
                None => (0, all - 1),
            };
            self.state.here().current = Some((thread, left));
            return ControlFlow::Continue(Some((thread, choice)));
        }
        ControlFlow::Continue(None)
    }

    /// `E.p`
    fn take(&mut self, thread: ThreadId, choice: u32) -> ControlFlow<Ending> {
        let state = &mut self.state;
        let here = state.trace.len();
        let next = *state.next(thread).expect("an enabled thread has a step");
        debug_assert!(next.enabled());
        if state.nodes.len() <= here + 1 {
            state.nodes.push(Node::default());
        }
        let preemptions = state.preemptions_with(thread);
        let (before, after) = state.nodes.split_at_mut(here + 1);
        let node = &mut after[0];
        node.clear();
        // Sleep': those that do not mind the step.
        let sleep = before[here].sleep.iter();
        node.sleep
            .extend(sleep.filter(|act| !act.conflicts(&next.act)));
        node.preemptions = preemptions;
        state.trace.push(&next, choice);
        let step = state.trace.step(here);
        let clock = state.trace.graph.causality(step.last);
        self.machine.resume(thread, step.outcome, clock);
        self.look_after(&next);
        self.check(thread)?;
        match next.op {
            Op::Create { child } => self.check(child),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Back to the node before; the thread explored from there may go to sleep.
    fn leave(&mut self) {
        let step = *self
            .state
            .trace
            .steps()
            .last()
            .expect("not at the first node");
        self.state.trace.pop();
        self.in_step = false;
        if matches!(self.state.here().current, Some((_, 0)))
            && self.algorithm.sleeps(&mut self.state, &step.act)
        {
            self.state.here().sleep.push(step.act);
        }
    }

    /// Brings the machine to the end of the trace, unless it stands there.
    fn replay(&mut self) -> ControlFlow<Ending> {
        if self.in_step {
            return ControlFlow::Continue(());
        }
        let graph = &self.state.trace.graph;
        let clock = |slot| graph.causality(slot);
        if let Err(mismatch) = self.machine.bring_to(graph, clock) {
            return ControlFlow::Break(Ending::Nondeterministic(mismatch));
        }
        self.in_step = true;
        self.look();
        ControlFlow::Continue(())
    }

    /// Asks the machine what every thread is about to do.
    fn look(&mut self) {
        self.state.next.clear();
        self.state.enabled.clear();
        self.make_room();
        for thread in 0..self.state.next.len() as u32 {
            self.ask(ThreadId(thread));
        }
    }

    /// The same after one step: only the threads that it can have changed something for.
    fn look_after(&mut self, step: &Next) {
        self.make_room();
        let thread = step.act.thread;
        self.ask(thread);
        if let Op::Create { child } = step.op {
            self.ask(child);
        }
        let ended = self.machine.pending(thread).has_ended();
        let written = step.act.location().filter(|_| step.act.writes);
        if written.is_none() && !ended {
            return;
        }
        for other in 0..self.state.next.len() {
            let Some(next) = &self.state.next[other] else {
                continue;
            };
            let concerned = match next.op {
                Op::Join { .. } | Op::JoinAll => ended,
                _ => written.is_some() && next.act.location() == written,
            };
            if concerned {
                let (thread, op) = (ThreadId(other as u32), next.op);
                self.set_next(thread, Some(op));
            }
        }
    }

    fn make_room(&mut self) {
        let threads = self.machine.threads();
        self.state.trace.reserve_threads(threads);
        self.state.next.resize(threads, None);
    }

    fn ask(&mut self, thread: ThreadId) {
        let op = match self.machine.pending(thread) {
            Pending::Op(op) => Some(op),
            Pending::Absent | Pending::Stopped(_) => None,
        };
        self.set_next(thread, op);
    }

    fn set_next(&mut self, thread: ThreadId, op: Option<Op>) {
        let next = op.map(|op| self.look_at(thread, op));
        if next.as_ref().is_some_and(Next::enabled) {
            self.state.enabled.insert(thread);
        } else {
            self.state.enabled.remove(thread);
        }
        self.state.next[thread.index()] = next;
    }

    fn look_at(&self, thread: ThreadId, op: Op) -> Next {
        let value = match op.location() {
            Some(at) => {
                let written = self.state.trace.written(at);
                written.unwrap_or_else(|| self.machine.initial(at))
            }
            None => 0,
        };
        Next::new(thread, op, value, may_join(&*self.machine, thread, op))
    }

    /// Looks whether `thread` ran into something that ends the search.
    fn check(&mut self, thread: ThreadId) -> ControlFlow<Ending> {
        let Pending::Stopped(stop) = self.machine.pending(thread) else {
            return ControlFlow::Continue(());
        };
        let Some(failure) = report::halted(&*self.machine, stop, &mut self.unrolled)? else {
            return ControlFlow::Continue(());
        };
        self.undefined |= failure.kind.is_undefined_behaviour();
        let flow = self.bug(failure, Vec::new());
        if let ControlFlow::Break(Ending::FirstBug) = flow {
            self.counts.executions += 1;
        }
        flow
    }

    /// No thread can take a step.
    fn finish(&mut self) -> ControlFlow<Ending> {
        for index in 0..self.state.next.len() {
            if let Some(next) = self.state.next[index]
                && let Some(at) = next.act.location()
            {
                self.state.trace.add_waiting(&next, at);
            }
        }
        let flow = self.classify();
        self.state.trace.remove_waiting();
        flow?;
        self.progress()
    }

    fn classify(&mut self) -> ControlFlow<Ending> {
        match report::classify(&*self.machine, &self.state.trace.graph) {
            report::End::Complete => {
                match self.algorithm.completed(&mut self.state) {
                    Completed::Within => {
                        self.counts.executions += 1;
                        self.observer.complete(&self.state.trace.graph);
                    }
                    Completed::Beyond => {
                        self.counts.over_bound += 1;
                        self.observer.over_bound(&self.state.trace.graph);
                    }
                    Completed::Again => {}
                }
                match self.machine.leftover() {
                    Some(failure) => self.bug(failure, Vec::new()),
                    None => ControlFlow::Continue(()),
                }
            }
            report::End::Blocked | report::End::Stale => {
                self.counts.blocked += 1;
                ControlFlow::Continue(())
            }
            report::End::Unseen(what) => ControlFlow::Break(Ending::Refused(what)),
            report::End::Stuck(failure, waiting) => {
                self.counts.blocked += 1;
                self.observer.stuck(&self.state.trace.graph);
                self.bug(failure, waiting)
            }
        }
    }

    fn progress(&mut self) -> ControlFlow<Ending> {
        match self.observer.progress(&self.counts) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Ending::Stopped),
        }
    }

    /// Records a bug of the present trace, repeats it to be sure, and goes on if asked to.
    fn bug(&mut self, failure: Failure, waiting: Vec<Waiting>) -> ControlFlow<Ending> {
        if self.bugs.knows(&failure) {
            return ControlFlow::Continue(());
        }
        self.in_step = false;
        let search = (self.machine.lend(), &mut *self.observer);
        let trace = &self.state.trace;
        let execution = (&trace.graph, &trace.model);
        self.bugs.record(search, execution, failure, waiting)
    }
}
