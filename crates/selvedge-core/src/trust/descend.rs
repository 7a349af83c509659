//! Random descents: estimates of the size of a search tree.
//!
//! Knuth ("Estimating the Efficiency of Backtrack Programs", 1975) follows one random path and multiplies the
//! numbers of alternatives on it. That is right on average, but with revisits its variance is hopeless: most paths
//! miss the large parts of the tree. Chen ("Heuristic Sampling: A Method for Predicting the Performance of Tree
//! Searching Programs", 1992) follows many paths at once. All nodes of a *stratum* are represented by one of them, which
//! is drawn in proportion to the weights of the nodes and gets the sum of their weights. The sum of the weights
//! of the complete executions still has the number of executions as its expected value.
//!
//! The stratum of a graph is the number of nested revisits that led to it, its number of events, and a hash of
//! properties that its number of successors depends on: how many events each thread has, how many of them no revisit
//! can delete, how many reads are stale, and how many newer writes the last event passed by. The first two numbers grow
//! along every path, so representatives are explored in the order of strata: each one to the end of one execution, as a
//! search does, and the alternatives on the way go to their strata.
//!
//! The more hashes are told apart, the closer a descent comes to the truth, and the longer it takes. So the
//! first descents tell few apart, and the next ones more as long as descents are short.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::branch::Branch;
use super::cursor::{Advanced, Cursor};
use super::level::{Choice, Level};
use super::unit::SavedLevel;
use super::{Observer, Report, Search, Settings};
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::{Site, ThreadId};
use crate::machine::SpinLoops;
use crate::model::Model;
use crate::random::{Random, mix};
use crate::report::Ending;

/// The result of one descent, along one representative of each stratum.
#[derive(Clone, Debug, Default)]
pub struct Descent {
    /// How many kinds of graphs it told apart. Descents that tell more apart are worth more.
    pub kinds: u64,
    /// An estimate of the number of complete executions.
    pub executions: f64,
    /// How many alternatives, besides the first, are estimated to begin at which operation. A revisited update that
    /// finds several places counts for the write that revisits it.
    pub alternatives: Vec<(Site, f64)>,
}

/// Collects the alternatives of a cursor, one for each stratum.
pub(super) struct Sampler {
    random: Random,
    /// Of the representative that is being explored.
    weight: f64,
    /// The nested revisits that led to it.
    revisits: usize,
    strata: BTreeMap<Stratum, Representative>,
    kinds: u64,
    /// How many alternatives were found since this was last asked.
    found: u64,
}

/// Nested revisits, events, and the kind of graph.
type Stratum = (usize, usize, u64);

/// The number of kinds of graphs with equally many events that are told apart at first.
const KINDS: u64 = 32;
/// After a descent with fewer representatives, the next one tells this many times as many apart,
const SHORT: u64 = 2_000;
const FINER: u64 = 16;
/// up to this many.
const MOST_KINDS: u64 = KINDS * FINER.pow(5);

fn stratum<C: Model>(revisits: usize, level: &Level<C>, kinds: u64) -> Stratum {
    let graph = &level.graph;
    let threads = (0..graph.threads() as u32).map(|thread| graph.thread(ThreadId(thread)));
    let ends = threads.flat_map(|events| {
        let last = events.last().map_or(0, |&last| passed_by(graph, last));
        [events.len() as u64, last]
    });
    let stable = level.stable.iter().map(|&events| events.into());
    let last = passed_by(graph, graph.len() as Slot - 1);
    let numbers = ends.chain(stable).chain([last, stale(graph)]);
    let hash = numbers.fold(0, |hash, number| mix(hash ^ number).wrapping_add(1));
    (revisits, graph.len(), hash % kinds)
}

/// How many newer writes there are than the event in `slot`, or than the one that it reads; and whether it is parked.
fn passed_by(graph: &Graph, slot: Slot) -> u64 {
    let event = graph.event(slot);
    let Some(location) = event.op.location() else {
        return event.choice.into();
    };
    let write = match event.kind.writes() {
        true => slot,
        false => event.source,
    };
    let later = graph.later_writes(location, write).len() as u64;
    2 * later + u64::from(event.kind == Kind::Parked)
}

/// How many reads do not read the newest write.
fn stale(graph: &Graph) -> u64 {
    let is_stale = |event: &&Event| {
        let location = event.op.location().filter(|_| event.kind.reads());
        location.is_some_and(|location| !graph.later_writes(location, event.source).is_empty())
    };
    graph.events().iter().filter(is_stale).count() as u64
}

/// A node of the tree that stands for all of its stratum: the next alternative of the only choice.
struct Representative {
    weight: f64,
    node: SavedLevel,
}

/// Makes random descents until `each` has seen enough of them. Bugs that they run into are reported.
pub fn descend<C: Model, M: SpinLoops>(
    machine: &mut M,
    preemptions: Option<u32>,
    seed: u64,
    observer: &mut impl Observer<M>,
    each: &mut dyn FnMut(&Descent) -> ControlFlow<()>,
) -> Report {
    let settings = Settings {
        keep_going: true,
        preemptions,
    };
    let mut search = Search::<C, M, _>::new(machine, settings, observer);
    search.cursor.sampler = Some(Box::new(Sampler {
        random: Random::new(seed),
        weight: 1.0,
        revisits: 0,
        strata: BTreeMap::new(),
        kinds: KINDS,
        found: 0,
    }));
    let ending = loop {
        let mut descent = Descent::default();
        let representatives = match search.descend(&mut descent) {
            ControlFlow::Continue(representatives) => representatives,
            ControlFlow::Break(ending) => break ending,
        };
        if each(&descent).is_break() {
            break Ending::Stopped;
        }
        if let Some(sampler) = &mut search.cursor.sampler
            && representatives < SHORT
        {
            sampler.kinds = MOST_KINDS.min(sampler.kinds * FINER);
        }
    };
    search.into_report(ending)
}

