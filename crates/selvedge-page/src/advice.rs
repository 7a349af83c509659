//! The orders and fences that would have forbidden a bug of weak memory.

use selvedge_core::Op;
use selvedge_core::model::MemoryModel;
use selvedge_core::repair::{Change, Effect, Repair, Way};
use selvedge_core::words::{self, ObjectKind};
use serde::{Deserialize, Serialize};

use crate::Place;

/// Advice on removing a bug by orders and fences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// Its effect on the bug.
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

/// The effect of changing orders and fences.
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
    /// The operation there, such as `load`.
    pub operation: String,
    /// The object that it works on.
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
    /// The result of `repair` under `model`. `describe` describes a change.
    pub fn new(
        repair: &Repair,
        model: MemoryModel,
        describe: impl FnMut(&Change) -> Means,
    ) -> Advice {
        let (outcome, executions) = match repair {
            Repair::Sequential | Repair::Strong => (Remedy::Sequential, None),
            Repair::Unknown => (Remedy::Unknown, None),
            Repair::Changes { effect, .. } => match *effect {
                Effect::Removes { executions, others } => match others {
                    false => (Remedy::Removes, Some(executions)),
                    true => (Remedy::RemovesThisOne, Some(executions)),
                },
                Effect::Unconfirmed => (Remedy::Unconfirmed, None),
                Effect::Remains => (Remedy::Remains, None),
            },
        };
        let changes = match repair {
            Repair::Changes { changes, .. } => &changes[..],
            _ => &[],
        };
        let mut changes: Vec<Means> = changes.iter().map(describe).collect();
        changes.sort_by_key(|means| (means.place.file.clone(), means.place.line));
        Advice {
            outcome,
            model,
            executions,
            changes,
        }
    }

    /// Whether the orders in the source count, and changing them helps.
    pub fn changes_orders(&self) -> bool {
        self.model == MemoryModel::Rc11 && !self.changes.is_empty()
    }
}

impl Means {
    /// `change`, which is about the access to `object` at `place`.
    pub fn new(change: &Change, place: Place, object: Option<String>) -> Means {
        let order = |op: &Op| words::order(op, ObjectKind::Memory);
        let (from, to) = match change.way {
            Way::Order(_) => (order(&change.op), order(&change.after())),
            Way::Fence(order_) => (None, order(&Op::Fence { order: order_ })),
        };
        let operation = words::operation(&change.op, ObjectKind::Memory);
        let also_failing = match (change.op, change.after()) {
            (Op::Update { failure, .. }, Op::Update { failure: after, .. }) => {
                operation == "compare-exchange" && failure != after
            }
            _ => false,
        };
        Means {
            place,
            called_at: None,
            operation: operation.to_owned(),
            object,
            from,
            to: to.unwrap_or_default(),
            also_failing,
        }
    }
}
