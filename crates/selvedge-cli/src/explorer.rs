//! Which explorer serves a request.

use std::thread;

use selvedge_core::dpor::{Engine, Measure, Sample, Strategy};
use selvedge_core::ltl;
use selvedge_core::states::Algorithm;
use serde::{Deserialize, Serialize};

use crate::args::{Equivalence, Machine, Model, Plain, Search, name_of};
use crate::problem::Problem;
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
        let mut explorer = Explorer::named(model, search)?;
        let races = machine.plain == Plain::Race;
        match &mut explorer {
            Explorer::States(states) => states.races = races,
            Explorer::Temporal(temporal) => temporal.races = races,
            _ => {}
        }
        if machine.plain == Plain::Sc && model != Model::Sc {
            return Err(Problem::request(format!(
                "--plain sc does not go with --model {}",
                name_of(model)
            ))
            .help("add --model sc, or make the variables atomic"));
        }
        explorer.check_bound(search.preemptions.is_some() || search.iterative)?;
        if let Some(jobs) = search.jobs.filter(|&jobs| jobs > 1) {
            explorer.check_jobs(jobs)?;
        }
        Ok(explorer)
    }

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
                "a bound on preemptions does not go with {name}"
            ))
            .help("it goes with trust under every model, and with the bpor algorithms under --model sc")),
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
        if let Some(property) = temporal::asked_for(search)? {
            Explorer::refuse_random(search)?;
            let name = "temporal logic";
            if model != Model::Sc || search.equivalence != Equivalence::Mazurkiewicz {
                return Err(
                    Problem::request(format!("{name} is available under --model sc only"))
                        .help("add --model sc"),
                );
            }
            refuse_executions(name, search)?;
            return Ok(Explorer::Temporal(Box::new(ltl::Settings {
                property,
                fair: search.fair,
                switches: search.switches,
                races: true,
                keep_going: search.keep_going,
            })));
        }
        if search.fair {
            return Err(
                Problem::request("--fair goes with --ltl and --property only")
                    .help("add --ltl FORMULA, or --property starvation"),
            );
        }
        if let Ok(algorithm) = name.parse::<Algorithm>() {
            Explorer::refuse_random(search)?;
            fits(Equivalence::Mazurkiewicz, &[Model::Sc])?;
            return Explorer::over_states(algorithm, search);
        }
        if search.lossless {
            return Err(
                Problem::request("--lossless goes with searches over states only")
                    .help("add --algorithm csdr, csdr-exact, bfs or dfs"),
            );
        }
        let measure = match (search.delays, search.switches) {
            (Some(_), _) => Some(Measure::Delays),
            (None, Some(_)) => Some(Measure::Switches),
            (None, None) => None,
        };
        if let Some(measure) = measure {
            let explorer = Explorer::Priced(measure);
            if search.algorithm.is_some() {
                return Err(Problem::request(format!(
                    "{} has an algorithm of its own",
                    explorer.name()
                ))
                .help("leave --algorithm out"));
            }
            if model != Model::Sc || search.equivalence != Equivalence::Mazurkiewicz {
                let option = match measure {
                    Measure::Delays => "--delays",
                    Measure::Switches => "--switches",
                };
                return Err(Problem::request(format!(
                    "{option} is available under --model sc and --equivalence mazurkiewicz only"
                ))
                .help("add --model sc"));
            }
            return Ok(explorer);
        }
        let sample = strategy(name, search);
        if sample.is_none() {
            Explorer::refuse_random(search)?;
        }
        if let Some(strategy) = sample {
            fits(Equivalence::Mazurkiewicz, &[Model::Sc])?;
            return Ok(Explorer::Random(Sample {
                strategy,
                seed: search.seed.unwrap_or(0),
                runs: search.runs.unwrap_or(1000),
            }));
        }
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
                    let states = Algorithm::ALL.into_iter().map(Algorithm::name);
                    let all: Vec<&str> = Explorer::names().chain(states).chain(RANDOM).collect();
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

    /// A search over states, if what it is asked for makes sense there.
    fn over_states(algorithm: Algorithm, search: &Search) -> Result<Explorer, Problem> {
        if search.switches.is_some() && !algorithm.counts_switches() {
            return Err(Problem::request(format!(
                "--algorithm {algorithm} does not count context switches"
            ))
            .help("add --algorithm csdr-exact"));
        }
        refuse_executions(algorithm.name(), search)?;
        let together = algorithm != Algorithm::Dfs && !search.lossless;
        let processors = || thread::available_parallelism().map_or(1, usize::from) as u32;
        Ok(Explorer::States(OverStates {
            algorithm,
            lossless: search.lossless,
            races: true,
            jobs: match search.jobs {
                Some(jobs) => jobs,
                None if together => processors(),
                None => 1,
            },
        }))
    }

    /// Several processes go with some searches only.
    fn check_jobs(&self, jobs: u32) -> Result<(), Problem> {
        let refused = |why: String| {
            let what = format!("--jobs {jobs} {why}");
            let help = "available now: csdr, csdr-exact and bfs, without --lossless";
            Err(Problem::request(what).help(help))
        };
        match self {
            Explorer::States(states) if states.algorithm == Algorithm::Dfs => {
                refused("does not go with dfs, which does one thing after the other".to_owned())
            }
            Explorer::States(states) if states.lossless => {
                refused("does not go with --lossless: processes tell states apart by fingerprints".to_owned())
            }
            Explorer::States(_) => Ok(()),
            Explorer::Temporal(_) => refused(
                "does not go with --ltl and --property: whether a state lies on a cycle is found out depth-first"
                    .to_owned(),
            ),
            _ => refused(format!("is not available yet with {}", self.name())),
        }
    }

    /// How many processes search.
    pub(crate) fn jobs(&self) -> u32 {
        match self {
            Explorer::States(states) => states.jobs,
            _ => 1,
        }
    }

    /// What does the same as a search over states but takes the steps of all threads one after the other, if it does not
    /// do so itself.
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

    /// Options of random searches make no sense elsewhere.
    fn refuse_random(search: &Search) -> Result<(), Problem> {
        let given = [
            ("--runs", search.runs.is_some()),
            ("--seed", search.seed.is_some()),
            ("--depth", search.depth.is_some()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => Err(Problem::request(format!(
                "{option} goes with random searches only"
            ))
            .help("add --algorithm random, pct or pos")),
            None => Ok(()),
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

/// The names of the random searches.
const RANDOM: [&str; 3] = ["random", "pct", "pos"];

/// The random search of this name.
fn strategy(name: &str, search: &Search) -> Option<Strategy> {
    match name {
        "random" => Some(Strategy::Walk),
        "pct" => Some(Strategy::Pct {
            depth: search.depth.unwrap_or(3),
        }),
        "pos" => Some(Strategy::Pos),
        _ => None,
    }
}

/// Limits on executions make no sense where there are only states.
fn refuse_executions(name: &str, search: &Search) -> Result<(), Problem> {
    if search.max_executions.is_none() && search.delays.is_none() {
        return Ok(());
    }
    Err(
        Problem::request(format!("{name} knows states, not executions"))
            .help("leave --max-executions and --delays out; --timeout works"),
    )
}
