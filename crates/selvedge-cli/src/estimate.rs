//! `selvedge estimate`: about how many executions a search of a program would have.

use std::time::Duration;

use indicatif::{HumanCount, HumanDuration};
use selvedge_core::report::Ending;
use serde::Serialize;

use crate::args::{self, TextOrJson};
use crate::compile;
use crate::explorer::Explorer;
use crate::output;
use crate::problem::{Problem, Status, note};
use crate::report::{Place, json};
use crate::worker::progress::Limits;
use crate::worker::protocol::{Reply, Request, Sampled, Sampling, Task};
use crate::worker::supervise::{self, Cause, End, Output};

/// For how long, if the user does not say so.
const TIME: Duration = Duration::from_secs(2);
/// The first descent may take this many times as long, in which a search finds an execution without an end.
const PATIENCE: u32 = 10;

/// The printed result.
#[derive(Serialize)]
struct Estimate {
    schema: u32,
    /// About how many executions there are.
    executions: u64,
    /// With a confidence of 95%, there are at least this many,
    low: u64,
    /// and at most this many.
    high: u64,
    /// Whether all of them were explored, so that their number is exact.
    exact: bool,
    /// How many random descents that comes from.
    descents: u64,
    /// How many executions one process explores in a second.
    rate: f64,
    /// How long one process takes for all of them.
    seconds: f64,
    /// How many distinct bugs were met.
    bugs: u64,
    lines: Vec<Line>,
}

/// A line with several alternatives.
#[derive(Serialize)]
struct Line {
    place: Place,
    /// The part of all alternatives that begins there.
    share: f64,
}

/// Estimates a program and tells what came of it.
pub(crate) fn run(estimate: &args::Estimate) -> Result<Status, Problem> {
    let (explorer, _) = Explorer::choose(&estimate.search, &estimate.machine)?;
    let Explorer::Trust(model) = explorer else {
        return Err(Problem::request(format!(
            "estimate cannot be combined with {}",
            explorer.name()
        ))
        .help("trust supports it"));
    };
    if estimate.search.iterative {
        return Err(
            Problem::request("estimate cannot be combined with --iterative")
                .help("--preemptions K estimates one round"),
        );
    }
    let program = compile::Program {
        marks: !estimate.machine.unroll.is_empty(),
        spurious_failures: estimate.machine.spurious_failures,
        strict: false,
        ..estimate.sources.program()?
    };
    let build = compile::build(&program)?;
    let time = estimate.search.timeout.unwrap_or(TIME);
    let task = Task::Estimate(Sampling {
        model,
        preemptions: estimate.search.preemptions,
        time,
    });
    let request = Request::new(&build.image(), &estimate.machine, task);
    let (mut sampled, mut unloadable) = (None, None);
    let limits = Limits {
        timeout: Some(time.saturating_mul(PATIENCE)),
        ..Limits::default()
    };
    let watch = supervise::run(&request, limits, Output::Diverted, |reply| match reply {
        Reply::Sampled(result) => sampled = Some(*result),
        Reply::Unloadable(why) => unloadable = Some(why),
        _ => {}
    })?;
    if let Some(why) = unloadable {
        why.failure()?;
    }
    let Some(sampled) = sampled else {
        return Err(match watch.end {
            End::Died(_) => Problem::request("an execution ends the process of the search")
                .help("selvedge verify tells which one"),
            End::Stopped(Cause::Timeout) => Problem::interrupted(
                "no random descent came to its end in time",
            )
            .help(
                "--timeout gives more time; --unroll N cuts loops that have no bound of their own",
            ),
            _ => Problem::interrupted("stopped before there was an estimate"),
        });
    };
    let result = Estimate::of(sampled)?;
    match estimate.format {
        TextOrJson::Human => output::print(&result.in_words()),
        TextOrJson::Json => json::print(&result)?,
    }
    Ok(Status::Verified)
}

impl Estimate {
    fn of(sampled: Sampled) -> Result<Estimate, Problem> {
        match sampled.ending {
            Ending::Complete | Ending::Stopped => {}
            Ending::Refused(why) => {
                return Err(Problem::request(format!(
                    "cannot check this program: {why}"
                )));
            }
            Ending::Nondeterministic(what) => {
                return Err(Problem::request(format!(
                    "the program did not behave the same in two equal executions: {what}"
                )));
            }
            ending => {
                return Err(Problem::internal(format!("the descents ended: {ending:?}")));
            }
        }
        let error = 2.0 * sampled.deviation;
        let (mean, low, high) = match sampled.exact {
            Some(exact) => (exact as f64, exact as f64, exact as f64),
            None => (
                sampled.mean,
                (sampled.mean - error).max(0.0),
                sampled.mean + error,
            ),
        };
        if mean == 0.0 {
            note("no descent ended in a complete execution");
        }
        Ok(Estimate {
            schema: 1,
            executions: mean.round() as u64,
            low: low.round() as u64,
            high: high.round() as u64,
            exact: sampled.exact.is_some(),
            descents: sampled.descents,
            rate: sampled.rate,
            seconds: mean / sampled.rate.max(1e-9),
            bugs: sampled.bugs,
            lines: sampled
                .lines
                .into_iter()
                .map(|(place, share)| Line { place, share })
                .collect(),
        })
    }

    fn in_words(&self) -> String {
        let mut words = match self.exact {
            true => format!(
                "{} executions: all were explored\n",
                HumanCount(self.executions)
            ),
            false => format!(
                "about {} executions (95% confidence: {} to {}), from {} random descents\n\
                 a search in one process takes about {}, at {} executions per second\n",
                HumanCount(self.executions),
                HumanCount(self.low),
                HumanCount(self.high),
                HumanCount(self.descents),
                HumanDuration(Duration::from_secs_f64(self.seconds.min(1e15))),
                HumanCount(self.rate.round() as u64),
            ),
        };
        if self.bugs > 0 {
            words += "a bug was met: selvedge verify reports it\n";
        }
        if !self.lines.is_empty() {
            words += "\nwhere executions part:\n";
        }
        for line in &self.lines {
            words += &format!("  {:>5.1}%  {}\n", 100.0 * line.share, line.place);
        }
        words
    }
}
