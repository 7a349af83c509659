//! Runs the schedules of bugs once more, to confirm them.

use super::protocol::{FoundBug, Replayed, Reply, Task};
use super::supervise::Watch;
use crate::problem::Problem;

/// Has `worker` run every bug's schedule once more, in a fresh process. That confirms the bug, and shows
/// the calls in which each step is made. If the run fails in another way, or the program ends its
/// process, the description from the search is kept.
pub(crate) fn confirm(
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
