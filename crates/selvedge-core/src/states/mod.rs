//! Searches over stored states, which also serve programs that never end.
//!
//! A [`StateMachine`] can be taken back to a state it was in before, so a search need not know executions, only states
//! and the [`StateStep`]s between them. [`search`] looks for reachable bugs; [`States`] gives each state a number and
//! goes back to any of them, for searches that need more.
//!
//! | algorithm | order | counterexample |
//! |---|---|---|
//! | `csdr` | fewest context switches first, one thread remembered per state | few switches |
//! | `csdr-exact` | the same, every thread remembered | the fewest switches there are |
//! | `bfs` | fewest steps first | the fewest steps there are |
//! | `dfs` | newest state first | whatever comes first |
//!
//! All of them meet every state, unless `csdr` is given a bound.

mod chain;
mod chunks;
mod contest;
mod depth;
mod hash;
mod index;
mod kept;
mod layers;
mod look;
mod mail;
mod parts;
mod peers;
mod queue;
mod replay;
mod search;
mod share;
mod space;
mod together;
mod visited;
mod ways;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::report::{Observer, Report};
use crate::saved::StateMachine;
pub use kept::{Reached, StateId, States};
pub use look::wrong;
pub(crate) use look::{Look, look};
pub use peers::{Alone, Peers};
pub use replay::replay;
pub use space::{Identity, StateStep};

use depth::Depth;
use layers::Layers;
use search::Search;

/// The searches by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// Context-switch-directed reachability.
    Csdr,
    /// The same, exactly.
    CsdrExact,
    /// Breadth-first reachability.
    Bfs,
    /// Depth-first reachability.
    Dfs,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 4] = [
        Algorithm::Csdr,
        Algorithm::CsdrExact,
        Algorithm::Bfs,
        Algorithm::Dfs,
    ];

    /// The name users know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Csdr => "csdr",
            Algorithm::CsdrExact => "csdr-exact",
            Algorithm::Bfs => "bfs",
            Algorithm::Dfs => "dfs",
        }
    }

    /// Whether it counts context switches, so that they can be bounded.
    pub fn counts_switches(self) -> bool {
        matches!(self, Algorithm::Csdr | Algorithm::CsdrExact)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Algorithm, String> {
        let mut all = Algorithm::ALL.into_iter();
        all.find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| format!("there is no search over states named {name}"))
    }
}

/// The settings of a search.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// In which order.
    pub algorithm: Algorithm,
    /// How states are told apart.
    pub identity: Identity,
    /// Only what can be reached with at most this many context switches. For algorithms that count them.
    pub switches: Option<u32>,
    /// Whether two threads that are about to access the same memory, not both atomically, are a bug.
    pub races: bool,
    /// Whether every step compares the whole state with what the machine says has changed: a test
    /// of the machine.
    pub audit: bool,
    /// Whether the search goes on after a bug. What comes after a state with a bug is not looked at.
    pub keep_going: bool,
}

/// The identity of the state that `machine` is in, part by part.
pub fn identity<M: StateMachine>(machine: &mut M) -> Vec<Vec<u8>> {
    let parts = 0..machine.parts();
    let mut parts: Vec<Vec<u8>> = parts
        .map(|part| {
            let mut bytes = Vec::new();
            machine.identify(part, &mut bytes);
            bytes
        })
        .collect();
    while parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

/// Looks at every state of `machine`, sequentially consistent, until one is found with which
/// something is wrong.
pub fn search<M: StateMachine>(
    machine: &mut M,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> Report {
    search_with(machine, settings, Alone, observer)
}

/// The same together with peers: each calls this with a machine of its own. What is found
/// is told by the one with rank 0; what it reports counts for all, the reports of the others do
/// not. Nodes are numbered as if one searched alone, so the counterexample is the same. Depth-first
/// search and exact comparison of states are not for several.
pub fn search_with<M: StateMachine>(
    machine: &mut M,
    settings: Settings,
    peers: impl Peers,
    observer: &mut impl Observer<M>,
) -> Report {
    let alone = settings.algorithm == Algorithm::Dfs || settings.identity == Identity::Exact;
    assert!(
        !alone || peers.count() == 1,
        "this search is not for several"
    );
    let search = Search::new(machine, settings, observer);
    match settings.algorithm {
        Algorithm::Dfs => Depth::new(search).run(),
        _ => Layers::new(search, peers).run(),
    }
}
