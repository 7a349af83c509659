//! Following a recorded schedule in a fresh process.
//!
//! Numbers of threads and locations are handed out as a search meets them, so they can be others
//! here. A schedule fixes the order of the threads' steps, the step that each read gets its value from,
//! and the alternative of each choice. Numbers are translated, and values are computed anew.

use std::collections::HashMap;
use std::mem::discriminant;

use selvedge_core::report::{Bug as RawBug, Waiting};
use selvedge_core::states;
use selvedge_core::witness::{self, Origin, Witness};
use selvedge_core::{
    Effect, Failure, FailureKind, Function, Location, Machine as _, Op, Pending, StateMachine as _,
    ThreadId, Value,
};

use super::journal::Watched;
use super::protocol::{FoundBug, Replayed};
use crate::describe::{self, Binary, Calls, Plain};

/// Runs the schedule of `bug`, step by step, and looks how it ends.
/// It is one of states where `stateful` is set.
pub(super) fn schedule(
    machine: &mut Watched<'_>,
    bug: &RawBug,
    binary: &Binary,
    stateful: bool,
) -> Replayed {
    machine.watch(&bug.failure);
    machine.reset();
    let mut follower = Follower {
        binary,
        stateful,
        threads: HashMap::from([(ThreadId::MAIN, ThreadId::MAIN)]),
        locations: HashMap::new(),
        steps: Vec::new(),
        calls: Calls::default(),
        plain: Plain::new(binary, machine.inner()),
        machine,
    };
    let cycle = bug.witness.cycle.map(|first| first as usize);
    let mut home = None;
    for (n, step) in bug.witness.steps.iter().enumerate() {
        if cycle == Some(n) {
            home = Some(states::identity(follower.machine));
        }
        follower.announce(n + 1, step.thread);
        if let Err(what) = follower.step(step) {
            return Replayed::Diverged(format!("in step {}, {what}", n + 1));
        }
    }
    follower.announce(bug.witness.steps.len() + 1, bug.failure.thread);
    if home.is_some_and(|home| home != states::identity(follower.machine)) {
        return Replayed::Diverged("the cycle does not come back to where it began".to_owned());
    }
    let ops = follower.steps.iter().map(|step| &step.op);
    follower.plain.leave_out(follower.machine.inner(), ops);
    match follower.ending(bug) {
        Some(raw) => {
            let described = describe::followed(
                binary,
                follower.machine.inner(),
                &raw,
                &follower.calls,
                &follower.plain,
            );
            Replayed::Failed(Box::new(FoundBug { described, raw }))
        }
        None => Replayed::Passed,
    }
}

/// The line of `before_step`'s body. gdb finds lines in every build, but names of functions in few.
pub(crate) const HOOK: (&str, u32) = (file!(), line!() + 15);

/// Where `selvedge debug` stops: before each step, counted from one, and behind the last one. gdb reads the
/// arguments from their registers: the thread whose step it is, the stack pointer with which that thread is
/// suspended, the address that the step accesses (0 stands for what does not exist), and where the stack area
/// begins, with the part of it that each thread has.
#[inline(never)]
extern "C" fn before_step(
    number: usize,
    thread: u32,
    stack_pointer: u64,
    address: u64,
    stacks: u64,
    part: u64,
) {
    std::hint::black_box((number, thread, stack_pointer, address, stacks, part));
}

struct Follower<'a, 'm> {
    machine: &'a mut Watched<'m>,
    binary: &'a Binary,
    /// Whether the program is run as one whose states are kept.
    stateful: bool,
    /// From recorded numbers to those of this process.
    threads: HashMap<ThreadId, ThreadId>,
    locations: HashMap<Location, Location>,
    /// The steps so far, in numbers and values of this process.
    steps: Vec<witness::Step>,
    /// The calls that each step was taken in.
    calls: Calls,
    /// The values of plain variables.
    plain: Plain,
}

impl Follower<'_, '_> {
    /// Tells a debugger which step comes next.
    fn announce(&self, number: usize, recorded: ThreadId) {
        let thread = self.threads.get(&recorded).copied();
        let machine = self.machine.inner();
        let suspended = thread.and_then(|thread| machine.suspended_at(thread));
        let location = thread.and_then(|thread| match self.machine.pending(thread) {
            Pending::Op(op) => op.location(),
            Pending::Stopped(_) | Pending::Absent => None,
        });
        let (stacks, part) = machine.stack_area();
        before_step(
            number,
            thread.map_or(0, |thread| thread.0),
            suspended.unwrap_or(0),
            location.map_or(0, |location| machine.range_of(location).0),
            stacks,
            part,
        );
    }

    fn step(&mut self, recorded: &witness::Step) -> Result<(), String> {
        let thread = self.thread(recorded.thread)?;
        let op = match self.machine.pending(thread) {
            Pending::Op(op) if self.corresponds(&recorded.op, &op) => op,
            Pending::Op(_) => return Err(format!("{thread} does something else")),
            Pending::Stopped(_) | Pending::Absent => return Err(format!("{thread} has stopped")),
        };
        let read = self.read(recorded, &op);
        let wrote = match (op, read) {
            (Op::Store { value, .. }, _) => Some(value),
            (Op::Update { function, .. }, Some(read)) => match function.apply(read) {
                Effect::Write(value) => Some(value),
                Effect::Keep => None,
                Effect::Choose(alternatives) if recorded.choice < alternatives => {
                    Some(function.choose(read, recorded.choice))
                }
                Effect::Choose(_) => return Err(format!("{thread} has fewer alternatives")),
                Effect::Block => return Err(format!("{thread} has to wait")),
            },
            _ => None,
        };
        let mut step = witness::Step {
            thread,
            switch: recorded.switch,
            op,
            site: self.machine.site(thread),
            read,
            origin: recorded.origin,
            wrote,
            choice: recorded.choice,
            newer: recorded.newer.clone(),
            clock: self.clock(&recorded.clock),
        };
        let calls = describe::calls(self.binary, self.machine.inner(), thread);
        self.calls.0.push(calls);
        let outcome = step.outcome();
        self.machine.resume(thread, outcome, &step.clock);
        self.plain.see(self.machine.inner());
        if self.stateful
            && let Op::Store { at, .. } = op
        {
            // The value of a plain store is known only after it has been performed.
            step.wrote = Some(self.machine.value(at));
        }
        self.steps.push(step);
        Ok(())
    }

