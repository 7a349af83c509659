//! Classifies the accesses of the program: invisible and harmless, an event, or a bug.

mod address;
mod free;
mod range;

use crate::locations::Kind as LocationKind;
use crate::protection::Protection;
use crate::runtime::{Phase, Runtime};
use crate::settings::Plain;
use crate::shadow::{Cell, Kind, Record, View, words};
pub(crate) use address::{FREED, liveness};
pub(crate) use free::FreeProblem;

/// An access as the program makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    pub(crate) site: usize,
}

/// The problem of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It goes through a null pointer.
    Null,
    /// It goes to memory that is not the program's.
    Wild,
    /// It touches the stack of this thread, which has ended.
    Ended(usize),
    /// It touches the stack of this thread where that has returned from a function.
    Returned(usize),
    /// It is the end of a variable, and nothing orders this access before it.
    InUse(Record),
    /// It touches a freed block.
    Freed,
    /// It touches heap that belongs to no block.
    Overflow,
    /// It races with this one.
    Race(Record),
    /// It covers, as a whole, bytes that are also accessed as scalars by visible operations.
    Aggregate,
    /// It overlaps a visible location of another extent, and nothing orders it after this access.
    Mixed(Record),
    /// The memory was changed by something that nobody announced.
    Unseen,
    /// It was announced and is nowhere to be found.
    Lost,
    /// It is a read in a loop that nothing can end.
    Endless,
    /// In a run where plain accesses are events, an access that is none conflicts with this one.
    Unordered(Record),
}

/// The way on after a plain access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: it is invisible.
    Go,
    /// It is an event.
    Event,
    /// It overlaps visible locations of other extents: each of them is accessed by an event.
    Parts,
    /// It is wrong.
    Stop(Problem),
}

impl Runtime {
    /// Judges a plain scalar access that is about to be made.
    #[inline(always)]
    pub(crate) fn plain(&mut self, access: Access) -> Step {
        let step = self.judge_plain(access);
        if step == Step::Go && !self.eventless.is_empty() {
            self.note_eventless(access.site);
        } else if step == Step::Parts {
            self.note_parts(access.site);
        }
        step
    }

    /// Notes that an access at `site` was no event.
    #[cold]
    fn note_eventless(&mut self, site: usize) {
        let place = self.image.relative(site) as usize;
        if self.phase == Phase::Fiber
            && let Some(word) = self.eventless.get_mut(place / 64)
        {
            *word |= 1 << (place % 64);
        }
    }

