//! `selvedge verify`: from a request to a report.

use nix::sys::signal::Signal;
use selvedge_core::report::{Bug as RawBug, Ending, Sampled};
use selvedge_core::witness::{self, Switch, Witness};
use selvedge_core::words;
use selvedge_core::{Failure, FailureKind, Site, ThreadId};

use crate::args::{self, Format};
use crate::compile::{self, Build, Program};
use crate::explorer::Explorer;
use crate::problem::{Problem, Status, warn};
use crate::report::{self, Report, SCHEMA, Verdict, human, json};
use crate::temporal;
use crate::trace::Trace;
use crate::worker::progress::Limits;
use crate::worker::protocol::{
    self, Again, Bound, FoundBug, Replayed, Reply, Request, Searched, Task, Unloadable,
};
use crate::worker::supervise::{self, Cause, End, Output, Watch};

/// Checks a program and tells how that went.
pub(crate) fn run(verify: &args::Verify) -> Result<Status, Problem> {
    let (mut explorer, note) = Explorer::choose(&verify.search, &verify.machine)?;
    let program = Program {
        expressions: explorer.asked().expressions(),
        ..verify.sources.program()
    };
    let build = compile::build(&program)?;
    if let Explorer::Temporal(settings) = &mut explorer {
        temporal::settle(&mut settings.property, &build)?;
    }
    let search = Search {
        verify,
        build: &build,
        explorer: &explorer,
        label: None,
    };
    let found = search.run()?;
    let mut report = found.report(&explorer, &verify.search, &verify.machine);
    report.warnings.extend(note);
    if let (Some(path), Some(bug)) = (&verify.trace_out, found.bugs.first()) {
        Trace::new(&program, verify, &explorer, bug)?.write(path)?;
    }
    for warning in &report.warnings {
        warn(warning);
    }
    match verify.format {
        Format::Json => json::print(&report)?,
        Format::Human => human::print(&report, &human::Next::new(verify)),
    }
    Ok(report.verdict.into())
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
}

/// What a search came to.
pub(crate) struct Found {
    bugs: Vec<FoundBug>,
    searched: Option<Searched>,
    watch: Watch,
}

