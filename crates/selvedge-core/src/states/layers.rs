//! Layer by layer: breadth-first, or in the order of context switches.
//!
//! Context-switch-directed reachability is Algorithm 1 of Štill, Ročkai and Barnat,
//! "Context-Switch-Directed Verification in DIVINE": all that can be reached without a further
//! switch comes first, breadth-first; what needs one more waits in `V_next`, here
//! [`Layers::later`]. The thread that ran last is kept with a state, not in it.
//!
//! Deviations:
//! * A state that waits in `V_next` and turns out to be reachable without the switch is looked at
//!   at once, as the text (section 3.1) has it and the pseudocode does not.
//! * `csdr-exact` remembers every thread that a state was reached by with the fewest switches.
//!   Threads that reach it with one switch more add nothing: switching to one of them costs just
//!   that. Each further thread makes a further node of the same state, from which only that thread
//!   goes on.
//! * Nodes are numbered in the order in which they are looked at, and steps are ordered by thread
//!   and choice, so that the counterexample is the same every time.

use std::ops::ControlFlow;

use super::Algorithm;
use super::peers::{Flow, Peers, exchange};
use super::queue::{Later, Node, PackedStep, Queue};
use super::search::{Search, Seen};
use super::space::StateStep;
use super::together::{Apart, Notice, Round, Stranger};
use super::visited::{MOST_SWITCHES, MOST_THREADS, Verdict};
use crate::fingerprint::Fingerprint;
use crate::ids::ThreadId;
use crate::report::{Ending, Observer, Report, StateCounts};
use crate::saved::StateMachine;

/// A search by layers.
///
/// Several peers do the same at first, each for itself, until there are enough states in a round to
/// share them out.
pub(super) struct Layers<'a, M, O, P> {
    search: Search<'a, M, O>,
    /// `Q`, one round of it: what is looked at now, and what that leads to within the layer. While
    /// peers work apart, the nodes of `next` are those of the states before.
    now: Queue,
    next: Queue,
    /// `V_next`: reached with one switch more.
    later: Later,
    /// Nodes of this round with which something is wrong.
    wrong: Vec<Node>,
    peers: P,
    /// The data for working apart, once they do.
    apart: Option<Apart>,
    /// Whether the others have been given up.
    alone: bool,
    /// Steps of this round, by place, that lead to a thread which has no number yet.
    strangers: Vec<(usize, Stranger)>,
}