    /// Notes that an access at `site` is several events, if that is recorded.
    #[cold]
    pub(crate) fn note_parts(&mut self, site: usize) {
        let place = self.image.relative(site) as usize;
        if let Some(word) = self.parted.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    #[inline(always)]
    fn judge_plain(&mut self, access: Access) -> Step {
        if self.phase != Phase::Fiber {
            return self
                .check_early(access)
                .map_or_else(Step::Stop, |()| Step::Go);
        }
        let writes = access.kind.writes();
        if let Err(problem) = self.check_address(access.address, access.size, writes) {
            return Step::Stop(problem);
        }
        self.passing(access.site);
        // A race is told first: it is one in every order.
        let late = self.touches(access.address);
        if self.settings.stateful {
            self.look_at_given();
        }
        if self.settings.plain == Plain::Sc || self.settings.stateful {
            return late.map_or_else(Step::Stop, |()| self.plain_event(access));
        }
        let run = self.run;
        let word = access.address & !7;
        if access.address + access.size <= word + 8 {
            let mask = (((1_u16 << access.size) - 1) << (access.address & 7)) as u8;
            match self.plain_word(access, word, mask) {
                Step::Go => {}
                step => return step,
            }
        } else {
            for (word, mask) in words(access.address, access.size) {
                match self.plain_word(access, word, mask) {
                    Step::Go => {}
                    step => return step,
                }
            }
        }
        debug_assert_eq!(run, self.run);
        if let Err(problem) = late {
            return Step::Stop(problem);
        }
        if access.kind.writes() {
            self.writes_without_event(access);
        } else if self.current().spin.idles() && self.is_endless(access.address) {
            return Step::Stop(Problem::Endless);
        }
        Step::Go
    }

    #[inline(always)]
    fn plain_word(&mut self, access: Access, word: usize, mask: u8) -> Step {
        let Some(cell) = self.shadow.cell(word) else {
            return Step::Go;
        };
        self.plainly(cell, mask);
        // A write must be ordered among all visible operations; a read matters only where one of
        // them wrote. Either way what was there before happens before, or it is a race: so the
        // answer does not depend on the interleaving.
        let written = !access.kind.writes();
        // SAFETY: cells are mapped while the program is loaded.
        let visible = unsafe { (*cell).may_be_visible(self.run, mask, written) };
        let record = self.record_now(access, mask);
        if visible {
            // The event itself could not tell: where every read synchronises with what it reads, it
            // would be ordered after the write that it races with.
            return match self.shadow.check(cell, record, self.view()) {
                None => self.visible_access(access),
                Some(other) => Step::Stop(Problem::Race(other)),
            };
        }
        self.undo.cell(cell, &self.shadow, self.run);
        match self.note_access(cell, record) {
            None => Step::Go,
            Some(other) => Step::Stop(Problem::Race(other)),
        }
    }

    /// The result of a plain access to visible bytes.
    fn visible_access(&mut self, access: Access) -> Step {
        let width = access.size as u8;
        let (shadow, kind) = (&self.shadow, LocationKind::Memory);
        let location = self.locations.number(shadow, access.address, width, kind);
        match self.locations.is_one_event(location, self.run) {
            true => Step::Event,
            false if Protection::Sizes.is_off() => Step::Go,
            false => Step::Parts,
        }
    }

    /// The same where every plain access to memory that others can reach is an event.
    fn plain_event(&mut self, access: Access) -> Step {
        if self.is_shared(access.address) {
            return Step::Event;
        }
        if access.kind.writes() {
            // On its own stack, the thread is taken at its word by what memory holds.
            if !self.on_own_stack(access.address)
                && !self.settings.stateful
                && self.has_visible_bytes(access.address, access.size)
            {
                return self.visible_access(access);
            }
            self.writes_without_event(access);
            self.wrote(access.address, access.size);
        }
        Step::Go
    }

    /// Whether visible operations have accessed some of these bytes.
    pub(crate) fn has_visible_bytes(&self, address: usize, size: usize) -> bool {
        words(address, size).any(|(word, mask)| {
            let cell = self.shadow.cell(word);
            // SAFETY: cells are mapped while the program is loaded.
            cell.is_some_and(|cell| unsafe { (*cell).is_visible(self.run, mask, false) })
        })
    }

    /// Whether the running thread, which reads `address`, will do nothing else any more.
    #[cold]
    fn is_endless(&mut self, address: usize) -> bool {
        let Some(point) = self.entry_point() else {
            return false;
        };
        let spin = &mut self.threads[self.running].spin;
        spin.endless(&point, address, &mut self.liveness)
    }

    /// The running thread writes by an access that is no event.
    #[inline(always)]
    fn writes_without_event(&mut self, access: Access) {
        self.undo.bytes(access.address, access.size);
        if self.on_own_stack(access.address) {
            for (word, mask) in words(access.address, access.size) {
                self.current().spin.rewrites(word, mask);
            }
        } else {
            self.current().spin.writes();
            self.overwrites(access.address, access.size);
        }
    }

    /// These bytes, which may lie on a stack, are about to be written by another thread than that
    /// stack's or by a visible operation.
    #[inline(always)]
    pub(crate) fn overwrites(&mut self, address: usize, size: usize) {
        if let Some(owner) = self.layout.stack_owner(address)
            && owner < self.threads.len()
        {
            self.overwrites_stack(owner);
            let thread = &mut self.threads[owner];
            for (word, mask) in words(address, size) {
                if (thread.slot.stack_low..thread.slot.stack_top).contains(&word) {
                    thread.spin.overwrites(word, mask);
                }
            }
        }
    }

    /// Whether other threads can reach what lies at `address`.
    pub(crate) fn is_shared(&self, address: usize) -> bool {
        let thread = &self.threads[self.running];
        if thread.slot.contains(address) {
            thread.published
        } else {
            self.shadow.cell(address).is_some() && !self.image.is_constant(address)
        }
    }

    /// The view of the running thread.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            run: self.run,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        }
    }

    /// Notes an access of the running thread, and returns an earlier one that it races with.
    #[inline(always)]
    pub(crate) fn note_access(&mut self, cell: *mut Cell, record: Record) -> Option<Record> {
        let view = View {
            run: self.run,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        };
        self.shadow.access(cell, record, view)
    }

    /// The problem of conflicting with `other` unordered.
    pub(crate) fn unordered(&self, other: Record) -> Problem {
        match self.settings.plain {
            Plain::Race => Problem::Race(other),
            Plain::Sc => Problem::Unordered(other),
        }
    }

    /// The record of an access between two events of the running thread.
    #[inline(always)]
    fn record_now(&self, access: Access, mask: u8) -> Record {
        Record {
            epoch: self.threads[self.running].clock[self.running],
            site: self.image.relative(access.site),
            thread: self.running as u16,
            mask,
            kind: access.kind,
        }
    }
}
