//! The result for people: the verdict in one line first, then the evidence, then what to run next.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use anstyle::{AnsiColor, Style};
use indicatif::HumanCount;
use selvedge_core::FailureKind;
pub(super) use selvedge_page::heading;
use selvedge_page::unordered;

use super::snippet::{self, Remark};
use super::{Bug, Place, Report, Verdict, advice, numbered, table, thread_name};
use crate::args;
use crate::describe::title;
use crate::output;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = Style::new()
    .bold()
    .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = Style::new()
    .bold()
    .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// Commands that the user may want to run next.
pub(crate) struct Next {
    /// The command that was run, for the shell.
    command: String,
    /// How a trace would be replayed.
    replay: String,
    /// The same for the trace that was written.
    trace: Option<String>,
}

impl Next {
    /// Takes it from the command that was run, and whether its trace was written.
    pub(crate) fn new(verify: &args::Verify, written: bool) -> Next {
        let compiler = verify.sources.cc.as_ref();
        let compiler = compiler.map_or(String::new(), |cc| format!(" --cc {}", quoted(cc)));
        let trace = verify
            .trace_out
            .as_ref()
            .filter(|_| written)
            .map(|path| format!("{}{compiler}", quoted(path)));
        Next {
            command: command(std::env::args_os(), &[]),
            replay: format!("trace.json{compiler}"),
            trace,
        }
    }

    fn with(&self, option: &str) -> String {
        match self.command.split_once(" -- ") {
            Some((options, flags)) => format!("{options} {option} -- {flags}"),
            None => format!("{} {option}", self.command),
        }
    }
}

pub(crate) fn command(arguments: impl Iterator<Item = OsString>, more: &[&str]) -> String {
    let mut words: Vec<String> = arguments.skip(1).map(quoted).collect();
    words.insert(0, "selvedge".to_owned());
    words.extend(more.iter().map(|&word| word.to_owned()));
    words.join(" ")
}

/// `word` as a shell reads it.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    let bytes = word.as_ref().as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(word) if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        Ok(word) if !word.chars().any(char::is_control) => {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
        _ => format!("$'{}'", bytes.escape_ascii()),
    }
}

/// Prints the result of a check, with `explanation` before what to run next.
pub(crate) fn print(report: &Report, next: &Next, explanation: &str) {
    let text = text(report) + explanation;
    output::print(&(text + &to_do(report, next)));
}

/// Prints the failure that a replay ended in.
pub(crate) fn print_replayed(bug: &Bug, again: &str, in_process: bool) {
    let mut text = evidence(bug);
    if !in_process {
        let _ = writeln!(text, "\n{BOLD}next:{BOLD:#} selvedge debug {again}");
    }
    output::print(&text);
}

fn text(report: &Report) -> String {
    match report.verdict {
        Verdict::Verified => verified(report) + &notes(report),
        Verdict::Incomplete => incomplete(report) + &notes(report),
        Verdict::Bug => bugs(report),
    }
}

/// Suggestions for the user.
fn to_do(report: &Report, next: &Next) -> String {
    let reason = report.reason.as_deref().unwrap_or_default();
    let limited = reason.contains("--timeout") || reason.contains("--max-executions");
    let what = match (report.verdict, &report.resume, &next.trace) {
        (Verdict::Verified, ..) => return String::new(),
        (Verdict::Incomplete, Some(resume), _) => resume.clone(),
        (Verdict::Incomplete, None, _) if limited => {
            "raise that limit, or make the program smaller".to_owned()
        }
        (Verdict::Incomplete, None, _) if reason == "interrupted" => next.command.clone(),
        (Verdict::Incomplete, None, _) => return String::new(),
        (Verdict::Bug, _, Some(trace)) => format!("selvedge replay {trace}"),
        (Verdict::Bug, _, None) => format!(
            "{}\n      selvedge replay {}",
            next.with("--trace-out trace.json"),
            next.replay
        ),
    };
    format!("\n{BOLD}next:{BOLD:#} {what}\n")
}

/// Notes about behaviour that was not explored in full.
fn notes(report: &Report) -> String {
    let notes = report.notes.iter();
    notes.map(|note| format!("note: {note}\n")).collect()
}

fn verified(report: &Report) -> String {
    let mut text = format!("{GREEN}verified{GREEN:#}");
    if let Some(bound) = report.bound.filter(|_| !report.complete) {
        let _ = write!(text, " within {}", counted(u64::from(bound), report.bounds));
    }
    if let Some(cut) = cut_loops(report) {
        let _ = write!(text, " with {cut} (--unroll)");
    }
    let _ = write!(
        text,
        ": {} ({} under {})\n{}",
        report.holds.as_deref().unwrap_or("no execution fails"),
        seen(report),
        report.model.name(),
        statistics(report)
    );
    text
}

