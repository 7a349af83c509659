//! Whole states of a program that can be saved and restored.
//!
//! A state consists of parts: what all threads share (globals, synchronisation objects, what the C library knows
//! about the process), and for each thread its stack with what belongs to it, and its heap. All of it lies at
//! fixed addresses, so that saving and restoring is copying.
//!
//! What identifies a part leaves out what the future cannot depend on: bytes of the stack that are dead where the
//! thread stands, freed memory, and everything of the runtime's own frames. A thread is stopped inside of a
//! call of the runtime; what that call is going to do is told by the function, its arguments, and what came of
//! the operations that it has performed so far.
//!
//! In this mode memory always holds the present values. A plain store stops before it is made, and the program makes it
//! when it goes on.

mod heap;
mod pieces;
mod shared;
mod threads;

use selvedge_core::fingerprint::Fingerprint;
use selvedge_core::{
    Effect, Location, Machine as _, MemoryOrder, Op, Outcome, Pending, PendingAccess, StateMachine,
    ThreadId, Value, Width,
};

use serde::{Deserialize, Serialize};

use crate::abi;
use crate::access::{Access, Problem};
use crate::arena::pointer;
use crate::current;
use crate::gate::{self, Registers, gate};
use crate::locations::Kind as LocationKind;
use crate::machine::NativeMachine;
use crate::memory;
use crate::posix::state::encode;
use crate::posix::temporal;
use crate::problem::report;
use crate::runtime::{Phase, Runtime, with};
use crate::shadow::Kind;
use crate::tsan::plain::By;
use crate::visible::{Write, leaves_behind};

/// The part that threads share.
const SHARED: usize = 0;

/// The part that holds the stack of a thread.
fn stack_of(thread: usize) -> usize {
    1 + 2 * thread
}

/// The part that holds the heap of a thread.
pub(crate) fn heap_of(thread: usize) -> usize {
    2 + 2 * thread
}

/// What a part number stands for.
enum Part {
    Shared,
    Stack(usize),
    Heap(usize),
}

impl Part {
    fn of(number: usize) -> Part {
        match number {
            SHARED => Part::Shared,
            _ if number % 2 == 1 => Part::Stack(number / 2),
            _ => Part::Heap(number / 2 - 1),
        }
    }
}

/// The states that were saved, and what happened since.
#[derive(Default)]
pub(crate) struct States {
    /// Bit n: part n may have changed.
    changed: Vec<u64>,
    shared: Images<shared::Image>,
    stacks: Images<threads::Image>,
    heaps: Images<heap::Image>,
    /// The lists of blocks that heaps consist of.
    lists: heap::Lists,
    /// What images consist of.
    pieces: pieces::Pieces,
    /// How much memory all images take besides.
    bytes: usize,
    /// Scratch.
    contents: Vec<u8>,
}

impl States {
    fn add_shared(&mut self, image: shared::Image) -> u32 {
        self.bytes += image.bytes();
        self.shared.add(image)
    }

    fn add_stack(&mut self, image: threads::Image) -> u32 {
        self.bytes += image.bytes();
        self.stacks.add(image)
    }

    fn add_heap(&mut self, image: heap::Image) -> u32 {
        self.bytes += image.bytes();
        self.heaps.add(image)
    }

    /// A part may have changed.
    #[inline(always)]
    pub(crate) fn changed(&mut self, part: usize) {
        let word = part / 64;
        if self.changed.len() <= word {
            self.changed.resize(word + 1, 0);
        }
        self.changed[word] |= 1 << (part % 64);
    }
}

/// The call of the runtime that a thread is stopped in.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Where it returns to.
    site: usize,
    /// The stack pointer when it began; the return address lies there.
    stack_pointer: usize,
    registers: Registers,
    /// The place of the function in the table.
    slot: usize,
    arguments: [usize; gate::ARGUMENTS],
    /// What came of the operations that it has performed.
    log: (u64, u64),
    /// The bytes that the pending operation is about, if they are more than its location.
    extent: usize,
    /// What the thread writes after the call, address and size, until it comes back: never anything while it is stopped.
    given: (usize, usize),
}

/// Whether states are saved and a thread of the program runs.
#[inline(always)]
pub(crate) fn in_use() -> bool {
    with(|runtime| runtime.settings.stateful && runtime.phase == Phase::Fiber)
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
    current::pause(op, selvedge_core::Site(access.site as u64));
    let checked = with(|runtime| {
        let thread = runtime.current();
        thread.call.extent = 0;
        if access.kind.writes() {
            // What is written is not known yet: it may be the address of something on the thread's stack.
            thread.call.given = (access.address, access.size);
            runtime.writes(access.address, access.size);
        }
        // Others may have freed it meanwhile.
        runtime.check_address(access.address, access.size)
    });
    if let Err(problem) = checked {
        report(problem, access);
    }
}

