//! How long the variables on a stack live.
//!
//! A stack is used again with every call, so the same bytes are one variable after the other. A
//! visible location on a stack lives until the function that it belongs to returns; from then on
//! its bytes are another location. What other threads do to a variable has to happen before that.
//!
//! Memory is not compared with the last known value when a frame ends, as it is when a block is freed: a
//! difference on a thread's own stack is a store of the thread itself, since compilers announce no stores
//! to variables that nobody else can reach, and nobody reads the variable any more. That holds even where
//! other threads have accessed it: later in the function, its bytes may be another variable's that compilers keep
//! to the thread.

use selvedge_core::Location;

use crate::access::{Access, Problem};
use crate::current;
use crate::locations::Kind as LocationKind;
use crate::protection::Protection;
use crate::runtime::{Phase, Runtime};
use crate::shadow::{Kind, Record};

impl Runtime {
    /// A visible operation touches a location for the first time in this execution.
    #[cold]
    pub(crate) fn begins_life(&mut self, location: Location) {
        let entry = self.locations.entry(location);
        let (address, width) = (entry.address, entry.width);
        if entry.kind == LocationKind::Memory && !entry.is_merged() {
            self.touches_range(address, width);
        }
        if let Some(owner) = self.layout.stack_owner(address)
            && let Some(thread) = self.threads.get(owner)
            && (thread.slot.stack_low..thread.slot.stack_top).contains(&address)
        {
            self.enters_slot(owner);
            let thread = &mut self.threads[owner];
            thread.visible_stack = thread.visible_stack.min(address);
        }
    }

    /// The running thread leaves the function whose frame ends at `end`, or ends.
    #[cold]
    pub(crate) fn end_frame(&mut self, end: usize) -> Result<(), (Problem, Access)> {
        if self.phase != Phase::Fiber || self.settings.stateful {
            return Ok(());
        }
        let own = self.threads[self.running].slot.stack_low..end;
        for cell in self.locations.cells_in(own.clone()) {
            self.undo.cell(cell, &self.shadow, self.run);
        }
        let gone = self.locations.end_lives(own.clone(), self.run);
        let thread = &mut self.threads[self.running];
        thread.visible_stack = gone.unwrap_or(usize::MAX);
        let mut foreign = std::mem::take(&mut thread.foreign);
        let used = foreign
            .extract_if(.., |word| own.contains(word))
            .find_map(|word| self.used_by_others(word));
        self.threads[self.running].foreign = foreign;
        match used {
            Some((word, other)) => {
                let access = Access {
                    address: word,
                    size: 8,
                    kind: Kind::PlainWrite,
                    site: current::site().0 as usize,
                };
                Err((Problem::InUse(other), access))
            }
            None => Ok(()),
        }
    }

    /// An access of another thread to `word` that nothing orders before the present point.
    fn used_by_others(&self, word: usize) -> Option<(usize, Record)> {
        let cell = self.shadow.cell(word)?;
        let record = Record {
            epoch: self.threads[self.running].clock[self.running],
            site: 0,
            thread: self.running as u16,
            mask: 0xff,
            kind: Kind::PlainWrite,
        };
        let other = self.shadow.check(cell, record, self.view())?;
        Some((word, other))
    }

    /// The running thread accesses `address` in the slot of `owner`, another thread.
    #[cold]
    pub(crate) fn enters_stack(&mut self, owner: usize, address: usize) -> Result<(), Problem> {
        if !self.exists(owner) || self.settings.stateful {
            return Ok(());
        }
        if self.view().knows_end(owner) || self.threads[owner].has_ended() {
            return Err(Problem::Ended(owner));
        }
        self.enters_slot(owner);
        let thread = &mut self.threads[owner];
        if (thread.slot.stack_low..thread.slot.stack_top).contains(&address) {
            if address < thread.stopped_at {
                return Err(Problem::Returned(owner));
            }
            thread.visible_stack = thread.visible_stack.min(address & !7);
        }
        let word = address & !7;
        if thread.foreign.last() != Some(&word) {
            thread.foreign.push(word);
        }
        Ok(())
    }

    /// A location outside of all stacks that was changed by something that nobody announced.
    pub(crate) fn unseen_change(&self) -> Option<Access> {
        if Protection::Comparison.is_off() {
            return None;
        }
        let lies = self.locations.all_touched().find(|entry| {
            entry.lies(self.run)
                && self
                    .check_address(entry.address, entry.width.into(), false)
                    .is_ok()
                && self.layout.stack_owner(entry.address).is_none()
        })?;
        debug_assert_eq!(lies.kind, LocationKind::Memory);
        Some(Access {
            address: lies.address,
            size: lies.width.into(),
            kind: Kind::PlainRead,
            site: current::site().0 as usize,
        })
    }
}
