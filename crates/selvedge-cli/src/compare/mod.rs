//! `selvedge compare`: runs several algorithms on one program.

mod agree;
mod table;

use serde::Serialize;

use crate::args::{self, Equivalence, Format, Model};
use crate::compile;
use crate::explorer::{Descriptor, Explorer, TakesBound};
use crate::interrupt;
use crate::problem::{Problem, Status};
use crate::report::html::{Page, RunFacts};
use crate::report::request::Asked;
use crate::report::{Report, SCHEMA, Verdict, json};
use crate::verify::Search;
use table::Table;

/// The result of the comparison; the names are part of what `--format json` prints.
#[derive(Debug, Serialize)]
struct Comparison {
    schema: u32,
    /// The verdict of all algorithms together.
    verdict: Verdict,
    model: Model,
    /// Whether nothing below contradicts anything else below.
    agree: bool,
    contradictions: Vec<String>,
    /// Algorithms that came to no result because of a fault of Selvedge.
    failed: Vec<&'static str>,
    runs: Vec<Run>,
}

/// One algorithm's search.
#[derive(Debug, Serialize)]
struct Run {
    #[serde(skip)]
    explorer: Explorer,
    #[serde(flatten)]
    report: Report,
    /// The most memory it had, in bytes.
    memory: u64,
    /// It met its first bug in the execution with this number, of all that ended in any way.
    first_bug_after: Option<u64>,
}