    fn thread(&self, recorded: ThreadId) -> Result<ThreadId, String> {
        let known = self.threads.get(&recorded).copied();
        known.ok_or_else(|| format!("{recorded} has not been created"))
    }

    /// Whether two operations are the same but for their values; notes which numbers correspond.
    fn corresponds(&mut self, recorded: &Op, op: &Op) -> bool {
        if discriminant(recorded) != discriminant(op) {
            return false;
        }
        match (recorded, op) {
            (
                Op::Update { function: one, .. },
                Op::Update {
                    function: other, ..
                },
            ) if !same_function(one, other) => return false,
            (Op::Create { child: one }, Op::Create { child: other }) => {
                return *self.threads.entry(*one).or_insert(*other) == *other;
            }
            (Op::Join { child: one }, Op::Join { child: other }) => {
                return self.threads.get(one) == Some(other);
            }
            _ => {}
        }
        match (recorded.location(), op.location()) {
            (Some(one), Some(other)) => *self.locations.entry(one).or_insert(other) == other,
            (None, None) => true,
            _ => false,
        }
    }

    fn read(&self, recorded: &witness::Step, op: &Op) -> Option<Value> {
        let location = op.location().filter(|_| !matches!(op, Op::Store { .. }));
        if let (true, Some(location)) = (self.stateful, location) {
            // Memory holds the present values there.
            return Some(self.machine.value(location));
        }
        match (recorded.origin, location) {
            (Some(Origin::Step(step)), Some(_)) => {
                let writer = self.steps.get(step as usize);
                writer.and_then(|writer| writer.wrote).or(recorded.read)
            }
            (Some(Origin::Initial), Some(location)) => Some(self.machine.initial(location)),
            _ => recorded.read,
        }
    }

    fn clock(&self, recorded: &[u32]) -> Vec<u32> {
        let mut clock = vec![0; self.machine.threads()];
        for (thread, &events) in recorded.iter().enumerate() {
            if let Some(thread) = self.threads.get(&ThreadId(thread as u32))
                && let Some(place) = clock.get_mut(thread.index())
            {
                *place = events;
            }
        }
        clock
    }

    /// The bug as it is now, if there is one.
    fn ending(&self, bug: &RawBug) -> Option<RawBug> {
        let machine = &*self.machine;
        let mut failure = bug.failure.clone();
        if self.stateful {
            // A race is a state there, and so is a deadlock.
            let races = failure.kind == FailureKind::DataRace;
            if failure.kind.is_endless() {
                failure.thread = self.thread(failure.thread).ok()?;
                failure.site = machine.site(failure.thread);
                return Some(self.told(bug, failure, Vec::new()));
            }
            let (failure, waiting) = states::wrong(machine, races)?;
            return Some(self.told(bug, failure, waiting));
        }
        let mut waiting = Vec::new();
        match machine.failure().or_else(|| machine.leftover()) {
            Some(found) => failure = found,
            None => {
                if !matches!(failure.kind, FailureKind::Deadlock | FailureKind::Livelock) {
                    return None;
                }
                for recorded in &bug.waiting {
                    waiting.push(self.waiting(recorded)?);
                }
                failure.thread = self.thread(failure.thread).ok()?;
                failure.site = machine.site(failure.thread);
                let names: Vec<String> = waiting.iter().map(|w| w.thread.to_string()).collect();
                if let Some(list) = failure.message.find('(') {
                    failure.message.truncate(list);
                    failure.message.push_str(&format!("({})", names.join(", ")));
                }
            }
        }
        Some(self.told(bug, failure, waiting))
    }

    /// The bug with the steps that were taken now.
    fn told(&self, bug: &RawBug, failure: Failure, waiting: Vec<Waiting>) -> RawBug {
        let witness = Witness {
            steps: self.steps.clone(),
            ..bug.witness
        };
        RawBug {
            failure,
            witness,
            waiting,
        }
    }

    fn waiting(&self, recorded: &Waiting) -> Option<Waiting> {
        let thread = self.thread(recorded.thread).ok()?;
        let on = match recorded.on {
            Some(on) => Some(self.thread(on).ok()?),
            None => None,
        };
        let op = match (self.machine.pending(thread), recorded.op) {
            (Pending::Op(op), Some(_)) => Some(op),
            (Pending::Stopped(_), None) => None,
            _ => return None,
        };
        Some(Waiting {
            thread,
            op,
            site: self.machine.site(thread),
            on,
        })
    }
}

fn same_function(one: &Function, other: &Function) -> bool {
    match (one, other) {
        (
            Function::Memory { offset, width, rmw },
            Function::Memory {
                offset: offset_,
                width: width_,
                rmw: rmw_,
            },
        ) => (offset, width) == (offset_, width_) && discriminant(rmw) == discriminant(rmw_),
        (Function::Object(one), Function::Object(other)) => {
            discriminant(one) == discriminant(other)
        }
        _ => false,
    }
}