/// Stops before an access to a range of bytes, if others can reach it.
pub(crate) fn range(access: Access, by: By) {
    if access.size == 0 {
        return;
    }
    if let Err(problem) = with(|runtime| runtime.check_address(access.address, access.size)) {
        report(problem, access);
    }
    with(Runtime::look_at_given);
    if !with(|runtime| runtime.is_shared(access.address)) {
        return;
    }
    with(|runtime| {
        let thread = runtime.current();
        thread.published |= access.kind.writes() && !thread.slot.contains(access.address);
    });
    // What a library function has read already must still be there.
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
    pub(crate) fn enter_operation(&mut self) {
        self.look_at_given();
        // SAFETY: the gate is mapped while a program is loaded.
        let gate = unsafe { &*gate() };
        let thread = &mut self.threads[self.running];
        let extent = thread.call.extent;
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

    /// Looks whether the thread gave away an address in its slot by the plain store that it has made since its last call.
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
        self.check_address(entry.address, entry.width.into())?;
        let Some(value) = wrote else { return Ok(None) };
        let thread = self.current();
        if entry.width == 8 && thread.slot.contains(value as usize) {
            thread.published = true;
        }
        if entry.kind != LocationKind::Memory {
            self.locations.set_object(location, value, self.run);
            // What ends the life of an object leaves a mark in its memory.
            self.changes(entry.address);
            return Ok(None);
        }
        self.writes(entry.address, entry.width.into());
        Ok(Some(Write {
            address: entry.address,
            width: entry.width,
            value,
        }))
    }

    /// The running thread writes `size` bytes at `address`.
    fn writes(&mut self, address: usize, size: usize) {
        self.locations.forget_objects(address, size);
        self.changes(address);
    }

    /// What lies at `address` changes.
    fn changes(&mut self, address: usize) {
        if let Some(owner) = self.layout.stack_owner(address) {
            self.states.changed(stack_of(owner));
        } else if let Some(owner) = self.layout.heap_owner(address) {
            self.states.changed(heap_of(owner));
        }
    }

    /// The same where nobody has asked whether states are saved.
    pub(crate) fn wrote(&mut self, address: usize) {
        if self.settings.stateful {
            self.changes(address);
        }
    }

    /// The memory that the pending operation of `thread` accesses.
    fn pending_access(&self, thread: usize) -> Option<PendingAccess> {
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
        })
    }

    /// What is known about a thread changes.
    pub(crate) fn changes_thread(&mut self, thread: usize) {
        if self.settings.stateful {
            self.states.changed(stack_of(thread));
        }
    }

    /// The thread `running` has taken a step.
    pub(crate) fn stepped(&mut self, running: usize) {
        if self.settings.stateful {
            self.states.changed(SHARED);
            self.states.changed(stack_of(running));
            if self.image.has_library {
                // Code that announces nothing may have written anywhere.
                (0..self.threads.len()).for_each(|owner| self.states.changed(heap_of(owner)));
            }
        }
    }

    /// Everything may have changed.
    pub(crate) fn begin_states(&mut self) {
        if self.settings.stateful {
            (0..2 * self.threads.len() + 1).for_each(|part| self.states.changed(part));
        }
    }
}

impl StateMachine for NativeMachine {
    fn parts(&self) -> usize {
        with(|runtime| heap_of(runtime.threads.len()) - 1)
    }

    fn identify(&mut self, part: usize, into: &mut Vec<u8>) {
        with(|runtime| match Part::of(part) {
            Part::Shared => runtime.identify_shared(into),
            Part::Stack(thread) => runtime.identify_stack(thread, into),
            Part::Heap(thread) => runtime.identify_heap(thread, into),
        });
    }

    fn save(&mut self, part: usize, into: &mut Vec<u8>) {
        let number = with(|runtime| match Part::of(part) {
            Part::Shared => {
                let image = runtime.save_shared();
                runtime.states.add_shared(image)
            }
            Part::Stack(thread) => {
                let image = runtime.save_stack(thread);
                runtime.states.add_stack(image)
            }
            Part::Heap(thread) => {
                let image = runtime.save_heap(thread);
                runtime.states.add_heap(image)
            }
        });
        into.extend_from_slice(&number.to_le_bytes());
    }

    fn restore(&mut self, part: usize, from: &[u8]) {
        let number = number_of(from);
        with(|runtime| match (Part::of(part), number) {
            (Part::Shared, Some(number)) => runtime.restore_shared(number),
            (Part::Shared, None) => {}
            (Part::Stack(thread), number) => runtime.restore_stack(thread, number),
            (Part::Heap(thread), number) => runtime.restore_heap(thread, number),
        });
    }

