//! Compares what a thread does with what it can do in proven executions.
//!
//! A thread's history, the sequence of its events at tracked places, is a place in the plan's tree of all histories
//! that were explored. A thread whose next history is not in it has left what was verified, and is stopped before it
//! performs the event. When a newer plan is taken up, a thread looks up what it has done in the new tree.
//!
//! A pure iteration of a spin loop may be repeated, so after one there may be several histories: the thread has
//! come back to where the loop began, or it has left the loop.

use super::composed::{OPEN, REPEATS, THREAD};
use super::image;
use super::plan::{self, Place, Plan};
use super::thread::{TRACKING, Thread};

/// How many histories a thread can have at once. With more it is not checked any more.
pub(crate) const HISTORIES: usize = 4;

/// The result of comparing an event.
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
    let plan = plan::present();
    me.plan = plan;
    me.several = 0;
    match plan.beginning(number) {
        Some(history) => me.histories = [history, 0, 0, 0],
        None => _ = me.untrack(),
    }
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
    // The creation, joining and end of threads are always tracked.
    compare_address(me, plan, 0, address | THREAD)
}

#[inline]
fn compare_address(me: &mut Thread, plan: &Plan, site: usize, address: u32) -> Seen {
    match follows(me, plan, address) {
        true => Seen::Fine,
        false => compare_all(me, plan, site, address),
    }
}

/// Whether the thread does nothing but compare, and proven executions have the event at `site` next. That is so for
/// nearly all events; it takes no call and a few instructions. Otherwise nothing has happened.
#[inline(always)]
pub(crate) fn passes(me: &mut Thread, site: usize) -> bool {
    let address = site.wrapping_sub(image::base()) as u32;
    me.active == TRACKING && me.pending == 0 && follows(me, plan::present(), address)
}

#[inline(always)]
fn follows(me: &mut Thread, plan: &Plan, address: u32) -> bool {
    let known = me.several == 0 && core::ptr::eq(me.plan, plan);
    match plan.after(me.histories[0], address) {
        Some((next, 0)) if known => {
            me.histories[0] = next;
            true
        }
        _ => false,
    }
}

/// Looks up what the thread has done in a newer plan. `false` if the plan does not have it.
#[cold]
fn follow_plan(me: &mut Thread, plan: &Plan) -> bool {
    // SAFETY: plans live for ever.
    let earlier = unsafe { &*me.plan };
    for history in me.histories.iter_mut().take(1 + usize::from(me.several)) {
        let Some(translated) = plan.translate(earlier, *history) else {
            return false;
        };
        *history = translated;
    }
    me.plan = plan;
    true
}

#[cold]
fn compare_all(me: &mut Thread, plan: &Plan, site: usize, address: u32) -> Seen {
    // Always tracked without a site: threads are created and joined there, or end.
    let place = match site {
        0 => None,
        _ => plan.place(site),
    };
    if let Some(Place { tracked: false, .. }) = place {
        return Seen::Fine;
    }
    let new = || match place {
        Some(_) => Seen::New,
        None => Seen::Unknown,
    };
    if !core::ptr::eq(me.plan, plan) && !follow_plan(me, plan) {
        return new();
    }
    let before = me.histories;
    let before = &before[..1 + usize::from(me.several)];
    let mut found = Set::default();
    for &history in before {
        if let Some((next, _)) = plan.after(history, address) {
            found.add(next);
        }
    }
    if found.count == 0 {
        let open = |&history: &u32| plan.how(history) & OPEN != 0;
        return match before.iter().any(open) {
            true => me.untrack(),
            false => new(),
        };
    }
    // An event that can follow the beginning of a loop can also follow its end.
    let mut at = 0;
    while let Some(&history) = found.all.get(at).filter(|_| at < found.count) {
        if plan.how(history) & REPEATS != 0 {
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
    all: [u32; HISTORIES],
    /// More than there is room for if some were left out.
    count: usize,
}

impl Set {
    fn add(&mut self, history: u32) {
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
