//! `selvedge verify`: from a request to a report.

pub(crate) mod cases;
mod death;
mod found;
mod sampled;
mod sliced;

use std::time::Duration;

use selvedge_core::report::{Bug as RawBug, Ending};

use crate::args::{self, Format};
use crate::compile::{self, Build, Image, Program};
use crate::describe::Binary;
use crate::explorer::Explorer;
use crate::output;
use crate::pool::Outcome;
use crate::pool::checkpoint::Saved;
use crate::problem::{Problem, Status, note, warn};
use crate::report::request::Asked;
use crate::report::{self, Verdict, human, witness};
use crate::scan;
use crate::temporal;
use crate::trace::Trace;
use crate::worker;
use crate::worker::progress::Limits;
use crate::worker::protocol::{self, Bound, Reply, Request, Rerun, Task};
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
    if !verify.cases.is_empty() {
        return cases::check(verify);
    }
    check(verify, verify.program()?, None)
}

/// Checks a program, from where a search of it was stopped if there was one.
pub(crate) fn check(
    verify: &args::Verify,
    program: Program,
    resumed: Option<Saved>,
) -> Result<Status, Problem> {
    let (mut explorer, remark) = Explorer::choose(&verify.search, &verify.machine)?;
    if verify.checkpoint.is_some() && !explorer.is_sliced(&verify.search) {
        return Err(Problem::request(format!(
            "--checkpoint cannot be combined with {}",
            explorer.name()
        ))
        .help("trust supports it, without --iterative"));
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
    let image = build.image();
    let fingerprint = match verify.checkpoint {
        Some(_) => Some(build.compiled.fingerprint()?),
        None => None,
    };
    #[cfg_attr(not(feature = "cluster"), expect(unused_mut))]
    let mut search = Search {
        resumed: resumed.as_ref(),
        fingerprint,
        ..Search::new(verify, &image, &explorer)
    };
    #[cfg(feature = "cluster")]
    let coordinator = search.coordinator()?;
    #[cfg(feature = "cluster")]
    if let Some((coordinator, resume)) = &coordinator {
        search.elsewhere = Some(coordinator);
        return conclude(search, &program, remark, Some(resume.clone()));
    }
    let resume = verify.checkpoint.as_ref().map(|path| {
        let compiler = verify.sources.cc.as_ref();
        let compiler = compiler.map_or(String::new(), |cc| format!(" --cc {}", human::quoted(cc)));
        format!("selvedge resume {}{compiler}", human::quoted(path))
    });
    conclude(search, &program, remark, resume)
}

/// Runs a search and tells what it came to. `resume` is the command that continues it, if it can be
/// continued.
pub(crate) fn conclude(
    mut search: Search<'_>,
    program: &Program,
    remark: Option<String>,
    resume: Option<String>,
) -> Result<Status, Problem> {
    let found = search.run()?;
    let (verify, explorer) = (search.verify, search.explorer);
    let mut report = found.report(explorer, &verify.search, &verify.machine);
    report.warnings.extend(remark);
    let saved = verify.checkpoint.as_ref().is_none_or(|path| path.exists());
    if report.verdict == Verdict::Incomplete && saved {
        report.resume = resume;
    }
    let trace = match (&verify.trace_out, found.bugs.first()) {
        (Some(path), Some(bug)) => {
            Trace::new(program, &search.machine, explorer, bug).and_then(|trace| trace.write(path))
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
    let files = [trace, witness, page];
    Ok(files
        .into_iter()
        .fold(report.verdict.into(), Status::with_file))
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
fn check_functions(machine: &args::ProgramOptions, build: &Build) -> Result<(), Problem> {
    let named = machine.rounds_of_functions();
    if named.is_empty() {
        return Ok(());
    }
    let binary = Binary::read(&build.library, machine.shown);
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

/// Explores work units on other machines.
pub(crate) trait Elsewhere {
    /// Explores all of them, or as many as the limits allow.
    fn explore(&self, limits: Limits) -> Result<Outcome, Problem>;
}

/// A search of a program that is built.
pub(crate) struct Search<'a> {
    /// The request.
    pub(crate) verify: &'a args::Verify,
    /// The program.
    pub(crate) image: &'a Image,
    /// The explorer.
    pub(crate) explorer: &'a Explorer,
    /// The beginning of the line that shows progress.
    pub(crate) label: Option<&'static str>,
    /// The search that is continued.
    pub(crate) resumed: Option<&'a Saved>,
    /// The identity of the program, if the search is kept in a file.
    pub(crate) fingerprint: Option<[u8; 16]>,
    /// Explores the units, if workers on this machine do not.
    pub(crate) elsewhere: Option<&'a dyn Elsewhere>,
    /// How the program behaves.
    pub(crate) machine: args::ProgramOptions,
    /// The time that searches took which had to start over.
    pub(crate) spent: Duration,
}

impl<'a> Search<'a> {
    /// The search that a request asks for.
    pub(crate) fn new(
        verify: &'a args::Verify,
        image: &'a Image,
        explorer: &'a Explorer,
    ) -> Search<'a> {
        Search {
            verify,
            image,
            explorer,
            label: None,
            resumed: None,
            fingerprint: None,
            elsewhere: None,
            machine: verify.machine.clone(),
            spent: Duration::ZERO,
        }
    }

    /// Runs it to its end, and every bug's schedule once more. If threads turn out to access bytes
    /// with different widths at the same time, these bytes become one location, and the search
    /// starts over: that is exact under sequential consistency. On other machines it cannot start
    /// over.
    pub(crate) fn run(&mut self) -> Result<Found, Problem> {
        loop {
            let found = self.run_once()?;
            let can_merge = self.explorer.model() == args::Model::Sc && self.elsewhere.is_none();
            match found.mixed().filter(|_| can_merge) {
                Some(extent) if !self.machine.merged.contains(&extent) => {
                    self.machine.merge(extent);
                    self.resumed = None;
                    self.spent += found.watch.elapsed;
                }
                _ => return Ok(found),
            }
        }
    }

    fn run_once(&self) -> Result<Found, Problem> {
        let iterative = self.verify.search.iterative;
        let mut found = match self.explorer {
            Explorer::Trust(_) if iterative => self.run_iterative()?,
            Explorer::Trust(_) => self.run_sliced()?,
            _ => self.run_whole()?,
        };
        if self.verify.report.is_some() && self.elsewhere.is_none() {
            found.progress = self.sampled(&found)?.or(found.progress);
        }
        // The other results mean nothing then.
        if let Some(Ending::Internal(why)) = found.searched.as_ref().map(|end| &end.ending) {
            return Err(Problem::internal(why.clone()).help("please report it with the program"));
        }
        let bugs = &mut found.bugs;
        worker::confirm(bugs, |task, listen| self.worker(task, listen))?;
        if let Some(bug) = bugs.first_mut() {
            bug.described.advice = self.advice(&bug.raw)?;
        }
        Ok(found)
    }

    /// Runs it in one process, without a break.
    fn run_whole(&self) -> Result<Found, Problem> {
        let (mut bugs, mut searched, mut unloadable) = (Vec::new(), None, None);
        let mut warned = None;
        let search = self.search(self.explorer, Rerun::No);
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
        Ok(Found {
            bugs,
            searched,
            watch,
            warned,
            progress: None,
        })
    }

    /// The orders and fences that would have forbidden `bug`, unless the user does not want advice. The verdict does not depend on it,
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

    fn search(&self, explorer: &Explorer, rerun: Rerun) -> Task {
        Task::Search(self.parameters(explorer, rerun))
    }

    fn parameters(&self, explorer: &Explorer, rerun: Rerun) -> protocol::SearchTask {
        let search = &self.verify.search;
        protocol::SearchTask {
            explorer: explorer.clone(),
            keep_going: search.keep_going,
            bound: match (search.bound(), search.iterative) {
                (Some(bound), _) => Bound::AtMost(bound),
                (None, true) => Bound::Iterative,
                (None, false) => Bound::None,
            },
            max_executions: search.max_executions,
            rerun,
            origins: self.verify.report.is_some() && rerun == Rerun::No,
        }
    }

    fn worker(&self, task: Task, listen: impl FnMut(Reply)) -> Result<Watch, Problem> {
        let (request, limits) = (self.request(task), self.limits());
        supervise::run(&request, limits, Output::Diverted, listen)
    }

    /// The request to a worker that explores units.
    pub(crate) fn slices(&self) -> Request {
        self.request(Task::Slices(
            self.parameters(self.explorer, Rerun::No),
            None,
        ))
    }

    fn request(&self, task: Task) -> Request {
        Request {
            stateful: self.explorer.keeps_states(),
            asked: self.explorer.asked(),
            ..Request::new(self.image, &self.machine, task)
        }
    }

    fn limits(&self) -> Limits {
        let search = &self.verify.search;
        Limits {
            timeout: search.timeout.map(|limit| limit.saturating_sub(self.spent)),
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
