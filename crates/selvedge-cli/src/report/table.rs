//! The steps of a schedule as an aligned table.

use selvedge_core::witness::Switch;
use selvedge_core::words;

use super::{Bug, Datum, ReadsFrom, Step, thread_name};

/// So many steps are shown; the last ones matter most.
const SHOWN: usize = 200;

const HEADINGS: [&str; 6] = ["", "step", "thread", "where", "what", "reads from"];

/// Writes the table, ending with the failure.
pub(super) fn render(bug: &Bug, failure: &str) -> String {
    let hidden = bug.trace.len().saturating_sub(SHOWN);
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for step in &bug.trace[hidden..] {
        if bug.cycle == Some(step.step) {
            rows.push(remark("from here on for ever:".to_owned()));
        }
        rows.push(row(step, &bug.trace));
    }
    rows.push(match bug.cycle {
        Some(first) if first as usize > bug.trace.len() => {
            remark("the program has ended; nothing changes any more".to_owned())
        }
        Some(first) => remark(format!("everything is as it was before step {first}")),
        None => [
            String::new(),
            String::new(),
            thread_name(bug.thread),
            bug.place.to_string(),
            failure.to_owned(),
            String::new(),
        ],
    });
    let mut widths = [0; HEADINGS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::from(" ");
        for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
            // The number of the step is aligned to the right.
            match n {
                1 => line.push_str(&format!(" {cell:>width$} ")),
                _ => line.push_str(&format!(" {cell:width$} ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if hidden > 0 {
        text.push_str(&format!(
            "  (the first {hidden} steps are left out; --format json has all)\n"
        ));
    }
    text
}

/// A row that is no step.
fn remark(what: String) -> [String; 6] {
    let mut row = [const { String::new() }; 6];
    row[4] = what;
    row
}

fn row(step: &Step, trace: &[Step]) -> [String; 6] {
    let mark = match step.switch {
        Switch::Preemption => "P",
        Switch::Free => "S",
        Switch::Same if step.step == 1 => "S",
        Switch::Same => "",
    };
    [
        mark.to_owned(),
        step.step.to_string(),
        thread_name(step.thread),
        step.place.to_string(),
        what(step),
        reads_from(step, trace),
    ]
}

/// A step in one sentence.
pub(super) fn in_words(step: &Step) -> String {
    format!("{}: {}", thread_name(step.thread), what(step))
}

/// The operation of a step with its values.
pub(super) fn what(step: &Step) -> String {
    let text = |datum: &Option<Datum>| datum.as_ref().map(Datum::to_string);
    words::phrase(
        &step.operation,
        step.object.as_deref(),
        text(&step.read),
        text(&step.wrote),
    )
}

fn reads_from(step: &Step, trace: &[Step]) -> String {
    let name = |number: u32| match trace.get(number as usize - 1) {
        Some(writer) => format!("step {number} ({})", thread_name(writer.thread)),
        None => format!("step {number}"),
    };
    let source = match step.reads_from {
        Some(ReadsFrom::Initial) if step.operation.ends_with("lock") => String::new(),
        Some(ReadsFrom::Initial) => "the initial value".to_owned(),
        Some(ReadsFrom::Step(number)) => name(number),
        None => String::new(),
    };
    // The newest of what it passes by says enough.
    match step.passes.last() {
        None => source,
        Some(&newer) if source.is_empty() => format!("comes to lie behind {}", name(newer)),
        Some(&newer) => format!("{source}, not {}", name(newer)),
    }
}

/// How many stale steps are put into words.
const TOLD: usize = 3;

/// Describes the stale reads and late writes of a trace in words.
pub(super) fn stale_steps(trace: &[Step]) -> String {
    let stale = trace.iter().filter_map(|step| {
        let newer = trace.get(*step.passes.last()? as usize - 1)?;
        let object = step.object.as_deref().unwrap_or("it");
        let (who, at, place) = (thread_name(step.thread), step.step, &step.place);
        let newer = format!(
            "what {} had written at step {} ({})",
            thread_name(newer.thread),
            newer.step,
            newer.place
        );
        let value = step.read.as_ref().map(Datum::to_string);
        Some(match (step.reads_from, value) {
            (Some(ReadsFrom::Initial), Some(value)) => format!(
                "At step {at} ({place}) {who} does not see {newer}: it still reads the initial {value} of {object}.\n"
            ),
            (Some(ReadsFrom::Step(older)), Some(value)) => format!(
                "At step {at} ({place}) {who} does not see {newer}: it still reads the {value} of step {older} from {object}.\n"
            ),
            _ => format!(
                "What {who} writes to {object} at step {at} ({place}) takes effect before {newer}.\n"
            ),
        })
    });
    stale.take(TOLD).collect()
}
