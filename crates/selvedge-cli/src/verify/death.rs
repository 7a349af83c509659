//! Programs that end the worker process: they fail before their threads can be scheduled, or
//! take the worker with them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use selvedge_core::report::Bug as RawBug;
use selvedge_core::witness::{self, Switch, Witness};
use selvedge_core::words;
use selvedge_core::{Failure, FailureKind, Site, ThreadId};

use super::Search;
use crate::problem::Problem;
use crate::report;
use crate::worker::orders::Order;
use crate::worker::protocol::{FoundBug, Reply, Rerun, Task};
use crate::worker::supervise::{End, Watch};

impl Search<'_> {
    /// The bug of a program that made the worker die.
    pub(super) fn died(&self, watch: &Watch, status: ExitStatus) -> Result<FoundBug, Problem> {
        let death = Death::of(status)?;
        if !self.explorer.keeps_states() {
            let rerun = Rerun::Run(watch.runs);
            return self.last_steps(self.search(self.explorer, rerun), rerun, death);
        }
        if !self.explorer.asked().expressions().is_empty() {
            return Err(Problem::request(format!(
                "the program, or an expression of the formula, destroyed the process that ran it ({})",
                death.0
            ))
            .help("expressions are evaluated in every state: guard pointers, as in {p && *p == 1}"));
        }
        self.fatal_steps(watch, death)
    }

    /// The bug of a program that made the worker die that explored the unit of `order`.
    pub(crate) fn died_in_slice(
        &self,
        order: Order,
        status: ExitStatus,
    ) -> Result<FoundBug, Problem> {
        let rerun = order.rerun;
        let task = Task::Slices(self.parameters(self.explorer, rerun), Some(Box::new(order)));
        self.last_steps(task, rerun, Death::of(status)?)
    }

    /// The schedule that made the worker die: the search is deterministic, so it is run once more,
    /// and this time the last run of the program is told step by step.
    fn last_steps(&self, task: Task, rerun: Rerun, death: Death) -> Result<FoundBug, Problem> {
        let mut steps: Vec<(report::Step, witness::Step)> = Vec::new();
        let watch = self.worker(task, |reply| match reply {
            Reply::Begin => steps.clear(),
            Reply::Step(step) => steps.push(*step),
            _ => {}
        })?;
        let same = match rerun {
            // While steps are told, none is taken back, and there may be more runs.
            Rerun::Run(run) => watch.runs >= run,
            Rerun::Step(_) | Rerun::No => true,
        };
        match same && Death::is_repeated(&watch) {
            true => Ok(death.bug(steps)),
            false => Err(death.unexplained()),
        }
    }

    /// The same for a search over states, which takes steps in an order that is no schedule: the
    /// one that made the worker die is taken from the beginning. Of searches that cannot tell which
    /// one that is, one of the others takes the place.
    fn fatal_steps(&self, watch: &Watch, death: Death) -> Result<FoundBug, Problem> {
        let (explorer, step) = match self.explorer.one_by_one() {
            None => (self.explorer.clone(), watch.steps),
            Some(other) => {
                let watch = self.worker(self.search(&other, Rerun::No), |_| {})?;
                if !Death::is_repeated(&watch) {
                    return Err(death.unexplained());
                }
                (other, watch.steps)
            }
        };
        match step {
            // Before the first one.
            0 => Ok(death.bug(Vec::new())),
            step => {
                let rerun = Rerun::Step(step);
                self.last_steps(self.search(&explorer, rerun), rerun, death)
            }
        }
    }
}

/// Advice where a process was killed that did nothing wrong.
const SHORT_OF_MEMORY: &str =
    "if memory is short, run fewer things at a time, or lower --memory-limit";

/// How a worker died without a word: by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Death(Signal);

impl Death {
    /// Whether a worker died, too. The signal may be another one: it depends on what the worker was about to do with
    /// memory that the program has overwritten, and a worker that tells of steps does other things.
    fn is_repeated(watch: &Watch) -> bool {
        matches!(watch.end, End::Died(status) if Death::of(status).is_ok())
    }

    fn of(status: ExitStatus) -> Result<Death, Problem> {
        let signal = status.signal().and_then(|n| Signal::try_from(n).ok());
        match signal {
            // A program that kills itself is noticed before it does so.
            Some(Signal::SIGKILL) => Err(Problem::internal(
                "a process of the search was killed from outside (SIGKILL)",
            )
            .help(SHORT_OF_MEMORY)),
            Some(signal) => Ok(Death(signal)),
            None => Err(Problem::internal(format!(
                "the process that ran the program ended without a result ({status})"
            ))
            .note("the program has ended it, for example with _exit at an address that it computed")
            .help("if the program does nothing of that kind, please report it")),
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
        let (kind, message) = match self.0 {
            // The signal could not be caught, because the program had blocked all signals.
            Signal::SIGSYS => (
                FailureKind::ForbiddenCall,
                "the program made a system call that is not allowed in a program under test"
                    .to_owned(),
            ),
            signal => (
                FailureKind::Signal,
                format!("the program destroyed the process that ran it ({signal})"),
            ),
        };
        let failure = Failure {
            kind,
            message: message.clone(),
            thread: steps.last().map_or(ThreadId::MAIN, |step| step.thread),
            site: steps.last().map_or(Site(0), |step| step.site),
            other: None,
        };
        bare(failure, message, steps, trace)
    }
}

/// A failure of the program before any thread could be scheduled.
pub(super) fn before_main(failure: Failure) -> FoundBug {
    let message = format!("before main: {}", failure.message);
    bare(failure, message, Vec::new(), Vec::new())
}

/// A bug of which nothing is known but its steps.
fn bare(
    failure: Failure,
    message: String,
    steps: Vec<witness::Step>,
    trace: Vec<report::Step>,
) -> FoundBug {
    let switched = steps.iter().filter(|step| step.switch != Switch::Same);
    let switches = switched.count() as u32;
    let described = report::Bug {
        kind: failure.kind,
        message,
        preemptions: 0,
        context_switches: switches,
        thread: failure.thread.0,
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
        plain: Vec::new(),
        call_stacks: Vec::new(),
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
    FoundBug { described, raw }
}
