//! Code that all searches over states share.

use std::ops::ControlFlow;

use super::look::{Look, look, wrong};
use super::queue::{Node, Nodes};
use super::replay::replay;
use super::space::{Space, StateStep};
use super::visited::Visited;
use super::{Algorithm, Settings};
use crate::failure::Failure;
use crate::report::{self, Bug, Counts, Ending, Observer, Report, StateCounts, Waiting};
use crate::saved::StateMachine;

/// How many states are looked at between two looks at the clock.
const BREATH: u32 = 1 << 10;

/// A search in progress.
pub(super) struct Search<'a, M, O> {
    pub(super) space: Space<'a, M>,
    pub(super) settings: Settings,
    pub(super) visited: Visited,
    pub(super) nodes: Nodes,
    /// The steps that lead out of the state that was looked at last.
    pub(super) steps: Vec<StateStep>,
    /// How many steps were taken, how far the search has come.
    pub(super) transitions: u64,
    pub(super) layer: u32,
    /// How many states a bound on switches left out.
    pub(super) beyond: u64,
    /// The counts of other peers.
    pub(super) elsewhere: StateCounts,
    observer: &'a mut O,
    /// The known bugs.
    known: Vec<Failure>,
    bugs: Vec<Bug>,
    unrolled: bool,
    breath: u32,
}

impl<'a, M: StateMachine, O: Observer<M>> Search<'a, M, O> {
    pub(super) fn new(machine: &'a mut M, settings: Settings, observer: &'a mut O) -> Self {
        let mut space = Space::new(machine, settings.identity);
        if settings.audit {
            space.audit();
        }
        Search {
            space,
            settings,
            visited: Visited::new(settings.algorithm == Algorithm::CsdrExact),
            nodes: Nodes::default(),
            steps: Vec::new(),
            transitions: 0,
            layer: 0,
            beyond: 0,
            elsewhere: StateCounts::default(),
            observer,
            known: Vec::new(),
            bugs: Vec::new(),
            unrolled: false,
            breath: 0,
        }
    }

    /// Looks at the state that the machine is in. True if the search goes on from there, with
    /// [`Search::steps`]; else what is wrong with it, if that is new, has to be told.
    pub(super) fn look(&mut self) -> ControlFlow<Ending, Seen> {
        let (machine, races) = (self.space.machine(), self.settings.races);
        let seen = match look(machine, races, &mut self.steps, &mut self.unrolled) {
            Look::Open => Seen::Open,
            Look::Complete => {
                self.observer.ended(machine);
                Seen::Closed
            }
            Look::Blocked => Seen::Closed,
            Look::Wrong(wrong) => {
                let known = |other: &Failure| report::same_bug(other, &wrong.0);
                if self.known.iter().any(known) {
                    Seen::Closed
                } else {
                    self.known.push(wrong.0);
                    Seen::Wrong
                }
            }
            Look::Refused(why) => return ControlFlow::Break(Ending::Refused(why)),
        };
        ControlFlow::Continue(seen)
    }

    /// Tells of what is wrong with the state that `schedule` leads to, after running it once more.
    /// The machine is in its first state then.
    pub(super) fn tell(&mut self, schedule: &[StateStep]) -> ControlFlow<Ending> {
        match self.bug(schedule) {
            Ok(bug) => {
                let known = |other: &Bug| report::same_bug(&other.failure, &bug.failure);
                // Each peer tells of what is new to itself.
                if !self.bugs.iter().any(known) {
                    self.observer.bug(&bug, self.space.machine());
                    self.bugs.push(bug);
                }
                self.space.start();
            }
            Err(why) => return ControlFlow::Break(Ending::Nondeterministic(why.into())),
        }
        if self.settings.keep_going {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(Ending::FirstBug)
        }
    }

    pub(super) fn path(&self, node: Node) -> Vec<StateStep> {
        self.nodes.path(node)
    }

    /// Takes a step from the state of `node`, which the machine is in. A step that is known to end
    /// the process is taken from the beginning, where it is watched.
    pub(super) fn take(&mut self, node: Node, step: StateStep) -> ControlFlow<Ending> {
        if self.space.machine().doomed() {
            let mut schedule = self.path(node);
            schedule.push(step);
            let shown = replay(self.space.machine_mut(), &schedule);
            let why = shown
                .err()
                .unwrap_or_else(|| "it went well this time".to_owned());
            return ControlFlow::Break(Ending::Nondeterministic(why.into()));
        }
        self.space.take(step);
        self.transitions += 1;
        ControlFlow::Continue(())
    }

    /// The first run shows what is wrong, the second one is watched.
    fn bug(&mut self, schedule: &[StateStep]) -> Result<Bug, String> {
        replay(self.space.machine_mut(), schedule)?;
        let (failure, _) = self.wrong()?;
        self.space.machine_mut().watch(&failure);
        let witness = replay(self.space.machine_mut(), schedule)?;
        let (failure, waiting) = self.wrong()?;
        Ok(Bug {
            failure,
            witness,
            waiting,
        })
    }

    fn wrong(&mut self) -> Result<(Failure, Vec<Waiting>), String> {
        wrong(self.space.machine(), self.settings.races)
            .ok_or_else(|| "a failure was not seen again when its schedule was repeated".to_owned())
    }

    /// Lets the observer know, now and then. `queue` states wait, and take this many bytes.
    pub(super) fn breathe(&mut self, queue: usize, bytes: usize) -> ControlFlow<Ending> {
        self.breath += 1;
        if self.breath < BREATH {
            return ControlFlow::Continue(());
        }
        self.breath = 0;
        let counts = self.counts(queue, bytes);
        match self.observer.states(&counts) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Ending::Stopped),
        }
    }

    /// The counts without those of others.
    pub(super) fn own_counts(&self, queue: usize, bytes: usize) -> StateCounts {
        let bytes = bytes + self.visited.bytes() + self.nodes.bytes() + self.space.bytes();
        StateCounts {
            states: self.visited.len() as u64,
            transitions: self.transitions,
            layer: self.layer,
            queue: queue as u64,
            bytes: bytes as u64,
        }
    }

    fn counts(&self, queue: usize, bytes: usize) -> StateCounts {
        let own = self.own_counts(queue, bytes);
        StateCounts {
            states: own.states + self.elsewhere.states,
            transitions: own.transitions + self.elsewhere.transitions,
            queue: own.queue + self.elsewhere.queue,
            bytes: own.bytes + self.elsewhere.bytes,
            ..own
        }
    }

    pub(super) fn report(self, ending: Ending) -> Report {
        let states = self.counts(0, 0);
        Report {
            ending,
            counts: Counts {
                bound_blocked: self.beyond,
                ..Counts::default()
            },
            bugs: self.bugs,
            unrolled: self.unrolled,
            states: Some(states),
        }
    }
}

/// The decision of the search about a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It goes on from there.
    Open,
    /// It does not.
    Closed,
    /// Something is wrong with it.
    Wrong,
}
