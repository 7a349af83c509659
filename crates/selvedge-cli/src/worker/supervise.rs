//! Starts a worker and watches it: listens, keeps to the limits, and sees to it that it ends.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::process::ExitStatus;
use std::sync::Once;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use selvedge_core::report::{Counts, StateCounts};
use selvedge_runtime::process::SharedCounters;
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::history::Sample;
use super::process::{Worker, memory_limit, resident};
use super::progress::{Limits, Now, Progress};
use super::protocol::{Reply, Request};
use crate::interrupt;
use crate::problem::{Problem, warn};

/// How often the worker is looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long a worker that was told to stop may take before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// How long a worker may take no step at all, beyond the watchdog, before it counts as hung.
const SILENCE: Duration = Duration::from_secs(60);

/// How a worker ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It said all it had to say.
    Finished,
    /// It was stopped because of this.
    Stopped(Cause),
    /// It died.
    Died(ExitStatus),
}

/// Why a worker was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// The time is up.
    Timeout,
    /// The user said so.
    Interrupted,
    /// It takes too much memory: this many bytes are allowed.
    Memory(u64),
    /// It does not get on.
    Hung,
}

/// How long a worker may take no step at all before it counts as hung.
pub(crate) fn patience(request: &Request) -> Duration {
    let watchdog = request.machine.watchdog;
    watchdog.saturating_mul(2).saturating_add(SILENCE)
}

/// Why a search ended early that may take so much time, as the user is told.
pub(crate) fn reason(cause: Option<&Cause>, timeout: Option<Duration>) -> String {
    match cause {
        Some(Cause::Timeout) => {
            let seconds = timeout.unwrap_or_default().as_secs_f64();
            let plural = if seconds == 1.0 { "" } else { "s" };
            format!("stopped after {seconds} second{plural} (--timeout)")
        }
        Some(Cause::Memory(limit)) => {
            let limit = limit >> 20;
            format!(
                "stopped because the program took more than {limit} MiB of memory (--memory-limit)"
            )
        }
        Some(Cause::Hung) => "stopped because it made no progress".to_owned(),
        Some(Cause::Interrupted) | None => "interrupted".to_owned(),
    }
}

/// The result of watching a worker.
#[derive(Debug)]
pub(crate) struct Watch {
    /// How it ended.
    pub(crate) end: End,
    /// Why it was told to stop, also if it ended by itself then.
    pub(crate) cause: Option<Cause>,
    /// The executions it counted.
    pub(crate) counts: Counts,
    /// The states it counted, if it is about states.
    pub(crate) states: Option<StateCounts>,
    /// How often it had started the program.
    pub(crate) runs: u64,
    /// How many steps it had taken.
    pub(crate) steps: u64,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// The most memory that it was seen to have, in bytes.
    pub(crate) memory: u64,
    /// How it got on.
    pub(crate) history: Vec<Sample>,
}

/// Where the program's own standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// To the command's.
    Shown,
    /// To standard error, because standard output is for one object of JSON.
    Diverted,
}

/// Has a worker do what `request` asks for, and hands on what it says.
pub(crate) fn run(
    request: &Request,
    limits: Limits,
    output: Output,
    listen: impl FnMut(Reply),
) -> Result<Watch, Problem> {
    run_until(request, limits, output, to_the_end(listen))
}

/// A listener that never stops the worker.
pub(crate) fn to_the_end(mut listen: impl FnMut(Reply)) -> impl FnMut(Reply) -> ControlFlow<()> {
    move |reply| {
        listen(reply);
        ControlFlow::Continue(())
    }
}

