//! The graph and the automaton side by side.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::automaton::Automaton;
use super::components::{Arc, Digraph};
use super::formula::{Atom, Who};
use super::graph::{Graph, Lasso, Move};
use crate::random::mix;

/// The threads have bits above those of the automaton.
const THREADS: u32 = 64;

/// A state of the program with a state of the automaton that reads along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) state: u32,
    pub(super) reader: u32,
}

/// From one node of the product to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Successor {
    /// The move of the program.
    pub(super) by: Move,
    /// Where it leads.
    pub(super) arc: Arc,
}

/// Where an atom's value comes from.
enum Source {
    /// A bit of the state's label.
    Label(u32),
    Moves(Who),
    Progress(Who),
    Enabled(crate::ids::ThreadId),
}

/// All pairs that were met, numbered. Node zero is the initial one.
pub(super) struct Product<'p, G> {
    graph: &'p mut G,
    automaton: &'p Automaton,
    sources: Vec<Source>,
    fair: bool,
    pairs: Vec<Pair>,
    numbers: Numbers,
    moves: Vec<Move>,
    successors: Vec<Successor>,
}

/// The numbers of pairs.
enum Numbers {
    /// A row for each state with a place for each of this many readers: the usual automata are small.
    Rows(usize, Vec<u32>),
    Hashed(HashMap<u64, u32, BuildHasherDefault<Mixer>>),
}

/// Automata of at most this size have rows of numbers.
const SMALL: usize = 16;
const NONE: u32 = u32::MAX;

impl Numbers {
    fn of(automaton: &Automaton) -> Numbers {
        match automaton.size() {
            size @ ..=SMALL => Numbers::Rows(size, Vec::new()),
            _ => Numbers::Hashed(HashMap::default()),
        }
    }

    /// The number of `pair`, which becomes `fresh` if it has none.
    fn find_or_insert(&mut self, pair: Pair, fresh: u32) -> u32 {
        match self {
            Numbers::Rows(size, rows) => {
                let place = pair.state as usize * *size + pair.reader as usize;
                if rows.len() <= place {
                    rows.resize((pair.state as usize + 1) * *size, NONE);
                }
                if rows[place] == NONE {
                    rows[place] = fresh;
                }
                rows[place]
            }
            Numbers::Hashed(numbers) => {
                let key = u64::from(pair.state) << 32 | u64::from(pair.reader);
                *numbers.entry(key).or_insert(fresh)
            }
        }
    }
}

#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
}

impl<'p, G: Graph> Product<'p, G> {
    /// Nothing but the initial node. `labels` says which atoms the bits of the graph's labels stand
    /// for; with `fair`, each thread is an acceptance set of its own: a cycle passes through it
    /// where the thread moves or cannot move.
    pub(super) fn new(
        graph: &'p mut G,
        automaton: &'p Automaton,
        labels: &[Atom],
        fair: bool,
    ) -> Product<'p, G> {
        let sources = automaton.atoms().iter().map(|atom| match atom {
            Atom::Moves(who) => Source::Moves(*who),
            Atom::Progress(who) => Source::Progress(*who),
            Atom::Enabled(thread) => Source::Enabled(*thread),
            Atom::Named(_) | Atom::Expression(_) | Atom::Ended(_) | Atom::Joins(_) => {
                let bit = labels.iter().position(|label| label == atom);
                Source::Label(bit.expect("labels tell all that the formula asks") as u32)
            }
        });
        let sources = sources.collect();
        let mut product = Product {
            graph,
            automaton,
            sources,
            fair,
            pairs: Vec::new(),
            numbers: Numbers::of(automaton),
            moves: Vec::new(),
            successors: Vec::new(),
        };
        product.number(Pair {
            state: 0,
            reader: 0,
        });
        product
    }

    /// How many nodes there are so far.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    fn number(&mut self, pair: Pair) -> u32 {
        let fresh = self.pairs.len() as u32;
        let number = self.numbers.find_or_insert(pair, fresh);
        if number == fresh {
            self.pairs.push(pair);
        }
        number
    }

    /// The successors of `node`, in an order that depends on nothing but the node.
    pub(super) fn successors(&mut self, node: u32) -> Result<&[Successor], G::Stop> {
        let Pair { state, reader } = self.pairs[node as usize];
        let mut moves = std::mem::take(&mut self.moves);
        let mut successors = std::mem::take(&mut self.successors);
        let told = self.graph.moves(state, &mut moves);
        successors.clear();
        if told.is_ok() {
            let label = self.graph.label(state);
            let bit = |by: &Move| by.thread.map_or(0, |thread| 1_u128 << thread.0 << THREADS);
            let enabled = moves.iter().fold(0, |set, by| set | bit(by));
            for by in &moves {
                let letter = self.letter(label, by, &moves);
                let waiting = if self.fair { enabled & !bit(by) } else { 0 };
                for edge in self.automaton.edges(reader) {
                    if !edge.allows(letter) {
                        continue;
                    }
                    let to = self.number(Pair {
                        state: by.to,
                        reader: edge.to,
                    });
                    let missing = waiting | u128::from(edge.missing);
                    successors.push(Successor {
                        by: *by,
                        arc: Arc { to, missing },
                    });
                }
            }
        }
        self.moves = moves;
        self.successors = successors;
        told?;
        Ok(&self.successors)
    }

    /// Whether the automaton does not care any more what follows `node`.
    pub(super) fn is_decided(&self, node: u32) -> bool {
        self.automaton.accepts_all(self.pairs[node as usize].reader)
    }

    /// The lasso of these moves, with the point at which the automaton stops to care.
    pub(super) fn lasso(&mut self, prefix: Vec<Move>, cycle: Vec<Move>) -> Result<Lasso, G::Stop> {
        let mut lasso = Lasso {
            prefix,
            cycle,
            decided: None,
        };
        lasso.decided = self.decided(&lasso)?;
        Ok(lasso)
    }

    fn decided(&mut self, lasso: &Lasso) -> Result<Option<usize>, G::Stop> {
        let (mut state, mut readers) = (0, BTreeSet::from([0]));
        let mut moves = Vec::new();
        for (n, by) in lasso.moves().enumerate() {
            if readers
                .iter()
                .any(|&reader| self.automaton.accepts_all(reader))
            {
                return Ok(Some(n));
            }
            self.graph.moves(state, &mut moves)?;
            let letter = self.letter(self.graph.label(state), by, &moves);
            let edges = readers
                .iter()
                .flat_map(|&reader| self.automaton.edges(reader));
            let taken = edges.filter(|edge| edge.allows(letter));
            readers = taken.map(|edge| edge.to).collect();
            state = by.to;
        }
        Ok(None)
    }

    fn letter(&self, label: u64, by: &Move, moves: &[Move]) -> u64 {
        let mut letter = 0;
        for (bit, source) in self.sources.iter().enumerate() {
            let holds = match *source {
                Source::Label(place) => label >> place & 1 == 1,
                Source::Moves(who) => who.is(by.thread),
                Source::Progress(who) => by.progress && who.is(by.thread),
                Source::Enabled(thread) => moves.iter().any(|by| by.thread == Some(thread)),
            };
            letter |= u64::from(holds) << bit;
        }
        letter
    }
}

impl<G: Graph> Digraph for Product<'_, G> {
    type Stop = G::Stop;

    fn arcs(&mut self, node: u32, into: &mut Vec<Arc>) -> Result<(), G::Stop> {
        into.extend(self.successors(node)?.iter().map(|successor| successor.arc));
        Ok(())
    }
}
