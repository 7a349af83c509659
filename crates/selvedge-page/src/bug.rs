//! The result of a check in words: what `--format json` of the command prints and the HTML report shows.

use std::fmt;

use selvedge_core::FailureKind;
use selvedge_core::witness::Switch;
use selvedge_core::words;
use serde::{Deserialize, Serialize};

use crate::{Advice, Place};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
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

/// A bug with the schedule that leads to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bug {
    /// Its kind.
    pub kind: FailureKind,
    /// The same for people.
    pub message: String,
    /// Switches away from a thread that could have gone on.
    pub preemptions: u32,
    /// Switches between threads.
    pub context_switches: u32,
    /// The thread it happens in.
    pub thread: u32,
    /// Where it happens.
    #[serde(flatten)]
    pub place: Place,
    /// The other access of a race, the `free` before a use, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Party>,
    /// The waiting threads of a deadlock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Wait>,
    /// The heap blocks that names in this bug refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Where every thread involved stands when it happens.
    pub stacks: Vec<Stack>,
    /// The orders and fences that would have forbidden it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// The steps from this one on repeat for ever; one more than there are if nothing happens any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u32>,
    /// The schedule in one line, see [`selvedge_core::words::line`] and
    /// [`selvedge_core::words::lasso`].
    pub schedule: String,
    /// The schedule step by step.
    pub trace: Vec<Step>,
    /// The values before the first step of the plain global variables that the schedule changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<Change>,
    /// The different stacks of calls that steps are taken in, innermost call first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub call_stacks: Vec<Vec<Place>>,
}

/// The second party of a bug.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Party {
    /// Its thread.
    pub thread: u32,
    /// Its action.
    pub what: String,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The last step of its thread before that, or 0 if that was its first; if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// The calls it was in there, innermost first, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Place>,
}

/// A thread that waits for ever.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// The thread.
    pub thread: u32,
    /// Where it waits.
    #[serde(flatten)]
    pub place: Place,
    /// The reason for waiting, such as `to lock m`.
    pub what: String,
    /// The thread that could help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<u32>,
    /// The step in which that thread took what is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u32>,
}

/// A heap block that a name refers to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    /// The number in the names.
    pub number: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The thread that allocated it.
    pub thread: u32,
    /// Where it did.
    #[serde(flatten)]
    pub place: Place,
    /// The thread that freed it, and the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<Party>,
}

/// The calls a thread is in, innermost first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stack {
    /// The thread.
    pub thread: u32,
    /// Its state, such as `waits` or `finished`.
    pub state: String,
    /// The calls.
    pub frames: Vec<Place>,
}

/// The origin of the value that a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadsFrom {
    /// The initial value of the location.
    Initial,
    /// The step with this number.
    #[serde(untagged)]
    Step(u32),
}

/// A step of a schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from one.
    pub step: u32,
    /// The thread that takes it.
    pub thread: u32,
    /// How its thread came to run.
    pub switch: Switch,
    /// Where in the source.
    #[serde(flatten)]
    pub place: Place,
    /// The kind of the step, such as `load`, `lock` or `create`.
    pub operation: String,
    /// The object that it works on.
    pub object: Option<String>,
    /// The value read or chosen.
    pub read: Option<Datum>,
    /// The value written.
    pub wrote: Option<Datum>,
    /// The origin of the value read.
    pub reads_from: Option<ReadsFrom>,
    /// The earlier steps whose newer values it does not see, or does not write over. Only weak memory
    /// models have such steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<u32>,
    /// The order written in the source, for atomics.
    pub order: Option<String>,
    /// The plain global variables that the thread changes behind this step and before its next one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<Change>,
    /// The calls it is taken in, as an index into [`Bug::call_stacks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<u32>,
}

/// The value of a plain variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its name, with members and indices.
    pub variable: String,
    /// The value from then on.
    pub value: Datum,
}

/// The step with this number.
pub fn numbered(trace: &[Step], number: u32) -> Option<&Step> {
    trace.get((number as usize).checked_sub(1)?)
}

/// A value as the source would write it: a number, or a name (of a pointer's target, of an
/// enumerator, of a lock's owner).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Datum {
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

/// A kind of bug as a heading.
pub fn title(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Assertion => "assertion failed",
        FailureKind::Abort => "the program aborts",
        FailureKind::Deadlock => "deadlock",
        FailureKind::Livelock => "endless spinning",
        FailureKind::DataRace => "data race",
        FailureKind::UseAfterFree => "use after free",
        FailureKind::DoubleFree => "double free",
        FailureKind::BadFree => "free of something that is not a heap block",
        FailureKind::HeapOverflow => "access outside of a heap block",
        FailureKind::NullDereference => "access through a null pointer",
        FailureKind::WildAccess => "access to memory that does not exist",
        FailureKind::StackOverflow => "stack overflow",
        FailureKind::UncaughtException => "uncaught exception",
        FailureKind::EndlessLoop => "endless loop",
        FailureKind::ObjectMisuse => "misuse",
        FailureKind::Leak => "memory leak",
        FailureKind::Signal => "fatal signal",
        FailureKind::ForbiddenCall => "forbidden system call",
        FailureKind::LtlViolation => "violated formula",
        FailureKind::NonProgress => "no progress",
        FailureKind::Starvation => "starvation",
    }
}

/// The name of a kind of bug in JSON and on the command line.
pub fn kind_name(kind: FailureKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The name of a thread.
pub fn thread_name(thread: u32) -> String {
    format!("T{thread}")
}

/// The operation of a step with its values.
pub fn what(step: &Step) -> String {
    let text = |datum: &Option<Datum>| datum.as_ref().map(Datum::to_string);
    words::phrase(
        &step.operation,
        step.object.as_deref(),
        text(&step.read),
        text(&step.wrote),
    )
}

/// The bug as a heading.
pub fn heading(bug: &Bug) -> String {
    let title = title(bug.kind);
    let said = bug.message.to_lowercase();
    if said.starts_with(title) || title.starts_with(&said) {
        return bug.message.clone();
    }
    format!("{title}: {}", bug.message)
}
