//! Who explores a program.

mod choose;

use selvedge_core::dpor::{Engine, Measure, Sample, Strategy};
use selvedge_core::ltl;
use selvedge_core::states::Algorithm;
use serde::{Deserialize, Serialize};

use crate::args::{Equivalence, Model, Search};
use crate::temporal::{self, Asked, Question};

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
    Priced(Measure),
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
    /// Whether a bound on preemptions goes with it.
    pub(crate) fn takes_bound(&self) -> bool {
        match self {
            Explorer::Trust(_) => true,
            Explorer::Tracer(_) | Explorer::Priced(_) | Explorer::Random(_) => false,
            Explorer::States(_) | Explorer::Temporal(_) => false,
            Explorer::Interleaving(engine) => engine.bounded(),
        }
    }

    /// Whether it leaves nothing out, within its bound if it has one.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Explorer::Trust(_) | Explorer::Tracer(_) | Explorer::Priced(_) => true,
            Explorer::Interleaving(engine) => engine.complete(),
            Explorer::Random(_) => false,
            Explorer::States(_) | Explorer::Temporal(_) => true,
        }
    }

    /// Whether it visits no execution twice.
    pub(crate) fn visits_once(&self) -> bool {
        match self {
            Explorer::Trust(_) | Explorer::Tracer(_) | Explorer::Priced(_) => true,
            Explorer::Interleaving(engine) => engine.visits_once(),
            Explorer::Random(_) | Explorer::States(_) | Explorer::Temporal(_) => false,
        }
    }

    /// Which executions it takes for the same.
    pub(crate) fn equivalence(&self) -> Equivalence {
        Explorer::equivalence_of(self.name())
    }

    /// Which executions the explorer of this name takes for the same.
    pub(crate) fn equivalence_of(name: &str) -> Equivalence {
        match name {
            "tracer" => Equivalence::ReadsFrom,
            _ => Equivalence::Mazurkiewicz,
        }
    }

    /// The names of all of them but the random ones.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let engines = Engine::ALL.into_iter().map(Engine::name);
        ["trust", "tracer"].into_iter().chain(engines)
    }

    /// The memory model.
    pub(crate) fn model(&self) -> Model {
        match *self {
            Explorer::Trust(model) | Explorer::Tracer(model) => model,
            Explorer::Interleaving(_) | Explorer::Priced(_) | Explorer::Random(_) => Model::Sc,
            Explorer::States(_) | Explorer::Temporal(_) => Model::Sc,
        }
    }

    /// What a bound counts.
    pub(crate) fn bounds(&self) -> &'static str {
        match self {
            Explorer::Priced(Measure::Delays) => "delay",
            Explorer::Priced(Measure::Switches) | Explorer::States(_) => "context switch",
            _ => "preemption",
        }
    }

    /// Whether the search is divided into work units.
    pub(crate) fn is_sliced(&self, search: &Search) -> bool {
        matches!(self, Explorer::Trust(_)) && !search.iterative
    }

    /// How many processes search.
    pub(crate) fn jobs(&self) -> u32 {
        match self {
            Explorer::States(states) => states.jobs,
            _ => 1,
        }
    }

    /// What does the same as a search over states but takes the steps of all threads one after the
    /// other, if it does not do so itself.
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

    /// What the program is asked about besides its behaviour.
    pub(crate) fn asked(&self) -> Asked {
        match self {
            Explorer::Temporal(temporal) => Asked::by(&temporal.property),
            _ => Asked::default(),
        }
    }

    /// What is said of a program that it finds nothing wrong with, besides that no execution fails.
    pub(crate) fn property(&self) -> Option<String> {
        match self {
            Explorer::Temporal(temporal) => Some(temporal::verified(temporal)),
            _ => None,
        }
    }

    /// What is asked about executions that never end.
    pub(crate) fn question(&self) -> Option<Question> {
        match self {
            Explorer::Temporal(temporal) => Some(Question::of(temporal)),
            _ => None,
        }
    }

    /// The name that the user knows it by.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Explorer::Trust(_) => "trust",
            Explorer::Tracer(_) => "tracer",
            Explorer::Interleaving(engine) => engine.name(),
            Explorer::Priced(Measure::Delays) => "delay-bounded",
            Explorer::Priced(Measure::Switches) => "switch-bounded",
            Explorer::Random(sample) => match sample.strategy {
                Strategy::Walk => "random",
                Strategy::Pct { .. } => "pct",
                Strategy::Pos => "pos",
            },
            Explorer::States(states) => states.algorithm.name(),
            Explorer::Temporal(_) => "ltl",
        }
    }
}
