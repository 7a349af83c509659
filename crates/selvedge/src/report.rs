//! The message of a failed test.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fmt::Write as _;

use selvedge_core::report::{Bug, Waiting};
use selvedge_core::witness::{Step, Switch};
use selvedge_core::words::ObjectKind;
use selvedge_core::{Location, Machine, Op, ThreadId, Value, Width};
use selvedge_page::{
    BugPage, Datum, Describer, Language, Origin, Origins, Party, Place, ReadsFrom, explained,
    kind_name, last_step_before, schedule, what,
};
use serde::{Deserialize, Serialize};

use crate::model::MemoryModel;
use crate::rt::{RustMachine, SourcePlace};
use crate::token;

/// An execution that fails.
///
/// Its [`Display`](fmt::Display) form is what a test fails with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The sort of failure, such as `assertion`, `deadlock` or `data-race`.
    pub kind: String,
    /// The failure in one line.
    pub message: String,
    /// The schedule in one line: `S0----S1--P0--`. `S` switches to a thread because the one before
    /// had ended or had to wait, `P` preempts one that could have gone on, and each dash is a step.
    pub schedule: String,
    /// How many switches of the schedule are preemptions.
    pub preemptions: u32,
    /// The token that [`replay`](crate::replay) needs to get the same failure.
    pub replay: String,
    text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Describes `bug`, in whose failing state `machine` must be.
pub(crate) fn describe(machine: &RustMachine, bug: &Bug, model: MemoryModel) -> (Failure, BugPage) {
    let steps = &bug.witness.steps;
    let names = Names::new(machine, bug);
    let words = Describer::new(&names, bug);
    // The failure of the repeated schedule has more details than the first one.
    let again = machine
        .failure()
        .filter(|again| again.kind == bug.failure.kind);
    let failure = again.as_ref().unwrap_or(&bug.failure);
    let described = selvedge_page::Bug {
        kind: failure.kind,
        message: failure.message.clone(),
        preemptions: bug.witness.preemptions,
        context_switches: bug.witness.switches,
        thread: failure.thread.0,
        place: place(&machine.place_of(failure.site)),
        other: failure.other.as_ref().map(|other| Party {
            thread: other.thread.0,
            what: other.what.clone(),
            place: place(&machine.place_of(other.site)),
            after: last_step_before(other, steps),
            frames: Vec::new(),
        }),
        waiting: bug
            .waiting
            .iter()
            .map(|waiting| {
                let place = place(&machine.place_of(waiting.site));
                words.wait(waiting, &bug.witness, place)
            })
            .collect(),
        blocks: Vec::new(),
        stacks: Vec::new(),
        advice: None,
        cycle: None,
        schedule: schedule(&bug.witness),
        trace: (0..)
            .zip(steps)
            .map(|(n, step)| words.step(n, step, place(&names.place(n, steps).0)))
            .collect(),
        plain: Vec::new(),
        call_stacks: Vec::new(),
    };
    let replay = token::write(
        model,
        steps,
        &machine.counted_places(),
        machine.spurious(),
        machine.late(),
    );
    let kind = kind_name(failure.kind);
    let place = machine.place_of(failure.site);
    let mut text = format!("{}\n", failure.message);
    let by = names.thread(failure.thread);
    let _ = writeln!(text, "  {kind} in {by} at {place}");
    if let Some(other) = &failure.other {
        let place = machine.place_of(other.site);
        let by = names.thread(other.thread);
        let _ = writeln!(text, "  the {} by {by} at {place}", other.what);
    }
    for (waiting, described) in bug.waiting.iter().zip(&described.waiting) {
        let _ = writeln!(text, "  {}", waits(&words, waiting, described));
    }
    let plural = |n: u32, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let schedule = &described.schedule;
    let _ = writeln!(
        text,
        "\nschedule: {schedule}  ({}, {}, memory model {})\n",
        plural(bug.witness.switches, "context switch").replace("switchs", "switches"),
        plural(bug.witness.preemptions, "preemption"),
        model.name()
    );
    text.push_str(&table(&words, steps, &described.trace));
    let _ = write!(
        text,
        "\nto run this execution again: selvedge::replay(\"{replay}\", || …)"
    );
    let failure = Failure {
        kind,
        message: failure.message.clone(),
        schedule: schedule.clone(),
        preemptions: bug.witness.preemptions,
        replay,
        text,
    };
    let explanation = explained(described.kind, Language::Rust);
    (failure, BugPage::new(described, steps, explanation))
}

