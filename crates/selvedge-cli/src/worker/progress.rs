//! Progress of a search: one line on a terminal's standard error once it takes a while, an
//! event every second for `--format jsonl`, and a history for the HTML report.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_core::report::{Counts, StateCounts};

use super::history::{History, Sample};
use super::progress_line::line;
use crate::pool::estimate::Estimate;
use crate::report::stream;

/// A check that is done by then needs no progress shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often an event tells of progress.
const EVENTS: Duration = Duration::from_secs(1);

/// The limits that a search can run into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// When it is stopped.
    pub(crate) timeout: Option<Duration>,
    /// After how many executions it is stopped.
    pub(crate) executions: Option<u64>,
    /// The beginning of the line that shows progress: the search that these limits are for.
    pub(crate) label: Option<&'static str>,
    /// Whether progress is printed as events on standard output.
    pub(crate) events: bool,
}

/// How far a search has come at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The executions so far.
    pub(crate) counts: Counts,
    /// The states so far, if the search is about states.
    pub(crate) states: Option<StateCounts>,
    /// The most memory that it has had, in bytes.
    pub(crate) memory: u64,
    /// The memory that it may have.
    pub(crate) memory_limit: u64,
    /// The part of the search tree that is done, if that is known.
    pub(crate) done: Option<f64>,
    /// How many executions there are, about.
    pub(crate) estimate: Option<Estimate>,
    /// How many workers explore it elsewhere, and on how many machines.
    pub(crate) workers: Option<(u64, u64)>,
}

/// Shows and records progress.
pub(crate) struct Progress {
    start: Instant,
    limits: Limits,
    bar: Option<ProgressBar>,
    terminal: bool,
    /// When the last event was printed.
    told: Instant,
    history: History,
}

impl Progress {
    /// Nothing is shown in the first moments, or if the output is no terminal.
    pub(crate) fn new(limits: Limits) -> Progress {
        let start = Instant::now();
        Progress {
            start,
            limits,
            bar: None,
            terminal: stderr().is_terminal(),
            told: start,
            history: History::default(),
        }
    }

    /// Shows and records `now`.
    pub(crate) fn update(&mut self, now: &Now) {
        let elapsed = self.start.elapsed();
        let sample = Sample::new(elapsed, now);
        self.history.record(sample);
        if self.limits.events && self.told.elapsed() >= EVENTS {
            self.told = Instant::now();
            stream::progress(&sample);
        }
        if !self.terminal || elapsed < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // Cut off where the terminal ends.
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        let width = terminal_size::terminal_size_of(stderr()).map_or(80, |(width, _)| width.0);
        bar.set_message(line(now, elapsed, self.limits, width.into()));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Takes the line away for good. What was recorded ends with `now`.
    pub(crate) fn finish(mut self, now: &Now) -> Vec<Sample> {
        self.clear();
        self.history.finish(Sample::new(self.start.elapsed(), now))
    }
}
