//! The plain accesses of a thread between two of its events.

use std::alloc::Layout;

use selvedge_core::{Failure, FailureKind, Location, Site, ThreadEnd, Value};

use super::block::Name;
use super::gone::{End, Handle};
use super::memory::Freed;
use super::race::{Access, AccessKind, CellId, CellState, LASTING, Race, View};
use super::state::State;

/// In so many executions no access at all to freed memory is possible, unless that is asked for in all. In others,
/// those by the types of the interface and writes are noticed.
pub(crate) const PROTECTED_RUNS: u32 = 256;

impl State {
    pub(super) fn view(&self) -> View<'_> {
        View::of(self.running, &self.threads, &self.ends)
    }

    /// An access of the running thread now, between two of its events.
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
        if !self.ends[child].is_awaited() {
            self.ends[child] = ThreadEnd::awaited(events, by as u32, at);
        }
    }

    /// An access to an atomic that is not atomic. What it holds, if that is certain.
    pub(crate) fn plain_access(
        &mut self,
        at: Location,
        kind: AccessKind,
        site: Site,
    ) -> Result<Option<Value>, Failure> {
        let access = self.access(site);
        let view = View::of(self.running, &self.threads, &self.ends);
        let place = &mut self.places[at.index()];
        if let Some(gone) = place.gone {
            let what = place.what;
            return Err(self.use_of_gone(what, &gone, site));
        }
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
    pub(super) fn create_cell(&mut self, site: Site) -> Handle {
        let index = self.cells.len() as u32;
        let mut race = Race::default();
        race.note(AccessKind::Write, self.access(site));
        self.cells.push(CellState { race, gone: None });
        Handle::of_cell(CellId {
            stamp: self.stamp(),
            index,
        })
    }

    /// An access to a cell begins, which lasts until it is said to end.
    pub(super) fn begin_access(
        &mut self,
        cell: CellId,
        kind: AccessKind,
        site: Site,
    ) -> Result<(), Failure> {
        let spin = &mut self.current().spin;
        match kind {
            AccessKind::Write => spin.effect(),
            AccessKind::Read => spin.touched = true,
        }
        spin.open += 1;
        let access = Access {
            epoch: LASTING,
            ..self.access(site)
        };
        let known = &self.cells[cell.index as usize];
        if let Some(gone) = &known.gone {
            return Err(self.use_of_gone("UnsafeCell", gone, site));
        }
        if let Some((other, other_kind)) = known.race.clash(kind, &self.view()) {
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
        self.cells[cell.index as usize].race.note(kind, access);
        Ok(())
    }

    /// A lasting access to a cell ends.
    pub(super) fn end_access(&mut self, cell: CellId, kind: AccessKind) -> Result<(), Failure> {
        if cell.stamp != self.stamp() {
            return Ok(());
        }
        let spin = &mut self.current().spin;
        spin.open = spin.open.saturating_sub(1);
        let epoch = self.threads[self.running].counted(self.running);
        let known = &mut self.cells[cell.index as usize];
        known.race.end(kind, self.running as u32, epoch);
        // A thread may end a cell while it has a pointer to it that it does not use any more.
        let gone = known.gone;
        match gone {
            Some(gone) if !self.ended_itself(&gone) => {
                let site = self.threads[self.running].site;
                Err(self.use_of_gone("UnsafeCell", &gone, site))
            }
            _ => Ok(()),
        }
    }

    /// The running thread allocates a block; null if there is no memory for it.
    pub(super) fn allocate(&mut self, layout: Layout) -> usize {
        let running = self.running;
        self.threads[running].spin.effect();
        if self.limits.spurious.reuse
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

    pub(super) fn freed(&mut self, address: usize, last_owner: bool) -> Result<Freed, Failure> {
        self.current().spin.effect();
        let site = self.threads[self.running].ending;
        if let Some(size) = self.memory.size_of(address) {
            self.end_block(address, size, last_owner)?;
        }
        self.current().ending = site;
        let thread = self.running();
        let (site, when) = self.ending();
        let protects = self.eager
            || self.protects_always
            || self.limits.protects
            || self.run <= PROTECTED_RUNS;
        let end = End { thread, site, when };
        let freed = self.memory.freed(address, end, protects);
        self.unprotected |= matches!(
            freed,
            Freed::HeldBack {
                is_protected: false
            }
        );
        Ok(freed)
    }

    /// The running thread stops: notices whether it wrote to freed memory, if that is looked for.
    pub(super) fn check_freed(&mut self) {
        if !self.eager || self.failure.is_some() {
            return;
        }
        let Some(freed) = self.memory.overwritten() else {
            return;
        };
        let failure = Failure {
            kind: FailureKind::UseAfterFree,
            message: "a write to a block of the heap that was freed, after the operation"
                .to_owned(),
            thread: self.running(),
            site: self.threads[self.running].site,
            other: Some(freed.describe("free")),
        };
        self.fail_late(failure);
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
