//! The work of a worker, wherever it runs.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use selvedge_core::interleave::Run;
use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, Counts, Observer};
use selvedge_core::witness;
use selvedge_core::{FailureKind, Machine as _, Pending, Stop, ThreadId};
use selvedge_runtime::{LoadError, NativeMachine, Plain, Settings};

use super::journal::Watched;
use super::protocol::{Counters, FoundBug, Replayed, Reply, Request, Searched, Task, Unloadable};
use crate::args;
use crate::describe::{self, Binary};

/// A loop that goes round more often than this is worth a warning.
const HOT_LOOP: u32 = 1000;

/// Does what `request` asks for and tells `reply` about it.
pub(crate) fn perform(request: &Request, counters: &Counters, reply: &dyn Fn(Reply)) {
    let settings = settings(&request.machine, request.show_output);
    let machine = match NativeMachine::load(&request.library, settings) {
        Ok(machine) => machine,
        Err(error) => return reply(Reply::Unloadable(unloadable(error))),
    };
    reply(Reply::Loaded);
    let binary = Binary::read(&request.library);
    let mut machine = Watched::new(machine, counters);
    match &request.task {
        Task::Search {
            keep_going,
            max_executions,
            journal_from,
        } => {
            let searched = match journal_from {
                Some(from) => journal(&mut machine, *from, *keep_going, &binary, counters, reply),
                None => {
                    let limit = max_executions.unwrap_or(u64::MAX);
                    let mut observer = Watcher {
                        binary: &binary,
                        counters,
                        limit,
                        reply,
                    };
                    search(&mut machine, *keep_going, &mut observer)
                }
            };
            reply(Reply::Searched(finish(
                searched,
                *max_executions,
                &machine,
                &binary,
            )));
        }
        Task::Replay { bug } => {
            let replayed = replay(&mut machine, bug, &binary);
            reply(Reply::Replayed(replayed));
        }
    }
}

fn settings(machine: &args::Machine, show_output: bool) -> Settings {
    Settings {
        plain: match machine.plain {
            args::Plain::Race => Plain::Race,
            args::Plain::Sc => Plain::Sc,
        },
        unroll: machine.unroll,
        stack_size: machine.stack_size,
        heap_limit: machine.heap_limit,
        max_threads: machine.max_threads,
        watchdog: machine.watchdog,
        spurious_wakeups: machine.spurious_wakeups,
        show_output,
        check_leaks: machine.leaks,
    }
}

fn unloadable(error: LoadError) -> Unloadable {
    match error {
        LoadError::Constructor(failure) => Unloadable::Fails(failure),
        LoadError::Refused(what) => Unloadable::Refused(format!("before main, it {what}")),
        LoadError::Io(_) | LoadError::Busy => Unloadable::System(error.to_string()),
        LoadError::Format(_)
        | LoadError::NoMain
        | LoadError::Unsupported(_)
        | LoadError::Link(_) => Unloadable::Refused(error.to_string()),
    }
}

fn search<'a>(
    machine: &mut Watched<'a>,
    keep_going: bool,
    observer: &mut impl Observer<Watched<'a>>,
) -> trust::Report {
    trust::search::<SequentialConsistency, _>(machine, keep_going, observer)
}

/// The same search with every step of its last runs told before it is taken: what was told last is
/// how the program came to end this process.
fn journal<'a>(
    machine: &mut Watched<'a>,
    from: u64,
    keep_going: bool,
    binary: &'a Binary,
    counters: &Counters,
    reply: &'a dyn Fn(Reply),
) -> trust::Report {
    let mut kinds = describe::Kinds::default();
    let tell = move |machine: &NativeMachine, step: Option<&witness::Step>| match step {
        None => reply(Reply::Begin),
        Some(step) => {
            let described = describe::step(binary, machine, &mut kinds, step);
            reply(Reply::Step(Box::new((described, step.clone()))));
        }
    };
    machine.journal(from, Box::new(tell));
    search(machine, keep_going, &mut Stoppable { counters })
}

