//! Which orders and fences would have forbidden a bug of weak memory.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Place;
use super::human::counted;
use crate::args::Model;

/// What can be done about a bug by orders and fences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Advice {
    /// What comes of it.
    pub(crate) outcome: Remedy,
    /// The memory model that the bug was found under.
    pub(crate) model: Model,
    /// All executions of the changed program, if they were explored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executions: Option<u64>,
    /// The smallest set of changes that has that outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Means>,
}

/// What comes of changing orders and fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Remedy {
    /// The bug is gone: no execution of the changed program fails.
    Removes,
    /// This bug is gone, but others are not.
    RemovesThisOne,
    /// The execution that was found is forbidden; whether others fail was not found out in the
    /// time there was.
    Unconfirmed,
    /// The execution that was found is forbidden; others still fail.
    Remains,
    /// Nothing: the bug is there under sequential consistency as well.
    Sequential,
    /// Nothing was found.
    Unknown,
}

/// A change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Means {
    /// Where.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// The line of the program that calls the library which this line belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) called_at: Option<Place>,
    /// What stands there, such as `load`.
    pub(crate) operation: String,
    /// What it works on.
    pub(crate) object: Option<String>,
    /// Its order as it is; a new fence has none.
    pub(crate) from: Option<String>,
    /// Its order as it should be, or that of a new fence before it.
    pub(crate) to: String,
    /// Whether the order of a compare-exchange that fails has to be raised too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) also_failing: bool,
}

impl Means {
    /// The change as a demand.
    fn in_words(&self) -> String {
        let mut what = self.operation.clone();
        if let Some(object) = &self.object {
            let to = match self.operation.as_str() {
                "store" => "to",
                _ => "of",
            };
            let _ = write!(what, " {to} {object}");
        }
        let to = &self.to;
        match &self.from {
            None => format!("put atomic_thread_fence(memory_order_{to}) before the {what}"),
            Some(from) => {
                let failing = match self.also_failing {
                    true => ", also where it fails",
                    false => "",
                };
                format!("make the {what} memory_order_{to}{failing} (it is {from})")
            }
        }
    }
}

impl Advice {
    /// Whether the orders in the source count, and changing them helps.
    pub(super) fn changes_orders(&self) -> bool {
        self.model == Model::Rc11 && !self.changes.is_empty()
    }

    /// The advice for people, ending with the end of a line.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        for (n, change) in self.changes.iter().enumerate() {
            let joint = match n {
                0 => "",
                _ => "        ",
            };
            let _ = match &change.called_at {
                Some(called_at) => writeln!(
                    text,
                    "{joint}{called_at}: in {}\n          {}",
                    change.place.in_full(),
                    change.in_words()
                ),
                None => writeln!(text, "{joint}{}: {}", change.place, change.in_words()),
            };
        }
        let these = match self.changes.len() {
            1 => "this change",
            _ => "these changes",
        };
        let verdict = match self.outcome {
            Remedy::Removes => {
                let all = match self.executions.unwrap_or_default() {
                    1 => "the only execution that is left".to_owned(),
                    executions => format!("all {}", counted(executions, "execution")),
                };
                format!("        {these} would remove the bug (checked: {all})")
            }
            Remedy::RemovesThisOne => {
                format!("        {these} would remove this bug; others remain")
            }
            Remedy::Unconfirmed => format!(
                "        {these} would forbid this execution; whether others fail was not checked to the end"
            ),
            Remedy::Remains => {
                format!("        {these} would forbid this execution; others still fail")
            }
            Remedy::Sequential => "no memory order or fence removes this bug: it is there under \
                                   sequential consistency as well"
                .to_owned(),
            Remedy::Unknown => match self.model {
                Model::Ra => "under ra the orders and fences in the source do not count; --model \
                                    rc11 tells which would forbid this"
                    .to_owned(),
                model => format!(
                    "no order or fence was found that would forbid this under {}",
                    model.name()
                ),
            },
        };
        text.push_str(&verdict);
        text.push('\n');
        text
    }
}
