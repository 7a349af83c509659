//! The coordinator of a run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use selvedge_cluster::{Answers, Run, Units};
use selvedge_core::report::Counts;

use super::fold::{Fold, Step};
use super::messages::{Alive, Record, RunState, Snapshot, Trouble};
use super::{STATE, identity};
use crate::interrupt;
use crate::pool::checkpoint::{Subject, encode};
use crate::pool::{Outcome, State, forced_budget};
use crate::problem::{Problem, warn};
use crate::verify::Elsewhere;
use crate::worker::history::Sample;
use crate::worker::orders::Budget;
use crate::worker::progress::{Limits, Now, Progress};
use crate::worker::protocol::Unloadable;
use crate::worker::supervise::{Cause, TICK};

/// How long a slice takes where there are units for all workers,
const SLICE: Duration = Duration::from_secs(1);
/// and where there are not.
const SHORT_SLICE: Duration = Duration::from_millis(100);
/// The most units that the rest of a slice is divided into.
const MOST_PIECES: u64 = 256;
/// How often the record tells that the run has a coordinator.
const BEAT: Duration = Duration::from_secs(1);
/// A machine that has said nothing for so long is gone.
const GONE: Duration = Duration::from_secs(5);
/// After so long without an answer the queue is looked at.
const QUIET: Duration = Duration::from_secs(5);
/// How often the state is saved, at most.
const SAVE: Duration = Duration::from_secs(5);
/// Saving takes no more than this part of the time.
const SAVING_SHARE: u32 = 20;
/// How many answers are taken up before anything else is looked at.
const AT_ONCE: usize = 1000;

/// Hands the units of a search to workers elsewhere.
pub(crate) struct Coordinator {
    run: Run,
    subject: String,
    begun: RefCell<Option<Begun>>,
}

struct Begun {
    record: Record,
    revision: u64,
    state: State,
    /// The number of the last answer in `state`.
    answer: u64,
}

impl Coordinator {
    /// The coordinator of `run`, whose record has this revision, from this state on, which holds the
    /// answers up to this number.
    pub(super) fn new(
        run: Run,
        subject: &Subject,
        (record, revision): (Record, u64),
        (state, answer): (State, u64),
    ) -> Coordinator {
        Coordinator {
            run,
            subject: serde_json::to_string(subject).unwrap_or_default(),
            begun: RefCell::new(Some(Begun {
                record,
                revision,
                state,
                answer,
            })),
        }
    }
}

impl Elsewhere for Coordinator {
    fn explore(&self, limits: Limits) -> Result<Outcome, Problem> {
        let begun = self.begun.take();
        let begun = begun.ok_or_else(|| Problem::internal("the run was searched already"))?;
        let finished = begun.record.state == RunState::Done;
        if finished {
            let elapsed = begun.state.elapsed;
            return Ok(begun.state.outcome(elapsed, limits));
        }
        let reports = self.run.reports()?;
        let now = Instant::now();
        let session = Session {
            run: &self.run,
            subject: &self.subject,
            limits,
            record: begun.record,
            revision: begun.revision,
            fold: Fold::new(begun.state),
            last: begun.answer,
            saved: begun.answer,
            units: self.run.units(),
            answers: self.run.answers(begun.answer),
            reports,
            machines: HashMap::new(),
            start: now,
            answered: now,
            next_beat: now,
            next_save: now + SAVE,
            empty: false,
            trouble: None,
            before: (now, 0),
        };
        session.explore()
    }
}

struct Session<'a> {
    run: &'a Run,
    subject: &'a str,
    limits: Limits,
    record: Record,
    revision: u64,
    fold: Fold,
    /// The last answer that was taken up, and the last one of the saved state.
    last: u64,
    saved: u64,
    units: Units,
    answers: Answers,
    reports: Receiver<Vec<u8>>,
    /// The workers of each machine, and when it was heard of last.
    machines: HashMap<String, (u32, Instant)>,
    start: Instant,
    answered: Instant,
    next_beat: Instant,
    next_save: Instant,
    /// The queue was empty when it was looked at last.
    empty: bool,
    trouble: Option<Trouble>,
    /// When executions were counted for the rate, and how many there were.
    before: (Instant, u64),
}

