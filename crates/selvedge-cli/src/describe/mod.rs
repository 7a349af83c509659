//! Turns what a search found, addresses and numbers, into names, places and words.

mod advice;
mod binary;
mod names;
mod short;
mod variables;

use std::collections::{BTreeSet, HashMap};

use selvedge_core::op::Rmw;
use selvedge_core::report::{Bug as RawBug, Ending, Waiting};
use selvedge_core::witness::{self, Origin};
use selvedge_core::words::{self, ObjectKind, State};
use selvedge_core::{
    FailureKind, Function, Location, Machine as _, Op, Pending, Site, Stop, ThreadId,
};
use selvedge_runtime::NativeMachine;

pub(crate) use self::advice::{Accesses, advice};
pub(crate) use self::binary::Binary;
use self::names::{Blocks, Names};
use crate::report::{Bug, Datum, Party, Place, ReadsFrom, Stack, Step, Wait};

/// The calls that each step of a schedule was taken in, innermost first, where they are known.
#[derive(Default)]
pub(crate) struct Calls(pub(crate) Vec<Vec<u64>>);

/// Describes `bug`, in whose failing state `machine` must be.
pub(crate) fn bug(binary: &Binary, machine: &NativeMachine, bug: &RawBug, calls: &Calls) -> Bug {
    described(&Names::new(binary, machine), machine, bug, calls)
}

fn described(names: &Names<'_>, machine: &NativeMachine, bug: &RawBug, calls: &Calls) -> Bug {
    let steps = &bug.witness.steps;
    let pending = bug.waiting.iter().filter_map(|waiting| waiting.op.as_ref());
    let kinds = words::kinds(steps.iter().map(|step| &step.op).chain(pending));
    let describer = Describer {
        names,
        machine,
        kinds,
    };
    // Which side of a race is blamed depends on the order of the steps: the machine knows best.
    let again = machine.failure();
    let again = again.filter(|again| again.kind == bug.failure.kind);
    let failure = again.as_ref().unwrap_or(&bug.failure);
    let other = failure.other.as_ref().map(|other| {
        let calls = machine.backtrace_at(other.thread, other.site);
        let calls = calls.unwrap_or_default();
        Party {
            thread: other.thread.0,
            what: other.what.clone(),
            place: names.place(other.site, &calls),
            frames: names.sources(calls),
        }
    });
    let mut stacks = Stacks::default();
    let trace: Vec<Step> = steps
        .iter()
        .enumerate()
        .map(|(n, step)| {
            let calls = calls.0.get(n).map_or(&[][..], Vec::as_slice);
            Step {
                stack: stacks.number(names, calls),
                ..describer.step(n, step, calls)
            }
        })
        .collect();
    let waiting: Vec<Wait> = bug
        .waiting
        .iter()
        .map(|waiting| describer.wait(waiting, &bug.witness))
        .collect();
    let involved: BTreeSet<u32> = [failure.thread.0]
        .into_iter()
        .chain(other.iter().map(|other| other.thread))
        .chain(waiting.iter().map(|waiting| waiting.thread))
        .collect();
    let message = names.in_words(&failure.message);
    Bug {
        kind: failure.kind,
        message: if message.is_empty() {
            title(failure.kind).to_owned()
        } else {
            message
        },
        preemptions: bug.witness.preemptions,
        context_switches: bug.witness.switches,
        thread: failure.thread.0,
        place: describer.site_of(failure.thread, failure.site),
        other,
        waiting,
        stacks: involved
            .into_iter()
            .map(|thread| describer.stack(ThreadId(thread)))
            .collect(),
        advice: None,
        cycle: bug.witness.cycle.map(|first| first + 1),
        schedule: schedule(&bug.witness),
        trace,
        call_stacks: stacks.stacks,
        blocks: names.blocks(),
    }
}

/// The stacks of a schedule's steps, each once.
#[derive(Default)]
struct Stacks {
    stacks: Vec<Vec<Place>>,
    numbers: HashMap<Vec<u64>, u32>,
}

impl Stacks {
    fn number(&mut self, names: &Names<'_>, calls: &[u64]) -> Option<u32> {
        if calls.is_empty() {
            return None;
        }
        if let Some(&number) = self.numbers.get(calls) {
            return Some(number);
        }
        let number = self.stacks.len() as u32;
        self.stacks.push(names.sources(calls.to_vec()));
        self.numbers.insert(calls.to_vec(), number);
        Some(number)
    }
}

