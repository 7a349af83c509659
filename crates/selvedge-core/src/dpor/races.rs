//! Race detection: the earlier steps that a next step could come before, and the threads that have to start
//! for that.

use super::act::{Act, Next};
use super::trace::{StepIndex, Trace};
use crate::ids::ThreadId;

impl Trace {
    /// `races(d)`: the steps `i` that `next` is in a *reversible* race with. They are direct
    /// dependencies of another thread that the thread of `next` does not know of.
    ///
    /// A step that could only wait where `i` was taken cannot be exchanged with `i`: a lock with the
    /// unlock before it, a semaphore's wait with the post it needs. It may be possible to
    /// exchange it with what came before (the other thread's lock), so the search goes on there. A
    /// step that has to wait now races in the same way.
    pub(super) fn races(&self, next: &Next, found: &mut Vec<StepIndex>) {
        found.clear();
        let Some(location) = next.act.location() else {
            return;
        };
        let clock = self.clock(next.act.thread);
        for &place in self.accesses(location).iter().rev() {
            let act = &self.step(place).act;
            if self.knows(clock, place) {
                if act.writes {
                    break;
                }
                continue;
            }
            if !self.reversible(next, place) {
                continue;
            }
            let before_another = |&other: &StepIndex| self.happens_before(place, other);
            if found.iter().any(before_another) {
                continue;
            }
            found.push(place);
            if act.writes {
                break;
            }
        }
    }

    /// Whether `next` conflicts with the step at `place`, an access to the same location, and could
    /// be taken instead of it.
    pub(super) fn reversible(&self, next: &Next, place: StepIndex) -> bool {
        let step = self.step(place);
        let Some(there) = next.at_value(step.before) else {
            return false;
        };
        // The kind of a step that waits is known only where it need not.
        let writes = if next.enabled() {
            next.act.writes
        } else {
            there.writes
        };
        writes || step.act.writes
    }

    /// `u(i, d)` and its initials: whether `thread` can start a sequence from the node `i` in which
    /// `next` comes before the step there. `related_only` asks for *CI*, those whose first step is
    /// `next` or happens before it.
    pub(super) fn is_initial(
        &self,
        thread: ThreadId,
        i: StepIndex,
        next: &Next,
        related_only: bool,
    ) -> bool {
        if thread == self.step(i).act.thread {
            return false;
        }
        let p = next.act.thread;
        match self.first_from(thread, i) {
            Some(first) => {
                let initial = self.nothing_before(first, i);
                initial && (!related_only || self.comes_before_moved(first, i, next))
            }
            None => thread == p && self.existed(p, i) && self.unhindered(i, &self.moved(i, next)),
        }
    }

    /// `d'`: `next` with its kind taken anew at the node `i`, where its location held what the step
    /// there found. (No later write to that location is left in `u`.)
    fn moved(&self, i: StepIndex, next: &Next) -> Act {
        let same = self.step(i).act.target == next.act.target;
        let there = same.then(|| next.at_value(self.step(i).before)).flatten();
        there.unwrap_or(next.act)
    }

    /// Whether everything that happens before the step at `place` lies before the node `i`.
    fn nothing_before(&self, place: StepIndex, i: StepIndex) -> bool {
        let own = self.step(place).act.thread;
        let clock = self.order(place);
        (0..clock.len() as u32).map(ThreadId).all(|thread| {
            thread == own || self.last_known(thread, clock).is_none_or(|known| known < i)
        })
    }

    /// The steps of `u(i, d)` that `moved` conflicts with.
    fn hindrances<'a>(
        &'a self,
        i: StepIndex,
        moved: &'a Act,
    ) -> impl Iterator<Item = StepIndex> + 'a {
        let accesses = match moved.location() {
            Some(location) => self.accesses(location),
            None => &[],
        };
        let later = accesses.iter().rev().copied().take_while(move |&k| k > i);
        later.filter(move |&k| !self.happens_before(i, k) && self.step(k).act.conflicts(moved))
    }

    fn unhindered(&self, i: StepIndex, moved: &Act) -> bool {
        self.hindrances(i, moved).next().is_none()
    }

    fn comes_before_moved(&self, first: StepIndex, i: StepIndex, next: &Next) -> bool {
        let p = next.act.thread;
        let moved = &self.moved(i, next);
        self.step(first).act.thread == p
            || self.knows(self.clock(p), first)
            || self
                .hindrances(i, moved)
                .any(|k| self.knows(self.order(k), first))
    }

    /// `v` of Optimal-DPOR, for the race of the step `k` with the step `i`: everything after `i`,
    /// also after `k`, that does not happen after `i`; then `k`, its kind taken anew.
    pub(super) fn reversal(
        &self,
        i: StepIndex,
        k: &Next,
        taken: Option<StepIndex>,
        v: &mut Vec<Act>,
    ) {
        v.clear();
        for place in i + 1..self.len() {
            if Some(place) != taken && !self.happens_before(i, place) {
                v.push(self.step(place).act);
            }
        }
        v.push(self.moved(i, k));
    }
}
