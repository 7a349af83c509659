//! A round of several peers.
//!
//! The fingerprint of a state decides which peer owns it; the owner knows whether the state was visited. A
//! round has three exchanges: each peer claims the states of others that its own lead to; their
//! owners answer which are new, among equal claims in favour of the least (node before, step);
//! each peer numbers what it has won, in the order of (node before, step) over all peers, and gives
//! away what it has more of than others. So nodes have the same numbers, and the counterexample is
//! the same, however many peers there are, and whichever is faster.

use std::ops::ControlFlow;

use super::contest::{Contest, Won};
use super::mail::Mail;
use super::parts::Contents;
use super::peers::{Flow, Peers, Reader, exchange, put_bytes, put_words};
use super::queue::{Later, Node, Nodes, PackedStep, Queue};
use super::share;
use super::space::{Space, StateStep};
use super::visited::Visited;
use super::ways::Ways;
use crate::ids::ThreadId;
use crate::report::{Ending, StateCounts};
use crate::saved::StateMachine;

/// The knowledge of a peer that works on its share.
pub(super) struct Apart {
    rank: usize,
    count: usize,
    /// The states claimed in this round, but for own ones that were known; their nodes are those
    /// before.
    states: Queue,
    identities: Vec<u128>,
    switches: Vec<bool>,
    /// The claims to states of others, by owner.
    outgoing: Vec<Vec<u8>>,
    /// The states claimed from others lately. They need not be claimed again.
    recent: Vec<u128>,
    contest: Contest,
    /// Whether claims were made that are not in order.
    late: bool,
    mail: Mail,
    ways: Ways,
    /// The counts of all peers before.
    pub(super) before: StateCounts,
}

const RECENT: usize = 1 << 12;

/// The size of a claim in a message.
const CLAIM: usize = 25;

/// A step that leads to a thread which has no number yet: the node before, and the creator of the thread.
pub(super) type Stranger = (Node, PackedStep, ThreadId, u32);

/// States of a queue that are numbered next, by place and in order.
pub(super) struct Next {
    places: Vec<u32>,
    /// How many of them each peer has.
    have: Vec<usize>,
}

/// The report of a peer at the end of a round.
pub(super) struct Notice {
    /// Nodes with which something is wrong.
    pub(super) wrong: Vec<Node>,
    /// Why this peer cannot go on.
    pub(super) ending: Option<Ending>,
    /// The counts of this peer since they work apart.
    pub(super) counts: StateCounts,
}

/// The reports of all peers, combined.
#[derive(Default)]
pub(super) struct Round {
    pub(super) wrong: Vec<Node>,
    pub(super) ending: Option<Ending>,
    /// The counts of the others.
    pub(super) elsewhere: StateCounts,
    /// How many states all of them have won.
    pub(super) won: usize,
}

/// The peer that knows whether a state was met.
fn owner(identity: u128, peers: usize) -> usize {
    ((identity as u64 as u128 * peers as u128) >> 64) as usize
}

impl Apart {
    /// Peers work apart from now on; the next node has this number.
    pub(super) fn new<M: StateMachine>(
        peers: &impl Peers,
        visited: &Visited,
        space: &Space<'_, M>,
        (next, before): (Node, StateCounts),
    ) -> Apart {
        let count = peers.count();
        Apart {
            rank: peers.rank(),
            count,
            states: Queue::default(),
            identities: Vec::new(),
            switches: Vec::new(),
            outgoing: vec![Vec::new(); count],
            recent: vec![0; RECENT],
            contest: Contest::new(count, visited),
            late: false,
            mail: Mail::new(count, space.contents() as Contents),
            ways: Ways::starting_at(next),
            before,
        }
    }

