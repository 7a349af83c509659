//! `selvedge verify`: from a request to a report.

mod death;
mod found;
mod sliced;

use selvedge_core::report::{Bug as RawBug, Ending};

use crate::args::{self, Format};
use crate::compile::{self, Build, Program};
use crate::describe::Binary;
use crate::explorer::Explorer;
use crate::output;
use crate::pool::checkpoint::Saved;
use crate::problem::{Problem, Status, note, warn};
use crate::report::request::Asked;
use crate::report::{self, Verdict, human, witness};
use crate::scan;
use crate::temporal;
use crate::trace::Trace;
use crate::worker;
use crate::worker::progress::Limits;
use crate::worker::protocol::{self, Again, Bound, Reply, Request, Searched, Task};
use crate::worker::supervise::{self, Cause, End, Output, Watch};
use death::before_main;
pub(crate) use found::Found;

/// Checks a program and tells how that went.
pub(crate) fn run(verify: &args::Verify) -> Result<Status, Problem> {
    if let Some(path) = verify.checkpoint.as_ref().filter(|path| path.exists()) {
        let path = human::quoted(path);
        return Err(
            Problem::request(format!("{path} exists already")).help(format!(
                "selvedge resume {path} continues the search that it holds"
            )),
        );
    }
    check(verify, verify.program(), None)
}

/// Checks a program, from where a search of it was stopped if there was one.
pub(crate) fn check(
    verify: &args::Verify,
    program: Program,
    resumed: Option<Saved>,
) -> Result<Status, Problem> {
    let (mut explorer, remark) = Explorer::choose(&verify.search, &verify.machine)?;
    if verify.checkpoint.is_some() && !explorer.is_sliced(&verify.search) {
        return Err(
            Problem::request(format!("--checkpoint does not go with {}", explorer.name()))
                .help("it goes with trust, without --iterative"),
        );
    }
    let program = Program {
        expressions: explorer.asked().expressions(),
        ..program
    };
    if verify.list_unsupported {
        let found = compile::unsupported(&program)?;
        output::print(&scan::listed(&found));
        return Ok(Status::Verified);
    }
    let build = compile::build(&program)?;
    tell_unsupported(build.compiled.unsupported.len());
    check_functions(&verify.machine, &build)?;
    if let Explorer::Temporal(settings) = &mut explorer {
        temporal::settle(&mut settings.property, &build)?;
    }
    let search = Search {
        verify,
        build: &build,
        explorer: &explorer,
        label: None,
        resumed: resumed.as_ref(),
    };
    let found = search.run()?;
    let mut report = found.report(&explorer, &verify.search, &verify.machine);
    report.warnings.extend(remark);
    if report.verdict == Verdict::Incomplete
        && let Some(path) = verify.checkpoint.as_ref().filter(|path| path.exists())
    {
        let compiler = verify.sources.cc.as_ref();
        let compiler = compiler.map_or(String::new(), |cc| format!(" --cc {}", human::quoted(cc)));
        report.resume = Some(format!("selvedge resume {}{compiler}", human::quoted(path)));
    }
    let trace = match (&verify.trace_out, found.bugs.first()) {
        (Some(path), Some(bug)) => {
            Trace::new(&program, verify, &explorer, bug).and_then(|trace| trace.write(path))
        }
        _ => Ok(()),
    };
    for warning in &report.warnings {
        if found.warned.as_ref() != Some(warning) {
            warn(warning);
        }
    }
    let asked = Asked {
        traced: trace.is_ok(),
        ..Asked::new(verify)
    };
    let witness = match &verify.witness {
        Some(path) => witness::write(path, &report, &asked),
        None => Ok(()),
    };
    let page = match &verify.report {
        Some(path) => found.page(&report, &asked).write(path),
        None => Ok(()),
    };
    report::print(&report, &asked)?;
    // A file that cannot be written does not change what was found.
    for problem in [trace, witness, page].into_iter().filter_map(Result::err) {
        problem.print();
    }
    Ok(report.verdict.into())
}

/// Says how many places end an execution that reaches them.
fn tell_unsupported(count: usize) {
    let places = match count {
        0 => return,
        1 => "1 place in this program is".to_owned(),
        _ => format!("{count} places in this program are"),
    };
    note(&format!(
        "{places} not supported; an execution that reaches one ends the search as incomplete \
         (--list-unsupported shows them)"
    ));
}

/// Makes sure that the functions whose loops are bounded exist.
fn check_functions(machine: &args::Machine, build: &Build) -> Result<(), Problem> {
    let named = machine.rounds_of_functions();
    if named.is_empty() {
        return Ok(());
    }
    let binary = Binary::read(&build.library);
    let mut missing = named
        .iter()
        .filter(|(name, _)| binary.functions_named(name).is_empty());
    match missing.next() {
        Some((name, rounds)) => Err(Problem::request(format!(
            "--unroll {name}={rounds}: the program has no function {name}"
        ))
        .help("a function that the compiler inlines counts as part of its callers")),
        None => Ok(()),
    }
}