impl Search<'_> {
    /// Runs it to its end, and every bug's schedule once more.
    pub(crate) fn run(&self) -> Result<Found, Problem> {
        let (mut bugs, mut searched, mut unloadable) = (Vec::new(), None, None);
        let search = self.search(self.explorer, Again::No);
        let watch = self.worker(search, |reply| match reply {
            Reply::Bug(bug) => bugs.push(*bug),
            Reply::Searched(end) => searched = Some(end),
            Reply::Unloadable(why) => unloadable = Some(why),
            _ => {}
        })?;
        match unloadable {
            Some(Unloadable::Fails(failure)) => bugs.push(before_main(failure)),
            Some(Unloadable::Refused(why)) => {
                return Err(Problem::request(format!(
                    "cannot check this program: {why}"
                )));
            }
            Some(Unloadable::System(why)) => return Err(Problem::internal(why)),
            None => {}
        }
        if let End::Died(status) = watch.end {
            let death = Death::of(status)?;
            if self.explorer.keeps_states() {
                if !self.explorer.asked().expressions().is_empty() {
                    return Err(Problem::request(format!(
                        "the program, or an expression of the formula, destroyed the process that ran it ({})",
                        death.0
                    ))
                    .help("expressions are evaluated in every state: guard pointers, as in {p && *p == 1}"));
                }
                bugs.push(self.fatal_steps(&watch, death)?);
            } else {
                bugs.push(self.last_steps(self.explorer, Again::Run(watch.runs), death)?);
            }
        }
        if let End::Stopped(Cause::Hung) = watch.end {
            return Err(
                Problem::internal("the worker made no progress for a long time")
                    .help("run it again; if it happens again, please report it with the program"),
            );
        }
        let mut bugs = self.retell(bugs)?;
        if let Some(bug) = bugs.first_mut() {
            bug.described.advice = self.advice(&bug.raw)?;
        }
        Ok(Found {
            bugs,
            searched,
            watch,
        })
    }

    /// Runs every bug's schedule once more, in a fresh process: that confirms it, and shows the
    /// calls that each step is made in.
    fn retell(&self, mut bugs: Vec<FoundBug>) -> Result<Vec<FoundBug>, Problem> {
        if bugs.is_empty() {
            return Ok(bugs);
        }
        let schedules = bugs.iter().map(|bug| bug.raw.clone()).collect();
        let mut replayed = Vec::new();
        self.worker(Task::Replay(schedules), |reply| {
            if let Reply::Replayed(how) = reply {
                replayed.push(how);
            }
        })?;
        for (bug, again) in bugs.iter_mut().zip(replayed) {
            if let Replayed::Failed(again) = again
                && again.raw.failure.kind == bug.raw.failure.kind
            {
                *bug = *again;
            }
        }
        Ok(bugs)
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
        let search = &self.verify.search;
        Task::Search(protocol::Search {
            explorer: explorer.clone(),
            keep_going: search.keep_going,
            bound: match (search.bound(), search.iterative) {
                (Some(bound), _) => Bound::AtMost(bound),
                (None, true) => Bound::Iterative,
                (None, false) => Bound::None,
            },
            max_executions: search.max_executions,
            again,
        })
    }

    fn worker(&self, task: Task, listen: impl FnMut(Reply)) -> Result<Watch, Problem> {
        let search = &self.verify.search;
        let request = Request {
            library: self.build.library.clone(),
            counters: self.build.scratch().join("counters"),
            machine: self.verify.machine.clone(),
            show_output: false,
            stateful: self.explorer.keeps_states(),
            asked: self.explorer.asked(),
            task,
        };
        let limits = Limits {
            timeout: search.timeout,
            executions: search.max_executions,
            label: self.label,
        };
        supervise::run(&request, limits, Output::Diverted, listen)
    }

    /// The schedule that made the worker die: the search is deterministic, so it is run once more,
    /// and this time the last run of the program is told step by step.
    fn last_steps(
        &self,
        explorer: &Explorer,
        again: Again,
        death: Death,
    ) -> Result<FoundBug, Problem> {
        let mut steps: Vec<(report::Step, witness::Step)> = Vec::new();
        let watch = self.worker(self.search(explorer, again), |reply| match reply {
            Reply::Begin => steps.clear(),
            Reply::Step(step) => steps.push(*step),
            _ => {}
        })?;
        let same = match again {
            // While steps are told, none is taken back, and there may be more runs.
            Again::Run(run) => watch.runs >= run,
            Again::Step(_) | Again::No => true,
        };
        match same && death.is(&watch) {
            true => Ok(death.bug(steps)),
            false => Err(death.unexplained()),
        }
    }

    /// The same for a search over states, which takes steps in an order that is no schedule: the one that made the worker die
    /// is taken from the beginning. Of searches that cannot tell which one that is, one of the others takes the place.
    fn fatal_steps(&self, watch: &Watch, death: Death) -> Result<FoundBug, Problem> {
        let (explorer, step) = match self.explorer.one_by_one() {
            None => (self.explorer.clone(), watch.steps),
            Some(other) => {
                let watch = self.worker(self.search(&other, Again::No), |_| {})?;
                if !death.is(&watch) {
                    return Err(death.unexplained());
                }
                (other, watch.steps)
            }
        };
        match step {
            // Before the first one.
            0 => Ok(death.bug(Vec::new())),
            step => self.last_steps(&explorer, Again::Step(step), death),
        }
    }
}

impl Found {
    /// The first bug was found in the execution with this number, of all that ended in any way.
    pub(crate) fn first_bug(&self) -> Option<u64> {
        // A program that ends its own process does so in the last run.
        let dead = || (!self.bugs.is_empty()).then_some(self.watch.runs);
        let told = self.searched.as_ref().and_then(|end| end.first_bug);
        told.or_else(dead)
    }

