//! Why a thread takes no further step.

use selvedge_core::failure::Other;
use selvedge_core::{Failure, FailureKind, Op, Pending, Site, Stop, ThreadId};

use super::engine::{Next, abandoning, active, current, host, visible};
use super::leave::{give_up, leave};
use super::race::{CellId, Kind};
use super::state::State;

/// The running thread found something wrong with the program. Returns only when the execution is over.
pub(crate) fn fail(failure: impl FnOnce(&mut State) -> Failure) {
    let engine = current();
    if abandoning() {
        return;
    }
    let mut failure = Some(failure);
    engine.call(&mut |state| {
        if let Some(failure) = failure.take() {
            let failure = failure(state);
            state.fail(failure);
        }
        Next::Stop
    });
    leave();
}

/// The same from within the allocator, which must not be unwound through.
pub(super) fn fail_double_free(thread: ThreadId, site: Site) {
    let engine = current();
    if abandoning() {
        return;
    }
    engine.call(&mut |state| {
        state.fail(Failure {
            kind: FailureKind::DoubleFree,
            message: "a block of the heap is freed for the second time".to_owned(),
            thread: ThreadId(state.running as u32),
            site: state.threads[state.running].site,
            other: Some(Other {
                thread,
                site,
                what: "first time, after the operation".to_owned(),
            }),
        });
        Next::Stop
    });
    give_up()
}

/// Does `check`, and stops the thread if that is a failure.
pub(crate) fn plain<R>(check: impl FnOnce(&mut State) -> Result<R, Failure>) -> R
where
    R: Default,
{
    if abandoning() {
        return R::default();
    }
    match host(check) {
        Ok(result) => result,
        Err(failure) => {
            fail(|_| failure);
            R::default()
        }
    }
}

/// A new cell.
#[track_caller]
pub(crate) fn new_cell(site: Site) -> CellId {
    host(|state| state.create_cell(site))
}

/// An access to a cell begins.
pub(crate) fn begin_access(cell: CellId, kind: Kind, site: Site) {
    if active() {
        check_stamp(cell.stamp);
        plain(|state| state.begin_access(cell, kind, site));
    }
}

/// An access to a cell ends.
pub(crate) fn end_access(cell: CellId, kind: Kind) {
    if active() && !abandoning() {
        host(|state| state.end_access(cell, kind));
    }
}

/// Ends the search: the model does something that is not supported.
pub(crate) fn refuse(what: String) {
    let engine = current();
    if abandoning() {
        return;
    }
    let mut what = Some(what);
    engine.call(&mut |state| {
        state.refuse(what.take().unwrap_or_default());
        Next::Stop
    });
    leave();
}

/// Whether a wait ends right away, without a reason.
pub(crate) fn wakes_spuriously(site: Site) -> bool {
    if abandoning() || !host(|state| state.may_wake()) {
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
    if abandoning() || !host(|state| state.may_miss(site)) {
        return false;
    }
    let misses = visible(Op::Choose { alternatives: 2 }, site).read == 1;
    if misses {
        host(State::misses);
    }
    misses
}

/// The execution is of no interest.
pub(crate) fn assume_nothing() {
    let engine = current();
    if !abandoning() {
        engine.call(&mut |state| {
            let running = state.running;
            state.threads[running].pending = Pending::Stopped(Stop::Assumed);
            Next::Stop
        });
        leave();
    }
}

/// The search is to start over with what `learned` notes.
pub(crate) fn start_over(learned: impl FnOnce(&mut State)) {
    let engine = current();
    if abandoning() {
        return;
    }
    let mut learned = Some(learned);
    engine.call(&mut |state| {
        if let Some(learned) = learned.take() {
            learned(state);
        }
        state.start_over();
        Next::Stop
    });
    leave();
}

/// Refuses objects that belong to another execution.
#[track_caller]
pub(super) fn check_stamp(stamp: u64) {
    let engine = current();
    if engine.stamp() != stamp && !abandoning() {
        refuse(
            "an atomic, a lock or a cell of an earlier execution is used again: the model must create everything \
             it shares anew each time it runs (a static, or something the closure captured, was left over)"
                .to_owned(),
        );
    }
}
