//! The ends of executions: counting and reporting them.

use std::ops::ControlFlow;

use super::consistency::{Consistency, Newest};
use super::{Flow, Search, value_of};
use crate::failure::Failure;
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::machine::{Pending, SpinLoops, Stop};
use crate::model::ReleaseAcquire;
use crate::op::{Effect, Op};
use crate::report::{self, End, Ending, Observer, Waiting};

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Counts an execution in which no thread can run any more, and reports its bugs.
    pub(super) fn finish(&mut self) -> Flow {
        let mut waiting = false;
        let mut at_await = false;
        let mut assumed_away = false;
        for thread in (0..self.pending.len() as u32).map(ThreadId) {
            match self.pending[thread.index()] {
                Pending::Op(op) => {
                    waiting = true;
                    at_await |= self.awaits.at_await(thread);
                    if let Op::Update { at, .. } = op {
                        self.compete(self.graph.next_id(thread), op, at);
                    }
                }
                Pending::Stopped(Stop::Spinning { .. }) => waiting = true,
                Pending::Stopped(Stop::Assumed | Stop::Unrolled | Stop::Refused) => {
                    assumed_away = true
                }
                _ => {}
            }
        }
        if assumed_away {
            self.counts.blocked += 1;
        } else if at_await {
            self.finish_at_awaits()?;
        } else if waiting {
            self.counts.blocked += u64::from(!self.finish_waiting()?);
        } else {
            self.counts.executions += 1;
            self.observer.complete(&self.graph);
            if let Some(failure) = self.machine.leftover() {
                self.bug(failure, Vec::new(), &[])?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The same where some thread waits. It waits forever only if the writes that it has read, or
    /// would read, can be last in coherence order; false if they cannot.
    pub(super) fn finish_waiting(&mut self) -> Flow<bool> {
        let mut newest = Vec::new();
        let Some(graph) = self
            .collect_spinning(&mut newest)
            .then(|| self.settle(&mut newest))
            .flatten()
        else {
            return ControlFlow::Continue(false);
        };
        match report::classify(&*self.machine, &graph) {
            End::Complete => {
                self.counts.executions += 1;
                self.observer.complete(&graph);
                if let Some(failure) = self.machine.leftover() {
                    self.bug(failure, Vec::new(), &newest)?;
                }
            }
            End::Blocked | End::Stale => return ControlFlow::Continue(false),
            End::Unseen(what) => return ControlFlow::Break(Ending::Refused(what)),
            End::Stuck(failure, waiting) => {
                self.counts.blocked += 1;
                self.observer.stuck(&graph);
                self.bug(failure, waiting, &newest)?;
            }
        }
        ControlFlow::Continue(true)
    }

    /// Collects the writes that spinning threads read in their last iterations. False if two of them
    /// are different writes of one location.
    fn collect_spinning(&self, newest: &mut Vec<Newest>) -> bool {
        for (thread, pending) in self.pending.iter().enumerate() {
            let Pending::Stopped(Stop::Spinning { since }) = *pending else {
                continue;
            };
            if !collect(&self.graph, ThreadId(thread as u32), since, newest) {
                return false;
            }
        }
        true
    }

    /// A graph in which every waiting thread waits forever, with the writes `newest` last in
    /// coherence order; completes `newest`.
    fn settle(&mut self, newest: &mut Vec<Newest>) -> Option<Graph> {
        let mut open = None;
        for pending in &self.pending {
            if let Pending::Op(Op::Update { at, function, .. }) = *pending {
                match newest.iter().find(|(location, _)| *location == at) {
                    Some(&(_, source)) => {
                        let value = value_of(&self.graph, source, self.machine.initial(at));
                        if function.apply(value) != Effect::Block {
                            return None;
                        }
                    }
                    None => open = Some(at),
                }
            }
        }
        let Some(at) = open else {
            return self.ordered(newest);
        };
        let writes = self.graph.coherence(at).len();
        for index in (0..=writes).rev() {
            newest.push((at, self.graph.write_at(at, index)));
            if let Some(graph) = self.settle(newest) {
                return Some(graph);
            }
            newest.pop();
        }
        None
    }

    /// The present graph with a coherence order in which the given writes are last, and a parked
    /// read for each blocked update.
    fn ordered(&mut self, newest: &[Newest]) -> Option<Graph> {
        let orders = self.model.orders(&self.graph, newest)?;
        let mut graph = Graph::default();
        graph.reserve_threads(self.graph.threads());
        let mut ranks = vec![0; self.graph.len()];
        for (_, order) in &orders {
            for (rank, &write) in order.iter().enumerate() {
                ranks[write as usize] = rank;
            }
        }
        for (slot, event) in self.graph.events().iter().enumerate() {
            match event.op.location() {
                Some(at) if event.kind.writes() => {
                    let earlier = |&write: &Slot| ranks[write as usize] < ranks[slot];
                    let position = graph.coherence(at).iter().filter(|w| earlier(w)).count();
                    graph.push_write(at, fresh(event), position);
                }
                Some(at) => {
                    graph.push_read(at, fresh(event), event.source);
                }
                None => {
                    graph.push_silent(fresh(event));
                }
            }
        }
        for (thread, pending) in self.pending.iter().enumerate() {
            if let Pending::Op(op @ Op::Update { at, .. }) = *pending
                && let Some(&(_, source)) = newest.iter().find(|(location, _)| *location == at)
            {
                let id = graph.next_id(ThreadId(thread as u32));
                let mut event = Event::new(id, Kind::Parked, op);
                event.read = value_of(&self.graph, source, self.machine.initial(at));
                graph.push_read(at, event, source);
            }
        }
        Some(graph)
    }

    /// Reports a `failure` of a thread. An execution with undefined behaviour is not continued and
    /// counts as blocked.
    pub(super) fn failed(&mut self, failure: Failure) -> Flow {
        let undefined = failure.kind.is_undefined_behaviour();
        let recorded = match self.bug(failure, Vec::new(), &[]) {
            ControlFlow::Continue(recorded) => recorded,
            ControlFlow::Break(ending) => {
                self.counts.executions += u64::from(ending == Ending::FirstBug);
                return ControlFlow::Break(ending);
            }
        };
        if undefined {
            self.counts.blocked += u64::from(!self.undefined);
            self.undefined = true;
        } else if recorded {
            self.replay()?;
        }
        ControlFlow::Continue(())
    }

    /// Records a bug of the present graph, unless it is known, and confirms it by a replay. True if
    /// it was replayed.
    fn bug(&mut self, failure: Failure, waiting: Vec<Waiting>, newest: &[Newest]) -> Flow<bool> {
        if self.bugs.knows(&failure) {
            return ControlFlow::Continue(false);
        }
        let graph = self.ordered(newest).expect("the trace is consistent");
        let search = (self.machine.lend(), &mut *self.observer);
        // Under sequential consistency every access releases and acquires as well.
        let execution = (&graph, &ReleaseAcquire);
        self.performed = None;
        self.bugs.record(search, execution, failure, waiting)?;
        ControlFlow::Continue(true)
    }
}

/// Adds to `newest` the writes that `thread` read in its last iteration, from its event `since` on.
/// False if a location then has two.
pub(super) fn collect(
    graph: &Graph,
    thread: ThreadId,
    since: u32,
    newest: &mut Vec<Newest>,
) -> bool {
    for &slot in &graph.thread(thread)[since as usize..] {
        let event = graph.event(slot);
        let Some(at) = event.op.location().filter(|_| event.kind.reads()) else {
            continue;
        };
        let value = graph.last_equal(at, event.source);
        match newest.iter().find(|(location, _)| *location == at) {
            Some(&(_, source)) if source != value => return false,
            Some(_) => {}
            None => newest.push((at, value)),
        }
    }
    true
}

/// An event without its relations.
fn fresh(event: &Event) -> Event {
    let mut fresh = Event::new(event.id, event.kind, event.op);
    fresh.read = event.read;
    fresh.wrote = event.wrote;
    fresh.choice = event.choice;
    fresh
}
