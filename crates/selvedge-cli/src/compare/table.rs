//! The comparison for people: a row for each algorithm as soon as it is done, then what follows
//! from them.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use indicatif::HumanCount;

use super::{Comparison, Run};
use crate::args;
use crate::explorer::Explorer;
use crate::output;
use crate::report::Verdict;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = Style::new()
    .bold()
    .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// The columns of the table, and the width of the first one.
pub(super) struct Table {
    names: usize,
    bounded: bool,
}

impl Table {
    /// Prints the headings for what is to come.
    pub(super) fn new(searches: &[(args::Verify, Explorer)]) -> Table {
        let names = searches.iter().map(|(_, explorer)| explorer.name().len());
        let bounded =
            |verify: &args::Verify| verify.search.preemptions.is_some() || verify.search.iterative;
        let table = Table {
            names: names.max().unwrap_or(0).max("algorithm".len()),
            bounded: searches.iter().any(|(verify, _)| bounded(verify)),
        };
        let headings = Cells {
            bound: "bound".to_owned(),
            executions: "executions".to_owned(),
            blocked: "blocked".to_owned(),
            over_bound: "over bound".to_owned(),
            cut: "cut".to_owned(),
            seconds: "seconds".to_owned(),
            memory: "MiB".to_owned(),
            first_bug: "first bug".to_owned(),
            verdict: "verdict".to_owned(),
        };
        output::print(&format!(
            "{BOLD}{}{BOLD:#}\n",
            table.line("algorithm", headings)
        ));
        table
    }

    /// Prints the row of `run`.
    pub(super) fn print(&self, run: &Run) {
        let report = &run.report;
        let number = |number: u64| HumanCount(number).to_string();
        let optional =
            |number: Option<u64>| number.map_or("-".to_owned(), |n| HumanCount(n).to_string());
        let cells = Cells {
            bound: optional(report.bound.map(u64::from)),
            executions: number(report.executions),
            blocked: number(report.blocked),
            over_bound: number(report.over_bound),
            cut: number(report.bound_blocked),
            seconds: format!("{:.2}", report.seconds),
            memory: format!("{:.1}", run.memory as f64 / f64::from(1 << 20)),
            first_bug: optional(run.first_bug_after),
            verdict: verdict(run),
        };
        output::print(&format!("{}\n", self.line(run.explorer.name(), cells)));
    }

    fn line(&self, name: &str, cells: Cells) -> String {
        let mut line = format!("{name:<width$}", width = self.names);
        if self.bounded {
            let _ = write!(line, " {:>5}", cells.bound);
        }
        let _ = write!(line, " {:>11} {:>9}", cells.executions, cells.blocked);
        if self.bounded {
            let _ = write!(line, " {:>10} {:>9}", cells.over_bound, cells.cut);
        }
        let _ = write!(
            line,
            " {:>8} {:>7} {:>9}  {}",
            cells.seconds, cells.memory, cells.first_bug, cells.verdict
        );
        line
    }

    /// Prints what follows from all rows together.
    pub(super) fn finish(&self, comparison: &Comparison) {
        let mut text = String::from("\n");
        for (what, names) in bugs(&comparison.runs) {
            let _ = writeln!(
                text,
                "{RED}bug{RED:#}: {what}\n     found by {}",
                names.join(", ")
            );
        }
        for name in &comparison.failed {
            let _ = writeln!(
                text,
                "{RED}{name} failed{RED:#}: this is a fault of Selvedge, see above"
            );
        }
        for contradiction in &comparison.contradictions {
            let _ = writeln!(text, "{RED}CONTRADICTION{RED:#}: {contradiction}");
        }
        if !comparison.agree {
            text.push_str("One of them is wrong: please report it with the program\n");
        }
        let _ = writeln!(text, "{}", self.summary(comparison));
        output::print(&text);
    }

    fn summary(&self, comparison: &Comparison) -> String {
        let first = |verdict| {
            let found = comparison
                .runs
                .iter()
                .find(|run| run.report.verdict == verdict);
            found.map_or("trust", |run| run.explorer.name())
        };
        let next = |verdict| {
            format!(
                "{BOLD}next:{BOLD:#} selvedge verify --algorithm {} with the same options shows the schedule",
                first(verdict)
            )
        };
        match comparison.verdict {
            _ if !comparison.agree => String::new(),
            Verdict::Bug => next(Verdict::Bug),
            Verdict::Verified => format!("{DIM}all that was found agrees{DIM:#}"),
            Verdict::Incomplete => {
                format!("{DIM}no algorithm that leaves nothing out came to its end{DIM:#}")
            }
        }
        .trim_end()
        .to_owned()
    }
}

struct Cells {
    bound: String,
    executions: String,
    blocked: String,
    over_bound: String,
    cut: String,
    seconds: String,
    memory: String,
    first_bug: String,
    verdict: String,
}

/// The verdict, and what it is worth.
pub(super) fn verdict(run: &Run) -> String {
    let report = &run.report;
    match report.verdict {
        Verdict::Bug => "bug".to_owned(),
        Verdict::Verified => match report.bound.filter(|_| !report.complete) {
            Some(bound) => format!("verified within {bound}"),
            None => "verified".to_owned(),
        },
        Verdict::Incomplete if !run.explorer.descriptor().complete => {
            "incomplete (may lose executions)".to_owned()
        }
        Verdict::Incomplete => {
            let reason = report.reason.as_deref().unwrap_or("the search did not end");
            format!("incomplete ({reason})")
        }
    }
}

/// Each distinct first bug, its place, and the algorithms that found it.
fn bugs(runs: &[Run]) -> Vec<(String, Vec<&'static str>)> {
    let mut all: Vec<(String, Vec<&'static str>)> = Vec::new();
    for run in runs {
        let Some(bug) = &run.report.bug else { continue };
        let what = format!("{} ({})", bug.message, bug.place);
        match all.iter_mut().find(|(known, _)| *known == what) {
            Some((_, names)) => names.push(run.explorer.name()),
            None => all.push((what, vec![run.explorer.name()])),
        }
    }
    all
}
