//! What is to be said of a state before its steps are looked at.

use crate::ids::ThreadId;
use crate::interleave::alternatives;
use crate::machine::{Pending, Stop};
use crate::saved::StateMachine;

/// What becomes of a state.
pub(super) enum Judgement {
    /// It has steps.
    GoesOn,
    /// The program has ended, and all is well.
    Ended,
    /// An assumption does not hold.
    Uninteresting,
    /// Something is wrong.
    Bug,
    /// Something is not modelled.
    Refused(String),
}

pub(super) fn judge<M: StateMachine>(machine: &M) -> Judgement {
    let threads = || (0..machine.threads() as u32).map(ThreadId);
    let any =
        |stop: Stop| threads().any(|thread| machine.pending(thread) == Pending::Stopped(stop));
    if any(Stop::Refused) {
        return Judgement::Refused(machine.refusal().unwrap_or_default());
    }
    if any(Stop::Failed) {
        return Judgement::Bug;
    }
    if any(Stop::Exited) {
        return Judgement::Ended;
    }
    if any(Stop::Assumed) {
        return Judgement::Uninteresting;
    }
    let moves = |thread: ThreadId| match machine.pending(thread) {
        Pending::Op(op) => alternatives(machine, thread, op, |at| machine.value(at)) > 0,
        _ => false,
    };
    if threads().any(moves) {
        return Judgement::GoesOn;
    }
    let waits = |thread| matches!(machine.pending(thread), Pending::Op(_));
    match threads().any(waits) {
        true => Judgement::Bug,
        false => Judgement::Ended,
    }
}
