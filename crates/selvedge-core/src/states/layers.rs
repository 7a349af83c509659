//! Layer by layer: breadth-first, or in the order of context switches.
//!
//! Context-switch-directed reachability is Algorithm 1 of Štill, Ročkai and Barnat, "Context-Switch-Directed
//! Verification in DIVINE": all that can be reached without a further switch comes first, breadth-first; what needs one
//! more waits in `V_next`, here [`Layers::later`]. The thread that ran last is kept with a state, not in it.
//!
//! Deviations:
//! * A state that waits in `V_next` and turns out to be reachable without the switch is looked at at once, as the text
//!   (section 3.1) has it and the pseudocode does not.
//! * `csdr-exact` remembers every thread that a state was reached by with the fewest switches. Threads that reach it with
//!   one switch more add nothing: switching to one of them costs just that. Each further thread makes a further node of
//!   the same state, from which only that thread goes on.
//! * Nodes are numbered in the order in which they are looked at, and steps are ordered by thread and choice, so that
//!   the counterexample is the same every time.

use std::ops::ControlFlow;

use super::Algorithm;
use super::queue::{Packed, Queue};
use super::search::{Search, Seen};
use super::space::Step;
use super::visited::Verdict;
use crate::ids::ThreadId;
use crate::report::{Ending, Observer, Report};
use crate::saved::StateMachine;

/// A search by layers.
pub(super) struct Layers<'a, M, O> {
    search: Search<'a, M, O>,
    /// `Q`, one round of it: what is looked at now, and what that leads to within the layer.
    now: Queue,
    next: Queue,
    /// `V_next`: reached with one switch more. Their nodes are those of the states before.
    later: Queue,
    /// Which states these are.
    identities: Vec<u128>,
    /// Nodes of this round with which something is wrong.
    wrong: Vec<u32>,
}

impl<'a, M: StateMachine, O: Observer<M>> Layers<'a, M, O> {
    pub(super) fn new(search: Search<'a, M, O>) -> Self {
        Layers {
            search,
            now: Queue::default(),
            next: Queue::default(),
            later: Queue::default(),
            identities: Vec::new(),
            wrong: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Report {
        let ending = self.explore().break_value().unwrap_or(Ending::Complete);
        let lossy = self.search.settings.algorithm == Algorithm::Csdr && self.search.beyond > 0;
        self.search.report(match ending {
            // With one thread per state, some states need more switches than they should.
            Ending::Complete if lossy => Ending::Lossy,
            ending => ending,
        })
    }

    fn explore(&mut self) -> ControlFlow<Ending> {
        self.begin();
        loop {
            while !self.now.is_empty() {
                self.round()?;
                std::mem::swap(&mut self.now, &mut self.next);
                self.next.clear();
                if self.search.settings.algorithm == Algorithm::Bfs {
                    self.search.layer += 1;
                }
            }
            self.next_layer();
            if self.now.is_empty() {
                return ControlFlow::Continue(());
            }
            if self
                .search
                .settings
                .switches
                .is_some_and(|most| self.search.layer > most)
            {
                self.search.layer -= 1;
                self.search.beyond = self.now.len() as u64;
                return ControlFlow::Continue(());
            }
        }
    }

    /// The first state. Main runs there; nobody had to switch to it.
    fn begin(&mut self) {
        let main = Step {
            thread: ThreadId::MAIN,
            choice: 0,
        };
        let main = Packed::new(main);
        let search = &mut self.search;
        let identity = search.space.identity();
        search.visited.claim(identity, 0, ThreadId::MAIN, false);
        let node = search.nodes.push(0, main);
        self.now.push(search.space.here(), node, main, false);
    }

    /// Looks at all of `now`.
    fn round(&mut self) -> ControlFlow<Ending> {
        let now = std::mem::take(&mut self.now);
        for place in 0..now.len() {
            self.expand(&now, place)?;
            if !self.wrong.is_empty() && !self.search.settings.keep_going {
                break;
            }
            let waiting = now.len() - place + self.next.len() + self.later.len();
            let bytes = now.bytes() + self.next.bytes() + self.later.bytes();
            self.search.breathe(waiting, bytes)?;
        }
        self.now = now;
        for node in std::mem::take(&mut self.wrong) {
            let path = self.search.path(node);
            self.search.tell(&path)?;
        }
        ControlFlow::Continue(())
    }

    /// Takes every step that leads out of a state.
    fn expand(&mut self, now: &Queue, place: usize) -> ControlFlow<Ending> {
        let (entry, state) = now.get(place);
        let search = &mut self.search;
        search.space.restore(state);
        match search.look()? {
            Seen::Open => {}
            Seen::Closed => return ControlFlow::Continue(()),
            Seen::Wrong => {
                self.wrong.push(entry.node);
                return ControlFlow::Continue(());
            }
        }
        let directed = search.settings.algorithm != Algorithm::Bfs;
        let running = entry.step.thread();
        let steps = std::mem::take(&mut search.steps);
        let mut away = false;
        for &step in &steps {
            if entry.only && step.thread != running {
                continue;
            }
            if away {
                self.search.space.restore(state);
            }
            away = true;
            self.search.space.take(step);
            self.search.transitions += 1;
            let switches = directed && step.thread != running;
            self.claim(entry.node, step, switches);
        }
        self.search.steps = steps;
        ControlFlow::Continue(())
    }

    /// The machine is in a state that `step` led to from that of node `parent`, with a switch or without.
    fn claim(&mut self, parent: u32, step: Step, switches: bool) {
        let search = &mut self.search;
        let identity = search.space.identity();
        let layer = match search.settings.algorithm {
            Algorithm::Bfs | Algorithm::Dfs => 0,
            Algorithm::Csdr | Algorithm::CsdrExact => search.layer + u32::from(switches),
        };
        let every_thread = search.settings.algorithm == Algorithm::CsdrExact;
        let verdict = search
            .visited
            .claim(identity, layer, step.thread, every_thread);
        if verdict == Verdict::Known {
            return;
        }
        let (step, only) = (Packed::new(step), verdict == Verdict::Again);
        if switches {
            self.later.push(search.space.here(), parent, step, only);
            self.identities.push(identity);
        } else {
            let node = search.nodes.push(parent, step);
            self.next.push(search.space.here(), node, step, only);
        }
    }

    /// What was reached with one switch more becomes what is looked at, unless it was reached without meanwhile.
    fn next_layer(&mut self) {
        let search = &mut self.search;
        self.now.clear();
        if self.later.is_empty() {
            return;
        }
        search.layer += 1;
        for (place, &identity) in self.identities.iter().enumerate() {
            if search.visited.layer(identity) == search.layer {
                let (entry, state) = self.later.get(place);
                let node = search.nodes.push(entry.node, entry.step);
                self.now.push(state, node, entry.step, entry.only);
            }
        }
        self.later.clear();
        self.identities.clear();
    }
}
