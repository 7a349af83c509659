//! The progress of a run that another process coordinates.

use selvedge_core::report::Counts;

use super::messages::Record;
use crate::worker::progress::{Limits, Now, Progress};

/// Shows the record of a run.
pub(super) struct Follower(Progress);

impl Follower {
    pub(super) fn new() -> Follower {
        Follower(Progress::new(Limits::default()))
    }

    pub(super) fn show(&mut self, record: &Record) {
        self.0.update(&Now {
            counts: Counts {
                executions: record.executions,
                ..Counts::default()
            },
            states: None,
            memory: 0,
            memory_limit: u64::MAX,
            done: Some(record.progress),
            estimate: None,
            workers: Some((record.jobs, record.machines)),
        });
    }
}
