//! Which explorer serves a request.

use selvedge_core::dpor::Engine;
use serde::{Deserialize, Serialize};

use crate::args::{Equivalence, Machine, Model, Plain, Search, name_of};
use crate::problem::Problem;

/// An explorer, with the memory model it explores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Explorer {
    /// Execution graphs, one for each class of program order, reads-from and coherence.
    Trust(Model),
    /// Execution graphs, one for each class of program order and reads-from.
    Tracer(Model),
    /// Interleavings, sequentially consistent.
    Interleaving(Engine),
}

impl Explorer {
    /// The explorer that the user asked for, else the best one for what was asked. Refuses what
    /// none can do, and says what can be done. If no model was asked for and the default does not go with
    /// the rest, it is the strongest, and the second part tells why.
    pub(crate) fn choose(
        search: &Search,
        machine: &Machine,
    ) -> Result<(Explorer, Option<String>), Problem> {
        if let Some(model) = search.model {
            return Ok((Explorer::under(model, search, machine)?, None));
        }
        let why = match Explorer::under(Model::Rc11, search, machine) {
            Ok(explorer) => return Ok((explorer, None)),
            Err(why) => why,
        };
        let explorer = Explorer::under(Model::Sc, search, machine)?;
        // The name of that option says it already.
        let obvious = machine.plain == Plain::Sc;
        let note = format!("{}; this check is under sc", why.message());
        Ok((explorer, Some(note).filter(|_| !obvious)))
    }

    fn under(model: Model, search: &Search, machine: &Machine) -> Result<Explorer, Problem> {
        let explorer = Explorer::named(model, search)?;
        if machine.plain == Plain::Sc && model != Model::Sc {
            return Err(Problem::request(format!(
                "--plain sc does not go with --model {}",
                name_of(model)
            ))
            .help("add --model sc, or make the variables atomic"));
        }
        explorer.check_bound(search.preemptions.is_some() || search.iterative)?;
        if search.jobs > 1 {
            return Err(
                Problem::request(format!("--jobs {} is not available yet", search.jobs))
                    .help("available now: one worker, which is the default"),
            );
        }
        Ok(explorer)
    }

    /// Whether a bound on preemptions goes with it.
    pub(crate) fn takes_bound(&self) -> bool {
        match self {
            Explorer::Trust(model) => *model == Model::Sc,
            Explorer::Tracer(_) => false,
            Explorer::Interleaving(engine) => engine.bounded(),
        }
    }

    /// Whether it leaves nothing out, within its bound if it has one.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Explorer::Trust(_) | Explorer::Tracer(_) => true,
            Explorer::Interleaving(engine) => engine.complete(),
        }
    }

    /// Whether it visits no execution twice.
    pub(crate) fn visits_once(&self) -> bool {
        match self {
            Explorer::Trust(_) | Explorer::Tracer(_) => true,
            Explorer::Interleaving(engine) => engine.visits_once(),
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

    /// The names of all of them.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let engines = Engine::ALL.into_iter().map(Engine::name);
        ["trust", "tracer"].into_iter().chain(engines)
    }

    /// Bounds go with some explorers only, and some need one.
    fn check_bound(&self, bounded: bool) -> Result<(), Problem> {
        let name = self.name();
        let takes_bound = self.takes_bound();
        let needs_bound = takes_bound && matches!(self, Explorer::Interleaving(_));
        match bounded {
            false if needs_bound => Err(Problem::request(format!(
                "--algorithm {name} needs a bound"
            ))
            .help("add --preemptions K or --iterative")),
            true if !takes_bound => Err(Problem::request(format!(
                "a bound on preemptions under --model {} is not available yet with {name}",
                name_of(self.model())
            ))
            .help("available now: trust and the bpor algorithms, under --model sc")),
            _ => Ok(()),
        }
    }

    /// The explorer that goes by the name asked for, with nothing else considered.
    pub(crate) fn named(model: Model, search: &Search) -> Result<Explorer, Problem> {
        let default = match search.equivalence {
            Equivalence::Mazurkiewicz => "trust",
            Equivalence::ReadsFrom => "tracer",
        };
        let name = search.algorithm.as_deref().unwrap_or(default);
        let fits = |equivalence: Equivalence, models: &[Model]| {
            if search.equivalence != equivalence && search.algorithm.is_some() {
                return Err(Problem::request(format!(
                    "--algorithm {name} explores one execution for each {} class",
                    name_of(equivalence)
                ))
                .help(format!("add --equivalence {}", name_of(equivalence))));
            }
            if !models.contains(&model) {
                let names: Vec<String> = models.iter().map(|&model| name_of(model)).collect();
                return Err(Problem::request(format!(
                    "{name} is not available under --model {}",
                    name_of(model)
                ))
                .help(format!("available now: --model {}", names.join(" or "))));
            }
            Ok(())
        };
        match name {
            "trust" => {
                let all = [Model::Sc, Model::Tso, Model::Ra, Model::Rc11];
                fits(Equivalence::Mazurkiewicz, &all)?;
                Ok(Explorer::Trust(model))
            }
            "tracer" => {
                fits(Equivalence::ReadsFrom, &[Model::Sc, Model::Ra])?;
                Ok(Explorer::Tracer(model))
            }
            _ => match name.parse() {
                Ok(engine) => {
                    fits(Equivalence::Mazurkiewicz, &[Model::Sc])?;
                    Ok(Explorer::Interleaving(engine))
                }
                Err(_) => {
                    let all: Vec<&str> = Explorer::names().collect();
                    Err(
                        Problem::request(format!("there is no algorithm named {name}"))
                            .help(format!("available now: {}", all.join(", "))),
                    )
                }
            },
        }
    }

    /// The memory model.
    pub(crate) fn model(&self) -> Model {
        match *self {
            Explorer::Trust(model) | Explorer::Tracer(model) => model,
            Explorer::Interleaving(_) => Model::Sc,
        }
    }

    /// The name that the user knows it by.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Explorer::Trust(_) => "trust",
            Explorer::Tracer(_) => "tracer",
            Explorer::Interleaving(engine) => engine.name(),
        }
    }
}
