//! Inspects a state: failures, deadlocks, races, and the steps that it allows.

use super::queue::MOST;
use super::space::StateStep;
use crate::failure::{Failure, FailureKind, Other};
use crate::ids::ThreadId;
use crate::interleave::alternatives;
use crate::machine::{Pending, Stop};
use crate::objects::{FREE, ObjectFunction};
use crate::op::{Function, Op};
use crate::report::{self, End, Obstacle, Waiting};
use crate::saved::{PendingAccess, StateMachine};

/// The inspection of a state.
pub(crate) enum Look {
    /// The search goes on from here.
    Open,
    /// Every thread has ended.
    Complete,
    /// No thread goes on, and that is of no interest.
    Blocked,
    /// Something is wrong with it.
    Wrong(Box<(Failure, Vec<Waiting>)>),
    /// The next operation is not modelled.
    Refused(String),
}

/// Looks at the state that `machine` is in. The steps that lead out of it are put into `steps`;
/// `unrolled` is set if a loop was cut here.
pub(crate) fn look<M: StateMachine>(
    machine: &M,
    races: bool,
    steps: &mut Vec<StateStep>,
    unrolled: &mut bool,
) -> Look {
    steps.clear();
    let threads = machine.threads() as u32;
    let (mut plain, mut waiting) = (false, 0);
    for thread in (0..threads).map(ThreadId) {
        match machine.pending(thread) {
            Pending::Op(op) => {
                let choices = alternatives(machine, thread, op, |at| machine.value(at));
                if thread.0 >= MOST || choices > MOST {
                    return Look::Refused(format!(
                        "a search over states takes at most {MOST} threads and {MOST} \
                         alternatives of a choice"
                    ));
                }
                waiting += u32::from(choices == 0);
                steps.extend((0..choices).map(|choice| StateStep { thread, choice }));
                plain |= races && machine.access(thread).is_some_and(|access| !access.atomic);
            }
            Pending::Stopped(Stop::Failed) => {
                let failure = machine.failure();
                let failure = failure.expect("a failed thread has a failure");
                return Look::Wrong(Box::new((failure, Vec::new())));
            }
            Pending::Stopped(Stop::Refused) => {
                return Look::Refused(machine.refusal().unwrap_or_default());
            }
            Pending::Stopped(Stop::Unrolled) => *unrolled = true,
            Pending::Absent | Pending::Stopped(_) => {}
        }
    }
    if plain && let Some(race) = race(machine) {
        return Look::Wrong(Box::new((race, Vec::new())));
    }
    if steps.is_empty() {
        return end(machine);
    }
    if waiting > 0
        && let Some(circle) = circle(machine)
    {
        return Look::Wrong(Box::new(circle));
    }
    Look::Open
}

/// The bug of the state that `machine` is in, if it has one. Data races count if `races`
/// is set.
pub fn wrong<M: StateMachine>(machine: &M, races: bool) -> Option<(Failure, Vec<Waiting>)> {
    match look(machine, races, &mut Vec::new(), &mut false) {
        Look::Wrong(wrong) => Some(*wrong),
        Look::Open | Look::Complete | Look::Blocked | Look::Refused(_) => None,
    }
}

/// No thread can take a step.
fn end<M: StateMachine>(machine: &M) -> Look {
    let spins = |_, _| unreachable!("no thread of such a machine spins");
    let waits = |_, op| Obstacle {
        stale: false,
        owner: owner(machine, op),
    };
    match report::classify_by(machine, spins, waits) {
        End::Complete => match machine.leftover() {
            Some(failure) => Look::Wrong(Box::new((failure, Vec::new()))),
            None => Look::Complete,
        },
        End::Blocked | End::Stale => Look::Blocked,
        End::Unseen(what) => Look::Refused(what),
        End::Stuck(failure, waiting) => Look::Wrong(Box::new((failure, waiting))),
    }
}