/// The same; the worker is told to stop as soon as the listener says so.
pub(crate) fn run_until(
    request: &Request,
    limits: Limits,
    output: Output,
    mut listen: impl FnMut(Reply) -> ControlFlow<()>,
) -> Result<Watch, Problem> {
    let failed = |error: io::Error| Problem::internal(format!("cannot run the worker: {error}"));
    let _ = fs::remove_file(&request.counters);
    let counters = Counters(SharedCounters::create(&request.counters).map_err(failed)?);
    let (sender, replies) = mpsc::channel();
    let worker = Worker::start(request, output, 0, sender).map_err(failed)?;
    let start = Instant::now();
    let mut progress = Progress::new(limits);
    let mut guard = Guard::new(limits, patience(request), worker.id());
    if let Some(limit) = request.machine.memory_limit {
        guard.memory = limit as u64;
    }
    guard.processes = u64::from(request.processes());
    let finished = loop {
        match replies.recv_timeout(TICK) {
            Ok((_, Some(reply))) => {
                if let Reply::Unconfined(why) = &reply {
                    warn_unconfined(why);
                }
                let last = matches!(reply, Reply::Done | Reply::Unloadable(_));
                if matches!(reply, Reply::HotLoop(_)) {
                    // The line makes room for what is said about it.
                    progress.clear();
                }
                if listen(reply).is_break() {
                    counters.stop().store(1, Ordering::Relaxed);
                }
                if last {
                    break true;
                }
            }
            Err(RecvTimeoutError::Timeout) => progress.update(&guard.now(&counters)),
            Ok((_, None)) | Err(RecvTimeoutError::Disconnected) => break false,
        }
        if guard.look(&counters) == Verdict::Kill {
            break false;
        }
    };
    let history = progress.finish(&guard.now(&counters));
    let elapsed = start.elapsed();
    let status = worker.end().map_err(failed)?;
    let end = match (finished, guard.cause.clone()) {
        (true, _) => End::Finished,
        (false, Some(cause)) => End::Stopped(cause),
        (false, None) => End::Died(status),
    };
    let runs = counters.runs().load(Ordering::Relaxed);
    Ok(Watch {
        end,
        cause: guard.cause,
        counts: counters.counts(),
        states: counters.states(),
        runs,
        steps: counters.steps().load(Ordering::Relaxed),
        elapsed,
        memory: guard.largest,
        history,
    })
}

/// Tells once that the program under test can do whatever its user can.
pub(crate) fn warn_unconfined(why: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        warn(&format!(
            "this system cannot confine the program under test ({why}): run only programs that you trust"
        ));
    });
}

#[derive(PartialEq, Eq)]
enum Verdict {
    GoOn,
    Kill,
}

/// Holds a worker to its limits.
struct Guard {
    start: Instant,
    limits: Limits,
    patience: Duration,
    memory: u64,
    /// The most memory seen.
    largest: u64,
    pid: u32,
    /// How many processes there are. All of them grow alike.
    processes: u64,
    cause: Option<Cause>,
    /// When it was told to stop.
    told: Option<Instant>,
    /// The newest count of steps, and since when.
    steps: (u64, Instant),
    next_look: Instant,
}

impl Guard {
    fn new(limits: Limits, patience: Duration, pid: u32) -> Guard {
        let start = Instant::now();
        let (cause, told, memory) = (None, None, memory_limit());
        Guard {
            start,
            limits,
            patience,
            memory,
            largest: 0,
            pid,
            processes: 1,
            cause,
            told,
            steps: (0, start),
            next_look: start,
        }
    }

    fn now(&self, counters: &Counters) -> Now {
        Now {
            counts: counters.counts(),
            states: counters.states(),
            memory: self.largest,
            memory_limit: self.memory,
            done: None,
            estimate: None,
            workers: None,
        }
    }

    fn look(&mut self, counters: &Counters) -> Verdict {
        let now = Instant::now();
        if now < self.next_look {
            return Verdict::GoOn;
        }
        self.next_look = now + TICK;
        let steps = counters.steps().load(Ordering::Relaxed);
        if steps != self.steps.0 {
            self.steps = (steps, now);
        }
        let memory = resident(self.pid).unwrap_or(0) * self.processes;
        self.largest = self.largest.max(memory);
        let cause = if interrupt::requests() > 0 {
            Some(Cause::Interrupted)
        } else if self
            .limits
            .timeout
            .is_some_and(|limit| now - self.start >= limit)
        {
            Some(Cause::Timeout)
        } else if self.largest > self.memory {
            self.cause = Some(Cause::Memory(self.memory));
            return Verdict::Kill;
        } else if now - self.steps.1 > self.patience {
            self.cause = Some(Cause::Hung);
            return Verdict::Kill;
        } else {
            None
        };
        if let Some(cause) = cause {
            self.cause.get_or_insert(cause);
            counters.stop().store(1, Ordering::Relaxed);
            let told = *self.told.get_or_insert(now);
            if now - told > GRACE || interrupt::requests() > 1 {
                return Verdict::Kill;
            }
        }
        Verdict::GoOn
    }
}
