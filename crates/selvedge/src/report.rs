//! The message of a failed test.

use std::fmt;
use std::fmt::Write as _;

use selvedge_core::report::{Bug, Waiting};
use selvedge_core::witness::{Origin, Step, Switch};
use selvedge_core::words::{self, ObjectKind, State};
use selvedge_core::{FailureKind, Location, Machine, Op, ThreadId, Value, Width};

use crate::model::MemoryModel;
use crate::rt::RustMachine;
use crate::token;

/// An execution that fails.
///
/// Its [`Display`](fmt::Display) form is what a test fails with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What sort of failure it is, such as `assertion`, `deadlock` or `data-race`.
    pub kind: String,
    /// What is wrong, in one line.
    pub message: String,
    /// The schedule in one line: `S0----S1--P0--`. `S` switches to a thread because the one before
    /// had ended or had to wait, `P` preempts one that could have gone on, and each dash is a step.
    pub schedule: String,
    /// How many switches of the schedule are preemptions.
    pub preemptions: u32,
    /// What [`replay`](crate::replay) needs to get the same failure.
    pub replay: String,
    text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Describes `bug`, in whose failing state `machine` must be.
pub(crate) fn describe(machine: &RustMachine, bug: &Bug, model: MemoryModel) -> Failure {
    let steps = &bug.witness.steps;
    let schedule = words::line(steps.iter().map(|step| (step.thread.0, step.switch)));
    let names = Names::new(machine, bug);
    // What was found when the schedule was repeated says more than what was found first.
    let again = machine
        .failure()
        .filter(|again| again.kind == bug.failure.kind);
    let failure = again.as_ref().unwrap_or(&bug.failure);
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
    for waiting in &bug.waiting {
        let _ = writeln!(text, "  {}", names.waits(waiting));
    }
    let plural = |n: u32, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let _ = writeln!(
        text,
        "\nschedule: {schedule}  ({}, {}, memory model {})\n",
        plural(bug.witness.switches, "context switch").replace("switchs", "switches"),
        plural(bug.witness.preemptions, "preemption"),
        model.name()
    );
    text.push_str(&names.table(steps));
    let _ = write!(
        text,
        "\nto run this execution again: selvedge::replay(\"{replay}\", || …)"
    );
    Failure {
        kind,
        message: failure.message.clone(),
        schedule,
        preemptions: bug.witness.preemptions,
        replay,
        text,
    }
}

fn kind_name(kind: FailureKind) -> String {
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

struct Names<'a> {
    machine: &'a RustMachine,
    kinds: std::collections::HashMap<Location, ObjectKind>,
}