/// The schedule in one line.
fn schedule(witness: &witness::Witness) -> String {
    let steps = witness.steps.iter();
    let steps: Vec<_> = steps.map(|step| (step.thread.0, step.switch)).collect();
    match witness.cycle {
        Some(cycle) => words::lasso(&steps, cycle as usize),
        None => words::line(steps),
    }
}

/// The addresses that the calls `thread` is in return to, innermost first.
pub(crate) fn calls(binary: &Binary, machine: &NativeMachine, thread: ThreadId) -> Vec<u64> {
    Names::new(binary, machine).calls(thread)
}

/// Describes a single step that `machine` is about to take. `known` remembers what is known of the
/// locations and heap blocks from one step to the next.
pub(crate) fn step(
    binary: &Binary,
    machine: &NativeMachine,
    known: &mut Known,
    step: &witness::Step,
) -> Step {
    known.kinds.extend(words::kinds([&step.op]));
    let names = Names::new(binary, machine).after(std::mem::take(&mut known.blocks));
    let step = Describer {
        names: &names,
        machine,
        kinds: known.kinds.clone(),
    }
    .step(0, step, &names.calls(step.thread));
    known.blocks = names.into_blocks();
    step
}

/// The source of `site`, which was reached through `calls`, innermost first, if these are known.
pub(crate) fn place(binary: &Binary, machine: &NativeMachine, site: Site, calls: &[u64]) -> Place {
    Names::new(binary, machine).place(site, calls)
}

/// How a search ended, with the place of what is not supported.
pub(crate) fn ending(binary: &Binary, machine: &NativeMachine, ending: Ending) -> Ending {
    match ending {
        Ending::Refused(what) => Ending::Refused(refusal(binary, machine, what)),
        ending => ending,
    }
}

/// Says where and through which calls a thread came to `what`, which is not supported, if `machine`
/// is in that state.
fn refusal(binary: &Binary, machine: &NativeMachine, what: String) -> String {
    let mut threads = (0..machine.threads() as u32).map(ThreadId);
    let stopped =
        threads.find(|&thread| machine.pending(thread) == Pending::Stopped(Stop::Refused));
    let Some(thread) = stopped else { return what };
    let names = Names::new(binary, machine);
    let mut frames = names.frames(machine.site(thread));
    frames.extend(names.stack(thread));
    frames.dedup();
    let known = frames.iter().filter(|frame| frame.file.is_some());
    let mut known = known.skip_while(|frame| !frame.is_users()).peekable();
    let mut text = match known.peek() {
        Some(place) if !begins_with_line(&what) => format!("{place}: {what}"),
        _ => what,
    };
    let callers: Vec<String> = known
        .filter_map(|frame| Some(format!("{} ({frame})", frame.function.as_ref()?)))
        .collect();
    if callers.len() > 1 {
        text += &format!("; reached in {}", callers.join(", called by "));
    }
    text
}

/// Whether a message begins with `file:line: `.
fn begins_with_line(message: &str) -> bool {
    let place = message.split_once(": ").map_or("", |(place, _)| place);
    let line = place.rsplit_once(':').map_or("", |(_, line)| line);
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// What kinds of objects the locations met so far are, and which heap blocks have numbers.
#[derive(Default)]
pub(crate) struct Known {
    kinds: HashMap<Location, ObjectKind>,
    blocks: Blocks,
}

/// A kind of bug as a heading.
pub(crate) fn title(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Assertion => "assertion failed",
        FailureKind::Abort => "the program aborts",
        FailureKind::Deadlock => "deadlock",
        FailureKind::Livelock => "endless spinning",
        FailureKind::DataRace => "data race",
        FailureKind::UseAfterFree => "use after free",
        FailureKind::DoubleFree => "double free",
        FailureKind::BadFree => "free of something that is not a heap block",
        FailureKind::HeapOverflow => "access outside of a heap block",
        FailureKind::NullDereference => "access through a null pointer",
        FailureKind::WildAccess => "access to memory that does not exist",
        FailureKind::StackOverflow => "stack overflow",
        FailureKind::UncaughtException => "uncaught exception",
        FailureKind::EndlessLoop => "endless loop",
        FailureKind::ObjectMisuse => "misuse",
        FailureKind::Leak => "memory leak",
        FailureKind::Signal => "fatal signal",
        FailureKind::ForbiddenCall => "forbidden system call",
        FailureKind::LtlViolation => "violated formula",
        FailureKind::NonProgress => "no progress",
        FailureKind::Starvation => "starvation",
    }
}

