//! The messages between the command and its workers about work units.

use std::collections::BTreeSet;
use std::time::Duration;

use selvedge_core::report::{Counts, Ending};
pub(crate) use selvedge_core::trust::{Budget, Forecast};
use selvedge_core::{Fact, Failure};
use selvedge_page::Origin;
use selvedge_runtime::Extent;
use serde::{Deserialize, Serialize};

use super::protocol::{FoundBug, HotLoop, Rerun};

/// A unit as it is sent and kept; nothing for the whole search.
pub(crate) type Packed = Option<Vec<u8>>;

/// A unit to be explored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) unit: Packed,
    /// Bugs that need not be found again.
    pub(crate) known: Vec<Failure>,
    /// Facts about the program that the worker was not told before.
    pub(crate) learned: Vec<(Fact, Fact)>,
    /// When to stop.
    pub(crate) budget: Budget,
    /// Into how many units the rest is to be divided then, at most.
    pub(crate) pieces: u64,
    /// Whether the unit has ended its process before.
    pub(crate) rerun: Rerun,
    /// For how long random descents are made first, which tell how large the whole search is. For none if zero.
    pub(crate) forecast: Duration,
}

/// The result of a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sliced {
    /// Why the slice ended.
    pub(crate) ending: Ending,
    /// The counts.
    pub(crate) counts: Counts,
    /// The bugs.
    pub(crate) bugs: Vec<FoundBug>,
    /// The first of them was found in the execution with this number.
    pub(crate) first_bug: Option<u64>,
    /// A bug in an execution beyond the bound.
    pub(crate) beyond: Option<FoundBug>,
    /// Where its executions come from, if that was asked for.
    pub(crate) origins: Vec<Origin>,
    /// Whether a loop was cut.
    pub(crate) unrolled: bool,
    /// The rest, in the order of the search tree.
    pub(crate) rest: Vec<Piece>,
    /// Facts that the slice relied on not to hold.
    pub(crate) relied: Vec<Fact>,
    /// Facts that were found to hold.
    pub(crate) learned: Vec<(Fact, Fact)>,
    /// Whether the search has to start over.
    pub(crate) misjudged: bool,
    /// Further observations.
    pub(crate) noticed: Noticed,
    /// The processor time it took.
    pub(crate) processor: Duration,
    /// The result of descents before the slice, if there were any.
    pub(crate) forecast: Option<Forecast>,
}

impl Sliced {
    /// The program ended the process that explored the unit, after so much.
    pub(crate) fn died(counts: Counts, bug: FoundBug) -> Sliced {
        Sliced {
            ending: Ending::FirstBug,
            counts,
            bugs: vec![bug],
            first_bug: Some(counts.all() + 1),
            beyond: None,
            origins: Vec::new(),
            unrolled: false,
            rest: Vec::new(),
            relied: Vec::new(),
            learned: Vec::new(),
            misjudged: false,
            noticed: Noticed::default(),
            processor: Duration::ZERO,
            forecast: None,
        }
    }
}

/// Observations of the program, in all slices of a worker so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Noticed {
    /// The loop that went round most often, if that was often.
    pub(crate) hot_loop: Option<HotLoop>,
    /// Whether it used weak compare-exchanges.
    pub(crate) weak_exchanges: bool,
    /// Whether it compared pointers to memory that another thread frees.
    pub(crate) freed_pointers: bool,
    /// The largest status that it ended with.
    pub(crate) status: i32,
    /// Whether it started threads.
    #[serde(default)]
    pub(crate) threads: bool,
    /// Bytes that it accesses with different widths at the same time.
    pub(crate) mixed: Option<Extent>,
    /// The most memory that the worker had, in bytes.
    pub(crate) memory: u64,
    /// The lines that were reached, as addresses in the program's file.
    #[serde(default)]
    pub(crate) reached: BTreeSet<u64>,
    /// Whether some worker did not see which lines it reached.
    #[serde(default)]
    pub(crate) unwatched: bool,
}

impl Noticed {
    /// Adds what another worker noticed.
    pub(crate) fn add(&mut self, other: Noticed) {
        let rounds = |hot: &Option<HotLoop>| hot.as_ref().map_or(0, |hot| hot.1);
        if rounds(&other.hot_loop) > rounds(&self.hot_loop) {
            self.hot_loop = other.hot_loop;
        }
        self.weak_exchanges |= other.weak_exchanges;
        self.freed_pointers |= other.freed_pointers;
        self.status = self.status.max(other.status);
        self.threads |= other.threads;
        self.mixed = self.mixed.or(other.mixed);
        self.memory = self.memory.max(other.memory);
        self.reached.extend(other.reached);
        self.unwatched |= other.unwatched;
    }
}

/// A unit that is left, with its part of the search tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) unit: Vec<u8>,
    pub(crate) share: f64,
}
