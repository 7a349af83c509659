//! Making sure that a loop only waits.
//!
//! A thread that is about to be parked came back to a read with the same stack, and nothing that the checker sees changed. What it
//! does not see is memory [outside](super::outside) of the model. So the iteration is gone through once more, with the values that it read
//! before, and that memory is compared. If nothing changed, nothing ever will. If something did each time, it is not one of those
//! loops: the search starts over and never takes it for one. Nobody else of the model runs meanwhile, but other OS threads do, so
//! that one change alone says nothing.

use selvedge_core::{Pending, Stop};

use super::engine::Engine;
use super::outside::Extent;
use super::spin::Step;

/// So often another OS thread may get in the way.
const TRIES: usize = 64;

impl Engine {
    /// Decides about `thread`, if it seems to spin.
    pub(super) fn judge(&self, thread: usize) {
        let mut state = self.state().borrow_mut();
        let Some(since) = state.threads[thread].spin.suspect.take() else {
            return;
        };
        let site = state.threads[thread].site;
        let trail = std::mem::take(&mut state.threads[thread].spin.trail);
        let first = trail.partition_point(|step| step.event < since);
        // Looking at everything takes long, if that is much, and once for each place is enough: whoever counts there does so
        // each time.
        let extent = match state.judged.contains(&site.0) {
            true => Extent::Close,
            false => Extent::All,
        };
        drop(state);
        let only_waits = self.only_waits(thread, &trail[first..], extent);
        let mut state = self.state().borrow_mut();
        if only_waits {
            state.judged.insert(site.0);
            let known = &mut state.threads[thread];
            known.spin.trail = trail;
            known.pending = Pending::Stopped(Stop::Spinning { since });
        } else {
            state.busy.insert(site.0);
            state.running = thread;
            state.start_over();
        }
    }

    /// Whether going through `iteration` changes nothing at all.
    fn only_waits(&self, thread: usize, iteration: &[Step], extent: Extent) -> bool {
        let mut outside = std::mem::take(&mut self.state().borrow_mut().outside);
        let stack = || self.state().borrow().threads[thread].stack_state();
        let mut before = stack();
        let mut only_waits = false;
        for _ in 0..TRIES {
            let known = outside.copy(extent, self.state().borrow().beside(thread));
            if !known || !self.goes_through(thread, iteration) {
                break;
            }
            let after = stack();
            only_waits = before == after && outside.is_unchanged();
            if only_waits {
                break;
            }
            before = after;
        }
        self.state().borrow_mut().outside = outside;
        only_waits
    }

    /// Lets `thread` go through `iteration`, unseen by everybody else. False if it does something else.
    fn goes_through(&self, thread: usize, iteration: &[Step]) -> bool {
        self.state().borrow_mut().threads[thread].spin.disturbed = false;
        let stands_at = |step: &Step| {
            let state = self.state().borrow();
            let known = &state.threads[thread];
            known.pending == Pending::Op(step.op) && known.site == step.site
        };
        let steps = iteration.iter();
        let next = iteration.iter().cycle().skip(1);
        self.state().borrow_mut().rehearsing = true;
        let same = steps.zip(next).all(|(step, next)| {
            stands_at(step) && {
                self.set_outcome(step.outcome);
                self.run(thread);
                stands_at(next)
            }
        });
        let mut state = self.state().borrow_mut();
        state.rehearsing = false;
        same && !state.threads[thread].spin.disturbed
    }
}
