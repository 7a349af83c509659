//! Several processes that explore the units of one search.
//!
//! Each worker is watched by an OS thread of its own, which hands it units and takes up its answers. A
//! worker that dies loses its unit and nothing else: nothing of it was counted.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use selvedge_core::trust::{Budget, Unit, UnitId};

use super::division::Division;
use super::wire::{self, Answer, Hello, Known, Order, Ready, Task};
use crate::checkpoint::Checkpoint;
use crate::rt::start_again;
use crate::watch::Progress;

/// How long a slice takes while there are not enough units for all workers, and otherwise.
const SHORT: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_millis(200);

/// A unit that this many workers died of is given up, and one whose workers were killed this often.
const DIED: u32 = 2;
const KILLED: u32 = 5;

/// The work of a pool, and its limits.
pub(super) struct Plan {
    pub(super) task: Task,
    pub(super) hello: Hello,
    pub(super) jobs: usize,
    /// When slices end by themselves, for tests of slices.
    pub(super) budget: Budget,
    pub(super) until: Option<Instant>,
    /// The steps of this process in the first execution.
    pub(super) first: u64,
    /// Whether workers tell where executions come from.
    pub(super) origins: bool,
}

/// Data that the threads of a pool share.
struct Shared {
    division: Division,
    /// The epoch of the search, and a fingerprint of its first execution, which is the same in every process: with
    /// other knowledge, the first execution may be another one.
    first: (u32, u64),
    checkpoint: Option<Checkpoint>,
    progress: Progress,
    /// How often a worker died of a unit.
    deaths: HashMap<UnitId, u32>,
    /// Why the search cannot go on.
    trouble: Option<String>,
    /// All is done, or was stopped.
    over: bool,
    /// The workers that are running.
    sockets: Vec<UnixStream>,
}

struct Pool {
    plan: Plan,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// A process that explores units. Dropping it ends it.
struct Worker {
    child: Child,
    socket: UnixStream,
    /// The worker knows what was known in this epoch of the search.
    epoch: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A unit to be explored.
struct Taken {
    id: UnitId,
    order: Order,
    epoch: u32,
}

/// Searches until nothing is left, or the time is over. An error tells why it cannot.
pub(super) fn run(
    plan: Plan,
    division: Division,
    checkpoint: Option<Checkpoint>,
    progress: Progress,
) -> (Division, Option<Checkpoint>, Progress, Result<(), String>) {
    let jobs = plan.jobs;
    let shared = Shared {
        first: (division.work.epoch(), plan.first),
        division,
        checkpoint,
        progress,
        deaths: HashMap::new(),
        trouble: None,
        over: false,
        sockets: Vec::new(),
    };
    let pool = Pool {
        plan,
        shared: Mutex::new(shared),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| pool.work());
        }
    });
    let shared = pool.shared.into_inner();
    let shared = shared.unwrap_or_else(PoisonError::into_inner);
    let result = shared.trouble.map_or(Ok(()), Err);
    (shared.division, shared.checkpoint, shared.progress, result)
}

