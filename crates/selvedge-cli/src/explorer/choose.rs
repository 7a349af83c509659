//! Chooses the explorer that serves a request, or explains why none does.

use std::thread;

use selvedge_core::dpor::{Measure, Sample, Strategy};
use selvedge_core::ltl;
use selvedge_core::states::Algorithm;

use super::{Descriptor, Explorer, ExplorerKind, OverStates, TakesBound};
use crate::args::{Equivalence, Model, Plain, ProgramOptions, SearchOptions, name_of};
use crate::problem::Problem;
use crate::temporal;

impl Explorer {
    /// The explorer that the user asked for, else the best one for what was asked. Refuses what
    /// none can do, and says what can be done. If no model was asked for and the default does not
    /// go with the rest, it is the strongest, and the second part tells why.
    pub(crate) fn choose(
        search: &SearchOptions,
        machine: &ProgramOptions,
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

    fn under(
        model: Model,
        search: &SearchOptions,
        machine: &ProgramOptions,
    ) -> Result<Explorer, Problem> {
        let mut explorer = Explorer::named(model, search)?;
        let races = machine.plain == Plain::Race;
        match &mut explorer {
            Explorer::States(states) => states.races = races,
            Explorer::Temporal(temporal) => temporal.races = races,
            _ => {}
        }
        if machine.plain == Plain::Sc && model != Model::Sc {
            return Err(Problem::request(format!(
                "--plain sc cannot be combined with --model {}",
                model.name()
            ))
            .help("add --model sc, or make the variables atomic"));
        }
        if machine.reuse_memory && explorer.keeps_states() {
            let problem =
                Problem::request("--reuse-memory cannot be combined with searches over states");
            return Err(problem.help("leave out --algorithm, --ltl and --property"));
        }
        explorer.check_bound(search.preemptions.is_some() || search.iterative)?;
        if let Some(jobs) = search.jobs.filter(|&jobs| jobs > 1) {
            explorer.check_jobs(jobs)?;
        }
        Ok(explorer)
    }

    /// The explorer that goes by the name asked for, with nothing else considered.
    pub(crate) fn named(model: Model, search: &SearchOptions) -> Result<Explorer, Problem> {
        let default = match search.equivalence {
            Equivalence::Mazurkiewicz => "trust",
            Equivalence::ReadsFrom => "tracer",
        };
        let name = search.algorithm.as_deref().unwrap_or(default);
        if let Some(property) = temporal::asked_for(search)? {
            return Explorer::temporal(property, model, search);
        }
        if search.fair {
            return Err(Problem::request("--fair needs --ltl or --property")
                .help("add --ltl FORMULA, or --property starvation"));
        }
        let Some(descriptor) = Descriptor::of(name) else {
            let all: Vec<&str> = Descriptor::all_named().map(|one| one.name).collect();
            return Err(
                Problem::request(format!("there is no algorithm named {name}"))
                    .help(format!("available now: {}", all.join(", "))),
            );
        };
        let over_states = matches!(descriptor.kind, ExplorerKind::States(_));
        if search.lossless && !over_states {
            return Err(Problem::request("--lossless needs a search over states")
                .help("add --algorithm csdr, csdr-exact, bfs or dfs"));
        }
        let measure = match (search.delays, search.switches) {
            (Some(_), _) => Some(Measure::Delays),
            (None, Some(_)) if !over_states => Some(Measure::Switches),
            _ => None,
        };
        if let Some(measure) = measure {
            return Explorer::cost_bounded(measure, model, search);
        }
        let strategy = strategy(descriptor.kind, search);
        if strategy.is_none() {
            Explorer::refuse_random(search)?;
        }
        fits(descriptor, search, model)?;
        Ok(match descriptor.kind {
            ExplorerKind::Trust => Explorer::Trust(model),
            ExplorerKind::Tracer => Explorer::Tracer(model),
            ExplorerKind::Interleaving(engine) => Explorer::Interleaving(engine),
            ExplorerKind::States(algorithm) => return Explorer::over_states(algorithm, search),
            _ => Explorer::Random(Sample {
                strategy: strategy.unwrap_or(Strategy::Walk),
                seed: search.seed.unwrap_or(0),
                runs: search.runs.unwrap_or(1000),
            }),
        })
    }

    /// The search for executions that never end and do not have this property.
    fn temporal(
        property: ltl::Property,
        model: Model,
        search: &SearchOptions,
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
    fn cost_bounded(
        measure: Measure,
        model: Model,
        search: &SearchOptions,
    ) -> Result<Explorer, Problem> {
        let explorer = Explorer::CostBounded(measure);
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
    fn over_states(algorithm: Algorithm, search: &SearchOptions) -> Result<Explorer, Problem> {
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
        let Descriptor {
            name, preemptions, ..
        } = self.descriptor();
        match bounded {
            false if *preemptions == TakesBound::Required => Err(Problem::request(format!(
                "--algorithm {name} needs a bound"
            ))
            .help("add --preemptions K or --iterative")),
            true if *preemptions == TakesBound::No => Err(Problem::request(format!(
                "a bound on preemptions cannot be combined with {name}"
            ))
            .help("trust supports it under every model, and the bpor algorithms under --model sc")),
            _ => Ok(()),
        }
    }

    /// Several processes go with some searches only.
    pub(crate) fn check_jobs(&self, jobs: u32) -> Result<(), Problem> {
        let refused = |what: &str| {
            let what = format!("--jobs {jobs} cannot be combined with {what}");
            let help = "available now: trust, and csdr, csdr-exact and bfs without --lossless";
            Err(Problem::request(what).help(help))
        };
        let Descriptor {
            name, sequential, ..
        } = self.descriptor();
        if let Some(why) = sequential {
            return refused(&format!("{name}: {why}"));
        }
        match self {
            Explorer::States(states) if states.lossless => {
                refused("--lossless: processes tell states apart by fingerprints")
            }
            _ => Ok(()),
        }
    }

    /// Options of random searches make no sense elsewhere.
    fn refuse_random(search: &SearchOptions) -> Result<(), Problem> {
        let given = [
            ("--runs", search.runs.is_some()),
            ("--seed", search.seed.is_some()),
            ("--depth", search.depth.is_some()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => Err(Problem::request(format!("{option} needs a random search"))
                .help("add --algorithm random, pct or pos")),
            None => Ok(()),
        }
    }
}

/// Checks that an explorer supports the requested equivalence and model.
fn fits(explorer: &Descriptor, search: &SearchOptions, model: Model) -> Result<(), Problem> {
    let Descriptor {
        name,
        equivalence,
        models,
        ..
    } = explorer;
    if search.equivalence != *equivalence && search.algorithm.is_some() {
        return Err(Problem::request(format!(
            "--algorithm {name} explores one execution for each {} class",
            name_of(*equivalence)
        ))
        .help(format!("add --equivalence {}", name_of(*equivalence))));
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

/// How a random search picks schedules; `None` for other explorers.
fn strategy(kind: ExplorerKind, search: &SearchOptions) -> Option<Strategy> {
    match kind {
        ExplorerKind::Walk => Some(Strategy::Walk),
        ExplorerKind::Pct => Some(Strategy::Pct {
            depth: search.depth.unwrap_or(3),
        }),
        ExplorerKind::Pos => Some(Strategy::Pos),
        _ => None,
    }
}

/// Limits on executions make no sense where there are only states.
fn refuse_executions(name: &str, search: &SearchOptions) -> Result<(), Problem> {
    if search.max_executions.is_none() && search.delays.is_none() {
        return Ok(());
    }
    Err(
        Problem::request(format!("{name} knows states, not executions"))
            .help("leave --max-executions and --delays out; --timeout works"),
    )
}
