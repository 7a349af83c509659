//! The table of explorers: all that help, `compare`, the checks of options and the reports know about
//! each of them.

use clap::builder::PossibleValue;
use selvedge_core::dpor::{Engine, Measure};
use selvedge_core::states::Algorithm;

use crate::args::{Equivalence, Model};

/// The explorers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExplorerKind {
    Trust,
    Tracer,
    Interleaving(Engine),
    Walk,
    Pct,
    Pos,
    States(Algorithm),
    CostBounded(Measure),
    Temporal,
}

/// Whether an explorer takes a bound on preemptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakesBound {
    No,
    Optional,
    Required,
}

/// The description of an explorer.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) kind: ExplorerKind,
    pub(crate) name: &'static str,
    /// A line of help.
    about: &'static str,
    /// The executions that it takes for the same.
    pub(crate) equivalence: Equivalence,
    /// The memory models that it explores.
    pub(crate) models: &'static [Model],
    pub(crate) preemptions: TakesBound,
    /// The cost that its bound counts.
    pub(crate) bounds: &'static str,
    /// Whether it finds every class, within its bound if it has one.
    pub(crate) complete: bool,
    /// Whether it visits no class twice.
    pub(crate) visits_once: bool,
    /// Whether `--algorithm` selects it. The others are selected by an option of their own.
    named: bool,
    /// Whether `compare` runs it if nothing else is asked for and it is complete.
    pub(crate) compared: bool,
    /// Why it does not support `--jobs`, if it does not.
    pub(crate) sequential: Option<&'static str>,
    /// Whether the machine parks threads that repeat a failed attempt. Random schedules would be wasted by
    /// that.
    pub(crate) skips_retries: bool,
    /// Whether the machine recognises threads that take a mutex, look, and give it back again and again.
    pub(crate) watches_locks: bool,
}

/// The description that most explorers have in common.
const USUAL: Descriptor = Descriptor {
    kind: ExplorerKind::Trust,
    name: "",
    about: "",
    equivalence: Equivalence::Mazurkiewicz,
    models: &[Model::Sc],
    preemptions: TakesBound::No,
    bounds: "preemption",
    complete: true,
    visits_once: true,
    named: true,
    compared: false,
    sequential: Some("its search is not divided into work units"),
    skips_retries: true,
    watches_locks: false,
};

const fn interleaving(engine: Engine, about: &'static str) -> Descriptor {
    Descriptor {
        kind: ExplorerKind::Interleaving(engine),
        name: engine.name(),
        about,
        preemptions: match engine.bounded() {
            true => TakesBound::Required,
            false => TakesBound::No,
        },
        complete: engine.complete(),
        visits_once: engine.visits_once(),
        compared: true,
        ..USUAL
    }
}

const fn states(algorithm: Algorithm, about: &'static str) -> Descriptor {
    Descriptor {
        kind: ExplorerKind::States(algorithm),
        name: algorithm.name(),
        about,
        bounds: "context switch",
        visits_once: false,
        sequential: match algorithm {
            Algorithm::Dfs => Some("it is sequential"),
            _ => None,
        },
        ..USUAL
    }
}

const fn random(kind: ExplorerKind, name: &'static str, about: &'static str) -> Descriptor {
    Descriptor {
        kind,
        name,
        about,
        complete: false,
        visits_once: false,
        skips_retries: false,
        ..USUAL
    }
}

const fn unnamed(kind: ExplorerKind, name: &'static str, bounds: &'static str) -> Descriptor {
    Descriptor {
        kind,
        name,
        bounds,
        named: false,
        ..USUAL
    }
}

