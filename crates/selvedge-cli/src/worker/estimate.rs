//! Random descents of the search tree of a program, and a short search to see how fast that is.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::Site;
use selvedge_core::report::{Counts, Ending, NoObserver, Observer, Report};
use selvedge_core::settings::Settings;
use selvedge_core::trust::{self, Descent, Descents, Forecast};
use selvedge_core::with_model;

use super::counters::Counters;
use super::journal::Watched;
use super::protocol::{Sampled, Sampling};
use crate::describe::{self, Binary};
use crate::report::Place;

/// The part of the time that goes to the search.
const SEARCH: f64 = 0.2;
/// If the number is exact, descents only tell the lines.
const FOR_LINES: Duration = Duration::from_millis(200);
/// The most lines that are reported.
const TOLD: usize = 5;

/// Samples the search tree of `machine`'s program.
pub(super) fn sample(
    machine: &mut Watched<'_>,
    binary: &Binary,
    counters: &Counters,
    sampling: &Sampling,
) -> Sampled {
    let settings = Settings {
        keep_going: true,
        preemptions: sampling.preemptions,
    };
    let mut clock = Clock::new(counters, sampling.time.mul_f64(SEARCH));
    let report = with_model!(sampling.model, C => {
        trust::search::<C, _>(machine, settings, &mut clock)
    });
    let rate = report.counts.executions as f64 / clock.start.elapsed().as_secs_f64().max(1e-9);
    let exact = (report.ending == Ending::Complete).then_some(report.counts.executions);
    let found = report.bugs.len() as u64;
    let time = sampling.time.mul_f64(1.0 - SEARCH);
    let time = exact.map_or(time, |_| time.min(FOR_LINES));
    let (sums, report) = match report.ending {
        Ending::Complete | Ending::Stopped => {
            // One descent is made, however long that takes.
            let mut first = NoObserver;
            descend(machine, sampling, Clock::new(counters, time), &mut first)
        }
        _ => (Descents::default(), report),
    };
    let forecast = sums.forecast().unwrap_or(Forecast::exact(0));
    Sampled {
        descents: sums.counted(),
        mean: forecast.mean,
        deviation: forecast.deviation,
        rate,
        exact,
        bugs: found.max(report.bugs.len() as u64),
        lines: lines(&sums.alternatives, |site| {
            describe::place(binary, machine.inner(), site, &[])
        }),
        ending: describe::ending(binary, machine.inner(), report.ending),
    }
}

/// The estimate of the number of executions by descents that take the time of `sampling`, if one comes to its end by
/// then.
pub(super) fn forecast(
    machine: &mut Watched<'_>,
    counters: &Counters,
    sampling: &Sampling,
) -> Option<Forecast> {
    let clock = Clock::new(counters, sampling.time);
    let (sums, _) = descend(machine, sampling, clock, &mut clock.clone());
    sums.forecast()
}

/// Makes random descents until `clock` ends that, or `observer` does.
fn descend<'a>(
    machine: &mut Watched<'a>,
    sampling: &Sampling,
    clock: Clock<'_>,
    observer: &mut impl Observer<Watched<'a>>,
) -> (Descents, Report) {
    let mut sums = Descents::default();
    let each = &mut |descent: &Descent| {
        sums.add(descent);
        clock.look()
    };
    let report = with_model!(sampling.model, C => {
        trust::descend::<C, _>(machine, sampling.preemptions, 0, observer, each)
    });
    (sums, report)
}

/// The lines at which most alternatives begin, and their part of all alternatives.
fn lines(alternatives: &HashMap<Site, f64>, place: impl Fn(Site) -> Place) -> Vec<(Place, f64)> {
    let mut lines: HashMap<String, (Place, f64)> = HashMap::new();
    let all: f64 = alternatives.values().sum();
    for (&site, number) in alternatives {
        let place = place(site);
        let line = lines.entry(place.to_string()).or_insert((place, 0.0));
        line.1 += number / all;
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by(|(a, (_, x)), (b, (_, y))| y.total_cmp(x).then_with(|| a.cmp(b)));
    lines.truncate(TOLD);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Ends what takes longer than planned.
#[derive(Clone, Copy)]
struct Clock<'a> {
    counters: &'a Counters,
    start: Instant,
    time: Duration,
}

impl<'a> Clock<'a> {
    fn new(counters: &'a Counters, time: Duration) -> Clock<'a> {
        Clock {
            counters,
            start: Instant::now(),
            time,
        }
    }

    fn look(&self) -> ControlFlow<()> {
        let stop = self.counters.stop().load(Ordering::Relaxed) != 0;
        match stop || self.start.elapsed() >= self.time {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl<M> Observer<M> for Clock<'_> {
    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        self.look()
    }
}
