//! The choice of an explorer, and what is said where none can do what is asked.

use std::thread;

use selvedge_core::dpor::{Measure, Sample, Strategy};
use selvedge_core::ltl;
use selvedge_core::states::Algorithm;

use super::{Explorer, OverStates};
use crate::args::{Equivalence, Machine, Model, Plain, Search, name_of};
use crate::problem::Problem;
use crate::temporal;

impl Explorer {
    /// The explorer that the user asked for, else the best one for what was asked. Refuses what
    /// none can do, and says what can be done. If no model was asked for and the default does not
    /// go with the rest, it is the strongest, and the second part tells why.
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
                model.name()
            ))
            .help("add --model sc, or make the variables atomic"));
        }
        if machine.reuse_memory && explorer.keeps_states() {
            let problem = Problem::request("--reuse-memory does not go with searches over states");
            return Err(problem.help("leave out --algorithm, --ltl and --property"));
        }
        explorer.check_bound(search.preemptions.is_some() || search.iterative)?;
        if let Some(jobs) = search.jobs.filter(|&jobs| jobs > 1) {
            explorer.check_jobs(jobs, search)?;
        }
        Ok(explorer)
    }

    /// The explorer that goes by the name asked for, with nothing else considered.
    pub(crate) fn named(model: Model, search: &Search) -> Result<Explorer, Problem> {
        let default = match search.equivalence {
            Equivalence::Mazurkiewicz => "trust",
            Equivalence::ReadsFrom => "tracer",
        };
        let name = search.algorithm.as_deref().unwrap_or(default);
        let fits = |equivalence, models: &[Model]| fits(name, search, model, equivalence, models);
        if let Some(property) = temporal::asked_for(search)? {
            return Explorer::temporal(property, model, search);
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
            return Explorer::priced(measure, model, search);
        }
        if let Some(strategy) = strategy(name, search) {
            fits(Equivalence::Mazurkiewicz, &[Model::Sc])?;
            return Ok(Explorer::Random(Sample {
                strategy,
                seed: search.seed.unwrap_or(0),
                runs: search.runs.unwrap_or(1000),
            }));
        }
        Explorer::refuse_random(search)?;
        match name {
            "trust" => {
                let all = Model::ALL;
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

    /// The search for executions that never end and do not have this property.
    fn temporal(
        property: ltl::Property,
        model: Model,
        search: &Search,
    ) -> Result<Explorer, Problem> {
        Explorer::refuse_random(search)?;
        let name = "temporal logic";
        if model != Model::Sc || search.equivalence != Equivalence::Mazurkiewicz {
            return Err(
                Problem::request(format!("{name} is available under --model sc only"))
                    .help("add --model sc"),
            );
        }
        refuse_executions(name, search)?;
        Ok(Explorer::Temporal(Box::new(ltl::Settings {
            property,
            fair: search.fair,
            switches: search.switches,
            races: true,
            keep_going: search.keep_going,
        })))
    }

    /// The search within a bound on delays or switches.
    fn priced(measure: Measure, model: Model, search: &Search) -> Result<Explorer, Problem> {
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
        Ok(explorer)
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

    /// Several processes go with some searches only.
    fn check_jobs(&self, jobs: u32, search: &Search) -> Result<(), Problem> {
        let refused = |why: String| {
            let what = format!("--jobs {jobs} {why}");
            let help = "available now: trust without --iterative, and csdr, csdr-exact and bfs without --lossless";
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
            Explorer::Trust(_) if self.is_sliced(search) => Ok(()),
            Explorer::Trust(_) => refused("does not go with --iterative".to_owned()),
            Explorer::Temporal(_) => refused(
                "does not go with --ltl and --property: whether a state lies on a cycle is found out depth-first"
                    .to_owned(),
            ),
            Explorer::Tracer(_) => refused(
                "does not go with reads-from: what it postpones in one part of the tree belongs to another"
                    .to_owned(),
            ),
            _ => refused(format!("does not go with {}", self.name())),
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
}

/// Whether an explorer goes with the equivalence that is asked for, and with the model.
fn fits(
    name: &str,
    search: &Search,
    model: Model,
    equivalence: Equivalence,
    models: &[Model],
) -> Result<(), Problem> {
    if search.equivalence != equivalence && search.algorithm.is_some() {
        return Err(Problem::request(format!(
            "--algorithm {name} explores one execution for each {} class",
            name_of(equivalence)
        ))
        .help(format!("add --equivalence {}", name_of(equivalence))));
    }
    if !models.contains(&model) {
        let names: Vec<&str> = models.iter().map(|&model| model.name()).collect();
        return Err(Problem::request(format!(
            "{name} is not available under --model {}",
            model.name()
        ))
        .help(format!("available now: --model {}", names.join(" or "))));
    }
    Ok(())
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