fn finish(
    report: trust::Report,
    max_executions: Option<u64>,
    machine: &Watched<'_>,
    binary: &Binary,
) -> Searched {
    let mut counts = report.counts;
    let limited = exceeds(&counts, max_executions.unwrap_or(u64::MAX));
    if limited && report.ending == trust::Ending::Stopped {
        // The one that went over the limit only showed that there are more.
        counts.executions = counts.executions.min(max_executions.unwrap_or(u64::MAX));
    }
    let hot = machine
        .inner()
        .hottest_loop()
        .filter(|&(_, rounds)| rounds > HOT_LOOP);
    let hot_loop =
        hot.map(|(site, rounds)| (describe::place(binary, machine.inner(), site), rounds));
    Searched {
        ending: report.ending,
        counts,
        unrolled: report.unrolled,
        limited,
        hot_loop,
    }
}

fn exceeds(counts: &Counts, limit: u64) -> bool {
    counts.executions.saturating_add(counts.blocked) > limit
}

/// Counts executions, describes bugs, and stops the search when told to.
struct Watcher<'a> {
    binary: &'a Binary,
    counters: &'a Counters,
    limit: u64,
    reply: &'a dyn Fn(Reply),
}

impl Observer<Watched<'_>> for Watcher<'_> {
    fn bug(&mut self, bug: &trust::Bug, machine: &Watched<'_>) {
        let described = describe::bug(self.binary, machine.inner(), bug);
        (self.reply)(Reply::Bug(Box::new(FoundBug {
            described,
            raw: bug.clone(),
        })));
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        self.counters
            .executions()
            .store(counts.executions, Ordering::Relaxed);
        self.counters
            .blocked()
            .store(counts.blocked, Ordering::Relaxed);
        let stop = self.counters.stop().load(Ordering::Relaxed) != 0;
        if stop || exceeds(counts, self.limit) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Stops the search when told to, and nothing else.
struct Stoppable<'a> {
    counters: &'a Counters,
}

impl Observer<Watched<'_>> for Stoppable<'_> {
    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        match self.counters.stop().load(Ordering::Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

/// Runs the schedule of `bug`, step by step, and looks how it ends.
fn replay(machine: &mut Watched<'_>, bug: &trust::Bug, binary: &Binary) -> Replayed {
    let mut run = Run::new(machine);
    for (n, step) in bug.witness.steps.iter().enumerate() {
        let pending = run.machine().pending(step.thread);
        let as_before = matches!(pending, Pending::Op(op) if same_sort(&op, &step.op));
        if !as_before || run.alternatives(step.thread) <= step.choice {
            let what = format!("{} does something else in step {}", step.thread, n + 1);
            return Replayed::Diverged(what);
        }
        run.step(step.thread, step.choice);
    }
    let threads = (0..run.machine().threads() as u32).map(ThreadId);
    let stuck = threads.clone().all(|thread| run.alternatives(thread) == 0);
    let refused = threads.clone().any(|thread| {
        matches!(
            run.machine().pending(thread),
            Pending::Stopped(Stop::Refused)
        )
    });
    let failure = run.machine().failure();
    let native = run.machine().inner();
    let mut again = bug.clone();
    match (failure, bug.failure.kind) {
        (Some(failure), _) => again.failure = failure,
        (None, FailureKind::Deadlock | FailureKind::Livelock) if stuck && !refused => {
            again.failure.site = native.site(again.failure.thread);
            for waiting in &mut again.waiting {
                waiting.site = native.site(waiting.thread);
            }
        }
        _ => return Replayed::Passed,
    }
    Replayed::Failed(Box::new(describe::bug(binary, native, &again)))
}

/// Whether two operations are the same apart from the values that they write.
fn same_sort(one: &selvedge_core::Op, other: &selvedge_core::Op) -> bool {
    use std::mem::discriminant;
    discriminant(one) == discriminant(other) && one.location() == other.location()
}
