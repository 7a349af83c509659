//! Whole states of a program that can be saved and restored.
//!
//! A state consists of parts: what all threads share (globals, synchronisation objects, what the C
//! library knows about the process), and for each thread its stack with what belongs to it, and its
//! heap. All of it lies at fixed addresses, so that saving and restoring is copying.
//!
//! The identity of a part leaves out data that the future cannot depend on: bytes of the stack that
//! are dead where the thread stands, freed memory, and everything of the runtime's own frames. A
//! thread is stopped inside of a call of the runtime; the rest of that call is determined by the
//! function, its arguments, and the outcomes of the operations that it has performed so far.
//!
//! In this mode memory always holds the present values. A plain store stops before it is made, and
//! the program makes it when it goes on.

mod heap;
mod known;
mod machine;
mod operations;
mod pieces;
mod shared;
mod threads;

use serde::{Deserialize, Serialize};

use crate::arena::pointer;
use crate::gate::{self, Registers};
use crate::runtime::{Phase, Runtime, with};
pub(crate) use operations::{announce, announce_free, range, stored};

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

/// The meaning of a part number.
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
    /// The pieces that images consist of.
    pieces: pieces::Pieces,
    /// How much memory all images take besides.
    bytes: usize,
    /// Scratch.
    contents: Vec<u8>,
    /// The contents of memory before the present step.
    pub(crate) known: known::Known,
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

impl Runtime {
    /// The running thread writes `size` bytes at `address`.
    fn writes(&mut self, address: usize, size: usize) {
        self.locations.forget_objects(address, size);
        self.states.known.announce(address, size);
        self.changes(address);
    }

    /// The memory at `address` changes.
    fn changes(&mut self, address: usize) {
        if let Some(owner) = self.layout.stack_owner(address) {
            self.states.changed(stack_of(owner));
        } else if let Some(owner) = self.layout.heap_owner(address) {
            self.states.changed(heap_of(owner));
        }
    }

    /// The same where nobody has asked whether states are saved.
    pub(crate) fn wrote(&mut self, address: usize, size: usize) {
        if self.settings.stateful {
            self.states.known.announce(address, size);
            self.changes(address);
        }
    }

    /// The knowledge about a thread changes.
    pub(crate) fn changes_thread(&mut self, thread: usize) {
        if self.settings.stateful {
            self.states.changed(stack_of(thread));
        }
    }

    /// The thread `running` has taken a step.
    pub(crate) fn stepped(&mut self, running: usize) {
        if self.settings.stateful {
            self.end_comparison();
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
            self.states.known.forget();
            (0..2 * self.threads.len() + 1).for_each(|part| self.states.changed(part));
        }
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
    /// The outcomes of the operations that it has performed.
    log: (u64, u64),
    /// The bytes that the pending operation is about, if they are more than its location.
    extent: usize,
    /// Whether that operation frees them.
    frees: bool,
    /// The memory that the thread writes after the call, address and size, until it comes back: never anything
    /// while it is stopped.
    given: (usize, usize),
}

/// Whether states are saved and a thread of the program runs.
#[inline(always)]
pub(crate) fn in_use() -> bool {
    with(|runtime| runtime.settings.stateful && runtime.phase == Phase::Fiber)
}

/// The saved parts of one sort.
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
    // SAFETY: callers pass memory of the program that stays mapped, and no fiber runs while they
    // use it.
    unsafe { std::slice::from_raw_parts(pointer::<u8>(start), end - start) }
}

/// Writes `from` to `start`.
fn put(start: usize, from: &[u8]) {
    // SAFETY: as above; the memory is writable, since it was saved from there.
    unsafe { pointer::<u8>(start).copy_from(from.as_ptr(), from.len()) };
}
