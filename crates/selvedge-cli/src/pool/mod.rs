//! A search by several processes: the command holds the work units, worker processes explore them.
//!
//! A slice of a search is a pure function, from a unit and a budget to counts, bugs and further units.
//! A worker that dies loses its unit and nothing else: nothing of it was counted.

pub(crate) mod checkpoint;
pub(crate) mod estimate;
pub(crate) mod seat;
pub(crate) mod state;

use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use selvedge_core::trust::UnitId;

use self::checkpoint::Checkpoint;
use self::seat::Seat;
pub(crate) use self::state::{Outcome, State, Work};
use crate::args;
use crate::interrupt;
use crate::problem::Problem;
use crate::worker::history::Sample;
use crate::worker::orders::{Budget, Order, Packed, Sliced};
use crate::worker::process::{Message, memory_limit};
use crate::worker::progress::{Limits, Now, Progress};
use crate::worker::protocol::{FoundBug, HotLoop, Reply, Request, Rerun, Unloadable};
use crate::worker::supervise::{Cause, GRACE, TICK, patience, warn_unconfined};

/// A search that ends before has one worker, unless the user asks for more.
const ALONE: Duration = Duration::from_secs(2);
/// The same if the user asks for more.
const ALONE_IF_ASKED: Duration = Duration::from_millis(50);
/// A slice of a long search ends by itself after this time, to tell how far it has come.
const SLICE: Duration = Duration::from_millis(500);
/// Once a search takes longer than [`ALONE`], a worker makes random descents for this part of the time so far, to tell
/// how much is left,
const FORECAST_PART: u32 = 32;
/// and again, for longer, when it has taken this many times as long.
const FORECAST_AGAIN: u32 = 16;
/// A slice is not stopped for others before it has taken so long.
const SHORTEST: Duration = Duration::from_millis(5);
/// A unit whose workers were killed from outside this often is given up: memory may be short.
const KILLED: u32 = 20;
/// How often an idle worker makes the command look for work.
const IDLE_TICK: Duration = Duration::from_millis(2);

/// How a pool searches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The most workers.
    jobs: usize,
    /// How long one of them searches alone.
    alone: Duration,
    /// When slices end by themselves, for tests of slices.
    budget: Budget,
}

impl Plan {
    /// As the user asks for: one worker for each processor if that is not said.
    pub(crate) fn new(search: &args::SearchOptions) -> Plan {
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let budget = forced_budget();
        let alone = match search.jobs {
            _ if budget != Budget::default() => Duration::ZERO,
            Some(_) => ALONE_IF_ASKED,
            None => ALONE,
        };
        Plan {
            jobs: search.jobs.map_or_else(processors, |jobs| jobs as usize),
            alone,
            budget,
        }
    }
}

/// The budget that `SELVEDGE_SLICE` asks for, for tests: `10` executions or `10ms`.
pub(crate) fn forced_budget() -> Budget {
    Budget::parse(&std::env::var("SELVEDGE_SLICE").unwrap_or_default())
}

/// The questions of a pool while it searches.
pub(crate) trait Client {
    /// A loop went round often.
    fn hot_loop(&mut self, hot: HotLoop);

    /// A unit ended a worker that did nothing else, in the run that the order
    /// says: the bug.
    fn died(&mut self, order: Order, status: ExitStatus) -> Result<FoundBug, Problem>;
}

/// The workers, and what they work on.
pub(crate) struct Pool<'a> {
    request: &'a Request,
    limits: Limits,
    plan: Plan,
    state: State,
    checkpoint: Option<Checkpoint>,
    client: &'a mut dyn Client,
    seats: Vec<Seat>,
    hear: Sender<Message>,
    replies: Receiver<Message>,
    /// How many workers were started.
    started: usize,
    start: Instant,
    next_look: Instant,
    /// Why the workers are to stop, and since when.
    stopping: Option<(Option<Cause>, Instant)>,
    /// How often a worker died of a unit.
    deaths: HashMap<UnitId, u32>,
    /// After how long a worker is told to make random descents.
    forecast: Duration,
    processor: Vec<Duration>,
    memory: u64,
    memory_limit: u64,
    unloadable: Option<Unloadable>,
}

