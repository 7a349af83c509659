//! The messages between the command and its workers about work units.

use std::time::Duration;

use selvedge_core::report::{Counts, Ending};
pub(crate) use selvedge_core::trust::Budget;
use selvedge_core::{Fact, Failure};
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
    /// What was found to hold of the program, as far as the worker was not told before.
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

/// What random descents say about the number of executions of the whole search.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Forecast {
    /// The mean of their estimates,
    pub(crate) mean: f64,
    /// and the standard deviation of that.
    pub(crate) deviation: f64,
}

/// What became of a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sliced {
    /// Why the slice ended.
    pub(crate) ending: Ending,
    /// What it counted.
    pub(crate) counts: Counts,
    /// What it found.
    pub(crate) bugs: Vec<FoundBug>,
    /// The first of them was found in the execution with this number.
    pub(crate) first_bug: Option<u64>,
    /// A bug in an execution beyond the bound.
    pub(crate) beyond: Option<FoundBug>,
    /// Whether a loop was cut.
    pub(crate) unrolled: bool,
    /// What is left, in the order of the search tree.
    pub(crate) rest: Vec<Piece>,
    /// What was taken not to hold of the program.
    pub(crate) relied: Vec<Fact>,
    /// What was found to hold.
    pub(crate) learned: Vec<(Fact, Fact)>,
    /// Whether the search has to start over.
    pub(crate) misjudged: bool,
    /// What was noticed besides.
    pub(crate) noticed: Noticed,
    /// The processor time it took.
    pub(crate) processor: Duration,
    /// What descents before the slice came to, if there were any.
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

/// What the program was seen to do, in all slices of a worker so far.
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
    /// Bytes that it accesses with different widths at the same time.
    pub(crate) mixed: Option<Extent>,
    /// The most memory that the worker had, in bytes.
    pub(crate) memory: u64,
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
        self.mixed = self.mixed.or(other.mixed);
        self.memory = self.memory.max(other.memory);
    }
}

/// A unit that is left, with its part of the search tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) unit: Vec<u8>,
    pub(crate) share: f64,
}
