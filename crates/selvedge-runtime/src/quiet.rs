//! Whether an iteration that changes nothing can be given up without missing a race.
//!
//! A thread that spins may read, on the way, what another thread writes or frees only later. Such
//! an iteration has to stay until that has happened. What lies in its own slot (stack and
//! thread-local variables) counts for nothing as long as no other thread was ever seen to reach
//! into that slot; if one does later, `Runtime::misjudged` tells, and the search starts over
//! knowing it. The same goes for globals that are accessed by atomic operations: they count as
//! never touched by others until one is.

use selvedge_core::Location;

use crate::access::Problem;
use crate::gate::gate;
use crate::locations::Kind;
use crate::runtime::Runtime;
use crate::settings::Plain;
use crate::shadow::{Cell, RELIED_ON, halves};

/// The memory that a thread touched besides its visible operations.
#[derive(Default)]
pub(crate) struct Quiet {
    /// Its events before it last touched what others can reach.
    others: u32,
    /// Its events before it last touched its own slot.
    own: u32,
    /// Some other thread reached into its slot, in this execution or an earlier one.
    entered: bool,
    /// Its slot was taken for private.
    relied_on: bool,
}

impl Quiet {
    /// A new execution begins.
    pub(crate) fn begin(&mut self) {
        (self.others, self.own) = (0, 0);
    }

    /// Whether some other thread is known to reach into the slot, and whether the slot was taken for
    /// private.
    pub(crate) fn set(&mut self, entered: bool, relied_on: bool) {
        (self.entered, self.relied_on) = (entered, relied_on);
    }

    /// When others' memory and its own slot were touched last.
    pub(crate) fn moments(&self) -> (u32, u32) {
        (self.others, self.own)
    }

    /// Sets that.
    pub(crate) fn set_moments(&mut self, moments: (u32, u32)) {
        (self.others, self.own) = moments;
    }

    /// Whether nothing was touched after the event with index `since`.
    fn since(&mut self, since: u32) -> bool {
        if self.others > since {
            return false;
        }
        let private = self.own <= since;
        self.relied_on |= !private && !self.entered;
        private || !self.entered
    }
}

impl Runtime {
    /// The running thread touches `address` by an access that may race.
    #[inline(always)]
    pub(crate) fn touches(&mut self, address: usize) -> Result<(), Problem> {
        let running = self.running;
        let thread = &mut self.threads[running];
        let events = thread.clock[running];
        if thread.slot.contains(address) {
            thread.quiet.own = events;
            // SAFETY: the gate is mapped while a program is loaded.
            let stack_pointer = unsafe { (*gate()).stack_pointer };
            match thread.slot.is_left(address, stack_pointer) {
                true => Err(Problem::Returned(running)),
                false => Ok(()),
            }
        } else {
            thread.quiet.others = events;
            self.enters(address)
        }
    }

    /// The running thread, which was stopped before, accesses `address`. It may lie in the slot of another.
    #[inline(always)]
    pub(crate) fn enters(&mut self, address: usize) -> Result<(), Problem> {
        if let Some(owner) = self.layout.stack_owner(address)
            && let Some(thread) = self.threads.get_mut(owner)
        {
            if owner == self.running {
                return match thread.slot.is_left(address, thread.stopped_at) {
                    true => Err(Problem::Returned(owner)),
                    false => Ok(()),
                };
            }
            let known = std::mem::replace(&mut thread.quiet.entered, true);
            // Told once: the search that starts over knows.
            self.misjudged |= std::mem::take(&mut thread.quiet.relied_on);
            if !known {
                self.enter_slot(owner);
            }
            return self.enters_stack(owner, address);
        }
        Ok(())
    }

    /// A plain access touches these bytes of the word of `cell`.
    #[inline(always)]
    pub(crate) fn plainly(&mut self, cell: *mut Cell, mask: u8) {
        // SAFETY: cells are mapped while the program is loaded.
        let always = unsafe { &mut (*cell).always };
        let halves = halves(mask);
        if *always & halves != halves {
            self.misjudged |= *always >> RELIED_ON & halves != 0;
            let new = halves & !*always;
            *always |= halves;
            self.facts.touch_word(cell, new);
        }
    }

    /// Whether `location` is a global that no plain access has touched so far, or only as an event.
    pub(crate) fn never_races(&mut self, location: Location) -> bool {
        let entry = *self.locations.entry(location);
        let global = self.image.whole.contains(entry.address);
        let plain = |cell: *mut Cell, mask| {
            // SAFETY: cells are mapped while the program is loaded.
            unsafe { (*cell).always & halves(mask) != 0 }
        };
        if entry.kind != Kind::Memory || !global {
            return false;
        }
        if self.settings.plain == Plain::Sc {
            return true;
        }
        let never = !entry.cells().any(|(cell, mask)| plain(cell, mask));
        if never && self.locations.rely_on(location) {
            for (cell, mask) in entry.cells() {
                self.facts.rely_on_word(cell, mask);
            }
        }
        never
    }

    /// Whether `thread` touched nothing that may race after its event with index `since`.
    pub(crate) fn quiet_since(&mut self, thread: usize, since: u32) -> bool {
        let quiet = &mut self.threads[thread].quiet;
        let relied_on = quiet.relied_on;
        let is_quiet = quiet.since(since);
        if quiet.relied_on && !relied_on {
            self.rely_on_slot(thread);
        }
        is_quiet
    }
}
