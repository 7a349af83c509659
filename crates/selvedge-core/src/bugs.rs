//! The bugs that a search has found so far.

use std::ops::ControlFlow;

use crate::failure::Failure;
use crate::graph::Graph;
use crate::machine::Machine;
use crate::model::Model;
use crate::report::{Bug, Ending, Observer, Waiting, same_bug};
use crate::witness;

/// Each bug once, with the execution that shows it.
pub(crate) struct Bugs {
    found: Vec<Bug>,
    /// Found by other searches.
    known: Vec<Failure>,
    keep_going: bool,
    /// Only executions with at most this many preemptions are wanted.
    preemptions: Option<u32>,
    /// A bug that lies beyond that bound.
    beyond: Option<Bug>,
}

impl Bugs {
    /// None yet. The first ends the search unless it is to `keep_going`.
    pub(crate) fn new(keep_going: bool) -> Bugs {
        Bugs::within(None, keep_going)
    }

    /// The same for a search for executions with at most this many preemptions.
    pub(crate) fn within(preemptions: Option<u32>, keep_going: bool) -> Bugs {
        Bugs {
            found: Vec::new(),
            known: Vec::new(),
            keep_going,
            preemptions,
            beyond: None,
        }
    }

    /// These were found by other searches.
    pub(crate) fn know(&mut self, known: Vec<Failure>) {
        self.known = known;
    }

    /// Whether `failure` was recorded before.
    pub(crate) fn knows(&self, failure: &Failure) -> bool {
        let found = self.found.iter().map(|bug| &bug.failure);
        let mut all = found.chain(&self.known);
        all.any(|known| same_bug(known, failure))
    }

    /// Records a failure at the end of `graph` that is not known yet, once it has been met again on the
    /// way there. The machine stands where it happens then.
    pub(crate) fn record<M: Machine, C: Model>(
        &mut self,
        (machine, observer): (&mut M, &mut impl Observer<M>),
        execution: (&Graph, &C),
        failure: Failure,
        waiting: Vec<Waiting>,
    ) -> ControlFlow<Ending> {
        let bug = self.confirm(machine, execution, failure, waiting)?;
        observer.bug(&bug, machine);
        self.found.push(bug);
        match self.keep_going {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Ending::FirstBug),
        }
    }

    /// The same for a failure in an execution beyond the bound: the observer is told of the first one.
    pub(crate) fn note_beyond<M: Machine, C: Model>(
        &mut self,
        (machine, observer): (&mut M, &mut impl Observer<M>),
        execution: (&Graph, &C),
        failure: Failure,
        waiting: Vec<Waiting>,
    ) -> ControlFlow<Ending> {
        if self.beyond.is_none() {
            let bug = self.confirm(machine, execution, failure, waiting)?;
            observer.bug_beyond(&bug, machine);
            self.beyond = Some(bug);
        }
        ControlFlow::Continue(())
    }

    fn confirm<M: Machine, C: Model>(
        &self,
        machine: &mut M,
        (graph, model): (&Graph, &C),
        failure: Failure,
        waiting: Vec<Waiting>,
    ) -> ControlFlow<Ending, Bug> {
        match witness::build(machine, (graph, model), &failure, self.preemptions) {
            Ok(witness) => ControlFlow::Continue(Bug {
                failure,
                witness,
                waiting,
            }),
            Err(reason) => ControlFlow::Break(Ending::Nondeterministic(reason)),
        }
    }

    /// All of them, in the order in which they were found.
    pub(crate) fn into_found(self) -> Vec<Bug> {
        self.found
    }
}
