//! Operations in searches over states: the call that a thread is stopped in, its next step, and the
//! changes that the step makes.

use selvedge_core::fingerprint::Fingerprint;
use selvedge_core::{Effect, MemoryOrder, Op, Outcome, Pending, PendingAccess, Site, Width};

use super::Call;
use crate::abi;
use crate::access::{Access, Problem};
use crate::arena::pointer;
use crate::current;
use crate::gate::{self, gate};
use crate::locations::Kind as LocationKind;
use crate::memory;
use crate::problem::report;
use crate::runtime::{Runtime, with};
use crate::shadow::Kind;
use crate::tsan::plain::By;
use crate::visible::{Write, leaves_behind};

/// Stops before memory is freed, like an access to all of it.
pub(crate) fn announce_free(access: Access) {
    with(|runtime| runtime.current().call.frees = true);
    announce(access);
    with(|runtime| runtime.current().call.frees = false);
}

/// Stops before an access to shared memory that is made when the thread goes on.
pub(crate) fn announce(access: Access) {
    let width = match access.size {
        0 => return,
        1 => 1,
        2 | 3 => 2,
        4..8 => 4,
        8..16 => 8,
        _ => 16,
    };
    let at = current::location(access.address, Width(width));
    let order = match access.kind {
        Kind::PlainRead | Kind::PlainWrite => MemoryOrder::Plain,
        Kind::AtomicRead | Kind::AtomicWrite => MemoryOrder::Relaxed,
    };
    let op = match access.kind.writes() {
        true => Op::Store {
            at,
            value: 0,
            order,
        },
        false => Op::Load { at, order },
    };
    with(|runtime| runtime.current().call.extent = access.size);
    current::pause(&op, &op, Site(access.site as u64));
    let checked = with(|runtime| {
        let thread = runtime.current();
        thread.call.extent = 0;
        if access.kind.writes() {
            // The value that is written is not known yet: it may be an address on the thread's
            // stack.
            thread.call.given = (access.address, access.size);
            runtime.writes(access.address, access.size);
        }
        if runtime.current().call.frees {
            return Ok(());
        }
        // Others may have freed it meanwhile.
        runtime
            .check_address(access.address, access.size, access.kind.writes())
            .and_then(|()| runtime.check_owner(access.address))
    });
    if let Err(problem) = checked {
        report(problem, access);
    }
}

/// The running thread has made a store that it announced, perhaps before it was stopped last: gcc
/// announces both sides of a structure's copy first.
pub(crate) fn stored(address: usize, size: usize) {
    with(|runtime| {
        runtime.current().call.given = (address, size);
        runtime.look_at_given();
        runtime.writes(address, size);
    });
}

/// Stops before an access to a range of bytes, if others can reach it.
pub(crate) fn range(access: Access, by: By) {
    if access.size == 0 {
        return;
    }
    let writes = access.kind.writes();
    if let Err(problem) = with(|runtime| runtime.check_address(access.address, access.size, writes))
    {
        report(problem, access);
    }
    with(Runtime::look_at_given);
    if !with(|runtime| runtime.is_shared(access.address)) {
        if writes {
            with(|runtime| runtime.wrote(access.address, access.size));
        }
        return;
    }
    with(|runtime| {
        let thread = runtime.current();
        thread.published |= access.kind.writes() && !thread.slot.contains(access.address);
    });
    // The bytes that a library function has read already must be unchanged.
    let seen = (by == By::Library && !access.kind.writes()).then(|| contents(access));
    announce(access);
    if seen.is_some_and(|seen| seen != contents(access)) {
        report(Problem::Aggregate, access);
    }
}

fn contents(access: Access) -> (u64, u64) {
    let mut hash = Fingerprint::new();
    // SAFETY: the program says that it may read these bytes; a bad address faults and is reported.
    let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(access.address), access.size) };
    hash.bytes(bytes);
    hash.finish()
}

