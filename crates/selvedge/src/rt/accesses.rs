//! What a thread does between two of its events.

use std::alloc::Layout;

use selvedge_core::{Failure, Location, Site, Value};

use super::memory::{Freed, Name};
use super::race::{Access, CellId, Ended, Kind, LASTING, Race, View};
use super::state::State;

impl State {
    pub(super) fn view(&self) -> View<'_> {
        View {
            thread: self.running as u32,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        }
    }

    /// What the running thread does now, between two of its events.
    pub(super) fn access(&self, site: Site) -> Access {
        Access {
            thread: self.running as u32,
            epoch: self.threads[self.running].counted(self.running),
            site,
        }
    }

    pub(super) fn joined(&mut self, child: usize) {
        let by = self.running;
        let at = self.threads[by].counted(by).wrapping_sub(1);
        let events = self.threads[child].counted(child);
        if self.ends[child].events == u32::MAX {
            self.ends[child] = Ended {
                events,
                by: by as u32,
                at,
            };
        }
    }

    /// An access to an atomic that is not atomic. What it holds, if that is certain.
    pub(crate) fn plain_access(
        &mut self,
        at: Location,
        kind: Kind,
        site: Site,
    ) -> Result<Option<Value>, Failure> {
        let access = self.access(site);
        let view = View {
            thread: self.running as u32,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        };
        let place = &mut self.places[at.index()];
        match place.plain(kind, access, &view) {
            None => Ok(place.settled()),
            Some((other, other_kind)) => {
                let message = format!(
                    "a {} of an {} that is not atomic races with another access",
                    kind.noun(),
                    place.what
                );
                Err(self.race(message, site, &other, other_kind))
            }
        }
    }

    /// A new cell.
    pub(super) fn create_cell(&mut self, site: Site) -> CellId {
        let index = self.cells.len() as u32;
        let mut race = Race::default();
        race.note(Kind::Write, self.access(site));
        self.cells.push(race);
        CellId {
            stamp: self.stamp(),
            index,
        }
    }

    /// An access to a cell begins, which lasts until it is said to end.
    pub(super) fn begin_access(
        &mut self,
        cell: CellId,
        kind: Kind,
        site: Site,
    ) -> Result<(), Failure> {
        let spin = &mut self.current().spin;
        match kind {
            Kind::Write => spin.effect(),
            Kind::Read => spin.touched = true,
        }
        spin.open += 1;
        let access = Access {
            epoch: LASTING,
            ..self.access(site)
        };
        let race = &self.cells[cell.index as usize];
        if let Some((other, other_kind)) = race.clash(kind, &self.view()) {
            let message = if other.thread == access.thread {
                format!(
                    "a {} of an UnsafeCell while a {} of it by the same thread is not over",
                    kind.noun(),
                    other_kind.noun()
                )
            } else {
                format!(
                    "a {} and a {} of an UnsafeCell are not ordered",
                    kind.noun(),
                    other_kind.noun()
                )
            };
            return Err(self.race(message, site, &other, other_kind));
        }
        self.cells[cell.index as usize].note(kind, access);
        Ok(())
    }

    /// A lasting access to a cell ends.
    pub(super) fn end_access(&mut self, cell: CellId, kind: Kind) {
        if cell.stamp == self.stamp() {
            let spin = &mut self.current().spin;
            spin.open = spin.open.saturating_sub(1);
            let epoch = self.threads[self.running].counted(self.running);
            self.cells[cell.index as usize].end(kind, self.running as u32, epoch);
        }
    }

    /// The running thread allocates a block; null if there is no memory for it.
    pub(super) fn allocate(&mut self, layout: Layout) -> usize {
        let running = self.running;
        self.threads[running].spin.effect();
        if self.limits.liberties.reuse
            && let Some(address) = self.memory.reused(self.running(), layout)
        {
            return address;
        }
        let thread = &mut self.threads[running];
        let size = layout.size();
        let known = thread.sizes.iter_mut().find(|known| known.0 == size);
        let ordinal = match known {
            Some(known) => {
                known.1 += 1;
                known.1
            }
            None => {
                thread.sizes.push((size, 0));
                0
            }
        };
        let name = Name {
            thread: running as u32,
            events: thread.counted(running),
            size,
            ordinal,
        };
        self.memory.allocate(layout, name)
    }

    pub(super) fn freed(&mut self, address: usize) -> Freed {
        let by = self.running();
        let thread = self.current();
        thread.spin.effect();
        let site = thread.site;
        self.memory.freed(address, by, site)
    }

    /// The value that stands for `address` in atomics.
    pub(crate) fn value_of(&mut self, address: usize) -> Value {
        self.memory.value_of(address)
    }

    /// The address that `value` stands for.
    pub(crate) fn address_of(&self, value: Value) -> usize {
        self.memory.address_of(value)
    }
}