/// A search of a program that is built.
pub(crate) struct Search<'a> {
    /// The request.
    pub(crate) verify: &'a args::Verify,
    /// The program.
    pub(crate) build: &'a Build,
    /// Who explores it.
    pub(crate) explorer: &'a Explorer,
    /// What the line that shows progress begins with.
    pub(crate) label: Option<&'static str>,
    /// The search that is continued.
    pub(crate) resumed: Option<&'a Saved>,
}

impl Search<'_> {
    /// Runs it to its end, and every bug's schedule once more.
    pub(crate) fn run(&self) -> Result<Found, Problem> {
        // Where executions come from is seen by comparing each with the one before.
        let compared = self.verify.report.is_some()
            && self.verify.search.jobs.is_none()
            && self.verify.checkpoint.is_none();
        let mut found = match self.explorer.is_sliced(&self.verify.search) && !compared {
            true => self.run_sliced()?,
            false => self.run_whole()?,
        };
        let bugs = &mut found.bugs;
        worker::retell(bugs, |task, listen| self.worker(task, listen))?;
        if let Some(bug) = bugs.first_mut() {
            bug.described.advice = self.advice(&bug.raw)?;
        }
        Ok(found)
    }

    /// Runs it in one process, without a break.
    fn run_whole(&self) -> Result<Found, Problem> {
        let (mut bugs, mut searched, mut unloadable) = (Vec::new(), None, None);
        let mut warned = None;
        let search = self.search(self.explorer, Again::No);
        let watch = self.worker(search, |reply| match reply {
            Reply::Bug(bug) => bugs.push(*bug),
            Reply::Searched(end) => searched = Some(end),
            Reply::HotLoop(hot) => {
                // Now, since the execution may have no end.
                warned = found::about_loop(&hot, &self.verify.machine);
                warned.iter().for_each(|warning| warn(warning));
            }
            Reply::Unloadable(why) => unloadable = Some(why),
            _ => {}
        })?;
        if let Some(why) = unloadable {
            bugs.push(before_main(why.failure()?));
        }
        if let End::Died(status) = watch.end {
            bugs.push(self.died(&watch, status)?);
        }
        if let End::Stopped(Cause::Hung) = watch.end {
            return Err(hung());
        }
        if let Some(Ending::Internal(why)) = searched.as_ref().map(|end: &Searched| &end.ending) {
            return Err(Problem::internal(why.clone()).help("please report it with the program"));
        }
        Ok(Found {
            bugs,
            searched,
            watch,
            warned,
            progress: None,
        })
    }

    /// What would have forbidden `bug`, unless nobody wants to know. The verdict does not depend on it,
    /// so it does not matter how that worker ends.
    fn advice(&self, bug: &RawBug) -> Result<Option<report::Advice>, Problem> {
        let model = self.explorer.model();
        if model == args::Model::Sc || self.verify.search.no_advice {
            return Ok(None);
        }
        let mut advice = None;
        self.worker(Task::Advise(model, Box::new(bug.clone())), |reply| {
            if let Reply::Advised(found) = reply {
                advice = Some(found);
            }
        })?;
        Ok(advice)
    }

    fn search(&self, explorer: &Explorer, again: Again) -> Task {
        Task::Search(self.parameters(explorer, again))
    }

    fn parameters(&self, explorer: &Explorer, again: Again) -> protocol::Search {
        let search = &self.verify.search;
        protocol::Search {
            explorer: explorer.clone(),
            keep_going: search.keep_going,
            bound: match (search.bound(), search.iterative) {
                (Some(bound), _) => Bound::AtMost(bound),
                (None, true) => Bound::Iterative,
                (None, false) => Bound::None,
            },
            max_executions: search.max_executions,
            again,
            origins: self.verify.report.is_some() && again == Again::No,
        }
    }

    fn worker(&self, task: Task, listen: impl FnMut(Reply)) -> Result<Watch, Problem> {
        let (request, limits) = (self.request(task), self.limits());
        supervise::run(&request, limits, Output::Diverted, listen)
    }

    fn request(&self, task: Task) -> Request {
        Request {
            stateful: self.explorer.keeps_states(),
            asked: self.explorer.asked(),
            ..Request::new(self.build, &self.verify.machine, task)
        }
    }

    fn limits(&self) -> Limits {
        let search = &self.verify.search;
        Limits {
            timeout: search.timeout,
            executions: search.max_executions,
            label: self.label,
            events: self.verify.format == Format::Jsonl,
        }
    }
}

fn hung() -> Problem {
    Problem::internal("the worker made no progress for a long time")
        .help("run it again; if it happens again, please report it with the program")
}
