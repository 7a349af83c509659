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
use super::peers::Peers;
use super::queue::{Node, Packed, Queue};
use super::search::{Search, Seen};
use super::space::Step;
use super::together::{self, Claims, Flow, Notice, Won};
use super::visited::Verdict;
use crate::ids::ThreadId;
use crate::report::{Ending, Observer, Report, StateCounts};
use crate::saved::StateMachine;

/// A search by layers.
///
/// Several peers do the same at first, each for itself, until there are enough states in a round to share them out.
pub(super) struct Layers<'a, M, O, P> {
    search: Search<'a, M, O>,
    /// `Q`, one round of it: what is looked at now, and what that leads to within the layer. While peers work apart, the
    /// nodes of `next` are those of the states before.
    now: Queue,
    next: Queue,
    /// `V_next`: reached with one switch more. Their nodes are those of the states before.
    later: Queue,
    /// Which states these are.
    identities: Vec<u128>,
    /// Nodes of this round with which something is wrong.
    wrong: Vec<Node>,
    peers: P,
    /// What it takes to work apart, once they do.
    apart: Option<Apart>,
}

/// What a peer knows that works on its share.
struct Apart {
    claims: Claims,
    won: Won,
    /// What all of them had counted before.
    before: StateCounts,
}

impl<'a, M: StateMachine, O: Observer<M>, P: Peers> Layers<'a, M, O, P> {
    pub(super) fn new(search: Search<'a, M, O>, peers: P) -> Self {
        Layers {
            search,
            now: Queue::default(),
            next: Queue::default(),
            later: Queue::default(),
            identities: Vec::new(),
            wrong: Vec::new(),
            peers,
            apart: None,
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
        let mut open = 1;
        loop {
            while open > 0 {
                open = self.round()?;
                if self.search.settings.algorithm == Algorithm::Bfs {
                    self.search.layer += 1;
                }
            }
            open = self.next_layer()?;
            if open == 0 {
                return ControlFlow::Continue(());
            }
            let most = self.search.settings.switches;
            if most.is_some_and(|most| self.search.layer > most) {
                self.search.layer -= 1;
                self.search.beyond = open as u64;
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

    /// Looks at all of `now`. Returns how many states there are to look at next, whoever does it.
    fn round(&mut self) -> Flow<usize> {
        if self.apart.is_none() && self.peers.count() > 1 {
            self.share_out();
        }
        let now = std::mem::take(&mut self.now);
        let flow = self.look_at(&now);
        self.now = now;
        if self.apart.is_some() {
            return self.settle(flow.break_value());
        }
        flow?;
        for node in std::mem::take(&mut self.wrong) {
            let path = self.search.path(node);
            self.search.tell(&path)?;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        self.next.clear();
        ControlFlow::Continue(self.now.len())
    }

    fn look_at(&mut self, now: &Queue) -> ControlFlow<Ending> {
        for place in 0..now.len() {
            self.expand(now, place)?;
            if !self.wrong.is_empty() && !self.search.settings.keep_going {
                break;
            }
            let waiting = now.len() - place + self.next.len() + self.later.len();
            let bytes = now.bytes() + self.bytes();
            self.search.breathe(waiting, bytes)?;
        }
        ControlFlow::Continue(())
    }

    fn bytes(&self) -> usize {
        let won = self.apart.as_ref().map_or(0, |apart| apart.won.bytes());
        self.next.bytes() + self.later.bytes() + won
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

    /// The number of switches that counts for claims without a further one.
    fn layer(&self) -> u32 {
        match self.search.settings.algorithm {
            Algorithm::Bfs | Algorithm::Dfs => 0,
            Algorithm::Csdr | Algorithm::CsdrExact => self.search.layer,
        }
    }

    fn every_thread(&self) -> bool {
        self.search.settings.algorithm == Algorithm::CsdrExact
    }

    /// The machine is in a state that `step` led to from that of node `parent`, with a switch or without.
    fn claim(&mut self, parent: Node, step: Step, switches: bool) {
        let (layer, every_thread) = (self.layer() + u32::from(switches), self.every_thread());
        let search = &mut self.search;
        let identity = search.space.identity();
        if let Some(apart) = &mut self.apart {
            let state = search.space.here();
            let cost = (layer, switches);
            let claims = &mut apart.claims;
            return claims.push(identity, state, parent, step, cost, every_thread);
        }
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
    fn next_layer(&mut self) -> Flow<usize> {
        self.now.clear();
        let later = std::mem::take(&mut self.later);
        let identities = std::mem::take(&mut self.identities);
        if self.apart.is_some() {
            return self.next_layer_apart(&later, &identities);
        }
        let search = &mut self.search;
        search.layer += 1;
        for (place, &identity) in identities.iter().enumerate() {
            if search.visited.layer(identity) == search.layer {
                let (entry, state) = later.get(place);
                let node = search.nodes.push(entry.node, entry.step);
                self.now.push(state, node, entry.step, entry.only);
            }
        }
        if self.now.is_empty() {
            search.layer -= 1;
        }
        ControlFlow::Continue(self.now.len())
    }

    /// If there is enough for everybody, each goes on with its share.
    fn share_out(&mut self) {
        let (rank, count) = (self.peers.rank(), self.peers.count());
        if self.now.len() < self.peers.enough() * count {
            return;
        }
        let mine = |place: usize| place % count == rank;
        self.now = self.now.filtered(mine);
        self.later = self.later.filtered(mine);
        let mut place = 0;
        self.identities.retain(|_| {
            place += 1;
            mine(place - 1)
        });
        let next = self.search.nodes.len() as Node;
        self.apart = Some(Apart {
            claims: Claims::default(),
            won: Won::starting_at(next),
            before: self.search.own_counts(0, 0),
        });
    }

    /// Ends a round that peers have worked on apart.
    fn settle(&mut self, ending: Option<Ending>) -> Flow<usize> {
        let (layer, every_thread) = (self.layer(), self.every_thread());
        let Some(apart) = &mut self.apart else {
            unreachable!("peers work apart");
        };
        together::settle(
            &mut self.peers,
            &mut apart.claims,
            (&mut self.search.visited, layer, every_thread),
            &mut self.next,
            (&mut self.later, &mut self.identities),
        )?;
        let next = std::mem::take(&mut self.next);
        self.now.clear();
        let won = self.number(&next, |_| true, ending)?;
        self.next = next;
        self.next.clear();
        ControlFlow::Continue(won)
    }

    fn next_layer_apart(&mut self, later: &Queue, identities: &[u128]) -> Flow<usize> {
        self.search.layer += 1;
        let (visited, layer) = (&self.search.visited, self.search.layer);
        let valid = together::still(&mut self.peers, identities, visited, layer)?;
        let won = self.number(later, |place| valid[place], None)?;
        if won == 0 {
            self.search.layer -= 1;
        }
        ControlFlow::Continue(won)
    }

    /// Numbers what peers have won and tells of what they found.
    fn number(
        &mut self,
        queue: &Queue,
        wanted: impl Fn(usize) -> bool,
        ending: Option<Ending>,
    ) -> Flow<usize> {
        let bytes = self.bytes();
        let counts = self.search.own_counts(queue.len(), bytes);
        let Some(apart) = &mut self.apart else {
            unreachable!("peers work apart");
        };
        let notice = Notice {
            wrong: std::mem::take(&mut self.wrong),
            ending,
            counts: StateCounts {
                states: counts.states - apart.before.states,
                transitions: counts.transitions - apart.before.transitions,
                ..counts
            },
        };
        let won = &mut apart.won;
        let round = together::number(&mut self.peers, queue, wanted, &mut self.now, won, notice)?;
        self.search.elsewhere = round.elsewhere;
        for node in round.wrong {
            let path = together::path(&mut self.peers, &self.search.nodes, won, node)?;
            if self.peers.rank() == 0 {
                self.search.tell(&path)?;
            } else if !self.search.settings.keep_going {
                return ControlFlow::Break(Ending::FirstBug);
            }
        }
        match round.ending {
            Some(ending) => ControlFlow::Break(ending),
            None => ControlFlow::Continue(round.won),
        }
    }
}
