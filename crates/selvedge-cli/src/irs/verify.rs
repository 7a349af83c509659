//! `selvedge irs verify`: proves schedules and writes the waits that exclude all others to a prefix file.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use indicatif::HumanCount;
use selvedge_core::report::Ending;
use selvedge_enforce::Policy;
use selvedge_irs_format::{Damage, View};
use serde::Serialize;

use super::build::{self, Uses};
use crate::args::{IrsVerify, ProgramOptions, TextOrJson};
use crate::compile::{self, Build, Program};
use crate::describe;
use crate::input;
use crate::output;
use crate::problem::{Problem, Status, warn};
use crate::report::{Bug, SCHEMA, human, json, thread_name};
use crate::worker;
use crate::worker::progress::Limits;
use crate::worker::protocol::{
    Constraint, FoundBug, HotLoop, Relax, Relaxed, Reply, Request, Summary, Task,
};
use crate::worker::supervise::{self, End, Output, Watch};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = BOLD.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = BOLD.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
/// How many constraints are listed.
const LISTED: usize = 10;

/// The advice about executions without an end.
const ENDING: &str =
    "schedules can be enforced only for programs that end: bound the endless loops in the program";

/// Proves as many schedules as possible, and reports the result.
pub(crate) fn run(verify: &IrsVerify) -> Result<Status, Problem> {
    if !verify.machine.unroll.is_empty() {
        return Err(Problem::request("`irs verify` does not support --unroll")
            .note("whole executions are proven")
            .help(ENDING));
    }
    let ProgramOptions {
        args, env, stdin, ..
    } = &verify.machine;
    if args.is_some() || !env.is_empty() || stdin.is_some() {
        return Err(
            Problem::request("`irs verify` does not support --args, --env and --stdin").note(
                "the executable is proven, and runs, without arguments, environment and input",
            ),
        );
    }
    let build = compile::build(&Program {
        kept: true,
        ..verify.sources.program()?
    })?;
    let uses = Uses::of(&build.compiled)?;
    let untracked = uses.untracked(&build.image().library)?;
    let ends = uses.ends_with_functions();
    let fingerprint = build.compiled.fingerprint()?;
    let proof = Proof {
        verify,
        build: &build,
        output: verify.prefix(),
        has_file: Cell::new(false),
    };
    output::replaceable(&proof.output)
        .map_err(|error| Problem::request(format!("{}: {error}", proof.output.display())))?;
    let resume = !verify.anew && proof.has_begun(fingerprint)?;
    proof.has_file.set(resume);
    if !resume {
        uses.check(&build.compiled)?;
    }
    let (bugs, relaxed, watch) = proof.run(Relax {
        output: proof.output.clone(),
        fingerprint,
        resume,
        order: verify.order.map(Into::into),
        max_executions: verify.max_executions,
        jobs: verify.jobs.unwrap_or(1),
        untracked,
        functions: uses.functions,
        ends,
    })?;
    let relaxed = match relaxed {
        Some(relaxed) => relaxed,
        None => return Err(proof.unfinished(&watch)),
    };
    let (summary, ending, limited) = match relaxed {
        Relaxed::Proven {
            summary,
            ending,
            limited,
        } => (summary, ending, limited),
        Relaxed::Impossible(_) if watch.cause.is_some() => return Err(proof.unfinished(&watch)),
        Relaxed::Impossible(why) => return Err(proof.impossible(&why, &bugs)),
        Relaxed::Modified => return Err(Problem::internal(describe::MODIFIED)),
        Relaxed::Changed => {
            return Err(Problem::request(format!(
                "the proof in {} cannot be taken up again",
                proof.output.display()
            ))
            .help("begin anew: --anew"));
        }
    };
    // Some prefixes ask for what no executable can do.
    let chosen = build::read(&proof.output)?;
    let trial = build.compiled.scratch().join("enforced");
    build::executable(&build.compiled, &chosen, Policy::Abort, &trial)?;
    let result = Told {
        schema: SCHEMA,
        verdict: verdict(&summary, ending.is_none()),
        file: proof.output.display().to_string(),
        resumed: resume,
        reason: ending.map(|ending| reason(&ending, limited, &watch, verify)),
        seconds: watch.elapsed.as_secs_f64(),
        summary,
        bugs: bugs.into_iter().map(|bug| bug.described).collect(),
    };
    match verify.format {
        TextOrJson::Human => output::print(&result.in_words(verify)),
        TextOrJson::Json => json::print_line(&result)?,
    }
    Ok(result.verdict.status())
}

