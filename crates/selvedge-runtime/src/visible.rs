//! Visible operations: what happens when a thread arrives at one and when it is performed.

use selvedge_core::objects::{FREE, ObjectFunction, was_woken};
use selvedge_core::{Function, Location, MemoryOrder, Op, Outcome, Pending, Value};

use crate::access::{Access, Problem};
use crate::gate::gate;
use crate::locations::Kind as LocationKind;
use crate::memory;
use crate::protection::Protection;
use crate::runtime::Runtime;
use crate::settings::Plain;
use crate::shadow::{Kind, Record};
use crate::spin::Point;

/// Why a thread does not get to its operation.
pub(crate) enum Obstacle {
    /// The access is wrong.
    Problem(Problem, Access),
    /// It was here before in the same state; its iteration began at this event.
    Spinning(u32),
    /// It is in a round of a loop that the user does not allow.
    Unrolled,
    /// Memory holds something else than what the runtime let into it.
    Unseen(Access),
}

/// A write that completes a performed operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) address: usize,
    pub(crate) width: u8,
    pub(crate) value: Value,
    /// Whether other locations have some of these bytes.
    pub(crate) overlapped: bool,
}

impl Runtime {
    /// The running thread is about to perform `op`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, op: &Op, site: usize) -> Result<(), Obstacle> {
        self.current().spin.visible();
        if let Some(location) = op.location() {
            let entry = self.locations.entry(location);
            let writes = !matches!(op, Op::Load { .. });
            if let Err(problem) = self.check_address(entry.address, entry.width.into(), writes) {
                let access = self.access_of(op, Outcome::default(), site);
                return Err(Obstacle::Problem(problem, access));
            }
            // A bad address must fault here, in the thread that uses it.
            let _ = memory::read(entry.address, 1);
            // Where states are kept, memory is compared after every step.
            if !Protection::Comparison.is_off()
                && self.locations.lies(location, self.run)
                && !self.settings.stateful
            {
                let access = self.access_of(op, Outcome::default(), site);
                return Err(Obstacle::Unseen(access));
            }
        }
        if self.settings.stateful {
            self.enter_operation(op);
            return Ok(());
        }
        let Some(point) = self.entry_point() else {
            return Ok(());
        };
        let running = self.running;
        let thread = &mut self.threads[running];
        let count = thread.visits.count(point.site, point.stack_pointer);
        let place = (point.site, point.stack_pointer);
        self.hottest.note(point.site, count, &thread.frames);
        if self.parking && matches!(op, Op::Load { .. } | Op::Update { .. }) {
            let events = thread.clock[running];
            if let Some(since) = thread.spin.arrive(&point, op, events, &mut self.liveness) {
                thread.visits.take_back(point.site, point.stack_pointer);
                if thread.spin.has_locked_since(since) {
                    self.facts.rely_on_locks();
                }
                self.forget_rounds(since);
                return Err(Obstacle::Spinning(since));
            }
        }
        if thread.retry.is_watched() {
            let state = thread.spin.state(&point, op, &mut self.liveness);
            thread.retry.arrive(state);
        }
        self.undo.visits(running, place);
        if self.settings.unroll.is_set() && self.is_round_too_many(point.stack_pointer) {
            return Err(Obstacle::Unrolled);
        }
        Ok(())
    }

    /// Where the running thread entered the runtime, if this is the first operation since.
    #[inline(always)]
    pub(crate) fn entry_point(&self) -> Option<Point> {
        // SAFETY: the gate is mapped while a program is loaded.
        let gate = unsafe { &*gate() };
        (gate.stack_pointer != 0).then(|| Point {
            site: gate.site,
            stack_pointer: gate.stack_pointer,
            stack_top: self.threads[self.running].slot.stack_top,
            registers: gate.registers,
        })
    }

    /// The running thread's pending operation was performed with `outcome`. Returns what is left to
    /// be written to memory.
    #[inline(always)]
    pub(crate) fn performed(
        &mut self,
        op: &Op,
        outcome: Outcome,
        site: usize,
    ) -> Result<Option<Write>, (Problem, Access)> {
        if self.settings.stateful {
            let performed = self.performed_in_state(op, outcome);
            return performed.map_err(|problem| (problem, self.access_of(op, outcome, site)));
        }
        let (location, order, wrote) = match *op {
            Op::Load { at, order } => (at, order, None),
            Op::Store { at, value, order } => (at, order, Some(value)),
            Op::Update { at, order, .. } => (at, order, outcome.wrote),
            Op::Fence { .. } => return Ok(None),
            Op::Join { child } => {
                self.joined(child.index());
                self.current().spin.effect();
                return Ok(None);
            }
            Op::JoinAll => {
                (0..self.threads.len()).for_each(|child| self.joined(child));
                return Ok(None);
            }
            Op::Create { .. } | Op::Choose { .. } => {
                self.current().spin.effect();
                return Ok(None);
            }
        };
        let kind = match (self.is_plain(order), wrote) {
            (true, None) => Kind::PlainRead,
            (true, Some(_)) => Kind::PlainWrite,
            (false, None) => Kind::AtomicRead,
            (false, Some(_)) => Kind::AtomicWrite,
        };
        if leaves_behind(op) {
            return Ok(None);
        }
        self.note(location, kind, site).map_err(|problem| {
            let access = self.access_of(op, outcome, site);
            (problem, access)
        })?;
        let Some(value) = wrote else { return Ok(None) };
        let entry = self.locations.entry(location);
        let (address, width) = (entry.address, entry.width);
        let memory = entry.kind == LocationKind::Memory;
        let whole = self.locations.whole(location);
        let overlapped = self.locations.entry(whole).is_overlapped(self.run);
        if self.settings.check_leaks && self.layout.heap_owner(value as usize).is_some() {
            self.written_addresses.push(value as usize);
        }
        if memory {
            self.undo.bytes(address, width.into());
            self.overwrites(address, width.into());
            self.locations.holds(location, value);
        }
        let lock = match self.settings.watch_locks && !memory && !self.facts.locks_are_tried() {
            true => takes_or_gives_back(op),
            false => 0,
        };
        let index = self.running;
        let thread = self.current();
        if lock != 0 {
            let event = thread.clock[index];
            thread.spin.locks(location, lock, event);
        }
        // A write of the present value changes nothing, as a failed test-and-set does.
        let lasts = match *op {
            Op::Update { function, .. } if lock != 0 => is_woken(function, outcome.read),
            Op::Update { .. } => outcome.read != value,
            _ => lock == 0,
        };
        if lasts {
            thread.spin.effect();
        }
        if width == 8 && thread.slot.contains(value as usize) {
            thread.published = true;
        }
        Ok(memory.then_some(Write {
            address,
            width,
            value,
            overlapped,
        }))
    }

    /// Checks and notes an event on `location`.
    #[inline(always)]
    fn note(&mut self, location: Location, kind: Kind, site: usize) -> Result<(), Problem> {
        self.passing(site);
        let entry = self.locations.entry(location);
        let (address, width) = (entry.address, entry.width);
        let whole = self.locations.whole(location);
        let new = self.locations.entry(whole).is_new(self.run);
        // A race is told first: it is one in every order.
        let late = self.enters(address);
        self.check_address(address, width.into(), kind.writes())?;
        if new && (self.is_on_stack(address) || self.current().open_range.is_some()) {
            self.begins_life(whole);
        }
        for (cell, _) in self.locations.entry(whole).cells() {
            self.undo.cell(cell, &self.shadow, self.run);
        }
        self.locations.perform(location, self.run, kind.writes());
        if self.locations.entry(whole).is_overlapped(self.run) {
            self.check_mixed(location, site)?;
        }
        let cells = self.locations.entry(location).cells();
        let epoch = self.threads[self.running].clock[self.running].wrapping_sub(1);
        for (cell, mask) in cells {
            let record = Record {
                epoch,
                site: self.image.relative(site),
                thread: self.running as u16,
                mask,
                kind,
            };
            if let Some(other) = self.note_access(cell, record) {
                return Err(self.unordered(other));
            }
        }
        late
    }

    /// Accesses of different extents to the same bytes are events of their own, so they must not
    /// compete: all earlier ones have to happen before.
    #[cold]
    fn check_mixed(&mut self, location: Location, site: usize) -> Result<(), Problem> {
        for (cell, mask) in self.locations.entry(location).cells() {
            let record = Record {
                epoch: self.threads[self.running].clock[self.running],
                site: self.image.relative(site),
                thread: self.running as u16,
                mask,
                kind: Kind::PlainWrite,
            };
            if let Some(other) = self.shadow.check(cell, record, self.view()) {
                let union = self.locations.union(location);
                self.overlooked.mixed = union.map(|place| self.extent(place));
                return Err(Problem::Mixed(other));
            }
        }
        Ok(())
    }

    /// An access to `range` that another thread is stopped before: it will come after what the
    /// running thread does now, whatever the explorer decides.
    pub(crate) fn access_ahead(&self, range: std::ops::Range<usize>) -> Option<Record> {
        self.started.iter().find_map(|&index| {
            let thread = &self.threads[index as usize];
            let Pending::Op(op) = thread.pending else {
                return None;
            };
            op.location()?;
            let access = self.access_of(&op, Outcome::default(), thread.site);
            let concerned = index as usize != self.running
                && range.contains(&access.address)
                && !leaves_behind(&op);
            concerned.then(|| Record {
                epoch: thread.clock[index as usize],
                site: self.image.relative(thread.site),
                thread: index as u16,
                mask: (0xff_u16 >> (8 - access.size.min(8))) as u8,
                kind: access.kind,
            })
        })
    }

    /// Whether an event of this order takes part in races like a plain access.
    fn is_plain(&self, order: MemoryOrder) -> bool {
        order == MemoryOrder::Plain && self.settings.plain == Plain::Race
    }

    /// An event as an access, for reports.
    #[cold]
    fn access_of(&self, op: &Op, outcome: Outcome, site: usize) -> Access {
        let location = op.location().unwrap_or(Location(0));
        let entry = self.locations.entry(location);
        let (plain, writes) = match *op {
            Op::Load { order, .. } => (order == MemoryOrder::Plain, false),
            Op::Store { order, .. } => (order == MemoryOrder::Plain, true),
            _ => (false, outcome.wrote.is_some()),
        };
        let kind = match (plain, writes) {
            (true, false) => Kind::PlainRead,
            (true, true) => Kind::PlainWrite,
            (false, false) => Kind::AtomicRead,
            (false, true) => Kind::AtomicWrite,
        };
        Access {
            address: entry.address,
            size: entry.width.into(),
            kind,
            site,
        }
    }
}

