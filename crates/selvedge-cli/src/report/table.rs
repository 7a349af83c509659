//! The steps of a schedule as an aligned table.

use selvedge_core::witness::Switch;
use selvedge_page::what;

use anstyle::Style;

use super::{Bug, Datum, Place, ReadsFrom, Step, numbered, thread_name};

const DIM: Style = Style::new().dimmed();

/// The most steps that are shown; the last ones matter most.
const SHOWN: usize = 200;

const HEADINGS: [&str; 6] = ["", "step", "thread", "where", "what", "reads from"];

/// Writes the table, ending with the failure.
pub(super) fn render(bug: &Bug, failure: &str) -> String {
    let hidden = bug.trace.len().saturating_sub(SHOWN);
    let mut rows = vec![Row::from(HEADINGS.map(str::to_owned))];
    let shown = &bug.trace[hidden..];
    let steps: Vec<Row> = shown.iter().map(|step| row(step, &bug.trace)).collect();
    let mut next = 0;
    while next < steps.len() {
        if bug.cycle == Some(shown[next].step) {
            rows.push(remark("from here on for ever:".to_owned()));
        }
        let cycle = bug.cycle.map(|first| (first as usize).saturating_sub(1));
        let end = cycle.and_then(|first| first.checked_sub(hidden));
        let end = end.filter(|&end| end > next).unwrap_or(steps.len());
        let (period, times) = repeated(&steps[next..end.min(steps.len())]);
        rows.extend_from_slice(&steps[next..next + period]);
        if times > 1 {
            fold(&mut rows, period, times);
        }
        next += period * times;
    }
    rows.push(match bug.cycle {
        Some(first) if first as usize > bug.trace.len() => {
            remark("the program has ended; nothing changes any more".to_owned())
        }
        Some(first) => remark(format!("everything is as it was before step {first}")),
        None => Row {
            below: below(&bug.place),
            ..Row::from([
                String::new(),
                String::new(),
                thread_name(bug.thread),
                bug.place.to_string(),
                failure.to_owned(),
                String::new(),
            ])
        },
    });
    let mut widths = [0; HEADINGS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::from(" ");
        for (n, (cell, width)) in row.cells.iter().zip(widths).enumerate() {
            // The number of the step is aligned to the right.
            match n {
                1 => line.push_str(&format!(" {cell:>width$} ")),
                _ => line.push_str(&format!(" {cell:width$} ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if let Some(below) = &row.below {
            // Below the program's line, and as wide as it has to be.
            let indent = 1 + widths[..3].iter().map(|width| width + 2).sum::<usize>();
            text.push_str(&format!("{:indent$}   {DIM}{below}{DIM:#}\n", ""));
        }
    }
    if hidden > 0 {
        text.push_str(&format!(
            "  (the first {hidden} steps are left out; --format json has all)\n"
        ));
    }
    text
}

type Cells = [String; 6];

#[derive(Clone)]
struct Row {
    cells: Cells,
    /// The line of a library, for a line of its own.
    below: Option<String>,
}

impl From<Cells> for Row {
    fn from(cells: Cells) -> Row {
        Row { cells, below: None }
    }
}

/// The line of a library that the program was in at `place`.
fn below(place: &Place) -> Option<String> {
    let library = place.library.as_deref()?;
    Some(format!("in {}", library.in_full()))
}

/// Steps that are repeated fewer times than this are shown as they are.
const REPEATED: usize = 4;
/// The most steps that are taken for one iteration.
const LONGEST: usize = 8;

/// How many steps at the start of `rows` are repeated, and how many times they are there in all: the
/// pair that leaves out most rows. What a step reads from may differ.
fn repeated(rows: &[Row]) -> (usize, usize) {
    let same = |a: &Row, b: &Row| {
        a.cells[2..5] == b.cells[2..5] && a.below == b.below && b.cells[0].is_empty()
    };
    let times = |period: usize| {
        let mut rest = rows[period..].chunks_exact(period);
        let first = &rows[..period];
        1 + rest
            .position(|next| !first.iter().zip(next).all(|(a, b)| same(a, b)))
            .unwrap_or(rows.len() / period - 1)
    };
    let periods = 1..=LONGEST.min(rows.len() / REPEATED);
    let folds = periods.map(|period| (period, times(period)));
    let folds = folds.filter(|&(_, times)| times >= REPEATED);
    folds
        .max_by_key(|&(period, times)| (period * (times - 1), LONGEST - period))
        .unwrap_or((1, 1))
}

/// Says that the last `period` rows stand for more.
fn fold(rows: &mut Vec<Row>, period: usize, times: usize) {
    match rows.last_mut() {
        Some(row) if period == 1 => row.cells[4].push_str(&format!(" × {times}")),
        _ => rows.push(remark(format!("(these {period} steps × {times})"))),
    }
}

/// A row that is no step.
fn remark(what: String) -> Row {
    let mut row = [const { String::new() }; 6];
    row[4] = what;
    Row::from(row)
}

fn row(step: &Step, trace: &[Step]) -> Row {
    let mark = match step.switch {
        Switch::Preemption => "P",
        Switch::Free => "S",
        Switch::Same if step.step == 1 => "S",
        Switch::Same => "",
    };
    let cells = [
        mark.to_owned(),
        step.step.to_string(),
        thread_name(step.thread),
        step.place.to_string(),
        what(step),
        reads_from(step, trace),
    ];
    Row {
        cells,
        below: below(&step.place),
    }
}

/// A step in one sentence.
pub(super) fn in_words(step: &Step) -> String {
    format!("{}: {}", thread_name(step.thread), what(step))
}

fn reads_from(step: &Step, trace: &[Step]) -> String {
    let name = |number: u32| match numbered(trace, number) {
        Some(writer) => format!("step {number} ({})", thread_name(writer.thread)),
        None => format!("step {number}"),
    };
    let source = match step.reads_from {
        Some(ReadsFrom::Initial) if step.operation.ends_with("lock") => String::new(),
        Some(ReadsFrom::Initial) => "the initial value".to_owned(),
        Some(ReadsFrom::Step(number)) => name(number),
        None => String::new(),
    };
    // The newest of the writes that it passes by is enough.
    match step.passes.last() {
        None => source,
        Some(&newer) if source.is_empty() => format!("ordered before {}", name(newer)),
        Some(&newer) => format!("{source}, not {}", name(newer)),
    }
}

/// How many stale steps are put into words.
const TOLD: usize = 3;

/// Describes the stale reads and late writes of a trace in words.
pub(super) fn stale_steps(trace: &[Step]) -> String {
    let stale = trace.iter().filter_map(|step| {
        let newer = numbered(trace, *step.passes.last()?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(what: &str) -> Vec<Row> {
        let row = |(n, letter): (usize, char)| {
            let cells = ["", &n.to_string(), "T0", "a.c:1", &letter.to_string(), "x"];
            Row::from(cells.map(str::to_owned))
        };
        what.chars().enumerate().map(row).collect()
    }

    #[test]
    fn repeated_steps_are_found() {
        assert_eq!(repeated(&rows("a")), (1, 1));
        assert_eq!(repeated(&rows("aaab")), (1, 1));
        assert_eq!(repeated(&rows("aaaab")), (1, 4));
        assert_eq!(repeated(&rows("abababababc")), (2, 5));
        assert_eq!(repeated(&rows("aaaaaaaa")), (1, 8));
        let mut switched = rows("aaaaaaaa");
        switched[6].cells[0] = "P".to_owned();
        assert_eq!(repeated(&switched), (1, 6));
    }

    #[test]
    fn repeated_steps_are_folded() {
        let mut one = rows("a");
        fold(&mut one, 1, 35);
        assert_eq!(one[0].cells[4], "a × 35");
        let mut two = rows("ab");
        fold(&mut two, 2, 5);
        assert_eq!(two[2].cells[4], "(these 2 steps × 5)");
    }
}
