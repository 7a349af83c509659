//! How large a search tree is, without searching it: random descents.
//!
//! Knuth ("Estimating the Efficiency of Backtrack Programs", 1975) follows one random path and multiplies the
//! numbers of alternatives on it. That is right on average, but with revisits its variance is hopeless: most paths
//! miss the large parts of the tree. Chen ("Heuristic Sampling: A Method for Predicting the Performance of Tree
//! Searching Programs", 1992) follows many paths at once. All nodes of a *stratum* are represented by one of them, which
//! is drawn in proportion to the weights of the nodes and gets the sum of their weights. The sum of the weights
//! of the complete executions still has the number of executions as its expected value.
//!
//! The stratum of a graph is the number of nested revisits that led to it, its number of events, and a hash of how
//! many events each thread has. The first two grow along every path, so representatives are explored in the order of strata: each one to the end of one
//! execution, as a search does, and the alternatives on the way go to their strata.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::branch::Branch;
use super::cursor::{Advanced, Cursor};
use super::level::Choice;
use super::unit::SavedLevel;
use super::{Observer, Report, Search, Settings};
use crate::graph::Graph;
use crate::ids::{Site, ThreadId};
use crate::machine::SpinLoops;
use crate::model::Model;
use crate::random::{Random, mix};
use crate::report::Ending;

/// What one descent, along one representative of each stratum, came to.
#[derive(Clone, Debug, Default)]
pub struct Descent {
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
    /// How many alternatives were found since this was last asked.
    found: u64,
}

/// Nested revisits, events, and one of [`KINDS`] kinds of graphs.
type Stratum = (usize, usize, u64);

/// So many kinds of graphs with as many events are told apart, by how many events each thread has.
const KINDS: u64 = 32;

fn stratum(revisits: usize, graph: &Graph) -> Stratum {
    let threads = (0..graph.threads() as u32).map(ThreadId);
    let lengths = threads.map(|thread| graph.thread(thread).len() as u64);
    let hash = lengths.fold(0, |hash, length| mix(hash ^ length).wrapping_add(1));
    (revisits, graph.len(), hash % KINDS)
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
        found: 0,
    }));
    let ending = loop {
        let mut descent = Descent::default();
        if let ControlFlow::Break(ending) = search.descend(&mut descent) {
            break ending;
        }
        if each(&descent).is_break() {
            break Ending::Stopped;
        }
    };
    search.into_report(ending)
}

impl<C: Model, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    fn descend(&mut self, descent: &mut Descent) -> ControlFlow<Ending> {
        self.cursor.restart();
        self.cursor.represent(1.0, 0);
        self.hopeless = false;
        let mut before = self.counts.executions;
        self.begin()?;
        descent.executions += (self.counts.executions - before) as f64;
        while let Some(((revisits, ..), Representative { weight, node })) =
            self.cursor.first_stratum()
        {
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
        ControlFlow::Continue(())
    }

    /// Keeps the alternatives to the event of `thread` that is added next, besides the one that is being `tried`, if
    /// one is.
    pub(super) fn remember(&mut self, thread: ThreadId, branch: Branch, tried: bool) {
        self.cursor.remember(branch, tried);
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
    /// Puts all alternatives of `branch` into their strata.
    pub(super) fn spread(&mut self, mut branch: Branch) {
        let Some(mut sampler) = self.sampler.take() else {
            return;
        };
        let (depth, events) = (self.depth, self.graph().len());
        loop {
            self.skip_futile(&mut branch);
            let before = branch.clone();
            if self.apply_next(&mut branch).is_none() {
                break;
            }
            let stratum = stratum(sampler.revisits + self.depth, self.graph());
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

    /// What is explored next has this weight and comes from so many nested revisits.
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
