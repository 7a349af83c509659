//! Accesses to ranges of bytes: structures, arrays, objects.

use super::{Access, Problem, Step};
use crate::locations::Kind as LocationKind;
use crate::protection::Protection;
use crate::runtime::{Phase, Runtime};
use crate::settings::Plain;
use crate::shadow::words;

impl Runtime {
    /// Judges and notes a plain access to a range of bytes, which is no event, except on the visible
    /// locations inside of it: those are left in `parts`.
    pub(crate) fn range(&mut self, access: Access) -> Result<(), Problem> {
        self.parts.clear();
        if self.phase != Phase::Fiber || access.size == 0 {
            return self.check_early(access);
        }
        self.check_address(access.address, access.size, access.kind.writes())?;
        self.passing(access.site);
        self.touches(access.address)?;
        let own = self.threads[self.running].slot.contains(access.address);
        if access.kind.writes() {
            self.writes_without_event(access);
            if !own {
                self.current().published = true;
            }
        }
        let alone = self.on_own_stack(access.address) && !self.threads[self.running].published;
        if alone && self.settings.plain == Plain::Sc {
            return Ok(());
        }
        for (word, mask) in words(access.address, access.size) {
            let Some(cell) = self.shadow.cell(word) else {
                continue;
            };
            self.plainly(cell, mask);
            // Accesses to bytes that are visible by now must happen before, like all other
            // conflicting accesses: otherwise the set of visible bytes would depend on the
            // interleaving.
            let record = self.record_now(access, mask);
            let view = self.view();
            if let Some(other) = self.shadow.check(cell, record, view) {
                return Err(self.unordered(other));
            }
            // SAFETY: cells are mapped while the program is loaded.
            let visible = unsafe { (*cell).may_be_visible(self.run, mask, !access.kind.writes()) };
            if visible && !Protection::Sizes.is_off() {
                self.visible_parts(access, (word, mask))?;
            }
            self.undo.cell(cell, &self.shadow, self.run);
            self.note_access(cell, record);
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

    /// Judges and notes the initialisation of an object: an event if the object is in use.
    pub(crate) fn initialise(&mut self, access: Access) -> Step {
        if self.phase != Phase::Fiber {
            return self
                .check_early(access)
                .map_or_else(Step::Stop, |()| Step::Go);
        }
        if self.settings.stateful {
            return self.plain(access);
        }
        if self.has_visible_bytes(access.address, access.size) {
            return match self.check_address(access.address, access.size, true) {
                Ok(()) => Step::Event,
                Err(problem) => Step::Stop(problem),
            };
        }
        match self.range(access) {
            Ok(()) => Step::Go,
            Err(problem) => Step::Stop(problem),
        }
    }
}
