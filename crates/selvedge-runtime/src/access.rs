//! What an access of the program comes to: invisible and harmless, an event, or a bug.

use selvedge_core::{Site, ThreadId};

use crate::arena::{HEAPS, LIVENESS, STACKS, pointer};
use crate::locations::Kind as LocationKind;
use crate::runtime::{Phase, Runtime};
use crate::settings::Plain;
use crate::shadow::{Kind, Record, View, words};
use crate::states;

/// The state of a word of heap: so many of its bytes may be accessed, or this.
pub(crate) const FREED: u8 = 0xff;

/// An access as the program makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    pub(crate) site: usize,
}

/// What is wrong with an access.
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
    /// What it accesses was changed by something that nobody announced.
    Unseen,
    /// It was announced and is nowhere to be found.
    Lost,
    /// It is a read in a loop that nothing can end.
    Endless,
    /// In a run where plain accesses are events, an access that is none conflicts with this one.
    Unordered(Record),
}

/// What is wrong with freeing something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeProblem {
    /// It does not come from the heap.
    NotHeap,
    /// No block begins there.
    NotStart,
    /// It was freed before, by this thread at this place if that is known.
    Twice(Option<(ThreadId, Site)>),
    /// Nothing orders this access before it.
    InUse(Record),
    /// What lies there was changed by something that nobody announced.
    Unseen(usize),
}

