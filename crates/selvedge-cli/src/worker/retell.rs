//! Bugs that were found, run once more.

use super::protocol::{FoundBug, Replayed, Reply, Task};
use super::supervise::Watch;
use crate::problem::Problem;

/// Has `worker` run every bug's schedule once more, in a fresh process: that confirms it, and shows
/// the calls that each step is made in. What fails otherwise then is not the bug that was found, so
/// that the description from the search stands; so it does for a program that ends its process.
pub(crate) fn retell(
    bugs: &mut [FoundBug],
    worker: impl FnOnce(Task, &mut dyn FnMut(Reply)) -> Result<Watch, Problem>,
) -> Result<(), Problem> {
    if bugs.is_empty() {
        return Ok(());
    }
    let schedules = bugs.iter().map(|bug| bug.raw.clone()).collect();
    let mut replayed = Vec::new();
    worker(Task::Replay(schedules), &mut |reply| {
        if let Reply::Replayed(how) = reply {
            replayed.push(how);
        }
    })?;
    for (bug, again) in bugs.iter_mut().zip(replayed) {
        if let Replayed::Failed(again) = again
            && again.raw.failure.kind == bug.raw.failure.kind
        {
            *bug = *again;
        }
    }
    Ok(())
}
