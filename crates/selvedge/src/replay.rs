//! Running one execution again.

use std::backtrace::Backtrace;
use std::sync::Arc;

use selvedge_core::witness::Origin;
use selvedge_core::{Effect, Failure, Machine, Op, Outcome, Pending, Stop, ThreadId, Value};

use crate::model::STACK_SIZE;
use crate::options::environment;
use crate::rt::{Limits, RustMachine};
use crate::token::{self, Token, TokenStep};

/// Runs `f` once, under a schedule that a failed test printed. Panics then are shown as they
/// happen, with a backtrace if one is asked for, and a debugger sees an ordinary program.
///
/// ```
/// use selvedge::model::{Builder, Verdict};
/// use selvedge::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use selvedge::{sync::Arc, thread};
///
/// fn test() {
///     let x = Arc::new(AtomicUsize::new(0));
///     let other = Arc::clone(&x);
///     thread::spawn(move || other.store(1, SeqCst));
///     assert_eq!(x.load(SeqCst), 0);
/// }
///
/// let Verdict::Failed(failure) = Builder::new().explore(test).verdict else {
///     panic!("the store can come first");
/// };
/// let again = std::panic::catch_unwind(|| selvedge::replay(&failure.replay, test));
/// assert!(again.is_err());
/// ```
///
/// # Panics
///
/// With the same failure, or if the schedule does not fit the program.
#[track_caller]
pub fn replay<F>(schedule: &str, f: F)
where
    F: Fn() + Sync + Send + 'static,
{
    let token = match token::read(schedule) {
        Ok(token) => token,
        Err(why) => panic!("this is not a schedule: {why}"),
    };
    let limits = Limits {
        max_branches: usize::MAX,
        max_threads: None,
        stack_size: environment(&["SELVEDGE_STACK_SIZE"]).unwrap_or(STACK_SIZE),
        check_leaks: true,
        protects: true,
        spurious: token.spurious,
        replaying: true,
        calls: false,
    };
    let Some(mut machine) = RustMachine::new(Arc::new(f), limits) else {
        panic!("a model cannot be run inside of a model");
    };
    machine.count_at(token.counted.clone());
    machine.defer(token.late);
    let result = follow(&mut machine, &token, |_, _| {});
    drop(machine);
    match result {
        Ok(ending) => panic!("{ending}"),
        Err(why) => panic!("the schedule does not fit this program: {why}"),
    }
}

/// The calls of each step and those of threads at the end. `None` if the schedule does not fit.
pub(crate) fn calls(token: &Token, model: Arc<dyn Fn()>, limits: Limits) -> Option<Calls> {
    let mut machine = RustMachine::new(model, limits)?;
    machine.count_at(token.counted.clone());
    machine.defer(token.late);
    let mut steps = Vec::new();
    let seen = |machine: &RustMachine, thread| steps.push(machine.take_calls(thread));
    follow(&mut machine, token, seen).ok()?;
    let threads = (0..machine.threads() as u32).map(ThreadId);
    let last = threads.map(|thread| (thread.0, machine.take_calls(thread)));
    let last = last.collect();
    Some((steps, last))
}

/// The result of [`calls`].
pub(crate) type Calls = (
    Vec<Option<Arc<Backtrace>>>,
    Vec<(u32, Option<Arc<Backtrace>>)>,
);

/// Runs the schedule; `seen` is told the thread that is about to take each step.
fn follow(
    machine: &mut RustMachine,
    token: &Token,
    mut seen: impl FnMut(&RustMachine, ThreadId),
) -> Result<String, String> {
    machine.reset();
    let mut written: Vec<Option<Value>> = Vec::new();
    let mut clocks: Vec<Vec<u32>> = Vec::new();
    for (n, step) in token.steps.iter().enumerate() {
        let thread = ThreadId(step.thread);
        let Pending::Op(op) = machine.pending(thread) else {
            return Err(format!("{thread} takes no step {}", n + 1));
        };
        seen(machine, thread);
        let outcome = outcome(machine, &op, step, &written)?;
        let wrote = match op {
            Op::Store { value, .. } => Some(value),
            _ => outcome.wrote,
        };
        written.push(wrote);
        let clock = clock(&mut clocks, step, &op, outcome.wrote.is_some());
        machine.resume(thread, outcome, &clock);
    }
    let told = |failure: Failure| {
        let place = machine.place_of(failure.site);
        format!("{}\n  in {} at {place}", failure.message, failure.thread)
    };
    if let Some(failure) = machine.failure() {
        return Ok(told(failure));
    }
    let waiting: Vec<String> = (0..machine.threads() as u32)
        .map(ThreadId)
        .filter(|&thread| {
            let pending = machine.pending(thread);
            !matches!(pending, Pending::Absent | Pending::Stopped(Stop::Finished))
        })
        .map(|thread| format!("{thread} at {}", machine.place_of(machine.site(thread))))
        .collect();
    if !waiting.is_empty() {
        return Ok(format!("no thread can go on: {}", waiting.join(", ")));
    }
    let leftover = machine.leftover().map(told);
    leftover.ok_or_else(|| "it ends well".to_owned())
}

/// The values that the step reads and writes.
fn outcome(
    machine: &RustMachine,
    op: &Op,
    step: &TokenStep,
    written: &[Option<Value>],
) -> Result<Outcome, String> {
    if let Op::Choose { .. } = op {
        return Ok(Outcome {
            read: Value::from(step.choice),
            wrote: None,
        });
    }
    let read = match (step.origin, op.location()) {
        (Some(Origin::Initial), Some(at)) => machine.initial(at),
        (Some(Origin::Step(n)), _) => match written.get(n as usize) {
            Some(&Some(value)) => value,
            _ => return Err(format!("step {} writes nothing", n + 1)),
        },
        _ => 0,
    };
    let wrote = match op {
        Op::Update { function, .. } => match function.apply(read) {
            Effect::Write(value) => Some(value),
            Effect::Choose(_) => Some(function.choose(read, step.choice)),
            Effect::Keep => None,
            Effect::Block => return Err(format!("T{} has to wait", step.thread)),
        },
        _ => None,
    };
    Ok(Outcome { read, wrote })
}

/// The happens-before clock of the step.
fn clock(clocks: &mut Vec<Vec<u32>>, step: &TokenStep, op: &Op, updates: bool) -> Vec<u32> {
    let thread = step.thread as usize;
    let widest = step.known.iter().map(|known| known.0 as usize).max();
    let needed = thread.max(widest.unwrap_or(0)) + 1;
    if clocks.len() < needed {
        clocks.resize(needed, Vec::new());
    }
    let clock = &mut clocks[thread];
    clock.resize(clock.len().max(needed), 0);
    for &(other, events) in &step.known {
        clock[other as usize] = events;
    }
    clock[thread] += 1 + u32::from(updates);
    let clock = clock.clone();
    if let Op::Create { child } = op {
        let child = child.index();
        if clocks.len() <= child {
            clocks.resize(child + 1, Vec::new());
        }
        clocks[child] = clock.clone();
        if let Some(own) = clocks[child].get_mut(child) {
            *own = 0;
        }
    }
    clock
}