impl<C: Model, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Makes one descent. Returns the number of representatives that were explored.
    fn descend(&mut self, descent: &mut Descent) -> ControlFlow<Ending, u64> {
        let mut representatives = 1;
        descent.kinds = self
            .cursor
            .sampler
            .as_ref()
            .map_or(0, |sampler| sampler.kinds);
        self.cursor.restart();
        self.cursor.represent(1.0, 0);
        self.hopeless = false;
        let mut before = self.counts.executions;
        self.begin()?;
        descent.executions += (self.counts.executions - before) as f64;
        while let Some(((revisits, ..), Representative { weight, node })) =
            self.cursor.first_stratum()
        {
            representatives += 1;
            before = self.counts.executions;
            self.hopeless = false;
            self.cursor.restart();
            self.cursor.represent(weight, revisits);
            let loaded = node.load(self.cursor.level_mut(), self.machine.lend());
            if let Err(why) = loaded {
                return ControlFlow::Break(Ending::Nondeterministic(why.into()));
            }
            let advanced = self.cursor.advance();
            self.cursor.levels[0].choices.clear();
            let site = self.alternatives.last().map_or(Site(0), |&(site, _)| site);
            self.note_alternatives(site);
            if matches!(advanced, Advanced::Graph) && self.within_bound() {
                self.explore()?;
            }
            descent.executions += weight * (self.counts.executions - before) as f64;
        }
        descent.alternatives.append(&mut self.alternatives);
        ControlFlow::Continue(representatives)
    }

    /// Keeps the alternatives to the event of `thread` that is added next, besides the one that is being `tried`, if
    /// one is.
    pub(super) fn remember(&mut self, thread: ThreadId, branch: Branch, tried: bool) {
        self.remember_before(self.graph().len(), thread, branch, tried);
    }

    /// The same if that event was added already, to a graph with `events` events.
    pub(super) fn remember_before(
        &mut self,
        events: usize,
        thread: ThreadId,
        branch: Branch,
        tried: bool,
    ) {
        self.cursor.remember(events, branch, tried);
        if self.cursor.sampler.is_some() {
            self.note_alternatives(self.machine.site(thread));
        }
    }

    fn note_alternatives(&mut self, site: Site) {
        let Some(sampler) = &mut self.cursor.sampler else {
            return;
        };
        let found = std::mem::take(&mut sampler.found);
        if found > 0 {
            self.alternatives
                .push((site, sampler.weight * found as f64));
        }
    }
}

impl<C: Model> Cursor<C> {
    /// Puts all alternatives of `branch` to the event that is added to `events` others into their strata.
    pub(super) fn spread(&mut self, events: usize, mut branch: Branch) {
        let Some(mut sampler) = self.sampler.take() else {
            return;
        };
        let depth = self.depth;
        let added = self.graph().events().get(events).copied();
        self.level_mut().undo(events);
        loop {
            self.skip_futile(&mut branch);
            let before = branch.clone();
            if self.apply_next(&mut branch).is_none() {
                break;
            }
            let revisits = sampler.revisits + self.depth;
            let stratum = stratum(revisits, self.level(), sampler.kinds);
            self.half = None;
            self.depth = depth;
            self.level_mut().undo(events);
            sampler.found += 1;
            if sampler.draws(stratum) {
                let choice = Choice {
                    events,
                    branch: before,
                    share: 0.0,
                };
                let node = SavedLevel::of_choice(self.graph(), &choice);
                if let Some(kept) = sampler.strata.get_mut(&stratum) {
                    kept.node = node;
                }
            }
        }
        if let Some(read) = added
            && let Some(at) = read.op.location()
        {
            let level = self.level_mut();
            let slot = level.graph.push_read(at, read, read.source);
            level.added(slot);
        }
        self.sampler = Some(sampler);
    }

    /// Skips the sources of a read that are known to make its thread spin: this knowledge is not saved.
    fn skip_futile(&self, branch: &mut Branch) {
        if let Branch::Read(read) = branch {
            let mut next = *read;
            while next.advance(self.graph()).is_some_and(|read| read.futile) {
                *read = next;
            }
        }
    }

    /// The graph that is explored next has this weight and comes from this number of nested revisits.
    fn represent(&mut self, weight: f64, revisits: usize) {
        if let Some(sampler) = &mut self.sampler {
            (sampler.weight, sampler.revisits) = (weight, revisits);
        }
    }

    fn first_stratum(&mut self) -> Option<(Stratum, Representative)> {
        self.sampler.as_mut()?.strata.pop_first()
    }
}

impl Sampler {
    /// Adds a node to a stratum. Whether it becomes the representative.
    fn draws(&mut self, stratum: Stratum) -> bool {
        let kept = self.strata.entry(stratum).or_insert(Representative {
            weight: 0.0,
            node: SavedLevel::default(),
        });
        kept.weight += self.weight;
        let random = (self.random.word() >> 11) as f64 / (1u64 << 53) as f64;
        random * kept.weight < self.weight
    }
}
