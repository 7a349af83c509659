//! The estimate in the report of a search that a limit ended: a second of random descents.

use std::time::Duration;

use selvedge_core::report::Ending;

use super::{Found, Search};
use crate::explorer::Explorer;
use crate::pool::estimate::Estimate;
use crate::problem::Problem;
use crate::worker::orders::Forecast;
use crate::worker::progress::Limits;
use crate::worker::protocol::{Reply, Sampling, Searched, Task};
use crate::worker::supervise::{self, Cause, Output};

const TIME: Duration = Duration::from_secs(1);

impl Search<'_> {
    /// The part of the search tree that is done and the number of executions, if a limit ended the search.
    pub(super) fn sampled(
        &self,
        found: &Found,
    ) -> Result<Option<(f64, Option<Estimate>)>, Problem> {
        let ended = |end: &Searched| matches!(end.ending, Ending::Stopped);
        let limited = matches!(found.watch.cause, None | Some(Cause::Timeout));
        let wanted = limited && found.bugs.is_empty() && !self.verify.search.iterative;
        let counts = match &found.searched {
            Some(end) if wanted && ended(end) => end.counts,
            _ => return Ok(None),
        };
        let Explorer::Trust(model) = self.explorer else {
            return Ok(None);
        };
        let task = Task::Estimate(Sampling {
            model: *model,
            preemptions: self.verify.search.preemptions,
            time: TIME,
        });
        let mut sampled = None;
        let (request, limits) = (self.request(task), Limits::default());
        supervise::run(&request, limits, Output::Diverted, |reply| {
            if let Reply::Sampled(result) = reply {
                sampled = Some(*result);
            }
        })?;
        let Some(sampled) = sampled.filter(|sampled| sampled.descents > 0) else {
            return Ok(None);
        };
        let descents = Forecast {
            mean: sampled.mean,
            deviation: sampled.deviation,
        };
        let forecast = sampled.exact.map_or(descents, Forecast::exact);
        let estimate = Estimate::of(forecast, counts.executions, found.watch.elapsed);
        Ok(estimate.map(|estimate| (estimate.done(counts.executions), Some(estimate))))
    }
}