struct Proof<'a> {
    verify: &'a IrsVerify,
    build: &'a Build,
    output: std::path::PathBuf,
    /// Whether the file holds something of this proof.
    has_file: Cell<bool>,
}

impl Proof<'_> {
    /// Whether the file holds part of this proof. What is not a prefix file is not overwritten.
    fn has_begun(&self, fingerprint: [u8; 16]) -> Result<bool, Problem> {
        let name = self.output.display();
        let Ok(bytes) = input::read(&self.output) else {
            return Ok(false);
        };
        match View::new(&bytes) {
            Ok(view) if view.fingerprint() == fingerprint => Ok(true),
            Ok(_) => {
                warn(&format!(
                    "{name} was for another program; it is written anew"
                ));
                Ok(false)
            }
            Err(damage @ Damage::Version(_)) => {
                warn(&format!("{name}: {damage}; it is written anew"));
                Ok(false)
            }
            Err(damage) => Err(Problem::request(format!("{name}: {damage}"))
                .help("name another file with -o, or write over it with --anew")),
        }
    }

    /// Has a worker do it. Bugs come in the order in which constraints name them.
    fn run(&self, relax: Relax) -> Result<(Vec<FoundBug>, Option<Relaxed>, Watch), Problem> {
        let (mut bugs, mut relaxed, mut unloadable) = (Vec::new(), None, None);
        let mut written = Ok(());
        let watch = self.worker(Task::Relax(relax), |reply| {
            match reply {
                Reply::Bug(bug) => bugs.push(*bug),
                Reply::Prefix(bytes) if written.is_ok() => {
                    written = replace(&self.output, &bytes);
                    self.has_file.set(true);
                }
                Reply::Relaxed(end) => relaxed = Some(*end),
                // Now, since the execution may have no end.
                Reply::HotLoop(hot) => warn(&about_loop(&hot)),
                Reply::Unloadable(why) => unloadable = Some(why),
                _ => {}
            }
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        written.map_err(|error| Problem::request(format!("{}: {error}", self.output.display())))?;
        if let Some(why) = unloadable {
            let failure = why.failure()?;
            return Err(Problem::request(format!(
                "the program fails before main: {}",
                failure.message
            )));
        }
        // Without any constraint.
        worker::confirm(&mut bugs, |task, listen| {
            self.worker(task, supervise::to_the_end(listen))
        })?;
        Ok((bugs, relaxed, watch))
    }

    fn worker(
        &self,
        task: Task,
        listen: impl FnMut(Reply) -> ControlFlow<()>,
    ) -> Result<Watch, Problem> {
        let request = Request::new(&self.build.image(), &self.verify.machine, task);
        let limits = Limits {
            timeout: self.verify.timeout,
            executions: self.verify.max_executions,
            ..Limits::default()
        };
        supervise::run_until(&request, limits, Output::Diverted, listen)
    }

    fn unfinished(&self, watch: &Watch) -> Problem {
        let why = match (&watch.end, &watch.cause) {
            (End::Died(status), _) => format!("the program ended the worker ({status})"),
            (End::Stopped(cause), _) | (End::Finished, Some(cause)) => {
                supervise::reason(Some(cause), self.verify.timeout)
            }
            (End::Finished, None) => "the worker ended without an answer".to_owned(),
        };
        let problem = Problem::interrupted(why);
        let name = self.output.display();
        if self.has_file.get() {
            problem.note(format!("{name} contains the schedules proven so far"))
        } else {
            problem
                .note("no schedule was proven: the first execution has not ended")
                .help(ENDING)
        }
    }

    fn impossible(&self, why: &str, bugs: &[FoundBug]) -> Problem {
        let mut problem = Problem::request(format!("there is nothing to enforce: {why}"));
        if let Some(bug) = bugs.first() {
            problem = problem.words(human::evidence(&bug.described));
            if bug.described.kind == selvedge_core::FailureKind::DataRace {
                problem = problem
                    .note("constraints order events only, and these plain accesses are no events")
                    .help("make plain accesses events: --plain sc");
            }
        }
        problem
    }
}

/// The message about a loop with this many rounds.
fn about_loop((place, rounds): &HotLoop) -> String {
    format!("the loop at {place} went round {rounds} times in one execution; {ENDING}")
}

/// The result of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// Nothing has to be enforced.
    Verified,
    /// The remaining waits have to stay.
    Bug,
    /// Not everything was explored.
    Incomplete,
}