/// Threads that wait for each other: one for a mutex that the next one holds, or for its end. They
/// will do so for ever, whatever others do. That is no bug as long as main can return and end the
/// process by that: main must be one of them, wait for one of them, or be gone.
fn circle<M: StateMachine>(machine: &M) -> Option<(Failure, Vec<Waiting>)> {
    let threads = machine.threads() as u32;
    let first = (0..threads).map(ThreadId).find(|&first| {
        let next = |thread: &ThreadId| waits_for(machine, *thread);
        let mut others = std::iter::successors(next(&first), next).take(threads as usize);
        others.any(|thread| thread == first)
    })?;
    let next = |thread: &ThreadId| waits_for(machine, *thread);
    let mut ahead = std::iter::successors(Some(ThreadId::MAIN), next).take(threads as usize);
    let gone = machine.pending(ThreadId::MAIN) == Pending::Stopped(Stop::Finished);
    let may_return = machine.ends_with_main() && !gone;
    if may_return && !ahead.any(|thread| thread == first) {
        return None;
    }
    let next = |&thread: &ThreadId| waits_for(machine, thread).filter(|&next| next != first);
    let mut members: Vec<ThreadId> = std::iter::successors(Some(first), next).collect();
    members.sort_unstable();
    let waiting: Vec<Waiting> = members
        .iter()
        .map(|&thread| Waiting {
            thread,
            op: match machine.pending(thread) {
                Pending::Op(op) => Some(op),
                _ => None,
            },
            site: machine.site(thread),
            on: waits_for(machine, thread),
        })
        .collect();
    let names: Vec<String> = members.iter().map(ThreadId::to_string).collect();
    let what = match members.len() {
        1 => "a thread waits for itself",
        _ => "threads wait for each other",
    };
    let failure = Failure {
        kind: FailureKind::Deadlock,
        message: format!("{what} ({})", names.join(", ")),
        thread: first,
        site: machine.site(first),
        other: None,
    };
    Some((failure, waiting))
}

/// The one thread that can end the waiting of `thread`, if it waits and there is such a thread.
fn waits_for<M: StateMachine>(machine: &M, thread: ThreadId) -> Option<ThreadId> {
    match machine.pending(thread) {
        Pending::Op(Op::Join { child }) => (!machine.pending(child).has_ended()).then_some(child),
        Pending::Op(op) => owner(machine, op),
        _ => None,
    }
}

/// The thread that holds the mutex that `op` waits for.
fn owner<M: StateMachine>(machine: &M, op: Op) -> Option<ThreadId> {
    let Op::Update {
        at,
        function: Function::Object(ObjectFunction::MutexLock { .. }),
        ..
    } = op
    else {
        return None;
    };
    match machine.value(at) {
        FREE => None,
        held => u32::try_from(held - 1).ok().map(ThreadId),
    }
}

/// Two threads that are about to access the same memory at the same time, one of them at least not
/// atomically and one at least writing. As every access to what is shared is a step, a program has
/// a data race if and only if it can come to such a state.
fn race<M: StateMachine>(machine: &M) -> Option<Failure> {
    // Most programs have so few threads that asking again is cheaper than writing the answers down.
    let accesses = |from: u32| {
        let threads = (from..machine.threads() as u32).map(ThreadId);
        threads.filter_map(|thread| Some((thread, machine.access(thread)?)))
    };
    for (one, first) in accesses(0) {
        for (other, second) in accesses(one.0 + 1) {
            if first.races_with(second) {
                return Some(Failure {
                    kind: FailureKind::DataRace,
                    message: format!("{} and {} are not ordered", what(first), what(second)),
                    thread: one,
                    site: machine.site(one),
                    other: Some(Other {
                        thread: other,
                        site: machine.site(other),
                        what: what(second),
                        events: None,
                    }),
                });
            }
        }
    }
    None
}

fn what(access: PendingAccess) -> String {
    let PendingAccess {
        size,
        writes,
        atomic,
        ..
    } = access;
    let atomic = if atomic { "atomic " } else { "" };
    let verb = if writes { "write" } else { "read" };
    let plural = if size == 1 { "" } else { "s" };
    format!("{atomic}{verb} of {size} byte{plural}")
}
