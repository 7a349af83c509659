//! A worker of a pool, and the unit it explores.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use selvedge_core::report::Counts;
use selvedge_core::trust::UnitId;
use selvedge_runtime::process::SharedCounters;

use crate::worker::counters::Counters;
use crate::worker::orders::Order;
use crate::worker::process::{Message, Worker, resident};
use crate::worker::protocol::Request;
use crate::worker::supervise::Output;

/// A worker, the unit it has, and what it was told.
pub(crate) struct Seat {
    pub(crate) number: usize,
    worker: Worker,
    counters: Counters,
    file: PathBuf,
    task: Option<Slice>,
    /// It has explored a unit before this one.
    pub(crate) used: bool,
    /// How many of the facts about the program it was told.
    pub(crate) epoch: Option<u32>,
    /// The newest count of steps, and since when.
    steps: (u64, Instant),
    /// The processor time that its slices took.
    pub(crate) processor: Duration,
}

/// A unit that is being explored.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) unit: UnitId,
    pub(crate) since: Instant,
    pub(crate) told_to_stop: bool,
    /// The executions that it may have.
    pub(crate) reserved: u64,
}

impl Seat {
    pub(crate) fn start(
        request: &Request,
        number: usize,
        hear: Sender<Message>,
    ) -> io::Result<Seat> {
        let file = request
            .counters
            .with_file_name(format!("counters-{number}"));
        let _ = fs::remove_file(&file);
        let counters = Counters(SharedCounters::create(&file)?);
        let request = Request {
            counters: file.clone(),
            ..request.clone()
        };
        let worker = Worker::start(&request, Output::Diverted, number, hear)?;
        Ok(Seat {
            number,
            worker,
            counters,
            file,
            task: None,
            used: false,
            epoch: None,
            steps: (0, Instant::now()),
            processor: Duration::ZERO,
        })
    }

    /// Has it explore `unit`.
    pub(crate) fn order(&mut self, unit: UnitId, order: &Order, reserved: u64) -> io::Result<()> {
        self.counters.stop().store(0, Ordering::Relaxed);
        self.clear_counts();
        self.task = Some(Slice {
            unit,
            since: Instant::now(),
            told_to_stop: false,
            reserved,
        });
        self.steps.1 = Instant::now();
        self.worker.tell(order)
    }

    /// The unit it explores.
    pub(crate) fn task(&self) -> Option<Slice> {
        self.task
    }

    /// It has answered.
    pub(crate) fn answered(&mut self) -> Option<Slice> {
        self.used = true;
        self.clear_counts();
        self.task.take()
    }

    fn clear_counts(&self) {
        self.counters.executions().store(0, Ordering::Relaxed);
        self.counters.blocked().store(0, Ordering::Relaxed);
    }

    /// Tells it to stop after the present execution and to divide the rest into this many units.
    pub(crate) fn stop(&mut self, pieces: u64) {
        if let Some(task) = &mut self.task {
            task.told_to_stop = true;
            self.counters.stop().store(pieces, Ordering::Relaxed);
        }
    }

    /// The counts of the present slice.
    pub(crate) fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// How often it has started the program.
    pub(crate) fn runs(&self) -> u64 {
        self.counters.runs().load(Ordering::Relaxed)
    }

    /// How long it has taken no step although it has a unit.
    pub(crate) fn silence(&mut self) -> Duration {
        let steps = self.counters.steps().load(Ordering::Relaxed);
        if steps != self.steps.0 || self.task.is_none() {
            self.steps = (steps, Instant::now());
        }
        self.steps.1.elapsed()
    }

    /// The memory that it really has.
    pub(crate) fn memory(&self) -> u64 {
        resident(self.worker.id()).unwrap_or(0)
    }

    /// Sees a worker off that says nothing more.
    pub(crate) fn end(self) -> io::Result<ExitStatus> {
        let _ = fs::remove_file(&self.file);
        self.worker.end()
    }
}