/// The type of the object that `op` works on, and the line where it was created.
pub(crate) fn object(machine: &RustMachine, op: &Op) -> Option<String> {
    let (what, place, _) = machine.describe(op.location()?);
    Some(format!("{what}@{}", place.line))
}

/// The lines that executions come from, if they are counted.
pub(crate) fn lines(origins: &Origins, machine: &RustMachine) -> Option<Vec<Origin>> {
    origins.lines(|site| place(&machine.place_of(site)))
}

pub(crate) fn place(place: &SourcePlace) -> Place {
    Place {
        file: Some(place.file.clone()),
        line: Some(place.line),
        ..Place::default()
    }
}

struct Names<'a> {
    machine: &'a RustMachine,
    /// The objects that the schedule works on, each with a name of its own.
    objects: HashMap<Location, String>,
}

/// Names for these objects, each given with its type and where it was created: `AtomicUsize@7`. Where several of a
/// type are created in one line they have the column as well, or else a number.
fn distinct(objects: &[(Location, &str, SourcePlace)]) -> HashMap<Location, String> {
    let line = |(_, what, place): &(Location, &str, SourcePlace)| format!("{what}@{}", place.line);
    let full =
        |object: &(Location, &str, SourcePlace)| format!("{}:{}", line(object), object.2.column);
    let names = objects.iter().enumerate().map(|(n, object)| {
        let alike = |name: &dyn Fn(&(Location, &str, SourcePlace)) -> String| {
            let own = name(object);
            objects.iter().filter(|other| name(other) == own).count() > 1
        };
        let before = &objects[..n];
        let name = match (alike(&line), alike(&full)) {
            (false, _) => line(object),
            (true, false) => full(object),
            (true, true) => {
                let own = full(object);
                let number = before.iter().filter(|other| full(other) == own).count() + 1;
                format!("{}#{number}", line(object))
            }
        };
        (object.0, name)
    });
    names.collect()
}

impl selvedge_page::Names for Names<'_> {
    /// The type of the object and where it was created.
    fn object(&self, op: &Op) -> Option<String> {
        if let Op::Create { child } | Op::Join { child } = op {
            return Some(self.thread(*child));
        }
        self.objects.get(&op.location()?).cloned()
    }

    fn contents(&self, op: &Op, value: Value) -> Datum {
        let number = |value: Value| match u64::try_from(value) {
            Ok(value) => Datum::Unsigned(value),
            Err(_) => Datum::Text(value.to_string()),
        };
        let Some(at) = op.location() else {
            return number(value);
        };
        let (what, _, pointers) = self.machine.describe(at);
        match (what, value) {
            (_, 0) if pointers => Datum::Text("null".to_owned()),
            _ if pointers && value >> 64 != 0 => {
                Datum::Text(format!("block {}+{}", (value >> 64), value as u64))
            }
            _ if pointers => Datum::Text(format!("{value:#x}")),
            ("AtomicBool", _) => Datum::Text((value != 0).to_string()),
            _ => match signed_width(what) {
                Some(width) => Datum::Text(width.sign_extend(value).to_string()),
                None => number(value),
            },
        }
    }
}

