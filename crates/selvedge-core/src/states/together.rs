//! A round of several peers.
//!
//! Who a state belongs to is a matter of its fingerprint; that peer knows whether it was met. A round has three
//! exchanges: everybody claims the states that its own lead to; their owners answer which are new, among equal claims
//! in favour of the least (node before, step); everybody numbers what it has won, in the order of (node before, step) over all
//! peers. So nodes have the same numbers, and the counterexample is the same, however many peers there are and
//! whoever is faster. A state stays with the peer that has won it, since only that one can go back to it.

use std::ops::ControlFlow;

use super::parts::Contents;
use super::peers::{Peers, Reader, put_words};
use super::queue::{Node, Nodes, Packed, Queue};
use super::space::Step;
use super::visited::{Verdict, Visited};
use crate::ids::ThreadId;
use crate::report::{Ending, StateCounts};

/// The claims of one round.
#[derive(Default)]
pub(super) struct Claims {
    /// The states claimed; their nodes are those before.
    states: Queue,
    identities: Vec<u128>,
    switches: Vec<bool>,
    /// What was claimed lately: identity, number of switches, and the thread where that makes a difference. Claiming
    /// it again would be in vain.
    recent: Vec<(u128, u32, Option<ThreadId>)>,
}

const RECENT: usize = 1 << 16;

impl Claims {
    /// Claims a state that `step` leads to from `parent`.
    pub(super) fn push(
        &mut self,
        identity: u128,
        state: &[Contents],
        parent: Node,
        step: Step,
        (layer, switches): (u32, bool),
        every_thread: bool,
    ) {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, u32::MAX, None));
        }
        let place = (identity >> 32) as usize & (RECENT - 1);
        let claim = (identity, layer, every_thread.then_some(step.thread));
        if std::mem::replace(&mut self.recent[place], claim) == claim {
            return;
        }
        self.states.push(state, parent, Packed::new(step), false);
        self.identities.push(identity);
        self.switches.push(switches);
    }

    fn clear(&mut self) {
        self.states.clear();
        self.identities.clear();
        self.switches.clear();
    }
}

/// The peer that knows whether a state was met.
fn owner(identity: u128, peers: usize) -> usize {
    ((identity as u64 as u128 * peers as u128) >> 64) as usize
}

/// The nodes that this peer has won since they work apart, by number.
pub(super) struct Won {
    nodes: Vec<(Node, Node, Packed)>,
    /// The number of the next node, whoever wins it.
    next: Node,
    /// The first node of this time.
    first: Node,
}

impl Won {
    /// Nothing yet; the next node has this number.
    pub(super) fn starting_at(first: Node) -> Won {
        Won {
            nodes: Vec::new(),
            next: first,
            first,
        }
    }

