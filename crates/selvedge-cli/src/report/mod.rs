//! The result of a check, independent of its format.
//!
//! The names and shapes here are what `--format json` prints, so they are part of the contract.

mod advice;
pub(crate) mod facts;
mod github;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod json;
mod junit;
pub(crate) mod request;
mod sarif;
mod snippet;
pub(crate) mod stream;
mod table;
pub(crate) mod witness;

use std::collections::BTreeMap;

use selvedge_page::numbered;
pub(crate) use selvedge_page::{
    Advice, Block, Bug, Datum, Means, Party, Place, ReadsFrom, Stack, Step, Verdict, Wait,
    kind_name, thread_name,
};

use selvedge_core::report::StateCounts;
use serde::Serialize;

use crate::args::{Format, Model};
use crate::explain;
use crate::pool::estimate::Estimate;
use crate::problem::{Problem, Status};
use crate::temporal::Question;

/// The version of the JSON that is printed.
pub(crate) const SCHEMA: u32 = 1;

impl From<Verdict> for Status {
    fn from(verdict: Verdict) -> Status {
        match verdict {
            Verdict::Verified => Status::Verified,
            Verdict::Bug => Status::Bug,
            Verdict::Incomplete => Status::Incomplete,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// The memory model.
    pub(crate) model: Model,
    /// The explorer.
    pub(crate) algorithm: String,
    /// Complete executions within the bound.
    pub(crate) executions: u64,
    /// Complete executions beyond the bound.
    pub(crate) over_bound: u64,
    /// Executions that ended blocked.
    pub(crate) blocked: u64,
    /// The executions that the bound blocked; of a search over states, the states beyond it.
    pub(crate) bound_blocked: u64,
    /// The counts of a search over states, which counts no executions.
    #[serde(flatten)]
    pub(crate) states: Option<StateCounts>,
    /// The property that holds of executions that never end, if one was asked about.
    #[serde(skip)]
    pub(crate) holds: Option<String>,
    /// The question about them.
    #[serde(flatten)]
    pub(crate) question: Option<Question>,
    /// The bound, if there was one.
    pub(crate) bound: Option<u32>,
    /// The unit of the bound.
    #[serde(skip)]
    pub(crate) bounds: &'static str,
    /// Whether nothing lies beyond the bound.
    #[serde(skip)]
    pub(crate) complete: bool,
    /// How long the search took.
    pub(crate) seconds: f64,
    /// The processor time that each process of a search over states took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) processor_seconds: Vec<f64>,
    /// The first bug.
    pub(crate) bug: Option<Bug>,
    /// Every distinct bug, with `--keep-going`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bugs: Option<Vec<Bug>>,
    /// After how many rounds loops were cut, if any was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unroll: Option<u32>,
    /// The same for the loops of certain functions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) unroll_functions: BTreeMap<String, u32>,
    /// Why the search is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The part of the search tree that is done, if the search is incomplete and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<f64>,
    /// How many executions there are, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) estimate: Option<Estimate>,
    /// The command that continues the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
    /// Behaviour of the program that is explored in full only with an option.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// Further warnings for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

impl Report {
    /// Every bug there is.
    pub(crate) fn all_bugs(&self) -> Vec<&Bug> {
        match &self.bugs {
            Some(bugs) => bugs.iter().collect(),
            None => self.bug.iter().collect(),
        }
    }
}

/// Prints the result in the format that was asked for.
pub(crate) fn print(report: &Report, asked: &request::Asked<'_>) -> Result<(), Problem> {
    match asked.verify.format {
        Format::Human => {
            let explanation = match asked.verify.explain {
                true => explain::verdict(report, asked.verify),
                false => String::new(),
            };
            let next = human::Next::new(asked.verify, asked.traced);
            human::print(report, &next, &explanation);
        }
        Format::Json => json::print(report)?,
        Format::Jsonl => stream::result(report)?,
        Format::Sarif => json::print(&sarif::log(report, asked))?,
        Format::Junit => junit::print(report, asked)?,
        Format::Github => github::print(report, asked),
    }
    Ok(())
}

/// Prints why there is no result, in the formats that other programs wait for. People, and scripts that read
/// one object, find it on standard error.
pub(crate) fn print_failed(format: Format, files: &[String], problem: &Problem) {
    let failed = request::Failed { files, problem };
    let printed = match format {
        Format::Human | Format::Json => Ok(()),
        Format::Jsonl => stream::failed(&failed),
        Format::Sarif => json::print(&sarif::failed(&failed)),
        Format::Junit => junit::print_failed(&failed),
        Format::Github => {
            github::print_failed(&failed);
            Ok(())
        }
    };
    if let Err(problem) = printed {
        problem.print();
    }
}