    /// Claims a state that `step` leads to from `parent`, with `layer` switches, one of which is
    /// new if `switches` is set.
    pub(super) fn claim(
        &mut self,
        visited: &mut Visited,
        (identity, state): (u128, &[Contents]),
        (parent, step): (Node, PackedStep),
        (layer, switches): (u32, bool),
    ) {
        let owner = owner(identity, self.count);
        if owner == self.rank {
            let (from, cost) = ((parent, step), (layer, switches));
            let contest = &mut self.contest;
            if contest.claim(visited, identity, from, cost, (owner, false)) == Won::No {
                return;
            }
        } else {
            let place = (identity >> 32) as usize & (RECENT - 1);
            let claim = identity ^ visited.way(layer, step.thread());
            if std::mem::replace(&mut self.recent[place], claim) == claim && !self.late {
                return;
            }
            let mut bytes = [0; CLAIM];
            bytes[..16].copy_from_slice(&identity.to_le_bytes());
            bytes[16..20].copy_from_slice(&parent.to_le_bytes());
            bytes[20..24].copy_from_slice(&step.bits().to_le_bytes());
            bytes[24] = switches.into();
            self.outgoing[owner].extend_from_slice(&bytes);
        }
        self.states.push(state, parent, step, false);
        self.identities.push(identity);
        self.switches.push(switches);
    }

