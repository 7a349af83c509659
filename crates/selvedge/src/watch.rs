//! Watches a search: its limits, its findings, and its progress.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use selvedge_core::graph::{Graph, Slot};
use selvedge_core::report::{Bug, Counts, Observer};
use selvedge_page::{BugPage, Origins};

use crate::model::{Failure, MemoryModel};
use crate::page::{self, Sample};
use crate::report;
use crate::rt::{RustMachine, peak_memory};

/// How often a search tells how far it is.
const TELLS: Duration = Duration::from_millis(500);
/// How often it is sampled for a report.
const SAMPLES: Duration = Duration::from_millis(50);

/// Ends a search that has taken long enough.
pub(crate) struct Watch {
    pub(crate) executions: Option<usize>,
    pub(crate) until: Option<Instant>,
    pub(crate) model: MemoryModel,
    pub(crate) failure: Option<(Failure, BugPage)>,
    /// The same as the core describes it, for advice.
    pub(crate) bug: Option<Bug>,
    /// Where executions come from.
    pub(crate) origins: Origins,
    pub(crate) progress: Progress,
}

/// How a search gets on.
pub(crate) struct Progress {
    begin: Instant,
    /// When it last told how far it is, if it is to do so.
    told: Option<Instant>,
    /// When it was last sampled, if it is to be.
    sampled: Option<Instant>,
    pub(crate) history: Vec<Sample>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new(false, false)
    }
}

impl Progress {
    /// A search begins. It tells how far it is, and is sampled, if it is to be.
    pub(crate) fn new(tells: bool, samples: bool) -> Progress {
        let now = Instant::now();
        Progress {
            begin: now,
            told: tells.then_some(now),
            sampled: samples.then_some(now),
            history: Vec::new(),
        }
    }

    /// How long the search has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The search has counted so much.
    pub(crate) fn update(&mut self, counts: &Counts) {
        if let Some(told) = &mut self.told
            && told.elapsed() >= TELLS
        {
            *told = Instant::now();
            eprintln!("selvedge progress: {} executions", counts.executions);
        }
        if let Some(sampled) = &mut self.sampled
            && sampled.elapsed() >= SAMPLES
        {
            *sampled = Instant::now();
            self.sample(counts);
        }
    }

    /// Adds a sample to the history.
    pub(crate) fn sample(&mut self, counts: &Counts) {
        let sample = Sample {
            seconds: self.begin.elapsed().as_secs_f64(),
            executions: counts.executions,
            blocked: counts.blocked,
            memory: peak_memory(),
        };
        page::record(&mut self.history, sample);
    }
}

impl Watch {
    /// Whether a limit ends a search that has counted so much.
    pub(crate) fn is_over(&mut self, counts: &Counts) -> bool {
        self.progress.update(counts);
        let most = |most: usize| counts.executions >= most as u64;
        self.executions.is_some_and(most) || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl Observer<RustMachine> for Watch {
    fn complete(&mut self, graph: &Graph) {
        self.origins.complete(graph);
    }

    fn alternative(&mut self, graph: &Graph, slot: Slot) {
        self.origins.alternative(graph, slot);
    }

    fn restart(&mut self) {
        self.origins.restart();
    }

    fn bug(&mut self, bug: &Bug, machine: &RustMachine) {
        self.failure = Some(report::describe(machine, bug, self.model));
        self.bug = Some(bug.clone());
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        match self.is_over(counts) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