    fn get(&self, node: Node) -> Option<(Node, Packed)> {
        let found = self.nodes.binary_search_by_key(&node, |won| won.0);
        found.ok().map(|place| {
            let (_, parent, step) = self.nodes[place];
            (parent, step)
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<(Node, Node, Packed)>()
    }
}

/// What everybody has to say at the end of a round.
pub(super) struct Notice {
    /// Nodes with which something is wrong.
    pub(super) wrong: Vec<Node>,
    /// Why this peer cannot go on.
    pub(super) ending: Option<Ending>,
    /// What this peer has counted since they work apart.
    pub(super) counts: StateCounts,
}

/// What all of them said.
pub(super) struct Round {
    pub(super) wrong: Vec<Node>,
    pub(super) ending: Option<Ending>,
    /// What the others have counted.
    pub(super) elsewhere: StateCounts,
    /// How many states all of them have won.
    pub(super) won: usize,
}

/// Goes on with a value, or ends the search.
pub(super) type Flow<T> = ControlFlow<Ending, T>;

fn exchange<P: Peers>(peers: &mut P, outgoing: &[Vec<u8>]) -> Flow<Vec<Vec<u8>>> {
    match peers.exchange(outgoing) {
        Ok(incoming) => ControlFlow::Continue(incoming),
        Err(why) => ControlFlow::Break(Ending::Refused(why)),
    }
}

/// Has the owners of all claims decide. What is won goes to `next`, or to `later` if it takes a switch, with the nodes
/// before.
pub(super) fn settle<P: Peers>(
    peers: &mut P,
    claims: &mut Claims,
    (visited, layer, every_thread): (&mut Visited, u32, bool),
    next: &mut Queue,
    (later, identities): (&mut Queue, &mut Vec<u128>),
) -> Flow<()> {
    let count = peers.count();
    let mut outgoing = vec![Vec::new(); count];
    for (place, &identity) in claims.identities.iter().enumerate() {
        let (entry, _) = claims.states.get(place);
        let message = &mut outgoing[owner(identity, count)];
        message.extend(identity.to_le_bytes());
        message.push(claims.switches[place].into());
        message.extend(entry.node.to_le_bytes());
        message.extend(entry.step.bits().to_le_bytes());
    }
    let incoming = exchange(peers, &outgoing)?;
    let answers = decide(&incoming, visited, layer, every_thread);
    let answers = exchange(peers, &answers)?;
    let mut answers: Vec<Reader<'_>> = answers.iter().map(|bytes| Reader(bytes)).collect();
    for (place, &identity) in claims.identities.iter().enumerate() {
        let answer = answers[owner(identity, count)].byte();
        if answer == LOST {
            continue;
        }
        let (entry, state) = claims.states.get(place);
        let queue = match claims.switches[place] {
            true => {
                identities.push(identity);
                &mut *later
            }
            false => &mut *next,
        };
        queue.push(state, entry.node, entry.step, answer == AGAIN);
    }
    claims.clear();
    ControlFlow::Continue(())
}

const LOST: u8 = 0;
const WON: u8 = 1;
const AGAIN: u8 = 2;

/// Goes through everybody's claims in the order of (node before, step).
fn decide(
    incoming: &[Vec<u8>],
    visited: &mut Visited,
    layer: u32,
    every_thread: bool,
) -> Vec<Vec<u8>> {
    let mut answers = vec![Vec::new(); incoming.len()];
    let mut readers: Vec<Reader<'_>> = incoming.iter().map(|bytes| Reader(bytes)).collect();
    let read = |reader: &mut Reader<'_>| {
        (!reader.is_empty()).then(|| {
            let (identity, switches) = (reader.wide(), reader.byte());
            let (parent, step) = (reader.word(), Packed::from_bits(reader.word()));
            (parent, step, identity, switches)
        })
    };
    let mut heads: Vec<_> = readers.iter_mut().map(read).collect();
    while let Some((peer, Some((_, step, identity, switches)))) = heads
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, head)| head.is_some())
        .min_by_key(|(_, head)| head.map(|(parent, step, ..)| (parent, step)))
    {
        let layer = layer + u32::from(switches);
        let verdict = visited.claim(identity, layer, step.thread(), every_thread);
        answers[peer].push(match verdict {
            Verdict::Known => LOST,
            Verdict::New | Verdict::Sooner => WON,
            Verdict::Again => AGAIN,
        });
        heads[peer] = read(&mut readers[peer]);
    }
    answers
}

/// Which of these states are still to be reached with `layer` switches, not with fewer.
pub(super) fn still<P: Peers>(
    peers: &mut P,
    identities: &[u128],
    visited: &Visited,
    layer: u32,
) -> Flow<Vec<bool>> {
    let count = peers.count();
    let mut outgoing = vec![Vec::new(); count];
    for &identity in identities {
        outgoing[owner(identity, count)].extend(identity.to_le_bytes());
    }
    let incoming = exchange(peers, &outgoing)?;
    let answer = |message: &Vec<u8>| {
        let (identities, _) = message.as_chunks();
        let layers = identities
            .iter()
            .map(|&bytes| visited.layer(u128::from_le_bytes(bytes)));
        layers.map(|reached| u8::from(reached == layer)).collect()
    };
    let answers: Vec<Vec<u8>> = incoming.iter().map(answer).collect();
    let answers = exchange(peers, &answers)?;
    let mut answers: Vec<Reader<'_>> = answers.iter().map(|bytes| Reader(bytes)).collect();
    let valid = identities
        .iter()
        .map(|&identity| answers[owner(identity, count)].byte() == 1);
    ControlFlow::Continue(valid.collect())
}

