//! The reasons for which a thread takes no further step.

use selvedge_core::{Failure, FailureKind, Op, Pending, Site, Stop};

use super::engine::{Next, active, current, host, in_execution, stop, visible};
use super::gone::{End, Handle};
use super::race::{AccessKind, CellId};
use super::state::State;

/// The running thread found something wrong with the program.
pub(crate) fn fail(failure: Failure) -> ! {
    stop(|state| state.fail(failure))
}

/// A block was freed before.
pub(super) fn fail_double_free(first: End, second: End) -> ! {
    stop(|state| {
        state.fail(Failure {
            kind: FailureKind::DoubleFree,
            message: "a block of the heap is freed for the second time".to_owned(),
            thread: second.thread,
            site: second.site,
            other: Some(first.describe("first time")),
        });
    })
}

/// Does `check`, and stops the thread if that is a failure.
pub(crate) fn plain<R: Default>(check: impl FnOnce(&mut State) -> Result<R, Failure>) -> R {
    if !in_execution() {
        return R::default();
    }
    // The stack must not depend on the host, so a failure is not put there.
    let mut result = R::default();
    let mut check = Some(check);
    current().call(&mut |state| match check.take().map(|check| check(state)) {
        Some(Ok(checked)) => {
            result = checked;
            Next::Back
        }
        Some(Err(failure)) => {
            state.fail(failure);
            Next::Stop
        }
        None => unreachable!("a request is answered once"),
    });
    result
}

/// A new cell.
#[track_caller]
pub(crate) fn new_cell(site: Site) -> Handle {
    host(|state| state.create_cell(site))
}

/// An access to a cell begins.
pub(crate) fn begin_access(cell: &Handle, kind: AccessKind, site: Site) -> CellId {
    let cell = cell.cell(site);
    plain(|state| state.begin_access(cell, kind, site));
    cell
}

/// An access to a cell ends.
pub(crate) fn end_access(cell: CellId, kind: AccessKind) {
    if active() {
        plain(|state| state.end_access(cell, kind));
    }
}

/// Ends the search: the model does something that is not supported.
pub(crate) fn refuse(what: &str) -> ! {
    stop(|state| state.refuse(what.to_owned()))
}

/// An object is not what its state says. That is possible only when all threads have ended: of
/// writes that nothing orders, the last one performed then counts.
pub(crate) fn inconsistent() -> ! {
    match in_execution() {
        true => refuse("an object of the model is not what its state says"),
        false => stop(|_| {}),
    }
}

/// Whether a wait ends right away, without a reason.
pub(crate) fn wakes_spuriously(site: Site) -> bool {
    if !in_execution() || !host(|state| state.may_wake()) {
        return false;
    }
    let wakes = visible(Op::Choose { alternatives: 2 }, site).read == 1;
    if wakes {
        host(State::wakes);
    }
    wakes
}

/// Whether a weak compare-exchange fails without a reason.
pub(crate) fn misses_spuriously(site: Site) -> bool {
    if !in_execution() || !host(|state| state.may_miss(site)) {
        return false;
    }
    let misses = visible(Op::Choose { alternatives: 2 }, site).read == 1;
    if misses {
        host(State::misses);
    }
    misses
}

/// The execution is of no interest.
pub(crate) fn assume_nothing() -> ! {
    stop(|state| state.current().pending = Pending::Stopped(Stop::Assumed))
}

/// The search is to start over with what `learned` notes.
pub(crate) fn start_over(learned: impl FnOnce(&mut State)) -> ! {
    stop(|state| {
        learned(state);
        state.start_over();
    })
}

/// Whether the stamp is that of this execution.
#[inline(always)]
pub(super) fn is_current(stamp: u64) -> bool {
    current().stamp() == stamp
}