impl Verdict {
    fn status(self) -> Status {
        match self {
            Verdict::Verified => Status::Verified,
            Verdict::Bug => Status::Bug,
            Verdict::Incomplete => Status::Incomplete,
        }
    }
}

fn verdict(summary: &Summary, done: bool) -> Verdict {
    match (summary.constraints.is_empty(), done) {
        (_, false) => Verdict::Incomplete,
        (true, true) => Verdict::Verified,
        (false, true) => Verdict::Bug,
    }
}

fn reason(ending: &Ending, limited: bool, watch: &Watch, verify: &IrsVerify) -> String {
    match ending {
        Ending::Stopped if limited && watch.cause.is_none() => format!(
            "stopped after {} executions (--max-executions)",
            verify.max_executions.unwrap_or_default()
        ),
        Ending::Stopped => supervise::reason(watch.cause.as_ref(), verify.timeout),
        Ending::Refused(what) => what.clone(),
        Ending::Nondeterministic(what) => {
            format!("the program did not behave the same under the same schedule: {what}")
        }
        other => format!("the search ended: {other:?}"),
    }
}

/// The printed result.
#[derive(Debug, Serialize)]
struct Told {
    schema: u32,
    verdict: Verdict,
    file: String,
    /// Whether an earlier proof was taken up.
    resumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    seconds: f64,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bugs: Vec<Bug>,
}

impl Told {
    fn in_words(&self, verify: &IrsVerify) -> String {
        let Summary {
            initial, traces, ..
        } = &self.summary;
        let left = self.summary.constraints.len() as u64;
        let traces = format!("{} proven", counted(*traces, "trace"));
        let of = match initial {
            0 => String::new(),
            initial => format!(" (of {initial} at first)"),
        };
        let mut text = String::new();
        match self.verdict {
            Verdict::Verified => {
                let _ = writeln!(
                    text,
                    "{GREEN}verified{GREEN:#}: safe under any schedule, no constraint is left{of}; {traces}"
                );
            }
            Verdict::Bug => {
                for bug in &self.bugs {
                    text.push_str(&human::evidence(bug));
                    text.push('\n');
                }
                let _ = writeln!(
                    text,
                    "{YELLOW}safe{YELLOW:#} under {} that must stay{of}; {traces}",
                    counted(left, "constraint"),
                );
            }
            Verdict::Incomplete => {
                let estimate = match self.summary.estimate {
                    guess if guess > self.summary.traces => {
                        format!(", of {} at a guess", HumanCount(guess))
                    }
                    _ => String::new(),
                };
                let reason = self.reason.as_deref().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "{YELLOW}safe{YELLOW:#} under {}{of}; {traces}{estimate}\n{reason}",
                    counted(left, "constraint"),
                );
            }
        }
        for constraint in self.summary.constraints.iter().take(LISTED) {
            let _ = writeln!(text, "  {}", constraint.in_words());
        }
        if self.summary.constraints.len() > LISTED {
            let more = self.summary.constraints.len() - LISTED;
            let _ = writeln!(text, "  {DIM}and {more} more: selvedge irs stat{DIM:#}");
        }
        self.next(&mut text, verify);
        text
    }

    /// The commands that use the file.
    fn next(&self, text: &mut String, verify: &IrsVerify) {
        let program = Path::new(&self.file).with_extension("");
        let program = human::quoted(&program);
        let sources = verify.sources.arguments();
        let sources = sources.iter().map(human::quoted);
        let sources: Vec<String> = sources.collect();
        let _ = writeln!(
            text,
            "\n{BOLD}next:{BOLD:#} selvedge irs build -o {program} {}",
            sources.join(" "),
        );
        if self.verdict == Verdict::Incomplete {
            let again = std::env::args_os().filter(|argument| argument != "--anew");
            let again = human::command(again, &[]);
            let _ = writeln!(text, "      {again}  {DIM}(goes on from here){DIM:#}");
        }
    }
}

impl Constraint {
    fn in_words(&self) -> String {
        let mut text = format!(
            "{} waits at {} until {} has passed {}",
            thread_name(self.thread),
            self.place,
            thread_name(self.source),
            self.source_place,
        );
        if !self.input.is_empty() {
            let values: Vec<String> = self.input.iter().map(u32::to_string).collect();
            let _ = write!(text, ", for input {}", values.join(","));
        }
        if let Some(bug) = self.bug {
            let _ = write!(text, ": without that, bug {} can happen", bug + 1);
        }
        text
    }
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(number))
}

/// Replaces a file atomically: a reader finds the old contents or the new ones.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let mut file = File::create(new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    drop(file);
    fs::rename(new, path)
}
