//! The waits that are built into a program, and the flags that stand for them.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::demands::{Demand, Demands};
use super::log::EventPlace;
use super::reversal::FLAG;
use crate::ids::{Site, ThreadId};

/// The waits that are built into a program.
pub(super) struct Plan<'a> {
    /// The values of the choices that main makes before it creates a thread.
    pub(super) inputs: &'a [u32],
    /// The sites whose events are counted.
    pub(super) counted: &'a FxHashSet<Site>,
    /// The places of the threads that waits mention.
    pub(super) places: &'a [Option<EventPlace>],
    /// The event that is waited for.
    pub(super) demands: &'a Demands,
    /// The other way round: this event comes before that one, or the execution is of no interest.
    pub(super) reversed: Option<Reversed>,
}

/// An order that is the contrary of a demand: the event that would have waited comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reversed {
    /// Thread and number of the event that has to come first.
    pub(super) first: (ThreadId, u32),
    /// Thread and number of the event that has to come later, if at all.
    pub(super) later: (ThreadId, u32),
}

impl Reversed {
    /// The contrary of `demand`.
    pub(super) fn of(demand: &Demand) -> Reversed {
        Reversed {
            first: (demand.thread, demand.event),
            later: (demand.source, demand.count - 1),
        }
    }
}

/// The flags, and the events that set and await them.
pub(super) struct Flags {
    /// By thread: number of events after which it sets a flag, ascending.
    pub(super) set: Vec<Vec<(u32, u32)>>,
    /// By thread: event and the flag it awaits, ascending.
    pub(super) awaited: Vec<Vec<(u32, u32)>>,
    pub(super) count: u32,
}

impl Flags {
    pub(super) fn new(plan: &Plan<'_>) -> Flags {
        let mut flags = Flags {
            set: Vec::new(),
            awaited: Vec::new(),
            count: 0,
        };
        let mut known: FxHashMap<(ThreadId, u32), u32> = FxHashMap::default();
        if let Some(Reversed { later, .. }) = plan.reversed {
            // This one is not set for a thread that has ended.
            flags.add(later, FLAG.0);
            flags.count = 1;
        }
        for demand in plan.demands.iter() {
            let next = flags.count;
            let flag = *known.entry((demand.source, demand.count)).or_insert(next);
            if flag == next {
                flags.count += 1;
                let setters = at(&mut flags.set, demand.source);
                setters.push((demand.count, flag));
            }
            flags.add((demand.thread, demand.event), flag);
        }
        for list in flags.set.iter_mut().chain(&mut flags.awaited) {
            list.sort_unstable();
        }
        flags
    }

    fn add(&mut self, (thread, event): (ThreadId, u32), flag: u32) {
        at(&mut self.awaited, thread).push((event, flag));
    }
}

/// The entry of `thread`, which there is room for afterwards.
pub(super) fn at<T: Default>(table: &mut Vec<T>, thread: ThreadId) -> &mut T {
    if table.len() <= thread.index() {
        table.resize_with(thread.index() + 1, T::default);
    }
    &mut table[thread.index()]
}
