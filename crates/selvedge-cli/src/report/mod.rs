//! The result of a check, independent of its format.
//!
//! The names and shapes here are what `--format json` prints, so they are part of the contract.

mod advice;
mod github;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod json;
mod junit;
mod place;
pub(crate) mod request;
mod sarif;
mod snippet;
pub(crate) mod stream;
mod table;
mod unordered;
pub(crate) mod witness;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use self::advice::{Advice, Means, Remedy};
pub(crate) use self::place::Place;

use selvedge_core::FailureKind;
use selvedge_core::report::StateCounts;
use selvedge_core::witness::Switch;
use serde::{Deserialize, Serialize};

use crate::args::{Format, Model};
use crate::explain;
use crate::output;
use crate::pool::estimate::Estimate;
use crate::problem::{Problem, Status};
use crate::temporal::Question;

/// The version of the JSON that is printed.
pub(crate) const SCHEMA: u32 = 1;

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Every execution was explored and none fails.
    Verified,
    /// One fails.
    Bug,
    /// Not every execution was explored, and none of those that were fails.
    Incomplete,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Verified => "verified",
            Verdict::Bug => "bug",
            Verdict::Incomplete => "incomplete",
        })
    }
}

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
    /// Those of them that the bound blocked; of a search over states, the states beyond it.
    pub(crate) bound_blocked: u64,
    /// What a search over states saw, which counts no executions.
    #[serde(flatten)]
    pub(crate) states: Option<StateCounts>,
    /// What holds of executions that never end, if that was asked about.
    #[serde(skip)]
    pub(crate) holds: Option<String>,
    /// What was asked about them.
    #[serde(flatten)]
    pub(crate) question: Option<Question>,
    /// The bound, if there was one.
    pub(crate) bound: Option<u32>,
    /// What it counts.
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
    /// What the program does that is explored in full only with an option.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// What the user should know besides.
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

/// A bug with the schedule that leads to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bug {
    /// What it is.
    pub(crate) kind: FailureKind,
    /// The same for people.
    pub(crate) message: String,
    /// Switches away from a thread that could have gone on.
    pub(crate) preemptions: u32,
    /// Switches between threads.
    pub(crate) context_switches: u32,
    /// The thread it happens in.
    pub(crate) thread: u32,
    /// Where it happens.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// The other access of a race, the `free` before a use, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<Party>,
    /// The waiting threads of a deadlock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<Wait>,
    /// The heap blocks that names in this bug refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<Block>,
    /// Where every thread involved stands when it happens.
    pub(crate) stacks: Vec<Stack>,
    /// Which orders and fences would have forbidden it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<Advice>,
    /// The steps from this one on repeat for ever; one more than there are if nothing happens any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cycle: Option<u32>,
    /// The schedule in one line, see [`selvedge_core::words::line`] and
    /// [`selvedge_core::words::lasso`].
    pub(crate) schedule: String,
    /// The schedule step by step.
    pub(crate) trace: Vec<Step>,
    /// The different stacks of calls that steps are taken in, innermost call first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) call_stacks: Vec<Vec<Place>>,
}

/// The second party of a bug.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Party {
    /// Its thread.
    pub(crate) thread: u32,
    /// What it did.
    pub(crate) what: String,
    /// Where.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// The calls it was in there, innermost first, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) frames: Vec<Place>,
}

/// A thread that waits for ever.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    /// The thread.
    pub(crate) thread: u32,
    /// Where it waits.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// What it waits for, such as `to lock m`.
    pub(crate) what: String,
    /// The thread that could help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<u32>,
    /// The step in which that thread took what is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<u32>,
}

/// A heap block that a name refers to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    /// The number in the names.
    pub(crate) number: u32,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The thread that allocated it.
    pub(crate) thread: u32,
    /// Where it did.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// The thread that freed it, and the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) freed: Option<Party>,
}

/// The calls a thread is in, innermost first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stack {
    /// The thread.
    pub(crate) thread: u32,
    /// What it is doing, such as `waits` or `finished`.
    pub(crate) state: String,
    /// The calls.
    pub(crate) frames: Vec<Place>,
}

/// The origin of the value that a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadsFrom {
    /// The initial value of the location.
    Initial,
    /// The step with this number.
    #[serde(untagged)]
    Step(u32),
}

/// A step of a schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Its number, from one.
    pub(crate) step: u32,
    /// The thread that takes it.
    pub(crate) thread: u32,
    /// How its thread came to run.
    pub(crate) switch: Switch,
    /// Where in the source.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// What kind of step it is, such as `load`, `lock` or `create`.
    pub(crate) operation: String,
    /// What it works on.
    pub(crate) object: Option<String>,
    /// The value read or chosen.
    pub(crate) read: Option<Datum>,
    /// The value written.
    pub(crate) wrote: Option<Datum>,
    /// The origin of the value read.
    pub(crate) reads_from: Option<ReadsFrom>,
    /// The earlier steps whose newer values it does not see, or does not write over. Only weak memory
    /// models have such steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) passes: Vec<u32>,
    /// The order written in the source, for atomics.
    pub(crate) order: Option<String>,
    /// The calls it is taken in, as an index into [`Bug::call_stacks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<u32>,
}

/// The step with this number.
fn numbered(trace: &[Step], number: u32) -> Option<&Step> {
    trace.get((number as usize).checked_sub(1)?)
}

/// A value as the source would write it: a number, or a name (of a pointer's target, of an
/// enumerator, of a lock's owner).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Datum {
    /// A number.
    Signed(i64),
    /// A number that is too large for the other.
    Unsigned(u64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Signed(number) => write!(f, "{number}"),
            Datum::Unsigned(number) => write!(f, "{number}"),
            Datum::Text(text) => f.write_str(text),
        }
    }
}

/// Prints the result in the format that was asked for.
pub(crate) fn print(report: &Report, asked: &request::Asked<'_>) -> Result<(), Problem> {
    match asked.verify.format {
        Format::Human => human::print(report, &human::Next::new(asked.verify, asked.traced)),
        Format::Json => json::print(report)?,
        Format::Jsonl => stream::result(report)?,
        Format::Sarif => json::print(&sarif::log(report, asked))?,
        Format::Junit => junit::print(report, asked)?,
        Format::Github => github::print(report, asked),
    }
    if asked.verify.explain && asked.verify.format == Format::Human {
        output::print(&explain::verdict(report));
    }
    Ok(())
}

/// The name of a kind of bug in JSON and on the command line.
pub(crate) fn kind_name(kind: FailureKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The name of a thread.
pub(crate) fn thread_name(thread: u32) -> String {
    format!("T{thread}")
}
