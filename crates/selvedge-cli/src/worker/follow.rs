//! Following a recorded schedule.

use std::mem::discriminant;

use selvedge_core::interleave::Run;
use selvedge_core::report::Bug as RawBug;
use selvedge_core::{FailureKind, Machine as _, Op, Pending, Stop, ThreadId};

use super::journal::Watched;
use super::protocol::Replayed;
use crate::describe::{self, Binary};

/// Runs the schedule of `bug`, step by step, and looks how it ends.
pub(super) fn schedule(machine: &mut Watched<'_>, bug: &RawBug, binary: &Binary) -> Replayed {
    let mut run = Run::new(machine);
    for (n, step) in bug.witness.steps.iter().enumerate() {
        let pending = run.machine().pending(step.thread);
        let as_before = matches!(pending, Pending::Op(op) if same_sort(&op, &step.op));
        if !as_before || run.alternatives(step.thread) <= step.choice {
            let what = format!("{} does something else in step {}", step.thread, n + 1);
            return Replayed::Diverged(what);
        }
        run.step(step.thread, step.choice);
    }
    let stopped = |thread: ThreadId| match run.machine().pending(thread) {
        Pending::Stopped(Stop::Refused) => false,
        _ => run.alternatives(thread) == 0,
    };
    let stuck = (0..run.machine().threads() as u32)
        .map(ThreadId)
        .all(stopped);
    let failure = run.machine().failure().or_else(|| run.machine().leftover());
    let native = run.machine().inner();
    let mut again = bug.clone();
    match (failure, bug.failure.kind) {
        (Some(failure), _) => again.failure = failure,
        (None, FailureKind::Deadlock | FailureKind::Livelock) if stuck => {
            again.failure.site = native.site(again.failure.thread);
            for waiting in &mut again.waiting {
                waiting.site = native.site(waiting.thread);
            }
        }
        _ => return Replayed::Passed,
    }
    Replayed::Failed(Box::new(describe::bug(binary, native, &again)))
}

/// Whether two operations are the same apart from the values that they write.
fn same_sort(one: &Op, other: &Op) -> bool {
    discriminant(one) == discriminant(other) && one.location() == other.location()
}
