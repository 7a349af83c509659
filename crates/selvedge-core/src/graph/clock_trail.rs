//! Clocks as they were before they grew, to be restored when the events that made them grow are removed.

use super::{Clocks, Slot};

/// Saved clocks, newest last.
#[derive(Clone, Debug, Default)]
pub struct ClockTrail {
    changes: Vec<Change>,
    saved: Vec<u32>,
}

/// The clock of `target` grew when `cause` was added.
#[derive(Clone, Copy, Debug)]
struct Change {
    cause: Slot,
    target: Slot,
    width: usize,
}

impl ClockTrail {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.saved.clear();
    }

    /// How many clocks are saved, for [`unwind`](Self::unwind).
    pub fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Saves the clock of `target`, which is about to grow because of `cause`.
    #[inline]
    pub fn save(&mut self, clocks: &Clocks, target: Slot, cause: Slot) {
        let clock = clocks.of(target);
        self.saved.extend_from_slice(clock);
        self.changes.push(Change {
            cause,
            target,
            width: clock.len(),
        });
    }

    /// Restores the clocks that grew because of all but the first `events` events.
    pub fn undo(&mut self, clocks: &mut Clocks, events: usize) {
        while let Some(change) = self.changes.last()
            && change.cause as usize >= events
        {
            self.restore_last(clocks);
        }
    }

    /// Restores the clocks that were saved since `mark`.
    pub fn unwind(&mut self, clocks: &mut Clocks, mark: usize) {
        while self.changes.len() > mark {
            self.restore_last(clocks);
        }
    }

    fn restore_last(&mut self, clocks: &mut Clocks) {
        let Some(Change { target, width, .. }) = self.changes.pop() else {
            return;
        };
        let start = self.saved.len() - width;
        // Threads that were created later had no events then.
        let clock = clocks.of_mut(target);
        clock[..width].copy_from_slice(&self.saved[start..]);
        clock[width..].fill(0);
        self.saved.truncate(start);
    }
}