    /// Sends all claims to their owners, and returns the new threads of all peers, in order.
    pub(super) fn deliver<P: Peers>(
        &mut self,
        peers: &mut P,
        strangers: &[Stranger],
        (visited, layer): (&mut Visited, u32),
    ) -> Flow<Vec<Stranger>> {
        let mut all = Vec::new();
        for message in &mut self.outgoing {
            for &(node, step, parent, place) in strangers {
                let words = [node, step.bits(), parent.0, place];
                message.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
            message.extend((strangers.len() as u32).to_le_bytes());
        }
        let incoming = exchange(peers, &self.outgoing)?;
        self.outgoing.iter_mut().for_each(Vec::clear);
        self.contest.mix();
        for (peer, message) in incoming.iter().enumerate() {
            let (message, count) = message.split_last_chunk().expect("a whole message");
            let strangers = 16 * u32::from_le_bytes(*count) as usize;
            let (claims, strangers) = message.split_at(message.len() - strangers);
            let mut reader = Reader(strangers);
            while !reader.is_empty() {
                let (node, step) = (reader.word(), reader.step());
                all.push((node, step, ThreadId(reader.word()), reader.word()));
            }
            let mut reader = Reader(claims);
            while !reader.is_empty() {
                let (identity, from) = (reader.wide(), (reader.word(), reader.step()));
                let switches = reader.byte() != 0;
                let cost = (layer + u32::from(switches), switches);
                let contest = &mut self.contest;
                contest.claim(visited, identity, from, cost, (peer, true));
            }
        }
        all.sort_unstable();
        // The steps that lead to them are about to be taken again.
        self.late |= !all.is_empty();
        ControlFlow::Continue(all)
    }

    /// Answers the claims of all peers. What this peer has won with a switch goes to
    /// `later`, with the nodes before; the rest is returned.
    pub(super) fn settle<P: Peers>(
        &mut self,
        peers: &mut P,
        visited: &Visited,
        later: &mut Later,
    ) -> Flow<Next> {
        let granted: Vec<u32> = self.contest.won().map(|won| won as u32).collect();
        for (peer, message) in self.outgoing.iter_mut().enumerate() {
            put_words(&granted, message);
            if peer != self.rank {
                message.extend(self.contest.results(peer).map(Won::byte));
            }
        }
        let answers = exchange(peers, &self.outgoing)?;
        self.outgoing.iter_mut().for_each(Vec::clear);
        let mut answers: Vec<Reader<'_>> = answers.iter().map(|bytes| Reader(bytes)).collect();
        let have = granted_in_all(self.count, &mut answers);
        let mut own = self.contest.results(self.rank);
        let mut places = Vec::with_capacity(self.identities.len());
        for (place, &identity) in self.identities.iter().enumerate() {
            let won = match owner(identity, self.count) {
                owner if owner == self.rank => own.next().unwrap_or(Won::No),
                owner => Won::from_byte(answers[owner].byte()),
            };
            if won != Won::No {
                self.states.set_only(place, won == Won::Thread);
                places.push(place as u32);
            }
        }
        drop(own);
        if self.late {
            places.sort_by_key(|&place| {
                let (entry, _) = self.states.get(place as usize);
                (entry.node, entry.step)
            });
        }
        places.retain(|&place| {
            let place = place as usize;
            let switches = self.switches[place];
            if switches {
                let (entry, state) = self.states.get(place);
                later.states.push(state, entry.node, entry.step, entry.only);
                later.identities.push(self.identities[place]);
            }
            !switches
        });
        self.contest.clear(visited);
        self.late = false;
        ControlFlow::Continue(Next { places, have })
    }

    /// Numbers the states claimed in this round that were won.
    pub(super) fn number_won<P: Peers, M: StateMachine>(
        &mut self,
        peers: &mut P,
        space: &mut Space<'_, M>,
        next: &Next,
        (now, notice): (&mut Queue, &Notice),
    ) -> Flow<Round> {
        let states = std::mem::take(&mut self.states);
        let round = self.number(peers, space, (&states, next), now, notice)?;
        self.states = states;
        self.states.clear();
        self.identities.clear();
        self.switches.clear();
        ControlFlow::Continue(round)
    }

    /// Numbers states over all peers, and puts those into `now` that this one is to look at.
    /// Exchanges the reports of all peers.
    pub(super) fn number<P: Peers, M: StateMachine>(
        &mut self,
        peers: &mut P,
        space: &mut Space<'_, M>,
        (states, next): (&Queue, &Next),
        now: &mut Queue,
        notice: &Notice,
    ) -> Flow<Round> {
        let Next { places, have } = next;
        let transfers = share::transfers(have);
        let parents = places.iter();
        let parents: Vec<Node> = parents
            .map(|&place| states.get(place as usize).0.node)
            .collect();
        let common = notice.write(&parents);
        self.outgoing
            .iter_mut()
            .for_each(|message| message.extend_from_slice(&common));
        let away = transfers[self.rank].iter().sum();
        let mut given = share::given(places.len(), away).peekable();
        let receivers = transfers[self.rank].iter().enumerate();
        let receivers = receivers.flat_map(|(to, &some)| std::iter::repeat_n(to, some));
        for (place, to) in given.clone().zip(receivers) {
            let state = states.get(places[place] as usize);
            self.mail.write(space, state, to, &mut self.outgoing[to]);
        }
        let incoming = exchange(peers, &self.outgoing)?;
        self.outgoing.iter_mut().for_each(Vec::clear);
        let mut round = Round::default();
        let mut readers: Vec<Reader<'_>> = incoming.iter().map(|bytes| Reader(bytes)).collect();
        let lists = readers.iter_mut().enumerate();
        let lists: Vec<Vec<Node>> = lists
            .map(|(peer, reader)| round.hear(reader, peer != self.rank))
            .collect();
        round.wrong.sort_unstable();
        let first = self.ways.next();
        let mut received = Queue::default();
        for from in (0..self.count).filter(|&from| transfers[from][self.rank] > 0) {
            let numbers = numbers(&lists, from, first);
            let before: usize = transfers[from][..self.rank].iter().sum();
            let all = transfers[from].iter().sum();
            let mine = share::given(numbers.len(), all).skip(before);
            for place in mine.take(transfers[from][self.rank]) {
                let (reader, node) = (&mut readers[from], numbers[place]);
                self.mail.read(space, reader, from, node, &mut received);
            }
        }
        let mut others: Vec<usize> = (0..received.len()).collect();
        others.sort_unstable_by_key(|&place| received.get(place).0.node);
        let mut others = others.into_iter().peekable();
        let mine = numbers(&lists, self.rank, first);
        for (n, (&place, node)) in places.iter().zip(mine).enumerate() {
            let (entry, state) = states.get(place as usize);
            self.ways.push(node, entry.node, entry.step);
            if given.next_if_eq(&n).is_some() {
                continue;
            }
            while let Some(place) = others.next_if(|&other| received.get(other).0.node < node) {
                received.copy(place, now);
            }
            now.push(state, node, entry.step, entry.only);
        }
        others.for_each(|place| received.copy(place, now));
        round.won = have.iter().sum();
        self.ways.advance(round.won);
        ControlFlow::Continue(round)
    }

    /// For each of these states, whether it is still to be reached with `layer` switches, not with fewer.
    pub(super) fn still<P: Peers>(
        &mut self,
        peers: &mut P,
        identities: &[u128],
        (visited, layer): (&Visited, u32),
    ) -> Flow<Next> {
        for &identity in identities {
            self.outgoing[owner(identity, self.count)].extend(identity.to_le_bytes());
        }
        let incoming = exchange(peers, &self.outgoing)?;
        let answer = |message: &Vec<u8>| -> Vec<u8> {
            let (identities, _) = message.as_chunks();
            let layers = identities
                .iter()
                .map(|&bytes| visited.layer(u128::from_le_bytes(bytes)));
            layers.map(|reached| u8::from(reached == layer)).collect()
        };
        let answers: Vec<Vec<u8>> = incoming.iter().map(answer).collect();
        let count = |answers: &Vec<u8>| answers.iter().filter(|&&answer| answer == 1).count();
        let granted: Vec<u32> = answers
            .iter()
            .map(|answers| count(answers) as u32)
            .collect();
        for (message, answers) in self.outgoing.iter_mut().zip(&answers) {
            message.clear();
            put_words(&granted, message);
            message.extend_from_slice(answers);
        }
        let answers = exchange(peers, &self.outgoing)?;
        self.outgoing.iter_mut().for_each(Vec::clear);
        let mut answers: Vec<Reader<'_>> = answers.iter().map(|bytes| Reader(bytes)).collect();
        let have = granted_in_all(self.count, &mut answers);
        let places = identities.iter().enumerate();
        let places = places
            .filter(|&(_, &identity)| answers[owner(identity, self.count)].byte() == 1)
            .map(|(place, _)| place as u32)
            .collect();
        ControlFlow::Continue(Next { places, have })
    }

    /// The steps from the first node to `node`, which some peer knows.
    pub(super) fn path<P: Peers>(
        &self,
        peers: &mut P,
        nodes: &Nodes,
        mut node: Node,
    ) -> Flow<Vec<StateStep>> {
        let mut steps = Vec::new();
        while node >= self.ways.first() {
            let mut message = Vec::new();
            if let Some((parent, step)) = self.ways.get(node) {
                message.extend(parent.to_le_bytes());
                message.extend(step.bits().to_le_bytes());
            }
            let outgoing = vec![message; self.count];
            let incoming = exchange(peers, &outgoing)?;
            let known = incoming.iter().find(|message| !message.is_empty());
            let Some(message) = known else {
                let why = format!("node {node} of the search is lost");
                return ControlFlow::Break(Ending::Internal(why));
            };
            let mut reader = Reader(message);
            node = reader.word();
            steps.push(reader.step().step());
        }
        steps.reverse();
        let mut path = nodes.path(node);
        path.extend(steps);
        ControlFlow::Continue(path)
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let recent = self.recent.capacity() * size_of::<u128>();
        self.states.bytes() + self.ways.bytes() + self.mail.bytes() + recent
    }
}

/// Numbers for the states of peer `of`, where each has a list of the nodes before its own. No two
/// peers have the same node before, since each is looked at by one of them only.
fn numbers(lists: &[Vec<Node>], of: usize, first: Node) -> Vec<Node> {
    let mut before = vec![0; lists.len()];
    let own = lists[of].iter().enumerate();
    own.map(|(n, &parent)| {
        let mut number = first + n as Node;
        for (other, list) in lists.iter().enumerate().filter(|&(other, _)| other != of) {
            let before = &mut before[other];
            while list.get(*before).is_some_and(|&theirs| theirs < parent) {
                *before += 1;
            }
            number += *before as Node;
        }
        number
    })
    .collect()
}

/// How many claims each peer was granted, by whomever: every answer begins with that.
fn granted_in_all(count: usize, answers: &mut [Reader<'_>]) -> Vec<usize> {
    let mut have = vec![0; count];
    for reader in answers {
        add(&mut have, &reader.words());
    }
    have
}

fn add(have: &mut [usize], more: &[u32]) {
    have.iter_mut()
        .zip(more)
        .for_each(|(have, &more)| *have += more as usize);
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
        let (kind, why) = match &self.ending {
            None => (0, ""),
            Some(Ending::Refused(why)) => (1, why.as_str()),
            Some(_) => (2, ""),
        };
        message.push(kind);
        put_bytes(why.as_bytes(), &mut message);
        message
    }
}

impl Round {
    /// Adds what a peer said; returns the nodes before those that it has won.
    fn hear(&mut self, reader: &mut Reader<'_>, other: bool) -> Vec<Node> {
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
        let (kind, why) = (reader.byte(), reader.bytes());
        if kind != 0 && self.ending.is_none() {
            self.ending = Some(match kind {
                1 => Ending::Refused(String::from_utf8_lossy(why).into_owned()),
                _ => Ending::Stopped,
            });
        }
        parents
    }
}