impl Pool {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the search for everybody.
    fn end(&self, mut shared: MutexGuard<'_, Shared>, trouble: Option<String>) {
        shared.over = true;
        if shared.trouble.is_none() {
            shared.trouble = trouble;
        }
        // Answers that nobody needs any more are not waited for.
        for socket in &shared.sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// The work of one thread.
    fn work(&self) {
        let mut worker: Option<Worker> = None;
        while let Some(Taken { id, order, epoch }) = self.next() {
            if worker.as_ref().is_some_and(|worker| worker.epoch != epoch) {
                worker = None;
            }
            let answer = match self.ask(&mut worker, &order, epoch) {
                Ok(answer) => answer,
                Err(Trouble::Died { why, killed }) => {
                    worker = None;
                    self.bury(id, (&why, killed));
                    continue;
                }
                Err(Trouble::Fatal(why)) => {
                    self.end(self.shared(), Some(why));
                    return;
                }
            };
            // It knows more than the others do.
            if answer.again.is_some() {
                worker = None;
            }
            self.take_up(id, answer);
        }
    }

    /// The next unit, once there is one; `None` if the search is over.
    fn next(&self) -> Option<Taken> {
        let mut shared = self.shared();
        loop {
            if shared.over {
                return None;
            }
            let now = Instant::now();
            if self.plan.until.is_some_and(|until| now >= until) {
                self.end(shared, None);
                return None;
            }
            if let Some((id, unit)) = shared.division.work.take() {
                let waiting = shared.division.work.waiting();
                return Some(Taken {
                    id,
                    order: self.order(unit, waiting, now),
                    epoch: shared.division.work.epoch(),
                });
            }
            let wait = self.changed.wait_timeout(shared, LONG);
            shared = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The order to explore `unit`, if this many others wait.
    fn order(&self, unit: Option<Unit>, waiting: usize, now: Instant) -> Order {
        let enough = waiting >= self.plan.jobs;
        let forced = self.plan.budget;
        let time = if enough { LONG } else { SHORT };
        let time = forced.time.or(forced.executions.is_none().then_some(time));
        let left = self.plan.until.map(|until| until - now);
        let budget = Budget {
            time: time.into_iter().chain(left).min(),
            executions: forced.executions,
        };
        let pieces = if enough { 1 } else { 2 * self.plan.jobs + 2 };
        Order {
            unit,
            budget,
            pieces: pieces as u64,
        }
    }

    /// Has a worker explore a unit.
    fn ask(
        &self,
        worker: &mut Option<Worker>,
        order: &Order,
        epoch: u32,
    ) -> Result<Answer, Trouble> {
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(self.start(epoch)?),
        };
        let socket = &mut worker.socket;
        let answer = wire::send(socket, order).and_then(|()| wire::receive(socket));
        answer.map_err(|error| worker.death(&error))
    }

    /// Starts a worker, and makes sure that the program does there what it does here.
    fn start(&self, epoch: u32) -> Result<Worker, Trouble> {
        let test = &self.plan.task.test;
        let arguments = ["--exact", test, "--include-ignored", "--test-threads=1"];
        let started = start_again(&arguments, |command| {
            command.env(wire::VARIABLE, self.plan.task.text());
            // This process writes the files that the worker would write.
            for name in ["SELVEDGE_REPORT", "SELVEDGE_LOG", "SELVEDGE_PROGRESS"] {
                command.env_remove(name);
            }
        });
        let (child, socket) = started.map_err(|error| {
            Trouble::Fatal(format!("the test {test} cannot be started again: {error}"))
        })?;
        let mut worker = Worker {
            child,
            socket,
            epoch,
        };
        let learned = {
            let mut shared = self.shared();
            let socket = worker.socket.try_clone();
            shared.sockets.extend(socket.ok());
            if shared.over {
                let _ = worker.socket.shutdown(Shutdown::Both);
            }
            shared.division.work.learned().to_vec()
        };
        let origins = self.plan.origins;
        let socket = &mut worker.socket;
        let ready = wire::send(socket, &self.plan.hello)
            .and_then(|()| wire::send(socket, &Known { learned, origins }))
            .and_then(|()| wire::receive::<Ready>(socket));
        let ready = ready.map_err(|error| match worker.death(&error) {
            Trouble::Died { why, killed } => Trouble::Died {
                why: format!("{why} before it came to the model"),
                killed,
            },
            fatal => fatal,
        })?;
        let mut shared = self.shared();
        if shared.first.0 < epoch {
            shared.first = (epoch, ready.first);
        }
        match shared.first == (epoch, ready.first) || shared.first.0 > epoch {
            true => Ok(worker),
            false => Err(Trouble::Fatal(DIFFERS.to_owned())),
        }
    }

    /// A worker has died. Its unit is explored by another one; if that one dies as well, the search cannot
    /// go on. Somebody may have killed it, so that it is tried more often.
    fn bury(&self, id: UnitId, (why, killed): (&str, bool)) {
        let mut shared = self.shared();
        if shared.over {
            return;
        }
        shared.division.work.give_back(id);
        let deaths = shared.deaths.entry(id).or_default();
        *deaths += 1;
        let times = *deaths;
        match times >= if killed { KILLED } else { DIED } {
            true => self.end(
                shared,
                Some(format!("a worker process {why}, {times} times")),
            ),
            false => self.changed.notify_all(),
        }
    }

    fn take_up(&self, id: UnitId, answer: Answer) {
        let mut guard = self.shared();
        let shared = &mut *guard;
        if shared.over {
            return;
        }
        if shared.division.answer(id, answer) {
            shared.deaths.clear();
        }
        shared.progress.update(&shared.division.work.counts());
        if let Some(checkpoint) = &mut shared.checkpoint {
            let (epoch, first) = shared.first;
            checkpoint.first = (epoch == shared.division.work.epoch()).then_some(first);
        }
        let saved = match &mut shared.checkpoint {
            Some(checkpoint) if checkpoint.is_due() && !shared.division.work.is_done() => {
                checkpoint.write(&shared.division)
            }
            _ => Ok(()),
        };
        if saved.is_err() || shared.division.work.is_done() {
            return self.end(guard, saved.err());
        }
        drop(guard);
        self.changed.notify_all();
    }
}

/// The error of a worker whose first execution is another one.
pub(super) const DIFFERS: &str = "it did not behave the same in another process: something that is not part of the model makes \
                       a difference, such as a file, a random number or the order of addresses (SELVEDGE_JOBS=1 \
                       explores it in one process)";

/// Why there is no answer.
enum Trouble {
    /// The worker has ended, perhaps because somebody killed it.
    Died { why: String, killed: bool },
    /// No worker would do better.
    Fatal(String),
}

impl Worker {
    /// The end of the worker, which does not answer because of `error`.
    fn death(&mut self, error: &io::Error) -> Trouble {
        let _ = self.socket.shutdown(Shutdown::Both);
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                let killed = status.signal() == Some(libc::SIGKILL);
                let why = format!("ended with {status}");
                return Trouble::Died { why, killed };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Trouble::Died {
            why: format!("said something that is not understood ({error})"),
            killed: false,
        }
    }
}