/// Numbers what was won, over all peers, and puts it into `now`. Everybody hears what the others have to say.
pub(super) fn number<P: Peers>(
    peers: &mut P,
    queue: &Queue,
    wanted: impl Fn(usize) -> bool,
    now: &mut Queue,
    won: &mut Won,
    notice: Notice,
) -> Flow<Round> {
    let mine = (0..queue.len()).filter(|&place| wanted(place));
    let mine: Vec<Node> = mine.map(|place| queue.get(place).0.node).collect();
    let outgoing = vec![notice.write(&mine); peers.count()];
    let incoming = exchange(peers, &outgoing)?;
    let mut round = Round {
        wrong: Vec::new(),
        ending: None,
        elsewhere: StateCounts::default(),
        won: 0,
    };
    let mut others: Vec<Node> = Vec::new();
    for (peer, message) in incoming.iter().enumerate() {
        let parents = round.hear(message, peer != peers.rank());
        round.won += parents.len();
        if peer != peers.rank() {
            others.extend(parents);
        }
    }
    round.wrong.sort_unstable();
    // A node is looked at by one peer only, so no two of them have the same one before.
    others.sort_unstable();
    let mut before = 0;
    for (n, place) in (0..queue.len()).filter(|&place| wanted(place)).enumerate() {
        let (entry, state) = queue.get(place);
        while others.get(before).is_some_and(|&other| other < entry.node) {
            before += 1;
        }
        let node = won.next + (n + before) as Node;
        won.nodes.push((node, entry.node, entry.step));
        now.push(state, node, entry.step, entry.only);
    }
    won.next += round.won as Node;
    ControlFlow::Continue(round)
}

impl Notice {
    fn write(&self, parents: &[Node]) -> Vec<u8> {
        let mut message = Vec::new();
        put_words(parents, &mut message);
        put_words(&self.wrong, &mut message);
        let StateCounts {
            states,
            transitions,
            queue,
            bytes,
            ..
        } = self.counts;
        for count in [states, transitions, queue, bytes] {
            message.extend(count.to_le_bytes());
        }
        match &self.ending {
            None => {}
            Some(Ending::Refused(why)) => {
                message.push(1);
                message.extend(why.as_bytes());
            }
            Some(_) => message.push(0),
        }
        message
    }
}

impl Round {
    /// Adds what a peer said; returns the nodes before those that it has won.
    fn hear(&mut self, message: &[u8], other: bool) -> Vec<Node> {
        let mut reader = Reader(message);
        let parents = reader.words();
        self.wrong.extend(reader.words());
        let counts = [(); 4].map(|()| reader.long());
        if other {
            let [states, transitions, queue, bytes] = counts;
            self.elsewhere.states += states;
            self.elsewhere.transitions += transitions;
            self.elsewhere.queue += queue;
            self.elsewhere.bytes += bytes;
        }
        if !reader.is_empty() && self.ending.is_none() {
            self.ending = Some(match reader.byte() {
                1 => Ending::Refused(String::from_utf8_lossy(reader.0).into_owned()),
                _ => Ending::Stopped,
            });
        }
        parents
    }
}

/// The steps from the first node to `node`, which some peer knows.
pub(super) fn path<P: Peers>(
    peers: &mut P,
    nodes: &Nodes,
    won: &Won,
    mut node: Node,
) -> Flow<Vec<Step>> {
    let mut steps = Vec::new();
    while node >= won.first {
        let mut message = Vec::new();
        if let Some((parent, step)) = won.get(node) {
            message.extend(parent.to_le_bytes());
            message.extend(step.bits().to_le_bytes());
        }
        let outgoing = vec![message; peers.count()];
        let incoming = exchange(peers, &outgoing)?;
        let known = incoming.iter().find(|message| !message.is_empty());
        let Some(message) = known else {
            let why = format!("node {node} of the search is lost");
            return ControlFlow::Break(Ending::Nondeterministic(why));
        };
        let mut reader = Reader(message);
        node = reader.word();
        steps.push(Packed::from_bits(reader.word()).step());
    }
    steps.reverse();
    let mut path = nodes.path(node);
    path.extend(steps);
    ControlFlow::Continue(path)
}