impl<'a> Names<'a> {
    fn new(machine: &'a RustMachine, bug: &Bug) -> Names<'a> {
        let waiting = bug.waiting.iter().filter_map(|waiting| waiting.op.as_ref());
        let steps = bug.witness.steps.iter().map(|step| &step.op);
        let locations: BTreeSet<Location> = steps.chain(waiting).filter_map(Op::location).collect();
        let described = |location| {
            let (what, place, _) = machine.describe(location);
            (location, what, place)
        };
        let objects: Vec<_> = locations.into_iter().map(described).collect();
        Names {
            machine,
            objects: distinct(&objects),
        }
    }

    fn thread(&self, thread: ThreadId) -> String {
        match self.machine.thread_name(thread) {
            Some(name) => format!("{thread} ({name})"),
            None => thread.to_string(),
        }
    }

    /// Where step `n` is. Destructors that the compiler calls have no place of their own: then it is
    /// the place of the thread's step before, and the second part of the answer says so.
    fn place(&self, n: usize, steps: &[Step]) -> (SourcePlace, bool) {
        let place = |step: &Step| self.machine.place_of(step.site);
        let own = place(&steps[n]);
        if !own.file.starts_with("/rustc/") {
            return (own, false);
        }
        let before = steps[..n].iter().rev();
        let mut before = before
            .filter(|step| step.thread == steps[n].thread)
            .map(place);
        let before = before.find(|place| !place.file.starts_with("/rustc/"));
        (before.unwrap_or(own), true)
    }
}

fn waits(
    words: &Describer<'_, Names<'_>>,
    waiting: &Waiting,
    described: &selvedge_page::Wait,
) -> String {
    let names = words.names;
    let thread = names.thread(waiting.thread);
    let place = names.machine.place_of(waiting.site);
    let what = match &waiting.op {
        None => "spins on values that nothing can change".to_owned(),
        Some(_) => format!("waits {}", described.what),
    };
    // The thread that wrote a lock last holds it.
    let lock = waiting.op.as_ref().is_some_and(|op| words.is_lock(op));
    match waiting.on.filter(|_| lock) {
        Some(on) => format!(
            "{thread} {what}, which {} has, at {place}",
            names.thread(on)
        ),
        None => format!("{thread} {what}, at {place}"),
    }
}

fn table(
    words: &Describer<'_, Names<'_>>,
    steps: &[Step],
    described: &[selvedge_page::Step],
) -> String {
    let mut rows = vec![["", "step", "thread", "where", "what", "reads from"].map(str::to_owned)];
    for n in 0..steps.len() {
        rows.push(row(words, n, steps, described));
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        let line: String = cells
            .map(|(cell, width)| format!(" {cell:width$} "))
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(
    words: &Describer<'_, Names<'_>>,
    n: usize,
    steps: &[Step],
    described: &[selvedge_page::Step],
) -> [String; 6] {
    let (step, names) = (&described[n], words.names);
    let mark = match step.switch {
        Switch::Preemption => "P",
        Switch::Free => "S",
        Switch::Same if n == 0 => "S",
        Switch::Same => "",
    };
    let name = |number: u32| match selvedge_page::numbered(described, number) {
        Some(writer) => format!("step {number} (T{})", writer.thread),
        None => format!("step {number}"),
    };
    let memory = words.kind(&steps[n].op) == ObjectKind::Memory;
    let mut reads_from = match step.reads_from {
        Some(ReadsFrom::Step(number)) => name(number),
        Some(ReadsFrom::Initial) if memory => "the initial value".to_owned(),
        _ => String::new(),
    };
    if let Some(&newer) = step.passes.last() {
        let _ = write!(reads_from, ", not {}", name(newer));
    }
    let place = match names.place(n, steps) {
        (place, false) => place.to_string(),
        (place, true) if place.file.starts_with("/rustc/") => "a drop".to_owned(),
        (place, true) => format!("a drop after {place}"),
    };
    let what = what(step);
    [
        mark.to_owned(),
        (n + 1).to_string(),
        names.thread(steps[n].thread),
        place,
        match &step.order {
            Some(order) => format!("{what} ({order})"),
            None => what,
        },
        reads_from,
    ]
}

fn signed_width(what: &str) -> Option<Width> {
    let bits = what.strip_prefix("AtomicI")?;
    match bits {
        "size" => Some(Width(8)),
        bits => bits.parse::<u8>().ok().map(|bits| Width(bits / 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_names_of_their_own() {
        let at = |n: u32, what: &'static str, line: u32, column: u32| {
            let file = "lib.rs".to_owned();
            (Location(n), what, SourcePlace { file, line, column })
        };
        let names = |objects: &[(Location, &str, SourcePlace)]| {
            let names = distinct(objects);
            let all = objects.iter().map(|(location, ..)| names[location].clone());
            all.collect::<Vec<String>>()
        };
        let objects = [at(0, "AtomicUsize", 4, 9), at(3, "Mutex", 4, 9)];
        assert_eq!(names(&objects), ["AtomicUsize@4", "Mutex@4"]);
        let objects = [at(0, "Mutex", 4, 9), at(1, "Mutex", 4, 31)];
        assert_eq!(names(&objects), ["Mutex@4:9", "Mutex@4:31"]);
        let objects = [at(0, "Mutex", 4, 9), at(1, "Mutex", 4, 9)];
        assert_eq!(names(&objects), ["Mutex@4#1", "Mutex@4#2"]);
    }
}
