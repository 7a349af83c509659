//! Decides which events a revisit may delete, and which graphs lead to blocked executions only.
//!
//! An event was added maximally if it read the newest write, or was the newest write and had no
//! reader, or took the first of several alternatives. Only such events may be deleted, so each
//! graph is reached in one way only.
//!
//! An update that was *woken* (parked, then revisited by the write it waited for without deleting anything) is judged
//! as if it were still parked by every write that does not know the one that woke it. Otherwise there would have to be
//! a graph in which a lock stays parked although the mutex is free, or a compare-exchange is tried forever although it
//! would succeed; that graph would be blocked.

use crate::graph::{Graph, INIT, Kind, Slot, join};
use crate::ids::{Location, ThreadId};
use crate::objects::ObjectFunction;
use crate::op::{Effect, Function, Op, Rmw, Value};

/// Whether the event in `slot` was added maximally, seen from a write whose causal prefix is
/// `prefix`: at that time, with that prefix present as well.
pub(super) fn maximal(graph: &Graph, slot: Slot, prefix: &[u32]) -> bool {
    let event = graph.event(slot);
    if event.choice != 0 {
        return false;
    }
    let Some(location) = event.op.location() else {
        return true;
    };
    let present = |other: Slot| other <= slot || graph.counted(prefix, other);
    let newest = if event.kind.writes() {
        let counts = |&reader: &Slot| judged_source(graph, reader, prefix) == slot;
        let later = graph.later_writes(location, slot).iter();
        let woken = later.flat_map(|&write| {
            let readers = graph.readers(location, write);
            readers.filter(|&reader| graph.event(reader).woken_from.is_some())
        });
        let mut readers = graph.readers(location, slot).chain(woken).filter(counts);
        if readers.any(present) {
            return false;
        }
        slot
    } else {
        judged_source(graph, slot, prefix)
    };
    let mut later = graph.later_writes(location, newest).iter();
    !later.any(|&write| present(write))
}

/// The write that a read is judged by: for a woken read, the write it was parked at, unless `prefix` contains the write
/// that woke it.
fn judged_source(graph: &Graph, read: Slot, prefix: &[u32]) -> Slot {
    let event = graph.event(read);
    match event.woken_from {
        Some(before) if !graph.counted(prefix, event.source) => before,
        _ => event.source,
    }
}

/// Whether a write of `value` to `location` with causal prefix `prefix`, if it becomes the newest,
/// wakes a parked update that was added after everything the write does not know. It then must not
/// leave that update parked.
pub(super) fn wakes(graph: &Graph, location: Location, value: Value, prefix: &[u32]) -> bool {
    let Some(&newest) = graph.coherence(location).last() else {
        return false;
    };
    // From the end on, everything up to the parked update has to be known to the write.
    let mut outside = (0..graph.len() as Slot).rev();
    let Some(last) = outside.find(|&slot| !graph.counted(prefix, slot)) else {
        return false;
    };
    let event = graph.event(last);
    event.kind == Kind::Parked
        && event.op.location() == Some(location)
        && event.source == newest
        && graph.counted(prefix, newest)
        && wakes_by(event.op, value)
        && maximal(graph, last, prefix)
}

/// Whether a parked `op` that sees `value` written goes on, and by that writes.
pub(super) fn wakes_by(op: Op, value: Value) -> bool {
    let Op::Update { function, .. } = op else {
        return false;
    };
    let lock = matches!(function, Function::Object(ObjectFunction::MutexLock { .. }));
    (lock || tries_again(op)) && matches!(function.apply(value), Effect::Write(_))
}

/// Whether `op` is one that spin loops repeat until it succeeds.
pub(super) fn tries_again(op: Op) -> bool {
    let Op::Update { function, .. } = op else {
        return false;
    };
    let Function::Memory { rmw, .. } = function else {
        return false;
    };
    matches!(rmw, Rmw::CompareExchange { .. })
}

/// Counts the events that no revisit can delete any more: what was revisited keeps its new
/// source, with all that causes it.
pub(super) fn stable(graph: &Graph, clock: &mut Vec<u32>) {
    clock.clear();
    clock.resize(graph.threads(), 0);
    for (slot, event) in graph.events().iter().enumerate() {
        let revisited = event.kind.reads() && event.source != INIT && event.source > slot as Slot;
        if revisited && event.woken_from.is_none() {
            join(clock, graph.causality(event.source));
        }
    }
}

/// Whether a read that makes its thread wait can be neither revisited nor deleted any more: its
/// source was overwritten by another value that is older or stable.
fn frozen(graph: &Graph, read: Slot, stable: &[u32]) -> bool {
    let event = graph.event(read);
    let Some(location) = event.op.location() else {
        return true;
    };
    let value = graph.waits_at(location, read);
    is_followed(graph, location, (value, read), stable)
}

/// Whether a newer write than `write` was added before the event in `slot`, or is stable. Then a read in `slot` that
/// reads from `write` does not count as added maximally for any write that could revisit or delete it.
fn is_followed(
    graph: &Graph,
    location: Location,
    (write, slot): (Slot, Slot),
    stable: &[u32],
) -> bool {
    let mut later = graph.later_writes(location, write).iter();
    later.any(|&write| write < slot || stable_counts(graph, stable, write))
}

/// Whether `thread`, for which an assumption does not hold, stays where it is in every execution that follows
/// from the graph: its last read, or a choice after that, can neither be revisited nor deleted any more.
///
/// The writes of the thread since then may lead other threads to a failure. In that case, and if the thread created
/// others, the answer is no.
pub(super) fn blocked_for_good(graph: &Graph, thread: ThreadId, stable: &[u32]) -> bool {
    for &slot in graph.thread(thread).iter().rev() {
        let event = graph.event(slot);
        match (event.kind, event.op) {
            (Kind::Read | Kind::Parked, _) => {
                let location = event.op.location().expect("reads have a location");
                return event.choice != 0
                    || is_followed(graph, location, (event.source, slot), stable);
            }
            (Kind::Silent, Op::Choose { .. }) if event.choice != 0 => return true,
            (Kind::Silent, Op::Choose { .. } | Op::Fence { .. } | Op::Join { .. }) => {}
            _ => return false,
        }
    }
    false
}

fn stable_counts(graph: &Graph, stable: &[u32], slot: Slot) -> bool {
    let id = graph.event(slot).id;
    stable.get(id.thread.index()).is_some_and(|&n| n > id.index)
}

/// Whether some thread is parked for good.
pub(super) fn hopeless(graph: &Graph, stable: &[u32]) -> bool {
    let lasts = (0..graph.threads() as u32).filter_map(|t| graph.thread(ThreadId(t)).last());
    let mut parked = lasts.filter(|&&last| graph.event(last).kind == Kind::Parked);
    parked.any(|&last| frozen(graph, last, stable))
}

/// Whether `thread`, which spins since its event `since`, spins for good: the last read of its iteration can
/// neither be revisited nor deleted any more. A revisit of an earlier read would have to delete that one.
pub(super) fn spins_for_good(graph: &Graph, thread: ThreadId, since: u32, stable: &[u32]) -> bool {
    let iteration = &graph.thread(thread)[since as usize..];
    let last = iteration
        .iter()
        .rfind(|&&slot| graph.event(slot).kind.reads());
    last.is_some_and(|&read| frozen(graph, read, stable))
}
