//! `--format jsonl`: one event a line on standard output, while the search runs.
//!
//! Every line is an object with the member `event`. `docs/ci.md` lists the members of each.

use serde::Serialize;

use super::request::Failed;
use super::{Report, json};
use crate::problem::Problem;
use crate::worker::history::Sample;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    /// The search has come this far.
    Progress(&'a Sample),
    /// It has ended.
    Result(&'a Report),
    /// There is no result.
    Error {
        message: &'a str,
        text: String,
        status: i32,
    },
}

/// Tells how far the search has come. A reader that has gone away does not stop it.
pub(crate) fn progress(sample: &Sample) {
    let _ = json::print_line(&Event::Progress(sample));
}

/// Tells the result.
pub(super) fn result(report: &Report) -> Result<(), Problem> {
    json::print_line(&Event::Result(report))
}

/// Tells why there is no result.
pub(super) fn failed(failed: &Failed<'_>) -> Result<(), Problem> {
    json::print_line(&Event::Error {
        message: failed.problem.message(),
        text: failed.text(),
        status: failed.problem.status as i32,
    })
}
