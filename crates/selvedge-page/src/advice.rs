//! Which orders and fences would have forbidden a bug of weak memory.

use selvedge_core::model::MemoryModel;
use serde::{Deserialize, Serialize};

use crate::Place;

/// What can be done about a bug by orders and fences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// What comes of it.
    pub outcome: Remedy,
    /// The memory model that the bug was found under.
    pub model: MemoryModel,
    /// All executions of the changed program, if they were explored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// The smallest set of changes that has that outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Means>,
}

/// What comes of changing orders and fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
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
pub struct Means {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The line of the program that calls the library which this line belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_at: Option<Place>,
    /// What stands there, such as `load`.
    pub operation: String,
    /// What it works on.
    pub object: Option<String>,
    /// Its order as it is; a new fence has none.
    pub from: Option<String>,
    /// Its order as it should be, or that of a new fence before it.
    pub to: String,
    /// Whether the order of a compare-exchange that fails has to be raised too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub also_failing: bool,
}

impl Advice {
    /// Whether the orders in the source count, and changing them helps.
    pub fn changes_orders(&self) -> bool {
        self.model == MemoryModel::Rc11 && !self.changes.is_empty()
    }
}
