//! `selvedge replay`: the failing schedule once more, with the program's own output.

use std::cell::RefCell;

use selvedge_core::FailureKind;
use selvedge_runtime::process::SharedCounters;

use crate::args::{self, TextOrJson};
use crate::compile::{self, Build};
use crate::consent::Untrusted;
use crate::interrupt;
use crate::problem::{Problem, Status, warn};
use crate::report::html::Page;
use crate::report::{Bug, human, json};
use crate::trace::Trace;
use crate::worker;
use crate::worker::counters::Counters;
use crate::worker::progress::Limits;
use crate::worker::protocol::{FoundBug, Replayed, Reply, Request, Task, Unloadable};
use crate::worker::supervise::{self, End, Output};

/// Runs the schedule of a trace and tells how it ends.
pub(crate) fn run(replay: &args::Replay) -> Result<Status, Problem> {
    let mut trace = Trace::read(&replay.trace)?;
    trace.machine.no_confinement = replay.no_confinement;
    trace.machine.shown = replay.shown;
    let file = Untrusted {
        what: "trace",
        command: "replay",
        path: &replay.trace,
    };
    file.consent(&replay.compiler, &mut trace.program)?;
    let changed = trace.changed();
    for file in &changed {
        warn(&format!(
            "{} has changed since the trace was written",
            file.display()
        ));
    }
    let build = compile::build(&trace.program)?;
    let ending = perform(replay, &trace, &build)?;
    let bug = match ending {
        Ending::Failed(bug) => bug,
        Ending::Died
            if matches!(
                trace.bug.kind,
                FailureKind::Signal | FailureKind::ForbiddenCall
            ) =>
        {
            Box::new(FoundBug {
                described: trace.bug.clone(),
                raw: trace.decisions.clone(),
            })
        }
        Ending::Died => {
            return Err(
                Problem::internal("the program destroyed the process that ran it")
                    .help("run selvedge verify again"),
            );
        }
        Ending::Passed => return Err(differs("the schedule was followed, and nothing fails")),
        Ending::Diverged(what) => return Err(differs(&what)),
    };
    let page = match &replay.report {
        Some(path) => Page::of_replay(replay.trace.display().to_string(), &bug).write(path),
        None => Ok(()),
    };
    let bug = &bug.described;
    if !same(bug, &trace.bug) {
        let was = format!("{} at {}", trace.bug.message, trace.bug.place);
        warn(&format!("this is not the failure that was recorded: {was}"));
    }
    match replay.format {
        TextOrJson::Json => json::print(bug)?,
        TextOrJson::Human => human::print_replayed(bug, &arguments(replay), replay.in_process),
    }
    Ok(Status::Bug.with_file(page))
}

/// How the program ended this time.
enum Ending {
    Failed(Box<FoundBug>),
    Diverged(String),
    Passed,
    Died,
}

fn perform(replay: &args::Replay, trace: &Trace, build: &Build) -> Result<Ending, Problem> {
    let task = Task::Replay(vec![trace.decisions.clone()]);
    let request = Request {
        show_output: true,
        stateful: trace.stateful,
        asked: trace.asked.clone(),
        ..Request::new(&build.image(), &trace.machine, task)
    };
    let last = RefCell::new(None);
    let listen = |reply| match reply {
        Reply::Replayed(_) | Reply::Unloadable(_) => *last.borrow_mut() = Some(reply),
        _ => {}
    };
    let mut interrupted = false;
    if replay.in_process {
        let counters = SharedCounters::create(&request.counters)
            .map_err(|error| Problem::internal(format!("cannot create counters: {error}")))?;
        worker::perform(&request, &Counters(counters), &listen, &mut || None);
    } else {
        let output = match replay.format {
            TextOrJson::Human => Output::Shown,
            TextOrJson::Json => Output::Diverted,
        };
        let watch = supervise::run(&request, Limits::default(), output, listen)?;
        if let End::Died(_) = watch.end {
            return Ok(Ending::Died);
        }
        interrupted = interrupt::requests() > 0;
    }
    match last.into_inner() {
        Some(Reply::Replayed(Replayed::Failed(bug))) => Ok(Ending::Failed(bug)),
        Some(Reply::Replayed(Replayed::Diverged(what))) => Ok(Ending::Diverged(what)),
        Some(Reply::Replayed(Replayed::Passed)) => Ok(Ending::Passed),
        Some(Reply::Unloadable(Unloadable::Fails(failure))) => Ok(Ending::Diverged(format!(
            "it fails before main: {}",
            failure.message
        ))),
        Some(Reply::Unloadable(Unloadable::Refused(why))) => {
            Err(Problem::request(format!("cannot run this program: {why}")))
        }
        Some(Reply::Unloadable(Unloadable::System(why))) => Err(Problem::internal(why)),
        _ if interrupted => Err(Problem::interrupted("interrupted during the replay")),
        _ => Err(Problem::internal("the replay ended without a result")),
    }
}

/// The arguments that replay the same trace.
fn arguments(replay: &args::Replay) -> String {
    let mut words = vec![human::quoted(&replay.trace)];
    words.extend(replay.compiler.options().map(human::quoted));
    words.join(" ")
}

/// Whether two failures are one bug; the directory may be another one.
fn same(one: &Bug, other: &Bug) -> bool {
    let key = |bug: &Bug| {
        (
            bug.kind,
            bug.thread,
            bug.place.line,
            bug.place.function.clone(),
        )
    };
    key(one) == key(other)
}

fn differs(what: &str) -> Problem {
    Problem::request(format!(
        "the program is not the one that the trace was written for: {what}"
    ))
    .help("write the trace again with selvedge verify --trace-out FILE")
}