impl<'a, M: StateMachine, O: Observer<M>, P: Peers> Layers<'a, M, O, P> {
    pub(super) fn new(search: Search<'a, M, O>, peers: P) -> Self {
        Layers {
            search,
            now: Queue::default(),
            next: Queue::default(),
            later: Later::default(),
            wrong: Vec::new(),
            peers,
            apart: None,
            alone: false,
            strangers: Vec::new(),
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

    /// The first state. Main runs there, without a switch.
    fn begin(&mut self) {
        let main = StateStep {
            thread: ThreadId::MAIN,
            choice: 0,
        };
        let main = PackedStep::new(main);
        let search = &mut self.search;
        let identity = search.space.identity();
        search.visited.claim(identity, 0, ThreadId::MAIN);
        let node = search.nodes.push(0, main);
        self.now.push(search.space.here(), node, main, false);
    }

    /// Expands all states of `now`. Returns how many states all peers together have to expand next.
    fn round(&mut self) -> Flow<usize> {
        if self.apart.is_none() && !self.alone && self.peers.count() > 1 {
            self.share_out()?;
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
            let waiting = now.len() - place + self.next.len() + self.later.states.len();
            let bytes = now.bytes() + self.bytes();
            self.search.breathe(waiting, bytes)?;
        }
        ControlFlow::Continue(())
    }

    fn bytes(&self) -> usize {
        let apart = self.apart.as_ref().map_or(0, Apart::bytes);
        self.next.bytes() + self.later.bytes() + apart
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
        let threads = search.space.machine().threads();
        if self.every_thread() && threads > MOST_THREADS as usize {
            return ControlFlow::Break(too_much("threads", MOST_THREADS));
        }
        let search = &mut self.search;
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
            self.search.take(entry.node, step)?;
            let switches = directed && step.thread != running;
            if self.apart.is_some() && self.search.space.machine().threads() > threads {
                self.search.transitions -= 1;
                self.put_off(place, (entry.node, step));
                continue;
            }
            self.claim(entry.node, step, switches);
        }
        self.search.steps = steps;
        ControlFlow::Continue(())
    }

    /// A step has led to a thread that has no number yet, which peers have to agree upon first.
    fn put_off(&mut self, place: usize, (node, step): (Node, StateStep)) {
        let machine = self.search.space.machine_mut();
        let (parent, child) = machine.origin(ThreadId(machine.threads() as u32 - 1));
        machine.forget_newest();
        let stranger = (node, PackedStep::new(step), parent, child);
        self.strangers.push((place, stranger));
    }

    /// Takes the steps that were put off, now that all peers know the threads.
    fn catch_up(&mut self, threads: &[Stranger]) {
        let search = &mut self.search;
        let mut known = Vec::new();
        for &(_, _, parent, child) in threads {
            if !known.contains(&(parent, child)) {
                known.push((parent, child));
                search.space.machine_mut().introduce(parent, child);
            }
        }
        let now = std::mem::take(&mut self.now);
        for (place, (node, step, ..)) in std::mem::take(&mut self.strangers) {
            let (entry, state) = now.get(place);
            let space = &mut self.search.space;
            space.restore(state);
            space.take(step.step());
            self.search.transitions += 1;
            let directed = self.search.settings.algorithm != Algorithm::Bfs;
            let switches = directed && step.thread() != entry.step.thread();
            self.claim(node, step.step(), switches);
        }
        self.now = now;
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

    /// The machine is in a state that `step` led to from that of node `parent`, with a switch or
    /// without.
    fn claim(&mut self, parent: Node, step: StateStep, switches: bool) {
        let layer = self.layer() + u32::from(switches);
        let search = &mut self.search;
        let identity = search.space.identity();
        let packed = PackedStep::new(step);
        if let Some(apart) = &mut self.apart {
            let state = (identity, search.space.here());
            let (from, cost) = ((parent, packed), (layer, switches));
            return apart.claim(&mut search.visited, state, from, cost);
        }
        let (_, verdict) = search.visited.claim(identity, layer, step.thread);
        if verdict.is_known() {
            return;
        }
        let (state, only) = (search.space.here(), verdict == Verdict::Again);
        if switches {
            self.later.states.push(state, parent, packed, only);
            self.later.identities.push(identity);
        } else {
            let node = search.nodes.push(parent, packed);
            self.next.push(state, node, packed, only);
        }
    }

    /// The states reached with one switch more become the present layer, except those that were reached
    /// without meanwhile.
    fn next_layer(&mut self) -> Flow<usize> {
        self.now.clear();
        let later = std::mem::take(&mut self.later);
        self.search.layer += 1;
        let layer = self.search.layer;
        self.search.visited.advance(layer);
        if self.every_thread() && layer >= MOST_SWITCHES - 1 {
            return ControlFlow::Break(too_much("context switches", MOST_SWITCHES));
        }
        let open = match self.apart.is_some() {
            true => self.next_layer_apart(&later)?,
            false => self.next_layer_alone(&later),
        };
        if open == 0 {
            self.search.layer -= 1;
        }
        ControlFlow::Continue(open)
    }

    fn next_layer_alone(&mut self, later: &Later) -> usize {
        let search = &mut self.search;
        for (place, &identity) in later.identities.iter().enumerate() {
            if search.visited.layer(identity) == search.layer {
                let (entry, state) = later.states.get(place);
                let node = search.nodes.push(entry.node, entry.step);
                self.now.push(state, node, entry.step, entry.only);
            }
        }
        self.now.len()
    }

    fn next_layer_apart(&mut self, later: &Later) -> Flow<usize> {
        let notice = self.notice(later.states.len(), None);
        let Layers {
            search,
            apart: Some(apart),
            peers,
            now,
            ..
        } = self
        else {
            unreachable!("peers work apart");
        };
        let layer = (&search.visited, search.layer);
        let next = apart.still(peers, &later.identities, layer)?;
        let (space, states) = (&mut search.space, (&later.states, &next));
        let round = apart.number(peers, space, states, now, &notice)?;
        self.hear(round)
    }

    /// If there are enough states for all peers, and all have come to the same ones, each goes on with its share.
    fn share_out(&mut self) -> ControlFlow<Ending> {
        let (rank, count) = (self.peers.rank(), self.peers.count());
        if self.now.len() < self.peers.enough() * count || !self.agree()? {
            return ControlFlow::Continue(());
        }
        // Neighbours have most of their parts in common, and going from one to the next restores
        // little.
        let (first, end) = (
            rank * self.now.len() / count,
            (rank + 1) * self.now.len() / count,
        );
        self.now = self.now.filtered(|place| (first..end).contains(&place));
        // States reached from the same state stay together and are numbered in order.
        let before = |place: usize| self.later.states.get(place).0.node as usize;
        self.later = self.later.filtered(|place| before(place) % count == rank);
        let search = &self.search;
        let start = (search.nodes.len() as Node, search.own_counts(0, 0));
        let (visited, space) = (&search.visited, &search.space);
        self.apart = Some(Apart::new(&self.peers, visited, space, start));
        ControlFlow::Continue(())
    }

    /// Whether all peers have come to the same so far, with the same numbers. If not, one of them
    /// goes on alone: what identifies a state of this program is not the same in all of them.
    fn agree(&mut self) -> Flow<bool> {
        let mut print = Fingerprint::new();
        self.search.space.digest(&mut print);
        print.pair(self.search.nodes.len(), self.later.states.len());
        for states in [&self.now, &self.later.states] {
            states.digest(&mut print);
        }
        let (first, second) = print.finish();
        let digest = [first.to_le_bytes(), second.to_le_bytes()].concat();
        let outgoing = vec![digest; self.peers.count()];
        let incoming = exchange(&mut self.peers, &outgoing)?;
        if incoming == outgoing {
            return ControlFlow::Continue(true);
        }
        self.alone = true;
        match self.peers.rank() {
            0 => ControlFlow::Continue(false),
            _ => ControlFlow::Break(Ending::Stopped),
        }
    }

    /// Ends a round that peers have worked on apart.
    fn settle(&mut self, ending: Option<Ending>) -> Flow<usize> {
        let strangers: Vec<Stranger> = self.strangers.iter().map(|&(_, it)| it).collect();
        let met = self.deliver(&strangers)?;
        if !met.is_empty() {
            self.catch_up(&met);
            self.deliver(&[])?;
        }
        let waiting = self.later.states.len();
        let notice = self.notice(waiting, ending);
        let Layers {
            search,
            apart: Some(apart),
            peers,
            now,
            later,
            ..
        } = self
        else {
            unreachable!("peers work apart");
        };
        let next = apart.settle(peers, &search.visited, later)?;
        now.clear();
        let round = apart.number_won(peers, &mut search.space, &next, (now, &notice))?;
        self.hear(round)
    }

    fn deliver(&mut self, strangers: &[Stranger]) -> Flow<Vec<Stranger>> {
        let layer = self.layer();
        let Layers {
            search,
            apart: Some(apart),
            peers,
            ..
        } = self
        else {
            unreachable!("peers work apart");
        };
        apart.deliver(peers, strangers, (&mut search.visited, layer))
    }

    /// The report of this peer. So many states wait.
    fn notice(&mut self, waiting: usize, ending: Option<Ending>) -> Notice {
        let bytes = self.now.bytes() + self.bytes();
        let counts = self.search.own_counts(waiting, bytes);
        let before = self.apart.as_ref().map(|apart| apart.before);
        let before = before.unwrap_or_default();
        Notice {
            wrong: std::mem::take(&mut self.wrong),
            ending,
            counts: StateCounts {
                states: counts.states - before.states,
                transitions: counts.transitions - before.transitions,
                ..counts
            },
        }
    }

    /// Processes messages of peers. Returns how many states all peers together have to expand.
    fn hear(&mut self, round: Round) -> Flow<usize> {
        self.search.elsewhere = round.elsewhere;
        for node in round.wrong {
            let Some(apart) = &self.apart else {
                unreachable!("peers work apart");
            };
            let path = apart.path(&mut self.peers, &self.search.nodes, node)?;
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

/// Why an exact search gives up.
fn too_much(what: &str, most: u32) -> Ending {
    Ending::Refused(format!(
        "csdr-exact takes less than {most} {what} (csdr and bfs take more)"
    ))
}