/// Runs the algorithms one after the other and tells how that went.
pub(crate) fn run(compare: &args::Compare) -> Result<Status, Problem> {
    let table = match compare.verify.format {
        Format::Human => true,
        Format::Json => false,
        _ => {
            let help = "selvedge verify prints the other formats";
            return Err(Problem::request("compare prints --format human or json").help(help));
        }
    };
    let searches = searches(compare)?;
    let build = compile::build(&compare.verify.program()?)?;
    let image = build.image();
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    let table = table.then(|| Table::new(&searches));
    for (verify, explorer) in searches {
        if interrupt::requests() > 0 {
            break;
        }
        let mut search = Search {
            label: Some(explorer.name()),
            ..Search::new(&verify, &image, &explorer)
        };
        let found = match search.run() {
            Ok(found) => found,
            Err(problem) if problem.status == Status::Internal => {
                problem.note(format!("in {}", explorer.name())).print();
                failed.push(explorer.name());
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let run = Run {
            report: found.report(&explorer, &verify.search, &verify.machine),
            memory: found.memory(),
            first_bug_after: found.first_bug(),
            explorer,
        };
        if let Some(table) = &table {
            table.print(&run);
        }
        runs.push(run);
    }
    let contradictions = agree::contradictions(&runs);
    let comparison = Comparison {
        schema: SCHEMA,
        verdict: verdict(&runs),
        model: model(&compare.verify),
        agree: contradictions.is_empty(),
        contradictions,
        failed,
        runs,
    };
    let page = match &compare.verify.report {
        Some(path) => comparison.page(&compare.verify).write(path),
        None => Ok(()),
    };
    match &table {
        Some(table) => table.finish(&comparison),
        None => json::print(&comparison)?,
    }
    let status = match comparison.agree && comparison.failed.is_empty() {
        true => comparison.verdict.into(),
        false => Status::Internal,
    };
    Ok(status.with_file(page))
}

impl Comparison {
    /// The same as a page to look at.
    fn page(&self, verify: &args::Verify) -> Page<'_> {
        let sentence = match self.agree {
            true => format!("{} algorithms agree", self.runs.len()),
            false => self.contradictions.join("; "),
        };
        let facts = self.runs.iter().map(|run| RunFacts {
            name: run.explorer.name(),
            executions: match &run.report.states {
                Some(states) => states.states,
                None => run.report.executions,
            },
            blocked: run.report.blocked,
            seconds: run.report.seconds,
            memory: run.memory,
            verdict: table::verdict(run),
        });
        let program = Asked::new(verify).program();
        Page::new(program, sentence).compared(self.verdict, facts.collect())
    }
}

/// One bug is enough, and so is one algorithm that explored everything. Those that leave something
/// out are never said to have verified anything.
fn verdict(runs: &[Run]) -> Verdict {
    let says = |verdict| runs.iter().any(|run| run.report.verdict == verdict);
    [Verdict::Bug, Verdict::Verified]
        .into_iter()
        .find(|&verdict| says(verdict))
        .unwrap_or(Verdict::Incomplete)
}

/// The request that each algorithm is to serve: those that were named, else those that leave nothing
/// out and go with the model.
fn searches(compare: &args::Compare) -> Result<Vec<(args::Verify, Explorer)>, Problem> {
    refuse(&compare.verify)?;
    let of = |name: &str| search(&compare.verify, name);
    let named = &compare.algorithms;
    let all = named.iter().any(|name| name == "all");
    if !named.is_empty() && !all {
        let mut names: Vec<&str> = Vec::new();
        for name in named {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        return names.into_iter().map(of).collect();
    }
    let wanted = |explorer: &&Descriptor| explorer.compared && (all || explorer.complete);
    let wanted = Descriptor::all_named().filter(wanted);
    let found: Vec<_> = wanted.filter_map(|one| of(one.name).ok()).collect();
    match found.is_empty() {
        // The reason why none of them runs is the one of the first.
        true => of("trust").map(|one| vec![one]),
        false => Ok(found),
    }
}

/// The model that all of them explore: unless told otherwise, the one that most of them know.
fn model(request: &args::Verify) -> Model {
    request.search.model.unwrap_or(Model::Sc)
}

/// The request for `name`: the same as for all others, without the bound if it takes none.
fn search(request: &args::Verify, name: &str) -> Result<(args::Verify, Explorer), Problem> {
    let mut verify = request.clone();
    let search = &mut verify.search;
    search.algorithm = Some(name.to_owned());
    if let Some(explorer) = Descriptor::of(name) {
        search.equivalence = explorer.equivalence;
    }
    search.no_advice = true;
    search.model = Some(model(request));
    // Times can be compared if all of them have one processor, so that is the default.
    let jobs = *search.jobs.get_or_insert(1);
    let mut explorer = Explorer::named(model(request), search)?;
    if explorer.check_jobs(jobs).is_err() {
        search.jobs = Some(1);
        explorer = Explorer::named(model(request), search)?;
    }
    if explorer.descriptor().preemptions == TakesBound::No {
        (search.preemptions, search.iterative) = (None, false);
    }
    Explorer::choose(search, &verify.machine)?;
    Ok((verify, explorer))
}

/// Options of `verify` that have no meaning here.
fn refuse(verify: &args::Verify) -> Result<(), Problem> {
    let wrong = |option: &str, help: &str| {
        Err(Problem::request(format!("compare does not take {option}")).help(help.to_owned()))
    };
    if let Some(name) = &verify.search.algorithm {
        return wrong("--algorithm", &format!("add --algorithms {name}"));
    }
    if verify.search.equivalence != Equivalence::Mazurkiewicz {
        return wrong("--equivalence", "add --algorithms trust,tracer");
    }
    if verify.search.delays.or(verify.search.switches).is_some() {
        let help = "there is one algorithm for each of them: selvedge verify";
        return wrong("--delays or --switches", help);
    }
    let search = &verify.search;
    if search.ltl.is_some() || search.property.is_some() || search.fair {
        let help = "there is one algorithm for temporal logic: selvedge verify";
        return wrong("--ltl, --property or --fair", help);
    }
    #[cfg(feature = "cluster")]
    if verify.cluster.cluster.is_some() {
        return wrong("--cluster", "selvedge verify searches on several machines");
    }
    if verify.checkpoint.is_some() {
        return wrong("--checkpoint", "selvedge verify keeps one search");
    }
    if verify.trace_out.is_some() || verify.witness.is_some() {
        return wrong("--trace-out or --witness", "selvedge verify writes them");
    }
    Ok(())
}