/// Whether the thread does not see what `op` reads: a store to a part of a location.
fn is_blind(op: &Op) -> bool {
    let function = match op {
        Op::Update { function, .. } => function,
        _ => return false,
    };
    matches!(
        function,
        Function::Memory {
            rmw: Rmw::Replace(_),
            ..
        }
    )
}

struct Describer<'a> {
    names: &'a Names<'a>,
    machine: &'a NativeMachine,
    kinds: HashMap<Location, ObjectKind>,
}

impl Describer<'_> {
    fn kind(&self, op: &Op) -> ObjectKind {
        let kind = op.location().and_then(|location| self.kinds.get(&location));
        kind.copied().unwrap_or(ObjectKind::Memory)
    }

    fn object(&self, op: &Op) -> Option<String> {
        match op {
            Op::Create { child } | Op::Join { child } => Some(child.to_string()),
            _ => Some(self.names.accessed(op)?.name),
        }
    }

    fn step(&self, n: usize, step: &witness::Step, calls: &[u64]) -> Step {
        let op = &step.op;
        let on = self.kind(op);
        let datum = |value| match on {
            ObjectKind::Memory => Some(self.names.contents(op, value)),
            on => words::state(on, value).map(|state| match state {
                State::Text(text) => Datum::Text(text),
                State::Count(count) => Datum::Unsigned(count),
            }),
        };
        let marks = self.machine.is_progress_mark(op);
        let operation = match marks {
            true => "mark",
            false => words::operation(op, on),
        };
        Step {
            step: n as u32 + 1,
            thread: step.thread.0,
            switch: step.switch,
            place: self.names.place(step.site, calls),
            operation: operation.to_owned(),
            object: self.object(op),
            read: step.read.filter(|_| !is_blind(op)).and_then(datum),
            wrote: step.wrote.filter(|_| !marks).and_then(datum),
            reads_from: step.origin.map(|origin| match origin {
                Origin::Initial => ReadsFrom::Initial,
                Origin::Step(step) => ReadsFrom::Step(step + 1),
            }),
            passes: step.newer.iter().map(|step| step + 1).collect(),
            order: words::order(op, on),
            stack: None,
        }
    }

    fn wait(&self, waiting: &Waiting, witness: &witness::Witness) -> Wait {
        let what = match &waiting.op {
            Some(op) => words::waits_for(op, self.kind(op), self.object(op).as_deref()),
            None => "for a value that no thread will write".to_owned(),
        };
        // The thread that wrote a lock last holds it.
        let lock = |op: &&Op| {
            matches!(
                self.kind(op),
                ObjectKind::Mutex | ObjectKind::ReadWriteLock | ObjectKind::Once
            )
        };
        let location = waiting.op.as_ref().filter(lock).and_then(Op::location);
        let since = location.and_then(|location| {
            let writes =
                |step: &witness::Step| step.op.location() == Some(location) && step.wrote.is_some();
            witness.steps.iter().rposition(writes)
        });
        Wait {
            thread: waiting.thread.0,
            place: self.site_of(waiting.thread, waiting.site),
            what,
            on: waiting.on.map(|thread| thread.0),
            since: since.map(|step| step as u32 + 1),
        }
    }

    /// The source of `site`, at which `thread` has stopped.
    fn site_of(&self, thread: ThreadId, site: Site) -> Place {
        self.names.place(site, &self.names.calls(thread))
    }

    fn stack(&self, thread: ThreadId) -> Stack {
        let state = match self.machine.pending(thread) {
            Pending::Absent => "has not been created".to_owned(),
            Pending::Op(op) => {
                let object = self.object(&op);
                let operation = words::operation(&op, self.kind(&op));
                match object {
                    Some(object) => format!("is about to {operation} {object}"),
                    None => format!("is about to {operation}"),
                }
            }
            Pending::Stopped(Stop::Finished) => "has ended".to_owned(),
            Pending::Stopped(Stop::Returned | Stop::Exited) => "has ended the process".to_owned(),
            Pending::Stopped(Stop::Spinning { .. }) => "spins".to_owned(),
            Pending::Stopped(Stop::Failed) => "fails".to_owned(),
            Pending::Stopped(Stop::Assumed | Stop::Unrolled | Stop::Refused) => {
                "has stopped".to_owned()
            }
        };
        Stack {
            thread: thread.0,
            state,
            frames: self.names.stack(thread),
        }
    }
}
