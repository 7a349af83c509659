//! The progress of a divided search, independent of where its units are explored.

use std::time::Duration;

use selvedge_core::Failure;
use selvedge_core::report::Ending;
use selvedge_core::trust::{self, Frontier, Known, UnitId};
use selvedge_page::Origin;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::estimate::{Estimate, Slices};
use crate::worker::history::Sample;
use crate::worker::orders::{Forecast, Noticed, Packed, Sliced};
use crate::worker::progress::Limits;
use crate::worker::protocol::{FoundBug, Unloadable};
use crate::worker::supervise::Cause;

/// A bug that was found. It is kept as JSON, which tells what is left out.
#[derive(Clone, Debug)]
pub(crate) struct KnownBug(pub(crate) FoundBug);

impl Known for KnownBug {
    fn failure(&self) -> &Failure {
        &self.0.raw.failure
    }
}

impl Serialize for KnownBug {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(&self.0).map_err(ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for KnownBug {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KnownBug, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text)
            .map(KnownBug)
            .map_err(de::Error::custom)
    }
}

/// All that is left of a search, and what it found.
pub(crate) type Work = Frontier<Packed, KnownBug>;

/// The result of a search.
pub(crate) struct Outcome {
    /// The findings, in the order of the search tree.
    pub(crate) found: trust::Found<KnownBug>,
    /// Whether something is left to be explored.
    pub(crate) left: bool,
    /// Whether the limit on executions ended it.
    pub(crate) limited: bool,
    /// Why it was stopped.
    pub(crate) cause: Option<Cause>,
    /// Why the program cannot be loaded.
    pub(crate) unloadable: Option<Unloadable>,
    /// Further observations.
    pub(crate) noticed: Noticed,
    /// The processor time of each worker.
    pub(crate) processor: Vec<Duration>,
    /// How long it took, from its very beginning.
    pub(crate) elapsed: Duration,
    /// The part of the search tree that is done.
    pub(crate) done: f64,
    /// How many executions there are, about.
    pub(crate) estimate: Option<Estimate>,
    /// Where executions come from, if that was asked for.
    pub(crate) origins: Vec<Origin>,
    /// How it got on.
    pub(crate) history: Vec<Sample>,
}

/// A search: what is left, what was found, and what that took.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) work: Work,
    /// The time that was spent on it before the present run of the command.
    pub(crate) elapsed: Duration,
    pub(crate) noticed: Noticed,
    pub(super) slices: Slices,
    /// The estimate of random descents for the whole search.
    pub(super) forecast: Option<Forecast>,
    /// Where executions come from, if that was asked for.
    pub(super) origins: Vec<Origin>,
}

impl State {
    /// A search that has not begun.
    pub(crate) fn new() -> State {
        State {
            work: Work::new(None),
            elapsed: Duration::ZERO,
            noticed: Noticed::default(),
            slices: Slices::default(),
            forecast: None,
            origins: Vec::new(),
        }
    }

    /// The part of the search that is done.
    pub(crate) fn done(&self) -> f64 {
        let executions = self.work.counts().executions;
        match self.forecast_after(Duration::ZERO) {
            Some(estimate) if !self.work.is_done() => estimate.done(executions),
            _ => self.explored(),
        }
    }

    /// The part of the search tree that is explored, where the alternatives of a choice count alike.
    fn explored(&self) -> f64 {
        (1.0 - self.work.left()).clamp(0.0, 1.0)
    }

    /// How many executions there are, about, after the search has taken `elapsed`.
    pub(crate) fn estimate(&self, elapsed: Duration) -> Option<Estimate> {
        let estimate = self.forecast_after(elapsed);
        estimate.or_else(|| self.slices.estimate(self.explored(), elapsed))
    }

    fn forecast_after(&self, elapsed: Duration) -> Option<Estimate> {
        let executions = self.work.counts().executions;
        Estimate::of(self.forecast?, executions, elapsed)
    }

    /// Takes up what a slice of `unit` found. True if the search starts over because of that.
    pub(crate) fn answer(&mut self, unit: UnitId, sliced: Sliced) -> bool {
        self.noticed.add(sliced.noticed);
        self.forecast = sliced.forecast.or(self.forecast);
        let wanted = self.work.wants(unit);
        let before = self.work.left();
        let wrong = self.work.learn(&sliced.relied, &sliced.learned);
        if wrong || (sliced.misjudged && wanted && sliced.ending != Ending::FirstBug) {
            self.work.start_over();
            self.slices = Slices::default();
            self.forecast = None;
            self.origins.clear();
            return true;
        }
        let found = trust::Found {
            counts: sliced.counts,
            bugs: sliced.bugs.into_iter().map(KnownBug).collect(),
            first_bug: sliced.first_bug,
            beyond: sliced.beyond.map(KnownBug),
            unrolled: sliced.unrolled,
            ending: sliced.ending.of_search(),
        };
        let rest = sliced.rest.into_iter();
        let rest = rest.map(|piece| (Some(piece.unit), piece.share)).collect();
        let executions = found.counts.executions;
        self.work.answer(unit, found, rest);
        if wanted {
            let finished = before - self.work.left();
            self.slices.add(finished.max(0.0), executions);
            let origins = std::mem::take(&mut self.origins).into_iter();
            self.origins = Origin::sums(origins.chain(sliced.origins));
        }
        false
    }

    /// The outcome of the search after `elapsed`, if nothing but the limit on executions stopped
    /// it.
    pub(crate) fn outcome(self, elapsed: Duration, limits: Limits) -> Outcome {
        let mut found = self.work.found();
        let limited = limits.executions.is_some_and(|limit| {
            let limited = found.counts.all() > limit;
            if limited {
                // The one that went over the limit only showed that there are more.
                found.counts.executions = found.counts.executions.min(limit);
            }
            limited
        });
        Outcome {
            limited: limited && found.ending.is_none(),
            found,
            left: !self.work.is_done() || limited,
            cause: None,
            unloadable: None,
            done: self.done(),
            estimate: self.estimate(elapsed),
            noticed: self.noticed,
            processor: Vec::new(),
            elapsed,
            origins: self.origins,
            history: Vec::new(),
        }
    }
}