    /// The most memory that the search had, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let told = self.searched.as_ref().map_or(0, |end| end.memory);
        told.max(self.watch.memory)
    }

    /// What there is to tell about it.
    pub(crate) fn report(
        &self,
        explorer: &Explorer,
        search: &args::Search,
        machine: &args::Machine,
    ) -> Report {
        let described = || self.bugs.iter().map(|bug| bug.described.clone());
        let counts = self
            .searched
            .as_ref()
            .map_or(self.watch.counts, |end| end.counts);
        let unrolled = self.searched.as_ref().is_some_and(|end| end.unrolled);
        let beyond = self.searched.as_ref().and_then(|end| end.bound);
        let reason = self.reason(explorer, search);
        let verdict = match (&self.bugs[..], &reason) {
            ([_, ..], _) => Verdict::Bug,
            ([], None) => Verdict::Verified,
            ([], Some(_)) => Verdict::Incomplete,
        };
        Report {
            schema: SCHEMA,
            verdict,
            model: explorer.model(),
            algorithm: explorer.name().to_owned(),
            executions: counts.executions,
            over_bound: counts.over_bound,
            blocked: counts.blocked,
            bound_blocked: counts.bound_blocked,
            states: match &self.searched {
                Some(end) => end.states,
                None => self.watch.states,
            },
            holds: explorer.property(),
            question: explorer.question(),
            bound: match explorer {
                Explorer::Temporal(_) => None,
                _ => search.bound().or(beyond),
            },
            bounds: explorer.bounds(),
            complete: beyond.is_none(),
            seconds: self.watch.elapsed.as_secs_f64(),
            processor_seconds: match &self.searched {
                Some(end) => end.processor_seconds.clone(),
                None => Vec::new(),
            },
            bug: described().next(),
            bugs: search.keep_going.then(|| described().collect()),
            unroll: machine.unroll.filter(|_| unrolled),
            reason,
            warnings: self.warnings(machine),
        }
    }

    /// Why not every execution was explored. A first bug is reason enough to stop.
    fn reason(&self, explorer: &Explorer, search: &args::Search) -> Option<String> {
        let seconds = search.timeout.unwrap_or_default().as_secs_f64();
        match (&self.searched, &self.watch.cause) {
            (
                Some(Searched {
                    ending,
                    limited,
                    counts,
                    ..
                }),
                cause,
            ) => match ending {
                Ending::Complete | Ending::FirstBug => None,
                Ending::Stopped if *limited && cause.is_none() => Some(format!(
                    "stopped after {} executions (--max-executions)",
                    search.max_executions.unwrap_or_default()
                )),
                Ending::Lossy if explorer.keeps_states() => Some(
                    "with a bound, csdr may leave out states that csdr-exact does not".to_owned(),
                ),
                Ending::Lossy => Some(
                    "this algorithm may leave executions out, so that finding no bug proves \
                     nothing"
                        .to_owned(),
                ),
                Ending::Sampled(sampled) => Some(tried(sampled, counts.blocked)),
                Ending::Stopped => Some(stopped(cause.as_ref(), seconds)),
                Ending::Refused(what) => Some(what.clone()),
                Ending::Nondeterministic(what) => Some(format!(
                    "the program did not behave the same under the same schedule: {what}"
                )),
            },
            (None, Some(cause)) => Some(stopped(Some(cause), seconds)),
            (None, None) => None,
        }
    }

    fn warnings(&self, machine: &args::Machine) -> Vec<String> {
        let hot = self.searched.as_ref().and_then(|end| end.hot_loop.as_ref());
        let warning = |(place, rounds): &(report::Place, u32)| {
            format!(
                "the loop at {place} went round {rounds} times in one execution; --unroll N cuts \
                 loops that have no bound of their own, and --algorithm csdr checks programs that \
                 never end"
            )
        };
        hot.filter(|_| machine.unroll.is_none())
            .map(warning)
            .into_iter()
            .collect()
    }
}

fn stopped(cause: Option<&Cause>, seconds: f64) -> String {
    match cause {
        Some(Cause::Timeout) => format!("stopped after {seconds} seconds (--timeout)"),
        Some(Cause::Memory(limit)) => {
            format!(
                "stopped because the program took more than {} MiB of memory (--memory-limit)",
                limit >> 20
            )
        }
        Some(Cause::Hung) => "stopped because it made no progress".to_owned(),
        Some(Cause::Interrupted) | None => "interrupted".to_owned(),
    }
}