/// The loops that were cut.
pub(super) fn cut_loops(report: &Report) -> Option<String> {
    let all = report.unroll.map(|rounds| ("loops".to_owned(), rounds));
    let functions = report.unroll_functions.iter();
    let named = functions.map(|(function, rounds)| (format!("loops of {function}"), *rounds));
    let cut = all.into_iter().chain(named).map(|(loops, rounds)| {
        let plural = if rounds == 1 { "" } else { "s" };
        format!("{loops} cut after {rounds} round{plural}")
    });
    let cut: Vec<String> = cut.collect();
    (!cut.is_empty()).then(|| cut.join(", "))
}

fn incomplete(report: &Report) -> String {
    let reason = report.reason.as_deref().unwrap_or("the search did not end");
    let mut text = format!(
        "{YELLOW}incomplete{YELLOW:#}: {reason}; no bug so far ({} under {})\n{}",
        seen(report),
        report.model.name(),
        statistics(report)
    );
    text.push_str(&estimated(report));
    text
}

/// How much of the search is left.
fn estimated(report: &Report) -> String {
    let (Some(progress), Some(estimate)) = (report.progress, &report.estimate) else {
        return String::new();
    };
    format!(
        "about {:.1}% of the search is done; estimated executions: {} ({} to {})\n",
        100.0 * progress,
        HumanCount(estimate.executions),
        HumanCount(estimate.low),
        HumanCount(estimate.high),
    )
}

fn bugs(report: &Report) -> String {
    let mut text = String::new();
    let all = report.all_bugs();
    if all.len() > 1 {
        let _ = writeln!(text, "{BOLD}{} distinct bugs{BOLD:#}\n", all.len());
    }
    for (n, bug) in all.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        text.push_str(&evidence(bug));
    }
    let _ = write!(text, "\n{}", statistics(report));
    if let Some(reason) = &report.reason {
        let _ = writeln!(text, "the search did not end: {reason}");
    }
    text
}

/// Everything there is to say of one bug.
pub(crate) fn evidence(bug: &Bug) -> String {
    let heading = heading(bug);
    let here = match bug.kind {
        FailureKind::Deadlock => format!("{} waits here", thread_name(bug.thread)),
        FailureKind::Livelock => format!("{} spins here", thread_name(bug.thread)),
        FailureKind::DataRace => format!("{} is here", thread_name(bug.thread)),
        kind if kind.is_endless() => format!("{} is here in the end", thread_name(bug.thread)),
        _ => format!("in {}", thread_name(bug.thread)),
    };
    let mut remarks = vec![Remark {
        label: "bug",
        message: heading,
        place: &bug.place,
        here,
    }];
    remarks.extend(in_library(&bug.place, bug.thread));
    if let Some(other) = &bug.other {
        let thread = thread_name(other.thread);
        remarks.push(Remark {
            label: "note",
            message: match bug.kind {
                FailureKind::DataRace => {
                    format!("it conflicts with the {} in {thread}", other.what)
                }
                _ => format!("{} in {thread}", other.what),
            },
            place: &other.place,
            here: format!("{thread} was here"),
        });
        remarks.extend(in_library(&other.place, other.thread));
    }
    let mut text = snippet::render(&remarks);
    text.push_str("\n\n");
    text.push_str(&explanation(bug));
    if !bug.trace.is_empty() {
        let _ = writeln!(
            text,
            "\n{BOLD}schedule:{BOLD:#} {}\n{DIM}          {}, {}; S: a switch because the thread before \
             ended or had to wait, P: a preemption, -: a step{}{DIM:#}\n",
            bug.schedule,
            counted(u64::from(bug.preemptions), "preemption"),
            counted(u64::from(bug.context_switches), "context switch"),
            if bug.cycle.is_some() {
                ", (…)*: for ever"
            } else {
                ""
            },
        );
        text.push_str(&table::render(bug, title(bug.kind)));
        let stale = unordered(bug) + &table::stale_steps(&bug.trace);
        if !stale.is_empty() {
            let _ = write!(text, "\n{stale}");
        }
    }
    if let Some(advice) = &bug.advice {
        let _ = write!(text, "\n{BOLD}advice:{BOLD:#} {}", advice::in_words(advice));
    }
    text
}

/// The line of a library that `thread` was at when the program was at `place`.
fn in_library(place: &Place, thread: u32) -> Option<Remark<'_>> {
    let library = place.library.as_deref()?;
    let function = library.function.as_deref().unwrap_or("a library");
    Some(Remark {
        label: "note",
        message: format!("inside {function}"),
        place: library,
        here: format!("{}, called from {place}", thread_name(thread)),
    })
}

/// The same without colours.
pub(super) fn plain_evidence(bug: &Bug) -> String {
    anstream::adapter::strip_str(&evidence(bug)).to_string()
}

/// The verdict on everything that was explored, with what was not, without colours.
pub(super) fn plain_verdict(report: &Report) -> String {
    let text = match report.verdict {
        Verdict::Verified => verified(report) + &notes(report),
        Verdict::Incomplete => incomplete(report) + &notes(report),
        Verdict::Bug => String::new(),
    };
    anstream::adapter::strip_str(&text).to_string()
}