impl Session<'_> {
    fn explore(mut self) -> Result<Outcome, Problem> {
        let mut progress = Progress::new(self.limits);
        self.requeue();
        let mut cause = None;
        while !self.fold.state.work.is_done() && self.trouble.is_none() && !self.is_over_limit() {
            self.read();
            self.hear();
            if self.next_beat <= Instant::now() {
                self.next_beat = Instant::now() + BEAT;
                self.beat(RunState::Searching)?;
                self.look_at_queue();
                if self.next_save <= Instant::now() && self.last > self.saved {
                    self.save();
                }
            }
            progress.update(&self.now());
            let timeout = self.limits.timeout;
            if interrupt::requests() > 0 {
                cause = Some(Cause::Interrupted);
                break;
            }
            if timeout.is_some_and(|limit| self.start.elapsed() >= limit) {
                cause = Some(Cause::Timeout);
                break;
            }
        }
        let history = progress.finish(&self.now());
        self.finish(cause, history)
    }

    fn elapsed(&self) -> Duration {
        self.fold.state.elapsed + self.start.elapsed()
    }

    fn is_over_limit(&self) -> bool {
        let limit = self.limits.executions;
        limit.is_some_and(|limit| self.fold.counts().all() > limit)
    }

    fn jobs(&self) -> u64 {
        self.machines
            .values()
            .map(|&(jobs, _)| u64::from(jobs))
            .sum()
    }

    fn now(&self) -> Now {
        Now {
            counts: self.fold.counts(),
            states: None,
            memory: 0,
            memory_limit: u64::MAX,
            done: Some(self.fold.state.done()),
            estimate: self.fold.state.estimate(self.elapsed()),
            workers: Some((self.jobs(), self.machines.len() as u64)),
        }
    }

    /// Takes up answers, and waits a moment for the first one.
    fn read(&mut self) {
        let mut wait = TICK;
        for _ in 0..AT_ONCE {
            let Some((number, bytes)) = self.answers.next(wait) else {
                return;
            };
            wait = Duration::ZERO;
            self.last = number;
            self.fold(&bytes);
            if self.fold.state.work.is_done() || self.trouble.is_some() {
                return;
            }
        }
    }

    /// Takes up an answer.
    fn fold(&mut self, bytes: &[u8]) {
        match self.fold.answer(bytes) {
            Step::Ignored => return,
            Step::Next => self.hand_out(),
            Step::Requeue => self.requeue(),
            Step::Trouble(trouble) => self.trouble = Some(trouble),
        }
        self.answered = Instant::now();
    }

    /// Queues all open units, and no others.
    fn requeue(&mut self) {
        self.units.clear();
        self.fold.clear();
        self.hand_out();
    }

    /// Queues the units that are new.
    fn hand_out(&mut self) {
        while let Some(job) = self.fold.next(self.budget()) {
            self.units.add(job);
        }
    }

    /// How long the next slice takes, and into how many units its rest is divided.
    fn budget(&self) -> (Budget, u64) {
        let jobs = self.jobs().max(1);
        let scarce = self.fold.open() < 2 * jobs;
        let forced = forced_budget();
        let time = if scarce { SHORT_SLICE } else { SLICE };
        let limit = self.limits.executions;
        let left = limit.map(|limit| (limit + 1).saturating_sub(self.fold.counts().all()));
        let budget = Budget {
            time: forced.time.or(forced.executions.is_none().then_some(time)),
            executions: forced.executions.into_iter().chain(left).min(),
        };
        let pieces = if scarce {
            (2 * jobs + 2).min(MOST_PIECES)
        } else {
            1
        };
        (budget, pieces)
    }

    /// Hears of the machines that serve.
    fn hear(&mut self) {
        for report in self.reports.try_iter() {
            let Ok(alive) = serde_json::from_slice::<Alive>(&report) else {
                continue;
            };
            let known = self
                .machines
                .insert(alive.machine.clone(), (alive.jobs, Instant::now()));
            if let (None, Some(why)) = (known, alive.refuses) {
                warn(&format!("{} does not take part: {why}", alive.machine));
            }
        }
        self.machines.retain(|_, (_, heard)| heard.elapsed() < GONE);
    }

    /// Tells everybody how far the run has come, and that it has a coordinator.
    fn beat(&mut self, state: RunState) -> Result<(), Problem> {
        let counts: Counts = self.fold.counts();
        let (since, before) = self.before;
        let seconds = since.elapsed().as_secs_f64().max(1e-3);
        self.before = (Instant::now(), counts.executions);
        self.record = Record {
            state,
            beat: self.record.beat + 1,
            executions: counts.executions,
            bugs: self.fold.state.work.bugs() as u64,
            per_second: counts.executions.saturating_sub(before) as f64 / seconds,
            progress: self.fold.state.done(),
            seconds: self.elapsed().as_secs_f64(),
            machines: self.machines.len() as u64,
            jobs: self.jobs(),
            units: self.fold.open(),
            ..self.record.clone()
        };
        match self.run.update(self.record.encode(), self.revision) {
            Ok(Some(revision)) => self.revision = revision,
            // Another process has written it, or this one has and got no answer.
            Ok(None) => {
                let Ok(Some(entry)) = self.run.entry() else {
                    return Ok(());
                };
                let record = Record::decode(&entry.record)?;
                if record.coordinator != identity() {
                    return Err(Problem::request(format!(
                        "{} has taken over the run {}",
                        record.coordinator,
                        self.run.name()
                    )));
                }
                self.revision = entry.revision;
            }
            // The broker is away. It may come back.
            Err(_) => {}
        }
        Ok(())
    }

    /// Queues the open units again if the broker has lost them.
    fn look_at_queue(&mut self) {
        if self.answered.elapsed() < QUIET {
            self.empty = false;
            return;
        }
        let Ok(held) = self.units.held() else { return };
        // Twice, since units may be on their way.
        if held == 0 && std::mem::replace(&mut self.empty, held == 0) {
            self.answered = Instant::now();
            self.requeue();
        }
    }

    /// Saves the state. The answers that are part of it are not needed any more.
    fn save(&mut self) -> bool {
        let begun = Instant::now();
        let elapsed = self.elapsed();
        let saved = encode(self.subject, [0; 16], &self.fold.state, elapsed).ok();
        let snapshot = saved.and_then(|checkpoint| {
            let answer = self.last;
            postcard::to_stdvec(&Snapshot { answer, checkpoint }).ok()
        });
        let done = snapshot.is_some_and(|snapshot| self.run.put(STATE, &snapshot).is_ok());
        if done {
            self.saved = self.last;
            let _ = self.answers.forget(self.last);
        }
        self.next_save = Instant::now() + SAVE.max(begun.elapsed() * SAVING_SHARE);
        done
    }

    fn finish(mut self, cause: Option<Cause>, history: Vec<Sample>) -> Result<Outcome, Problem> {
        let left = !self.fold.state.work.is_done();
        let deadline = Instant::now() + 2 * QUIET;
        let mut saved = self.save();
        while !saved && Instant::now() < deadline && interrupt::requests() < 2 {
            saved = self.save();
        }
        self.next_beat = Instant::now();
        let state = if left {
            RunState::Stopped
        } else {
            RunState::Done
        };
        match saved {
            true => self.beat(state)?,
            false => warn("the broker does not answer: the end of the run is not recorded there"),
        }
        if saved && !left {
            self.run.close();
        } else {
            self.units.clear();
        }
        let elapsed = self.elapsed();
        let mut unloadable = None;
        let cause = match self.trouble {
            None => cause,
            Some(Trouble::Unloadable(Unloadable::System(why)) | Trouble::Failed(why)) => {
                return Err(Problem::internal(format!("a worker failed: {why}")));
            }
            Some(Trouble::Unloadable(why)) => {
                unloadable = Some(why);
                cause
            }
            Some(Trouble::Stopped(cause)) => Some(cause),
        };
        self.units.finish();
        Ok(Outcome {
            cause,
            unloadable,
            history,
            ..self.fold.state.outcome(elapsed, self.limits)
        })
    }
}
