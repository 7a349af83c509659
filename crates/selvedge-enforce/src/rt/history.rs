//! Compares what a thread does with what it can do in proven executions.
//!
//! A thread's history, the sequence of its events at tracked places, is a number that each event changes;
//! the plan has the numbers of all histories that were explored. A thread whose next history is not among them
//! has left what was verified, and is stopped before it performs the event. The numbers do not depend on the
//! plan, so that a thread keeps its history when a newer one is taken up.
//!
//! A pure iteration of a spin loop may be repeated, so after one there may be several histories: the thread has
//! come back to where the loop began, or it has left the loop.

use super::composed::{OPEN, REPEATS, THREAD, next, root};
use super::image;
use super::plan::{Place, Plan};
use super::thread::Thread;

/// How many histories a thread can have at once. With more it is not checked any more.
pub(crate) const HISTORIES: usize = 4;

/// What comparing an event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A proven execution has it too, or it is not compared.
    Fine,
    /// No proven execution has it.
    New,
    /// No proven execution has anything at this place.
    Unknown,
}

/// The thread with this number begins.
pub(crate) fn begin(me: &mut Thread, number: u32) {
    me.histories = [root(number), 0, 0, 0];
    me.several = 0;
}

/// The thread is about to perform an event at `site`.
#[inline]
pub(crate) fn compare(me: &mut Thread, plan: &Plan, site: usize) -> Seen {
    let address = site.wrapping_sub(image::base()) as u32;
    compare_address(me, plan, site, address)
}

/// The thread is about to create or to join a thread at `site`, or to end if there is none.
pub(crate) fn compare_thread(me: &mut Thread, plan: &Plan, site: Option<usize>) -> Seen {
    let address = site.map_or(0, |site| site.wrapping_sub(image::base()) as u32);
    // Whatever else is done there, this is always tracked.
    compare_address(me, plan, 0, address | THREAD)
}

#[inline(always)]
fn compare_address(me: &mut Thread, plan: &Plan, site: usize, address: u32) -> Seen {
    if me.several == 0 {
        let next = next(me.histories[0], address);
        if plan.history(next) == Some(0) {
            me.histories[0] = next;
            return Seen::Fine;
        }
    }
    compare_all(me, plan, site, address)
}

#[cold]
fn compare_all(me: &mut Thread, plan: &Plan, site: usize, address: u32) -> Seen {
    let before = me.histories;
    let before = &before[..1 + usize::from(me.several)];
    let mut found = Set::default();
    for &history in before {
        let next = next(history, address);
        if plan.history(next).is_some() {
            found.add(next);
        }
    }
    if found.count == 0 {
        return match plan.place(site) {
            Some(Place { tracked: false, .. }) => Seen::Fine,
            place => {
                let open =
                    |&history: &u64| plan.history(history).is_some_and(|how| how & OPEN != 0);
                match place {
                    _ if before.iter().any(open) => me.untrack(),
                    Some(_) => Seen::New,
                    None => Seen::Unknown,
                }
            }
        };
    }
    // What can follow the beginning of a loop can follow its end.
    let mut at = 0;
    while let Some(&history) = found.all.get(at).filter(|_| at < found.count) {
        if plan.history(history).is_some_and(|how| how & REPEATS != 0) {
            plan.repeats(history).for_each(|to| found.add(to));
        }
        at += 1;
    }
    if found.count > HISTORIES {
        return me.untrack();
    }
    me.histories = found.all;
    me.several = found.count as u8 - 1;
    Seen::Fine
}

/// A few histories.
#[derive(Default)]
struct Set {
    all: [u64; HISTORIES],
    /// More than there is room for if some were left out.
    count: usize,
}

impl Set {
    fn add(&mut self, history: u64) {
        if self
            .all
            .iter()
            .take(self.count)
            .any(|&other| other == history)
        {
            return;
        }
        if let Some(free) = self.all.get_mut(self.count) {
            *free = history;
            self.count += 1;
        } else {
            self.count = HISTORIES + 1;
        }
    }
}
