//! Starts a worker and watches it: listens, keeps to the limits, and sees to it that it ends.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use selvedge_core::report::{Counts, StateCounts};
use selvedge_runtime::process::SharedCounters;

use super::child::OURSELVES;
use super::history::Sample;
use super::progress::{Limits, Now, Progress};
use super::protocol::{self, Counters, Reply, Request};
use crate::interrupt;
use crate::problem::{Problem, warn};

/// How often the worker is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a worker that was told to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The time is up.
    Timeout,
    /// The user said so.
    Interrupted,
    /// It takes too much memory: so many bytes are allowed.
    Memory(u64),
    /// It does not get on.
    Hung,
}

/// Why a search ended early that may take so much time, as the user is told.
pub(crate) fn reason(cause: Option<&Cause>, timeout: Option<Duration>) -> String {
    match cause {
        Some(Cause::Timeout) => {
            let seconds = timeout.unwrap_or_default().as_secs_f64();
            format!("stopped after {seconds} seconds (--timeout)")
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

/// What watching a worker came to.
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
    #[expect(dead_code, reason = "for the HTML report")]
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
    let worker = Worker::start(request, output).map_err(failed)?;
    let start = Instant::now();
    let mut progress = Progress::new(limits);
    let patience = request
        .machine
        .watchdog
        .saturating_mul(2)
        .saturating_add(SILENCE);
    let mut guard = Guard::new(limits, patience, worker.child.id());
    if let Some(limit) = request.machine.memory_limit {
        guard.memory = limit as u64;
    }
    guard.processes = u64::from(request.processes());
    let finished = loop {
        match worker.replies.recv_timeout(TICK) {
            Ok(reply) => {
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
            Err(RecvTimeoutError::Disconnected) => break false,
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
fn warn_unconfined(why: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        warn(&format!(
            "this system cannot confine the program under test ({why}): run only programs that you trust"
        ));
    });
}

/// A running worker. Dropping it kills it.
struct Worker {
    child: Child,
    replies: Receiver<Reply>,
}

impl Worker {
    fn start(request: &Request, output: Output) -> io::Result<Worker> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(OURSELVES);
        command
            .arg0("selvedge")
            .args(["worker", "--parent"])
            .arg(process::id().to_string());
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        if output == Output::Diverted {
            command.stdout(Stdio::from(io::stderr()));
        }
        let child = command.spawn()?;
        // Its end of the socket belongs to it alone now, so that its death closes it.
        drop(command);
        let (sender, replies) = mpsc::channel();
        let worker = Worker { child, replies };
        protocol::send(&mut ours, request)?;
        thread::spawn(move || {
            while let Ok(Some(reply)) = protocol::receive(&mut ours) {
                if sender.send(reply).is_err() {
                    break;
                }
            }
        });
        Ok(worker)
    }

    /// Sees it off, after giving one that is about to end by itself a moment to do so: how it
    /// ended matters if it died.
    fn end(mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

/// Half of the machine's memory, so that a program that eats it does not take others along.
fn memory_limit() -> u64 {
    let total = || -> Option<u64> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    total().map_or(u64::MAX, |total| (total / 2).max(1 << 30))
}

/// The memory that a process really has.
fn resident(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