/// One if `op` takes a mutex, or a place among those that wait on a condition variable; minus one if it gives that
/// back.
fn takes_or_gives_back(op: &Op) -> i64 {
    use ObjectFunction::{ConditionAwait, ConditionEnqueue, ConditionLeave, MutexLock};
    match *op {
        Op::Update {
            function: Function::Object(function),
            ..
        } => match function {
            MutexLock { .. } | ConditionEnqueue => 1,
            ConditionAwait { .. } | ConditionLeave { .. } => -1,
            _ => 0,
        },
        Op::Store { value: FREE, .. } => -1,
        _ => 0,
    }
}

/// Whether a thread that waits on a condition variable in state `value` goes on because it was woken.
fn is_woken(function: Function, value: Value) -> bool {
    use ObjectFunction::{ConditionAwait, ConditionLeave};
    match function {
        Function::Object(ConditionAwait { slot } | ConditionLeave { slot }) => {
            was_woken(value, slot)
        }
        _ => false,
    }
}

/// Whether the operation is on an object that may be gone by then: a barrier may be destroyed and
/// freed as soon as it has opened, before everybody has left it.
pub(crate) fn leaves_behind(op: &Op) -> bool {
    matches!(
        op,
        Op::Update {
            function: Function::Object(ObjectFunction::BarrierAwait { .. }),
            ..
        }
    )
}