/// What to do with a plain access.
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
        if step == Step::Go && !self.silent.is_empty() {
            self.note_silent(access.site);
        }
        step
    }

    /// Notes that an access at `site` was no event.
    #[cold]
    fn note_silent(&mut self, site: usize) {
        let place = self.image.relative(site) as usize;
        if self.phase == Phase::Fiber
            && let Some(word) = self.silent.get_mut(place / 64)
        {
            *word |= 1 << (place % 64);
        }
    }

    #[inline(always)]
    fn judge_plain(&mut self, access: Access) -> Step {
        if self.phase != Phase::Fiber {
            return Step::Go;
        }
        if let Err(problem) = self.check_address(access.address, access.size) {
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
            self.writes_silently(access);
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
        if unsafe { (*cell).is_visible(self.run, mask, written) } {
            return self.visible_access(access);
        }
        let record = self.record_now(access, mask);
        self.undo.cell(cell, &self.shadow, self.run);
        let view = View {
            run: self.run,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        };
        match self.shadow.access(cell, record, view) {
            None => Step::Go,
            Some(other) => Step::Stop(Problem::Race(other)),
        }
    }

    /// What a plain access to visible bytes comes to.
    fn visible_access(&mut self, access: Access) -> Step {
        let width = access.size as u8;
        let (shadow, kind) = (&self.shadow, LocationKind::Memory);
        let location = self.locations.number(shadow, access.address, width, kind);
        match self.locations.is_alone(location, self.run) {
            true => Step::Event,
            false => Step::Parts,
        }
    }

    /// The same where every plain access to memory that others can reach is an event.
    fn plain_event(&mut self, access: Access) -> Step {
        if self.is_shared(access.address) {
            return Step::Event;
        }
        if access.kind.writes() {
            self.writes_silently(access);
        }
        Step::Go
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
    fn writes_silently(&mut self, access: Access) {
        self.undo.bytes(access.address, access.size);
        if self.on_own_stack(access.address) {
            for (word, mask) in words(access.address, access.size) {
                self.current().spin.rewrites(word, mask);
            }
        } else {
            self.current().spin.effect();
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

    /// Judges and notes a plain access to a range of bytes, which is no event, except on the visible
    /// locations inside of it: those are left in `parts`.
    pub(crate) fn range(&mut self, access: Access) -> Result<(), Problem> {
        self.parts.clear();
        if self.phase != Phase::Fiber || access.size == 0 {
            return Ok(());
        }
        self.check_address(access.address, access.size)?;
        self.passing(access.site);
        self.touches(access.address)?;
        let own = self.threads[self.running].slot.contains(access.address);
        if access.kind.writes() {
            self.writes_silently(access);
            if !own {
                self.current().published = true;
            }
        }
        if own && self.settings.plain == Plain::Sc && !self.threads[self.running].published {
            return Ok(());
        }
        for (word, mask) in words(access.address, access.size) {
            let Some(cell) = self.shadow.cell(word) else {
                continue;
            };
            self.plainly(cell, mask);
            // What is visible by now must happen before, like everything else that conflicts:
            // otherwise it would depend on the interleaving which bytes are.
            let record = self.record_now(access, mask);
            let view = self.view();
            if let Some(other) = self.shadow.check(cell, record, view) {
                return Err(self.unordered(other));
            }
            // SAFETY: cells are mapped while the program is loaded.
            if unsafe { (*cell).is_visible(self.run, mask, !access.kind.writes()) } {
                self.visible_parts(access, (word, mask))?;
            }
            self.undo.cell(cell, &self.shadow, self.run);
            let view = View {
                run: self.run,
                clock: &self.threads[self.running].clock,
                ends: &self.ends,
            };
            self.shadow.access(cell, record, view);
        }
        Ok(())
    }

    /// Adds the visible locations that have bytes in a word of a range to `parts`.
    fn visible_parts(&mut self, access: Access, (word, mask): (usize, u8)) -> Result<(), Problem> {
        // A location has up to sixteen bytes, so it begins at most two words earlier.
        for start in [word.wrapping_sub(16), word.wrapping_sub(8), word] {
            let Some(cell) = self.shadow.cell(start) else {
                continue;
            };
            for location in self.locations.touched(cell, self.run) {
                let entry = self.locations.entry(location);
                if entry.mask_in(word) & mask == 0 || self.parts.contains(&location) {
                    continue;
                }
                if entry.kind == LocationKind::Memory {
                    self.parts.push(location);
                } else if access.kind.writes() {
                    // Writing over an object begins a new life of it; reading one means nothing.
                    let inside = entry.address >= access.address
                        && entry.address + usize::from(entry.width) <= access.address + access.size;
                    if !inside {
                        return Err(Problem::Aggregate);
                    }
                    self.parts.push(location);
                }
            }
        }
        Ok(())
    }

    /// What the running thread knows.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            run: self.run,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        }
    }

    /// The problem of conflicting with `other` unordered.
    pub(crate) fn unordered(&self, other: Record) -> Problem {
        match self.settings.plain {
            Plain::Race => Problem::Race(other),
            Plain::Sc => Problem::Unordered(other),
        }
    }

    /// Judges and notes the initialisation of an object: an event if the object is in use.
    pub(crate) fn initialise(&mut self, access: Access) -> Step {
        if self.phase != Phase::Fiber {
            return Step::Go;
        }
        if self.settings.stateful {
            return self.plain(access);
        }
        let visible = words(access.address, access.size).any(|(word, mask)| {
            let cell = self.shadow.cell(word);
            // SAFETY: cells are mapped while the program is loaded.
            cell.is_some_and(|cell| unsafe { (*cell).is_visible(self.run, mask, false) })
        });
        if visible {
            return match self.check_address(access.address, access.size) {
                Ok(()) => Step::Event,
                Err(problem) => Step::Stop(problem),
            };
        }
        match self.range(access) {
            Ok(()) => Step::Go,
            Err(problem) => Step::Stop(problem),
        }
    }

    /// Frees the block at `address`, to which every earlier access has to be ordered.
    pub(crate) fn free(&mut self, address: usize, site: Site) -> Result<(), FreeProblem> {
        let Some(owner) = self.layout.heap_owner(address) else {
            return Err(FreeProblem::NotHeap);
        };
        let block = self
            .block_near(address)
            .filter(|block| block.start as usize == address);
        let Some(block) = block else {
            return Err(match liveness(address) {
                FREED => FreeProblem::Twice(None),
                _ => FreeProblem::NotStart,
            });
        };
        if block.freed.is_some() {
            return Err(FreeProblem::Twice(block.freed));
        }
        let by = (ThreadId(self.running as u32), site);
        self.passing(site.0 as usize);
        if self.settings.stateful && self.phase == Phase::Fiber {
            self.threads[owner].heap.give_back(address, by);
            self.states.changed(states::heap_of(owner));
            self.locations.forget_objects(address, block.size as usize);
            return Ok(());
        }
        if self.phase == Phase::Fiber {
            self.current().spin.effect();
            let access = Access {
                address,
                size: block.size as usize,
                kind: Kind::PlainWrite,
                site: site.0 as usize,
            };
            for (word, mask) in words(address, access.size) {
                let Some(cell) = self.shadow.cell(word) else {
                    continue;
                };
                let record = self.record_now(access, mask);
                let view = View {
                    run: self.run,
                    clock: &self.threads[self.running].clock,
                    ends: &self.ends,
                };
                if let Some(other) = self.shadow.check(cell, record, view) {
                    return Err(FreeProblem::InUse(other));
                }
                let mut inside = self.locations.touched(cell, self.run);
                let lie = inside.find(|&at| self.locations.entry(at).lies(self.run));
                if let Some(lie) = lie {
                    return Err(FreeProblem::Unseen(self.locations.entry(lie).address));
                }
            }
            let freed = address..address + access.size;
            if let Some(other) = self.access_ahead(freed) {
                return Err(FreeProblem::InUse(other));
            }
        }
        self.undo.frees(owner, address);
        self.threads[owner].heap.free(address, by);
        if self.phase == Phase::Fiber {
            self.frees_compared(address, block.size as usize);
            if self.settings.reuse_memory && !self.threads[owner].heap.is_from_boot(address) {
                let freed = (address, block.size as usize);
                self.current().reusable.push(freed);
            }
        }
        Ok(())
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

    /// Whether `size` bytes at `address` may be accessed, as far as the runtime knows.
    #[inline(always)]
    pub(crate) fn check_address(&self, address: usize, size: usize) -> Result<(), Problem> {
        let heap = address.wrapping_sub(HEAPS);
        if heap < self.heaps {
            let first = liveness(address);
            if size <= 8 && first == 8 && (address & 7) + size <= 8 {
                return Ok(());
            }
            return check_heap(address, size);
        }
        if self.is_on_stack(address) || self.image.whole.contains(address) {
            return Ok(());
        }
        self.check_outside(address)
    }

    /// Whether `address` lies in the area of stacks.
    #[inline(always)]
    pub(crate) fn is_on_stack(&self, address: usize) -> bool {
        address.wrapping_sub(STACKS) < self.stacks
    }

    /// Whether memory that is not the program's own may be accessed.
    #[cold]
    fn check_outside(&self, address: usize) -> Result<(), Problem> {
        let outside = self.outside.iter().any(|range| range.contains(address));
        match address {
            _ if outside || self.phase != Phase::Fiber => Ok(()),
            0..4096 => Err(Problem::Null),
            _ => Err(Problem::Wild),
        }
    }

    /// Whether `address` lies on the stack of the running thread.
    #[inline(always)]
    pub(crate) fn on_own_stack(&self, address: usize) -> bool {
        let slot = &self.threads[self.running].slot;
        address >= slot.stack_low && address < slot.stack_top
    }
}

/// The state of the word of heap that contains `address`.
#[inline(always)]
pub(crate) fn liveness(address: usize) -> u8 {
    // SAFETY: mapped for all of the heap while a program is loaded; callers checked the address.
    unsafe { pointer::<u8>(LIVENESS + ((address - HEAPS) >> 3)).read() }
}

fn check_heap(address: usize, size: usize) -> Result<(), Problem> {
    for (word, mask) in words(address, size) {
        let live = liveness(word);
        if live == FREED {
            return Err(Problem::Freed);
        }
        let accessible = (0xff_u16 >> (8 - u16::from(live.min(8)))) as u8;
        if mask & !accessible != 0 {
            return Err(Problem::Overflow);
        }
    }
    Ok(())
}