/// What a random search says of itself. A run that ends with a thread spinning is lost, and PCT promises
/// nothing then.
fn tried(sampled: &Sampled, blocked: u64) -> String {
    let mut text = format!(
        "tried {} runs at random, {} different executions, so that finding no bug proves nothing",
        sampled.runs, sampled.distinct
    );
    if let (Some(depth), Some(guarantee), 0) = (sampled.depth, sampled.guarantee(), blocked) {
        let all = 1.0 - (1.0 - guarantee).powf(sampled.runs as f64);
        text += &format!(
            "; a bug of depth {depth} is met in each run with a probability of at least \
             1/({}·{}^{}) = {guarantee:.2e}, in all runs of {all:.2e}",
            sampled.threads,
            sampled.steps,
            depth - 1
        );
    }
    text
}

/// A failure of the program before any thread could be scheduled.
fn before_main(failure: Failure) -> FoundBug {
    let witness = Witness {
        steps: Vec::new(),
        preemptions: 0,
        switches: 0,
        cycle: None,
    };
    let message = format!("before main: {}", failure.message);
    let raw = RawBug {
        failure,
        witness,
        waiting: Vec::new(),
    };
    FoundBug {
        described: bare(&raw, message, Vec::new()),
        raw,
    }
}

/// A bug of which nothing is known but its steps.
fn bare(raw: &RawBug, message: String, trace: Vec<report::Step>) -> report::Bug {
    report::Bug {
        kind: raw.failure.kind,
        message,
        preemptions: raw.witness.preemptions,
        context_switches: raw.witness.switches,
        thread: raw.failure.thread.0,
        place: trace
            .last()
            .map(|step| step.place.clone())
            .unwrap_or_default(),
        other: None,
        waiting: Vec::new(),
        blocks: Vec::new(),
        stacks: Vec::new(),
        advice: None,
        cycle: None,
        schedule: words::line(trace.iter().map(|step| (step.thread, step.switch))),
        trace,
    }
}

/// What may help where a process was killed that did nothing wrong.
const SHORT_OF_MEMORY: &str =
    "if memory is short, run fewer things at a time, or lower --memory-limit";

/// How a worker died without a word: by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Death(Signal);

impl Death {
    /// Whether a worker died of it.
    fn is(self, watch: &Watch) -> bool {
        matches!(watch.end, End::Died(status) if Death::of(status).ok() == Some(self))
    }

    fn of(status: std::process::ExitStatus) -> Result<Death, Problem> {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = status.signal().and_then(|n| Signal::try_from(n).ok());
        match signal {
            // What a program does to itself is seen before it happens.
            Some(Signal::SIGKILL) => Err(Problem::internal(
                "a process of the search was killed from outside (SIGKILL)",
            )
            .help(SHORT_OF_MEMORY)),
            Some(signal) => Ok(Death(signal)),
            None => Err(
                Problem::internal(format!("the worker ended without a result ({status})"))
                    .help("this is a fault of Selvedge: please report it with the program"),
            ),
        }
    }

    fn unexplained(self) -> Problem {
        Problem::internal(format!(
            "the worker was killed by {} and not again when repeated",
            self.0
        ))
        .help(SHORT_OF_MEMORY)
    }

    fn bug(self, steps: Vec<(report::Step, witness::Step)>) -> FoundBug {
        let (mut trace, steps): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        for (n, step) in trace.iter_mut().enumerate() {
            step.step = n as u32 + 1;
        }
        let switches = steps
            .iter()
            .filter(|step| step.switch != Switch::Same)
            .count() as u32;
        let message = format!("the program destroyed the process that ran it ({})", self.0);
        let failure = Failure {
            kind: FailureKind::Signal,
            message: message.clone(),
            thread: steps.last().map_or(ThreadId::MAIN, |step| step.thread),
            site: steps.last().map_or(Site(0), |step| step.site),
            other: None,
        };
        let witness = Witness {
            steps,
            preemptions: 0,
            switches,
            cycle: None,
        };
        let raw = RawBug {
            failure,
            witness,
            waiting: Vec::new(),
        };
        FoundBug {
            described: bare(&raw, message, trace),
            raw,
        }
    }
}