/// Details that the places alone do not show: which thread waits for which, the memory, the threads' stacks.
fn explanation(bug: &Bug) -> String {
    let mut text = String::new();
    if let (FailureKind::DataRace, Some(other)) = (bug.kind, &bug.other) {
        let _ = writeln!(
            text,
            "Nothing orders the two: no lock, no atomic, no creating or joining of a thread makes \
             what\n{} does at {} happen before or after what {} did at {}.",
            thread_name(bug.thread),
            bug.place,
            thread_name(other.thread),
            other.place
        );
    }
    who_waits(&mut text, bug);
    blocks(&mut text, bug);
    stacks(&mut text, bug);
    text
}

/// Each thread that waits, the thread it waits for, and where.
fn who_waits(text: &mut String, bug: &Bug) {
    for wait in &bug.waiting {
        let _ = write!(text, "{} waits {}", thread_name(wait.thread), wait.what);
        let taken = wait.since.and_then(|step| numbered(&bug.trace, step));
        if let (Some(on), Some(step)) = (wait.on, taken) {
            let (on, number) = (thread_name(on), step.step);
            let _ = write!(
                text,
                ", which {on} has had since step {number} ({})",
                step.place
            );
        }
        text.push('\n');
        match bug.stacks.iter().find(|stack| stack.thread == wait.thread) {
            Some(stack) if stack.frames.iter().any(Place::is_users) => frames(text, &stack.frames),
            _ => frames(text, std::slice::from_ref(&wait.place)),
        }
    }
}

/// The heap blocks that it is about.
fn blocks(text: &mut String, bug: &Bug) {
    for block in &bug.blocks {
        let _ = write!(
            text,
            "block #{}: {}, allocated by {} at {}",
            block.number,
            counted(block.size, "byte"),
            thread_name(block.thread),
            block.place
        );
        if let Some(freed) = &block.freed {
            let _ = write!(
                text,
                ", freed by {} at {}",
                thread_name(freed.thread),
                freed.place
            );
        }
        text.push('\n');
    }
}

/// Where the other threads are.
fn stacks(text: &mut String, bug: &Bug) {
    let waits = |thread: u32| bug.waiting.iter().any(|wait| wait.thread == thread);
    for stack in bug.stacks.iter().filter(|stack| !waits(stack.thread)) {
        let name = thread_name(stack.thread);
        match &bug.other {
            // Where it was then says more than where it is now.
            Some(other) if other.thread == stack.thread && !other.frames.is_empty() => {
                let _ = writeln!(text, "{name} at its {}", other.what);
                frames(text, &other.frames);
            }
            _ => {
                let _ = writeln!(text, "{name} {}", stack.state);
                frames(text, &stack.frames);
            }
        }
    }
}

/// A stack, without the insides of the standard library: what is called of it says enough. A frame
/// that repeats, as in a recursion, is written once.
fn frames(text: &mut String, frames: &[Place]) {
    let tells = |frame: &Place| frame.is_users() || frame.is_library();
    let called = |n: usize| frames.get(n + 1).is_some_and(tells);
    let shown: Vec<&Place> = frames
        .iter()
        .enumerate()
        .filter(|&(n, frame)| tells(frame) || called(n) || frames.len() == 1)
        .map(|(_, frame)| frame)
        .collect();
    for group in shown.chunk_by(|one, other| one == other) {
        let function = group[0].function.as_deref().unwrap_or("?");
        let _ = write!(text, "    {function}");
        if group[0].file.is_some() {
            let _ = write!(text, " ({})", group[0]);
        }
        if group.len() > 1 {
            let _ = write!(text, ", {} times", group.len());
        }
        text.push('\n');
    }
}

/// How much was seen.
fn seen(report: &Report) -> String {
    match &report.states {
        Some(states) => counted(states.states, "state"),
        None => executions(report.executions),
    }
}

fn statistics(report: &Report) -> String {
    if let Some(states) = &report.states {
        let rate = states.states as f64 / report.seconds.max(1e-6);
        return format!(
            "{DIM}{}, {}, {:.2} s, {} states per second, {} bytes per state{DIM:#}\n",
            seen(report),
            counted(states.transitions, "transition"),
            report.seconds,
            HumanCount(rate as u64),
            HumanCount(states.bytes / states.states.max(1)),
        );
    }
    let rate = (report.executions + report.blocked) as f64 / report.seconds.max(1e-6);
    format!(
        "{DIM}{}, {} blocked, {:.2} s, {} per second{DIM:#}\n",
        executions(report.executions),
        HumanCount(report.blocked),
        report.seconds,
        HumanCount(rate as u64)
    )
}

fn executions(number: u64) -> String {
    counted(number, "execution")
}

pub(super) fn counted(number: u64, what: &str) -> String {
    let plural = match what {
        "context switch" => "context switches".to_owned(),
        _ => format!("{what}s"),
    };
    match number {
        1 => format!("1 {what}"),
        _ => format!("{} {plural}", HumanCount(number)),
    }
}
