//! `--format jsonl`: one event a line on standard output, while the search runs.
//!
//! Every line is an object with the member `event`. `docs/ci.md` lists the members of each.

use serde::Serialize;

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
}

/// Tells how far the search has come. A reader that has gone away does not stop it.
pub(crate) fn progress(sample: &Sample) {
    let _ = json::print_line(&Event::Progress(sample));
}

/// Tells the result.
pub(super) fn result(report: &Report) -> Result<(), Problem> {
    json::print_line(&Event::Result(report))
}
