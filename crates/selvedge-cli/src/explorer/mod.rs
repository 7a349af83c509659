//! The explorers of programs and their settings.

mod choose;
mod table;

use selvedge_core::dpor::{Engine, Measure, Sample, Strategy};
use selvedge_core::ltl;
use selvedge_core::states::Algorithm;
use serde::{Deserialize, Serialize};

use crate::args::{Model, SearchOptions};
use crate::temporal::{self, Asked, Question};
pub(crate) use table::{Descriptor, ExplorerKind, TakesBound};

/// An explorer, with the memory model it explores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Explorer {
    /// Execution graphs, one for each class of program order, reads-from and coherence.
    Trust(Model),
    /// Execution graphs, one for each class of program order and reads-from.
    Tracer(Model),
    /// Interleavings, sequentially consistent.
    Interleaving(Engine),
    /// The same, bounded by delays or switches.
    CostBounded(Measure),
    /// The same, some at random.
    Random(Sample),
    /// States that are kept, sequentially consistent.
    States(OverStates),
    /// The same with a property of executions that never end.
    Temporal(Box<ltl::Settings>),
}

/// A search over states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverStates {
    /// In which order.
    pub(crate) algorithm: Algorithm,
    /// Whether states are compared in full.
    pub(crate) lossless: bool,
    /// Whether data races are looked for.
    pub(crate) races: bool,
    /// How many processes search.
    pub(crate) jobs: u32,
}

impl Explorer {
    /// Its row of the table.
    pub(crate) fn descriptor(&self) -> &'static Descriptor {
        let kind = match self {
            Explorer::Trust(_) => ExplorerKind::Trust,
            Explorer::Tracer(_) => ExplorerKind::Tracer,
            Explorer::Interleaving(engine) => ExplorerKind::Interleaving(*engine),
            Explorer::CostBounded(measure) => ExplorerKind::CostBounded(*measure),
            Explorer::Random(sample) => match sample.strategy {
                Strategy::Walk => ExplorerKind::Walk,
                Strategy::Pct { .. } => ExplorerKind::Pct,
                Strategy::Pos => ExplorerKind::Pos,
            },
            Explorer::States(states) => ExplorerKind::States(states.algorithm),
            Explorer::Temporal(_) => ExplorerKind::Temporal,
        };
        kind.descriptor()
    }

    /// The memory model.
    pub(crate) fn model(&self) -> Model {
        match *self {
            Explorer::Trust(model) | Explorer::Tracer(model) => model,
            _ => Model::Sc,
        }
    }

    /// Whether the search is one that is divided into work units, so that it can be kept and sent.
    pub(crate) fn is_sliced(&self, search: &SearchOptions) -> bool {
        matches!(self, Explorer::Trust(_)) && !search.iterative
    }

    /// How many processes search.
    pub(crate) fn jobs(&self) -> u32 {
        match self {
            Explorer::States(states) => states.jobs,
            _ => 1,
        }
    }

    /// The explorer that does the same as this search over states but takes the steps of all
    /// threads one after the other; `None` if this one does so itself.
    pub(crate) fn one_by_one(&self) -> Option<Explorer> {
        let (algorithm, lossless, races) = match self {
            Explorer::States(over) if over.jobs > 1 => (over.algorithm, false, over.races),
            Explorer::Temporal(temporal) => (Algorithm::Bfs, true, temporal.races),
            _ => return None,
        };
        Some(Explorer::States(OverStates {
            algorithm,
            lossless,
            races,
            jobs: 1,
        }))
    }

    /// Whether the program is run as one whose states are kept.
    pub(crate) fn keeps_states(&self) -> bool {
        matches!(self, Explorer::States(_) | Explorer::Temporal(_))
    }

    /// The questions to the program besides its behaviour.
    pub(crate) fn asked(&self) -> Asked {
        match self {
            Explorer::Temporal(temporal) => Asked::by(&temporal.property),
            _ => Asked::default(),
        }
    }

    /// The property that is reported for a program without bugs, besides that no execution fails.
    pub(crate) fn property(&self) -> Option<String> {
        match self {
            Explorer::Temporal(temporal) => Some(temporal::verified(temporal)),
            _ => None,
        }
    }

    /// The question about executions that never end.
    pub(crate) fn question(&self) -> Option<Question> {
        match self {
            Explorer::Temporal(temporal) => Some(Question::of(temporal)),
            _ => None,
        }
    }

    /// The name that the user knows it by.
    pub(crate) fn name(&self) -> &'static str {
        self.descriptor().name
    }
}