impl Runtime {
    /// The running thread arrives at an operation.
    pub(crate) fn enter_operation(&mut self, op: &Op) {
        self.look_at_given();
        self.compare_from_now(op);
        // SAFETY: the gate is mapped while a program is loaded.
        let gate = unsafe { &*gate() };
        let thread = &mut self.threads[self.running];
        let Call { extent, frees, .. } = thread.call;
        if gate.stack_pointer != 0 {
            let mut arguments = [0; gate::ARGUMENTS];
            let noted = abi::noted_arguments(gate.entering);
            arguments[..noted].copy_from_slice(&gate.arguments[..noted]);
            thread.call = Call {
                site: gate.site,
                stack_pointer: gate.stack_pointer,
                registers: gate.registers,
                slot: gate.entering,
                arguments,
                log: (0, 0),
                extent,
                frees,
                given: (0, 0),
            };
        } else {
            let Outcome { read, wrote } = thread.outcome;
            let mut hash = Fingerprint::with(thread.call.log);
            hash.pair(read as usize, (read >> 64) as usize);
            let written = wrote.unwrap_or(0);
            hash.pair(written as usize, (written >> 64) as usize);
            hash.pair(wrote.is_some().into(), 0);
            thread.call.log = hash.finish();
        }
    }

    /// Looks whether the thread gave away an address in its slot by the plain store that it has
    /// made since its last call.
    pub(crate) fn look_at_given(&mut self) {
        let thread = &mut self.threads[self.running];
        let (address, size) = std::mem::take(&mut thread.call.given);
        if thread.slot.contains(address) {
            return;
        }
        let words = (address..address + size).step_by(8).take(size / 8);
        for word in words {
            thread.published |= thread.slot.contains(memory::read(word, 8) as usize);
        }
    }

    /// The running thread's operation was performed. Returns what is left to be written to memory.
    pub(crate) fn performed_in_state(
        &mut self,
        op: &Op,
        outcome: Outcome,
    ) -> Result<Option<Write>, Problem> {
        let wrote = match *op {
            Op::Store { value, .. } => Some(value),
            _ => outcome.wrote,
        };
        let Some(location) = op.location().filter(|_| !leaves_behind(op)) else {
            return Ok(None);
        };
        let entry = *self.locations.entry(location);
        // Others may have freed it since the thread arrived.
        self.check_address(entry.address, entry.width.into(), wrote.is_some())?;
        self.check_owner(entry.address)?;
        let Some(value) = wrote else { return Ok(None) };
        let thread = self.current();
        if entry.width == 8 && thread.slot.contains(value as usize) {
            thread.published = true;
        }
        if entry.kind != LocationKind::Memory {
            self.locations.set_object(location, value, self.run);
            // An operation that ends the life of an object leaves a mark in its memory.
            self.changes(entry.address);
            return Ok(None);
        }
        self.writes(entry.address, entry.width.into());
        Ok(Some(Write {
            address: entry.address,
            width: entry.width,
            value,
            overlapped: false,
        }))
    }

    /// Whether the thread whose stack `address` lies on has ended, or has returned from the function there.
    fn check_owner(&self, address: usize) -> Result<(), Problem> {
        let owner = self.layout.stack_owner(address);
        let Some(owner) = owner.filter(|&owner| self.exists(owner)) else {
            return Ok(());
        };
        let thread = &self.threads[owner];
        match thread.has_ended() {
            true => Err(Problem::Ended(owner)),
            false if thread.slot.is_left(address, thread.call.stack_pointer) => {
                Err(Problem::Returned(owner))
            }
            false => Ok(()),
        }
    }

    /// The memory that the pending operation of `thread` accesses.
    pub(super) fn pending_access(&self, thread: usize) -> Option<PendingAccess> {
        let known = self.threads.get(thread).filter(|t| t.run == self.run)?;
        let Pending::Op(op) = known.pending else {
            return None;
        };
        let location = op.location()?;
        let entry = self.locations.entry(location);
        if entry.kind != LocationKind::Memory {
            return None;
        }
        let (writes, order) = match op {
            Op::Load { order, .. } => (false, order),
            Op::Store { order, .. } => (true, order),
            Op::Update {
                function, order, ..
            } => {
                let effect = function.apply(self.locations.initial(location, self.run));
                (
                    matches!(effect, Effect::Write(_) | Effect::Choose(_)),
                    order,
                )
            }
            _ => return None,
        };
        Some(PendingAccess {
            address: entry.address as u64,
            size: known.call.extent.max(entry.width.into()) as u64,
            writes,
            atomic: order != MemoryOrder::Plain,
            frees: known.call.frees,
        })
    }
}