impl<'a> Pool<'a> {
    /// A pool that does what `request` asks for.
    pub(crate) fn new(
        request: &'a Request,
        limits: Limits,
        plan: Plan,
        (state, checkpoint): (State, Option<Checkpoint>),
        client: &'a mut dyn Client,
    ) -> Pool<'a> {
        let (hear, replies) = mpsc::channel();
        let start = Instant::now();
        Pool {
            request,
            limits,
            plan,
            state,
            checkpoint,
            client,
            seats: Vec::new(),
            hear,
            replies,
            started: 0,
            start,
            next_look: start,
            stopping: None,
            deaths: HashMap::new(),
            forecast: ALONE,
            processor: Vec::new(),
            memory: 0,
            memory_limit: request
                .machine
                .memory_limit
                .map_or_else(memory_limit, |limit| limit as u64),
            unloadable: None,
        }
    }

    /// Searches until nothing is left, or until it is stopped.
    pub(crate) fn run(mut self) -> Result<Outcome, Problem> {
        let mut progress = Progress::new(self.limits);
        while self.unloadable.is_none() {
            self.hand_out()?;
            let busy = self.seats.iter().any(|seat| seat.task().is_some());
            if self.state.work.is_done() || !busy {
                break;
            }
            let idle = self.seats.iter().any(|seat| seat.task().is_none());
            let tick = if idle { IDLE_TICK } else { TICK };
            match self.replies.recv_timeout(tick) {
                Ok((_, Some(Reply::HotLoop(hot)))) => {
                    // The line makes room for what is said about it.
                    progress.clear();
                    self.client.hot_loop(hot);
                }
                Ok((number, Some(reply))) => {
                    let sliced = matches!(reply, Reply::Sliced(_));
                    self.hear(number, reply);
                    // Tests of slices need a file soon.
                    if sliced && self.plan.budget != Budget::default() {
                        self.save()?;
                    }
                }
                Ok((number, None)) => self.bury(number)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.next_look <= Instant::now() {
                self.next_look = Instant::now() + TICK;
                progress.update(&self.now());
                self.look()?;
            }
        }
        let history = progress.finish(&self.now());
        match &self.checkpoint {
            Some(checkpoint) if self.state.work.is_done() => checkpoint.remove(),
            _ => self.save()?,
        }
        Ok(self.end(history))
    }

    fn save(&mut self) -> Result<(), Problem> {
        let elapsed = self.elapsed();
        let Some(checkpoint) = &mut self.checkpoint else {
            return Ok(());
        };
        checkpoint.write(&self.state, elapsed)
    }

    fn elapsed(&self) -> Duration {
        self.state.elapsed + self.start.elapsed()
    }

    fn end(mut self, history: Vec<Sample>) -> Outcome {
        let elapsed = self.elapsed();
        for seat in self.seats.drain(..) {
            self.processor.push(seat.processor);
        }
        self.state.noticed.memory = self.state.noticed.memory.max(self.memory);
        Outcome {
            cause: self.stopping.and_then(|(cause, _)| cause),
            unloadable: self.unloadable,
            processor: self.processor,
            history,
            ..self.state.outcome(elapsed, self.limits)
        }
    }

    fn now(&self) -> Now {
        let mut counts = self.state.work.counts();
        for seat in &self.seats {
            counts += seat.counts();
        }
        Now {
            counts,
            states: None,
            memory: self.memory,
            memory_limit: self.memory_limit,
            done: self.state.slices.any().then(|| self.state.done()),
            estimate: self.state.estimate(self.elapsed()),
            workers: None,
        }
    }

    /// Gives units to workers that have none, and starts workers for that.
    fn hand_out(&mut self) -> Result<(), Problem> {
        if self.stopping.is_some() {
            return Ok(());
        }
        let most = match self.start.elapsed() >= self.plan.alone {
            true => self.plan.jobs,
            false => 1,
        };
        loop {
            let free = self.seats.iter().position(|seat| seat.task().is_none());
            if free.is_none() && self.seats.len() >= most {
                return Ok(());
            }
            let Some(reserved) = self.reserve() else {
                return Ok(());
            };
            let Some((id, unit)) = self.state.work.take() else {
                self.ask_for_more(most);
                return Ok(());
            };
            let suspect = self.deaths.contains_key(&id);
            let seat = match free.filter(|&seat| !suspect || !self.seats[seat].used) {
                Some(seat) => seat,
                None => self.add_seat()?,
            };
            self.order(seat, (id, unit), reserved)?;
        }
    }

    fn add_seat(&mut self) -> Result<usize, Problem> {
        let number = self.started;
        self.started += 1;
        let seat = Seat::start(self.request, number, self.hear.clone()).map_err(failed)?;
        self.seats.push(seat);
        Ok(self.seats.len() - 1)
    }

    /// How many executions the next slice may have, if there is a limit on them: zero if not.
    fn reserve(&self) -> Option<u64> {
        let Some(limit) = self.limits.executions else {
            return Some(0);
        };
        let reserved = |seat: &Seat| seat.task().map_or(0, |task| task.reserved);
        let given: u64 = self.seats.iter().map(reserved).sum();
        // One more, to see whether there are more.
        let left = (limit + 1).saturating_sub(self.state.work.counts().all() + given);
        let share = match self.seats.len() > 1 {
            true => (left / (2 * self.seats.len() as u64)).max(1),
            false => left,
        };
        (left > 0).then_some(share)
    }

    fn order(
        &mut self,
        seat: usize,
        (id, unit): (UnitId, Packed),
        reserved: u64,
    ) -> Result<(), Problem> {
        let order = self.order_for(seat, id, unit, reserved);
        if order.forecast > Duration::ZERO {
            self.forecast = self.start.elapsed() * FORECAST_AGAIN;
        }
        let seat = &mut self.seats[seat];
        seat.epoch = Some(self.state.work.epoch());
        match seat.order(id, &order, reserved) {
            // Its end is heard of by itself.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error)),
            _ => Ok(()),
        }
    }

    fn order_for(&self, seat: usize, id: UnitId, unit: Packed, reserved: u64) -> Order {
        let limit = Some(reserved).filter(|&reserved| reserved > 0);
        let forced = self.plan.budget;
        let time = match self.start.elapsed() < ALONE {
            true => ALONE,
            false => SLICE,
        };
        let informed = self.seats[seat].epoch == Some(self.state.work.epoch());
        Order {
            unit,
            known: self.state.work.known_before(id),
            learned: match informed {
                true => Vec::new(),
                false => self.state.work.learned().to_vec(),
            },
            budget: Budget {
                time: forced.time.or(forced.executions.is_none().then_some(time)),
                executions: forced.executions.into_iter().chain(limit).min(),
            },
            pieces: 1,
            rerun: Rerun::No,
            forecast: match self.start.elapsed() {
                // Tests of slices look at nothing else.
                _ if forced != Budget::default() => Duration::ZERO,
                elapsed if elapsed < self.forecast => Duration::ZERO,
                elapsed => elapsed / FORECAST_PART,
            },
        }
    }

    /// Makes a worker stop that has been busy for long, so that others get a part of its unit.
    fn ask_for_more(&mut self, most: usize) {
        let idle = self.seats.iter().filter(|seat| seat.task().is_none());
        let missing = idle.count() + most.saturating_sub(self.seats.len());
        let asked = |seat: &Seat| seat.task().is_some_and(|task| task.told_to_stop);
        if self.seats.iter().any(asked) {
            return;
        }
        let busy = self.seats.iter_mut().filter(|seat| {
            seat.task()
                .is_some_and(|task| task.since.elapsed() >= SHORTEST)
        });
        let longest = busy.min_by_key(|seat| seat.task().map(|task| task.since));
        if let Some(seat) = longest {
            // Some more than there are workers, since units differ in size.
            seat.stop(2 * missing as u64 + 2);
        }
    }

    fn hear(&mut self, number: usize, reply: Reply) {
        match reply {
            Reply::Sliced(sliced) => self.answer(number, *sliced),
            Reply::Unloadable(why) => self.unloadable = Some(why),
            Reply::Unconfined(why) => warn_unconfined(&why),
            _ => {}
        }
    }

    fn answer(&mut self, number: usize, sliced: Sliced) {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.number == number) else {
            return;
        };
        seat.processor += sliced.processor;
        let Some(task) = seat.answered() else { return };
        if self.state.answer(task.unit, sliced) {
            self.forecast = ALONE;
            self.deaths.clear();
        }
        self.drop_unwanted();
    }

    /// Stops workers whose units are no longer of interest.
    fn drop_unwanted(&mut self) {
        for seat in &mut self.seats {
            if let Some(task) = seat.task()
                && !self.state.work.wants(task.unit)
            {
                seat.stop(1);
            }
        }
    }

    /// A worker has died. Its unit is explored again by a worker that does nothing else; if that one dies
    /// too, the program is to blame.
    fn bury(&mut self, number: usize) -> Result<(), Problem> {
        let Some(at) = self.seats.iter().position(|seat| seat.number == number) else {
            return Ok(());
        };
        let seat = self.seats.swap_remove(at);
        self.processor.push(seat.processor);
        let (task, runs, counts, used) = (seat.task(), seat.runs(), seat.counts(), seat.used);
        let status = seat.end().map_err(failed)?;
        let Some(task) = task.filter(|task| self.state.work.wants(task.unit)) else {
            return Ok(());
        };
        self.state.work.give_back(task.unit);
        let deaths = self.deaths.entry(task.unit).or_default();
        *deaths += 1;
        // Only a worker that has done nothing else shows in which run it happens.
        let killed = status.signal() == Some(Signal::SIGKILL as i32);
        if used || (killed && *deaths < KILLED) {
            return Ok(());
        }
        let Some(unit) = self.state.work.unit(task.unit).cloned() else {
            return Ok(());
        };
        let order = Order {
            unit,
            known: self.state.work.known_before(task.unit),
            learned: self.state.work.learned().to_vec(),
            budget: Budget::default(),
            pieces: 1,
            rerun: Rerun::Run(runs),
            forecast: Duration::ZERO,
        };
        let bug = self.client.died(order, status)?;
        self.state.answer(task.unit, Sliced::died(counts, bug));
        self.drop_unwanted();
        Ok(())
    }

    /// Holds the workers to their limits.
    fn look(&mut self) -> Result<(), Problem> {
        let memory = self.seats.iter().map(Seat::memory).sum();
        self.memory = self.memory.max(memory);
        let patience = patience(self.request);
        if self.memory > self.memory_limit {
            self.kill(Cause::Memory(self.memory_limit));
            return Ok(());
        }
        if self.seats.iter_mut().any(|seat| seat.silence() > patience) {
            self.kill(Cause::Hung);
            return Ok(());
        }
        if self.checkpoint.as_ref().is_some_and(Checkpoint::is_due) {
            self.save()?;
        }
        let now = Instant::now();
        let timeout = self.limits.timeout;
        let cause = if interrupt::requests() > 0 {
            Some(Cause::Interrupted)
        } else if timeout.is_some_and(|limit| now - self.start >= limit) {
            Some(Cause::Timeout)
        } else {
            None
        };
        if let Some(cause) = cause {
            let (_, since) = *self.stopping.get_or_insert((Some(cause.clone()), now));
            self.seats.iter_mut().for_each(|seat| seat.stop(1));
            if now - since > GRACE || interrupt::requests() > 1 {
                self.kill(cause);
            }
        }
        Ok(())
    }

    /// Ends all workers at once. Their units stay as they were.
    fn kill(&mut self, cause: Cause) {
        self.stopping.get_or_insert((Some(cause), Instant::now()));
        for seat in self.seats.drain(..) {
            self.processor.push(seat.processor);
            if let Some(task) = seat.task() {
                self.state.work.give_back(task.unit);
            }
        }
    }
}

fn failed(error: io::Error) -> Problem {
    Problem::internal(format!("cannot run the worker: {error}"))
}