    fn kept(&self) -> usize {
        with(|runtime| {
            let States {
                bytes,
                lists,
                pieces,
                ..
            } = &runtime.states;
            bytes + lists.bytes() + pieces.bytes()
        })
    }

    fn pack(&mut self, part: usize, saved: &[u8], into: &mut Vec<u8>) {
        let number = number_of(saved).expect("contents that are not empty");
        with(|runtime| match Part::of(part) {
            Part::Shared => encode(&runtime.states.shared[number], into),
            Part::Stack(_) => runtime.pack_stack(number, into),
            Part::Heap(_) => runtime.pack_heap(number, into),
        });
    }

    fn unpack(&mut self, part: usize, packed: &[u8], into: &mut Vec<u8>) {
        let number = with(|runtime| {
            runtime.locations.catch_up(&runtime.shadow);
            match Part::of(part) {
                Part::Shared => runtime.states.add_shared(decode(packed)),
                Part::Stack(_) => {
                    let image = runtime.unpack_stack(packed);
                    runtime.states.add_stack(image)
                }
                Part::Heap(_) => {
                    let image = runtime.unpack_heap(packed);
                    runtime.states.add_heap(image)
                }
            }
        });
        into.extend_from_slice(&number.to_le_bytes());
    }

    fn origin(&self, thread: ThreadId) -> (ThreadId, u32) {
        with(|runtime| {
            let children = |parent: usize| runtime.threads[parent].children.iter();
            let places = (0..runtime.threads.len()).find_map(|parent| {
                let place = children(parent).position(|&child| child == thread.0)?;
                Some((ThreadId(parent as u32), place as u32))
            });
            places.expect("every thread but main was created by another")
        })
    }

    fn introduce(&mut self, parent: ThreadId, place: u32) {
        with(|runtime| runtime.introduce(parent.index(), place as usize));
    }

    fn forget_newest(&mut self) {
        with(Runtime::forget_newest);
    }

    fn changed(&mut self, into: &mut Vec<u32>) {
        with(|runtime| {
            for (index, word) in runtime.states.changed.iter_mut().enumerate() {
                let mut bits = std::mem::take(word);
                while bits != 0 {
                    into.push(64 * index as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        });
    }

    fn value(&self, location: Location) -> Value {
        with(|runtime| runtime.locations.initial(location, runtime.run))
    }

    fn access(&self, thread: ThreadId) -> Option<PendingAccess> {
        with(|runtime| runtime.pending_access(thread.index()))
    }

    fn marks_progress(&self, thread: ThreadId) -> bool {
        match self.pending(thread) {
            Pending::Op(op) => with(|runtime| runtime.is_progress_mark(op)),
            _ => false,
        }
    }

    fn propositions(&self) -> Vec<String> {
        with(|runtime| {
            let asked = runtime.settings.propositions.iter();
            asked.map(ToString::to_string).collect()
        })
    }

    fn holds(&mut self, proposition: usize) -> bool {
        temporal::holds(proposition)
    }
}

/// What was saved of parts of one sort.
struct Images<T>(Vec<T>);

impl<T> Default for Images<T> {
    fn default() -> Images<T> {
        Images(Vec::new())
    }
}

impl<T> Images<T> {
    /// Keeps one more; returns its number.
    fn add(&mut self, image: T) -> u32 {
        self.0.push(image);
        self.0.len() as u32 - 1
    }
}

impl<T> std::ops::Index<usize> for Images<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.0[number]
    }
}

/// The number of an image; contents that are empty have none.
fn number_of(saved: &[u8]) -> Option<usize> {
    let number = saved.first_chunk();
    number.map(|&bytes| u32::from_le_bytes(bytes) as usize)
}

fn decode<'a, T: Deserialize<'a>>(packed: &'a [u8]) -> T {
    let decoded = postcard::from_bytes(packed);
    decoded.unwrap_or_else(|_| unreachable!("another process has encoded it"))
}

/// Appends a number.
fn push(into: &mut Vec<u8>, word: usize) {
    into.extend_from_slice(&word.to_le_bytes());
}

/// The bytes from `start` to `end`.
fn bytes<'a>(start: usize, end: usize) -> &'a [u8] {
    // SAFETY: callers pass memory of the program that stays mapped, and no fiber runs while they use it.
    unsafe { std::slice::from_raw_parts(pointer::<u8>(start), end - start) }
}

/// Writes `from` to `start`.
fn put(start: usize, from: &[u8]) {
    // SAFETY: as above; the memory is writable, since it was saved from there.
    unsafe { pointer::<u8>(start).copy_from(from.as_ptr(), from.len()) };
}
