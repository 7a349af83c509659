//! Advice about orders and fences in words.

use std::fmt::Write as _;

use selvedge_page::{Advice, Means, Remedy};

use super::human::counted;
use crate::args::Model;

/// The advice for people, ending with the end of a line.
pub(super) fn in_words(advice: &Advice) -> String {
    let mut text = String::new();
    for (n, change) in advice.changes.iter().enumerate() {
        let joint = match n {
            0 => "",
            _ => "        ",
        };
        let _ = match &change.called_at {
            Some(called_at) => writeln!(
                text,
                "{joint}{called_at}: in {}\n          {}",
                change.place.in_full(),
                demand(change)
            ),
            None => writeln!(text, "{joint}{}: {}", change.place, demand(change)),
        };
    }
    let these = match advice.changes.len() {
        1 => "this change",
        _ => "these changes",
    };
    let verdict = match advice.outcome {
        Remedy::Removes => {
            let all = match advice.executions.unwrap_or_default() {
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
        Remedy::Unknown => match advice.model {
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

/// The change as a demand.
fn demand(change: &Means) -> String {
    let mut what = change.operation.clone();
    if let Some(object) = &change.object {
        let to = match change.operation.as_str() {
            "store" => "to",
            _ => "of",
        };
        let _ = write!(what, " {to} {object}");
    }
    let to = &change.to;
    match &change.from {
        None => format!("put atomic_thread_fence(memory_order_{to}) before the {what}"),
        Some(from) => {
            let failing = match change.also_failing {
                true => ", also where it fails",
                false => "",
            };
            format!("make the {what} memory_order_{to}{failing} (it is {from})")
        }
    }
}