impl Names<'_> {
    fn new<'a>(machine: &'a RustMachine, bug: &Bug) -> Names<'a> {
        let pending = bug.waiting.iter().filter_map(|waiting| waiting.op.as_ref());
        let steps = bug.witness.steps.iter().map(|step| &step.op);
        Names {
            machine,
            kinds: words::kinds(steps.chain(pending)),
        }
    }

    fn thread(&self, thread: ThreadId) -> String {
        match self.machine.thread_name(thread) {
            Some(name) => format!("{thread} ({name})"),
            None => thread.to_string(),
        }
    }

    fn kind(&self, op: &Op) -> ObjectKind {
        let kind = op.location().and_then(|at| self.kinds.get(&at));
        kind.copied().unwrap_or(ObjectKind::Memory)
    }

    /// What `op` is about: the type of the object and where it was created.
    fn object(&self, op: &Op) -> Option<String> {
        if let Op::Create { child } | Op::Join { child } = op {
            return Some(self.thread(*child));
        }
        let (what, place, _) = self.machine.describe(op.location()?);
        Some(format!("{what}@{}", place.line))
    }

    fn waits(&self, waiting: &Waiting) -> String {
        let thread = self.thread(waiting.thread);
        let place = self.machine.place_of(waiting.site);
        let what = match &waiting.op {
            None => "spins on values that nothing can change".to_owned(),
            Some(op) => {
                let object = self.object(op);
                format!(
                    "waits {}",
                    words::waits_for(op, self.kind(op), object.as_deref())
                )
            }
        };
        // The thread that wrote a lock last holds it.
        let lock = |op: &Op| {
            let kind = self.kind(op);
            matches!(
                kind,
                ObjectKind::Mutex | ObjectKind::ReadWriteLock | ObjectKind::Once
            )
        };
        match waiting.on.filter(|_| waiting.op.as_ref().is_some_and(lock)) {
            Some(on) => format!("{thread} {what}, which {} has, at {place}", self.thread(on)),
            None => format!("{thread} {what}, at {place}"),
        }
    }

    fn value(&self, op: &Op, value: Value) -> String {
        let on = self.kind(op);
        match words::state(on, value) {
            Some(State::Text(text)) => return text,
            Some(State::Count(count)) => return count.to_string(),
            None => {}
        }
        let Some(at) = op.location() else {
            return value.to_string();
        };
        let (what, _, pointers) = self.machine.describe(at);
        match (what, value) {
            (_, 0) if pointers => "null".to_owned(),
            _ if pointers && value >> 64 != 0 => {
                format!("block {}+{}", (value >> 64), value as u64)
            }
            _ if pointers => format!("{value:#x}"),
            ("AtomicBool", _) => (value != 0).to_string(),
            _ => match signed_width(what) {
                Some(width) => width.sign_extend(value).to_string(),
                None => value.to_string(),
            },
        }
    }

    fn table(&self, steps: &[Step]) -> String {
        let mut rows =
            vec![["", "step", "thread", "where", "what", "reads from"].map(str::to_owned)];
        for (n, step) in steps.iter().enumerate() {
            rows.push(self.row(n, step, steps));
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

    /// Where a step is. Destructors that the compiler calls have no place of their own.
    fn place(&self, n: usize, steps: &[Step]) -> String {
        let place = |step: &Step| self.machine.place_of(step.site);
        let own = place(&steps[n]);
        if !own.file.starts_with("/rustc/") {
            return own.to_string();
        }
        let before = steps[..n].iter().rev();
        let mut before = before
            .filter(|step| step.thread == steps[n].thread)
            .map(place);
        match before.find(|place| !place.file.starts_with("/rustc/")) {
            Some(place) => format!("a drop after {place}"),
            None => "a drop".to_owned(),
        }
    }

    fn row(&self, n: usize, step: &Step, steps: &[Step]) -> [String; 6] {
        let mark = match step.switch {
            Switch::Preemption => "P",
            Switch::Free => "S",
            Switch::Same if n == 0 => "S",
            Switch::Same => "",
        };
        let op = &step.op;
        let name = |number: u32| match steps.get(number as usize) {
            Some(writer) => format!("step {} ({})", number + 1, writer.thread),
            None => format!("step {}", number + 1),
        };
        let mut reads_from = match step.origin {
            Some(Origin::Step(number)) => name(number),
            Some(Origin::Initial) if self.kind(op) == ObjectKind::Memory => {
                "the initial value".to_owned()
            }
            _ => String::new(),
        };
        if let Some(&newer) = step.newer.last() {
            let _ = write!(reads_from, ", not {}", name(newer));
        }
        let order = words::order(op, self.kind(op));
        let what = words::phrase(
            words::operation(op, self.kind(op)),
            self.object(op).as_deref(),
            step.read.map(|value| self.value(op, value)),
            step.wrote.map(|value| self.value(op, value)),
        );
        let what = match order {
            Some(order) => format!("{what} ({order})"),
            None => what,
        };
        [
            mark.to_owned(),
            (n + 1).to_string(),
            self.thread(step.thread),
            self.place(n, steps),
            what,
            reads_from,
        ]
    }
}

fn signed_width(what: &str) -> Option<Width> {
    let bits = what.strip_prefix("AtomicI")?;
    match bits {
        "size" => Some(Width(8)),
        bits => bits.parse::<u8>().ok().map(|bits| Width(bits / 8)),
    }
}