/// All explorers.
static EXPLORERS: [Descriptor; 23] = [
    Descriptor {
        kind: ExplorerKind::Trust,
        name: "trust",
        about: "Execution graphs, each class once (TruSt)",
        models: &Model::ALL,
        preemptions: TakesBound::Optional,
        compared: true,
        sequential: None,
        watches_locks: true,
        ..USUAL
    },
    Descriptor {
        kind: ExplorerKind::Tracer,
        name: "tracer",
        about: "Traces up to reads-from (TRACER)",
        equivalence: Equivalence::ReadsFrom,
        models: &[Model::Sc, Model::Ra],
        compared: true,
        sequential: Some("writes that it postpones in one part of the tree belong to another"),
        ..USUAL
    },
    interleaving(Engine::SourceDpor, "Source sets and sleep sets"),
    interleaving(Engine::ClassicDpor, "Persistent sets, no sleep sets"),
    interleaving(Engine::NidhuggDpor, "Persistent sets and sleep sets"),
    interleaving(Engine::OptimalDpor, "Source sets and wakeup trees"),
    interleaving(
        Engine::NaiveBpor,
        "Bounded: source-dpor, cut at the bound; loses executions",
    ),
    interleaving(Engine::Bpor, "Bounded: conservative branches"),
    interleaving(
        Engine::NidhuggBpor,
        "Bounded: bpor with sleep sets, as printed; loses executions",
    ),
    interleaving(
        Engine::SourceBpor,
        "Bounded: bpor with source sets, as printed; loses executions",
    ),
    interleaving(
        Engine::LazyBpor,
        "Bounded by the least number of preemptions of a class",
    ),
    interleaving(
        Engine::LazyBpor1,
        "Bounded by a first approximation of it; loses executions",
    ),
    interleaving(Engine::LazyBpor2, "Bounded by a second approximation of it"),
    states(
        Algorithm::Csdr,
        "All states, in the order of their context switches",
    ),
    states(
        Algorithm::CsdrExact,
        "The same, with the exact number of context switches",
    ),
    states(Algorithm::Bfs, "All states, breadth first"),
    states(Algorithm::Dfs, "All states, depth first"),
    random(ExplorerKind::Walk, "random", "Random walks"),
    random(
        ExplorerKind::Pct,
        "pct",
        "Random priorities with a few random changes (PCT)",
    ),
    random(
        ExplorerKind::Pos,
        "pos",
        "Random priorities of events, drawn anew after races (POS)",
    ),
    unnamed(
        ExplorerKind::CostBounded(Measure::Delays),
        "delay-bounded",
        "delay",
    ),
    unnamed(
        ExplorerKind::CostBounded(Measure::Switches),
        "switch-bounded",
        "context switch",
    ),
    Descriptor {
        visits_once: false,
        sequential: Some("it decides depth-first whether a state lies on a cycle"),
        ..unnamed(ExplorerKind::Temporal, "ltl", "preemption")
    },
];

impl ExplorerKind {
    /// Its description.
    pub(crate) fn descriptor(self) -> &'static Descriptor {
        let mut all = EXPLORERS.iter();
        all.find(|descriptor| descriptor.kind == self)
            .expect("every explorer is in the table")
    }
}

impl Descriptor {
    /// The explorers that `--algorithm` selects.
    pub(crate) fn all_named() -> impl Iterator<Item = &'static Descriptor> {
        EXPLORERS.iter().filter(|descriptor| descriptor.named)
    }

    /// The one that `--algorithm NAME` selects.
    pub(crate) fn of(name: &str) -> Option<&'static Descriptor> {
        Descriptor::all_named().find(|descriptor| descriptor.name == name)
    }

    /// The value of `--algorithm`, with its line of help.
    pub(crate) fn value(&self) -> PossibleValue {
        PossibleValue::new(self.name).help(self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_explorer_is_in_the_table_once() {
        let engines = Engine::ALL.map(ExplorerKind::Interleaving);
        let states = Algorithm::ALL.map(ExplorerKind::States);
        for kind in engines.into_iter().chain(states) {
            assert_eq!(kind.descriptor().kind, kind);
        }
        for (n, one) in EXPLORERS.iter().enumerate() {
            let mut others = EXPLORERS[n + 1..].iter();
            assert!(others.all(|other| one.kind != other.kind && one.name != other.name));
        }
    }
}
