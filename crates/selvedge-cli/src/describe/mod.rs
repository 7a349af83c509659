//! Turns the addresses and numbers of a search's result into names, places and words.

mod advice;
mod binary;
mod names;
mod plain;
mod scalars;
mod short;
mod variables;

use std::collections::{BTreeSet, HashMap};

use selvedge_core::report::{Bug as RawBug, Ending, Waiting};
use selvedge_core::witness;
use selvedge_core::words::{self, ObjectKind};
use selvedge_core::{Location, Machine as _, Pending, Site, Stop, ThreadId};
pub(crate) use selvedge_page::title;
use selvedge_page::{Describer, Names as _, last_step_before, schedule};
use selvedge_runtime::NativeMachine;

pub(crate) use self::advice::{Accesses, advice};
pub(crate) use self::binary::Binary;
use self::names::{Blocks, Names};
pub(crate) use self::plain::Plain;
use crate::place;
use crate::report::{Bug, Party, Place, Stack, Step, Wait};

/// The calls that each step of a schedule was taken in, innermost first, where they are known.
#[derive(Default)]
pub(crate) struct Calls(pub(crate) Vec<Vec<u64>>);

/// Describes `bug`, in whose failing state `machine` must be.
pub(crate) fn bug(binary: &Binary, machine: &NativeMachine, bug: &RawBug, calls: &Calls) -> Bug {
    described(&Names::new(binary, machine), machine, bug, calls)
}

/// The same with the values of plain variables along its schedule.
pub(crate) fn followed(
    binary: &Binary,
    machine: &NativeMachine,
    bug: &RawBug,
    calls: &Calls,
    plain: &Plain,
) -> Bug {
    let names = Names::new(binary, machine);
    let mut bug = described(&names, machine, bug, calls);
    bug.plain = plain.initial(&names);
    for (step, changes) in bug.trace.iter_mut().zip(plain.changes(&names)) {
        step.plain = changes;
    }
    bug.blocks = names.blocks();
    bug
}

fn described(names: &Names<'_>, machine: &NativeMachine, bug: &RawBug, calls: &Calls) -> Bug {
    let steps = &bug.witness.steps;
    let describer = Native {
        names,
        machine,
        words: Describer::new(names, bug),
    };
    // The order of the steps decides which side of a race is reported, so the machine is asked
    // again.
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
            after: last_step_before(other, steps),
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
        plain: Vec::new(),
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
    let step = Native {
        names: &names,
        machine,
        words: Describer {
            names: &names,
            kinds: known.kinds.clone(),
        },
    }
    .step(0, step, &names.calls(step.thread));
    known.blocks = names.into_blocks();
    step
}

/// The source of `site`, which was reached through `calls`, innermost first, if these are known.
pub(crate) fn place(binary: &Binary, machine: &NativeMachine, site: Site, calls: &[u64]) -> Place {
    Names::new(binary, machine).place(site, calls)
}

/// The message about a worker whose memory was overwritten.
pub(crate) const MODIFIED: &str = "the program has overwritten data of the worker";

/// How a search ended, with the place of what is not supported.
pub(crate) fn ending(binary: &Binary, machine: &NativeMachine, ending: Ending) -> Ending {
    match ending {
        _ if machine.was_modified() => Ending::Internal(MODIFIED.to_owned()),
        Ending::Refused(what) => Ending::Refused(refusal(binary, machine, what)),
        ending => ending,
    }
}

/// Says where and through which calls a thread came to `what`, which is not supported, if `machine`
/// is in that state.
fn refusal(binary: &Binary, machine: &NativeMachine, what: String) -> String {
    // A function that is not there is told by its symbol.
    let what = match what.split_once(": ") {
        Some((name, reason)) if name.starts_with("_Z") => {
            format!("{}: {reason}", short::function(&place::readable(name)))
        }
        _ => what,
    };
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

/// The kinds of objects of the locations met so far, and the numbers of heap blocks.
#[derive(Default)]
pub(crate) struct Known {
    kinds: HashMap<Location, ObjectKind>,
    blocks: Blocks,
}

/// Describes steps of native programs.
struct Native<'a> {
    names: &'a Names<'a>,
    machine: &'a NativeMachine,
    words: Describer<'a, Names<'a>>,
}

impl Native<'_> {
    fn step(&self, n: usize, step: &witness::Step, calls: &[u64]) -> Step {
        let place = self.names.place(step.site, calls);
        let mut described = self.words.step(n, step, place);
        if self.machine.is_progress_mark(&step.op) {
            described.operation = "mark".to_owned();
            described.wrote = None;
        }
        described
    }

    fn wait(&self, waiting: &Waiting, witness: &witness::Witness) -> Wait {
        let place = self.site_of(waiting.thread, waiting.site);
        self.words.wait(waiting, witness, place)
    }

    /// The source of `site`, at which `thread` has stopped.
    fn site_of(&self, thread: ThreadId, site: Site) -> Place {
        self.names.place(site, &self.names.calls(thread))
    }

    fn stack(&self, thread: ThreadId) -> Stack {
        let state = match self.machine.pending(thread) {
            Pending::Absent => "has not been created".to_owned(),
            Pending::Op(op) => {
                let object = self.names.object(&op);
                let operation = words::operation(&op, self.words.kind(&op));
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
