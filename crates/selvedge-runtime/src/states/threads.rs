//! Threads: stack, thread-local variables, and what the runtime knows of them.

use std::ptr;

use selvedge_core::{Failure, Op, Pending, Stop};
use serde::{Deserialize, Serialize};

use super::pieces::Saved;
use super::{Call, States, bytes, decode, push};
use crate::fiber::Context;
use crate::float::Float;
use crate::posix::state::{self, Local};
use crate::runtime::Runtime;
use crate::thread::Thread;

/// A thread, with bytes as pieces or as they are.
#[derive(Serialize, Deserialize)]
pub(super) struct Image<B = Saved> {
    control: Control,
    frames: B,
    /// From where it stands to the top.
    stack: B,
    /// Thread-local variables and control words.
    locals: B,
    /// The C library's data, if it has any.
    local: Option<Box<Local>>,
    /// Why it stopped, if it went wrong.
    ending: Option<Box<Ending>>,
}

/// Where a thread stands.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Control {
    pending: Pending,
    site: usize,
    /// The stack pointer of its context.
    stack_pointer: usize,
    float: Float,
    spawned: u32,
    /// The address that it returned.
    result: usize,
    published: bool,
    call: Call,
}

/// Why a thread stopped, and what that refers to.
#[derive(Clone, Serialize, Deserialize)]
struct Ending {
    failure: Option<Failure>,
    place: usize,
    refusal: Option<String>,
}

impl<B> Image<B> {
    /// The same with other bytes.
    fn map<C>(self, mut change: impl FnMut(B) -> C) -> Image<C> {
        Image {
            frames: change(self.frames),
            stack: change(self.stack),
            locals: change(self.locals),
            control: self.control,
            local: self.local,
            ending: self.ending,
        }
    }
}

impl Image {
    fn by_reference(&self) -> Image<&Saved> {
        Image {
            frames: &self.frames,
            stack: &self.stack,
            locals: &self.locals,
            control: self.control,
            local: self.local.clone(),
            ending: self.ending.clone(),
        }
    }

    /// How much memory it takes besides pieces.
    pub(super) fn bytes(&self) -> usize {
        let local = self.local.as_ref().map_or(0, |_| size_of::<Local>());
        let bytes = self.frames.bytes() + self.stack.bytes() + self.locals.bytes();
        size_of::<Image>() + bytes + local
    }
}

impl Thread {
    pub(super) fn went_wrong(&self) -> bool {
        matches!(self.pending, Pending::Stopped(Stop::Failed | Stop::Refused))
    }

    /// The end of its stack that is in use.
    pub(super) fn live_stack(&self) -> usize {
        match self.pending {
            Pending::Op(_) => self.context.stack_pointer(),
            Pending::Absent | Pending::Stopped(_) => self.slot.stack_top,
        }
    }
}

impl Runtime {
    pub(super) fn identify_stack(&mut self, index: usize, into: &mut Vec<u8>) {
        let Some(thread) = self.threads.get(index) else {
            return;
        };
        if thread.run != self.run {
            return;
        }
        let status = match thread.pending {
            Pending::Absent => return,
            Pending::Op(_) => 0,
            Pending::Stopped(stop) => match stop {
                Stop::Finished => 1,
                Stop::Exited => 2,
                Stop::Assumed => 3,
                Stop::Unrolled => 4,
                Stop::Failed => 5,
                Stop::Refused => 6,
                Stop::Spinning { .. } => 7,
                Stop::Returned => 8,
            },
        };
        push(into, status);
        state::identify_thread(index, status == 0, into);
        push(into, thread.result.addr());
        let Pending::Op(op) = thread.pending else {
            if thread.went_wrong() {
                state::encode(&(&self.failure, &self.refusal), into);
            }
            return;
        };
        push(into, thread.spawned as usize);
        push(into, thread.published.into());
        push(into, thread.float.word());
        self.identify_op(op, into);
        let call = thread.call;
        push(into, call.site);
        push(into, call.stack_pointer);
        push(into, call.slot);
        call.arguments.iter().for_each(|&word| push(into, word));
        push(into, call.log.0 as usize);
        push(into, call.log.1 as usize);
        let slot = thread.slot;
        let locals = slot.locals_range();
        into.extend_from_slice(bytes(locals.start, locals.end));
        if call.stack_pointer == 0 {
            // Not called by the program: what the runtime is going to do is told by its own frames
            // only.
            into.extend_from_slice(bytes(thread.context.stack_pointer(), slot.stack_top));
            return;
        }
        let stack_pointer = call.stack_pointer + 8;
        self.liveness
            .clear_dead(call.site, call.registers.rbp, stack_pointer, slot.stack_top);
        self.liveness.visit(
            call.site,
            &call.registers,
            (stack_pointer, slot.stack_top),
            |_, now| now,
            |a, b| {
                push(into, a);
                push(into, b);
            },
        );
    }

    /// An operation, with addresses for locations, whose numbers are those of one search only.
    fn identify_op(&self, op: Op, into: &mut Vec<u8>) {
        if let Some(at) = op.location() {
            let entry = self.locations.entry(at);
            push(into, entry.address);
            push(into, usize::from(entry.width) << 8 | entry.kind as usize);
        }
        let without = match op {
            Op::Load { order, .. } => return push(into, order as usize),
            Op::Store { value, order, .. } => {
                push(into, 1 << 8 | order as usize);
                return into.extend_from_slice(&value.to_le_bytes());
            }
            Op::Update {
                function,
                order,
                failure,
                ..
            } => Op::Update {
                at: NOWHERE,
                function,
                order,
                failure,
            },
            other => other,
        };
        push(into, 1 << 9);
        state::encode(&without, into);
    }

    pub(super) fn save_stack(&mut self, index: usize) -> Image {
        let thread = &self.threads[index];
        let locals = thread.slot.locals_range();
        let image = Image {
            control: Control {
                pending: thread.pending,
                site: thread.site,
                stack_pointer: thread.context.stack_pointer(),
                float: thread.float,
                spawned: thread.spawned,
                result: thread.result.expose_provenance(),
                published: thread.published,
                call: thread.call,
            },
            frames: thread.frames.bytes(),
            stack: bytes(thread.live_stack(), thread.slot.stack_top),
            locals: bytes(locals.start, locals.end),
            local: state::save_thread(index),
            ending: thread.went_wrong().then(|| {
                Box::new(Ending {
                    failure: self.failure.clone(),
                    place: self.failure_place,
                    refusal: self.refusal.clone(),
                })
            }),
        };
        let pieces = &mut self.states.pieces;
        image.map(|bytes| pieces.save(bytes))
    }

    pub(super) fn pack_stack(&self, number: usize, into: &mut Vec<u8>) {
        let States { stacks, pieces, .. } = &self.states;
        let unfolded = |saved: &Saved| {
            let mut bytes = Vec::new();
            pieces.bytes_of(saved, &mut bytes);
            bytes
        };
        state::encode(&stacks[number].by_reference().map(unfolded), into);
    }

    pub(super) fn unpack_stack(&mut self, packed: &[u8]) -> Image {
        let image: Image<&[u8]> = decode(packed);
        let pieces = &mut self.states.pieces;
        image.map(|bytes| pieces.save(bytes))
    }

    pub(super) fn restore_stack(&mut self, index: usize, number: Option<usize>) {
        let Some(thread) = self.threads.get_mut(index) else {
            return;
        };
        let own = |failure: &Failure| failure.thread.index() == index;
        if self.failure.as_ref().is_some_and(own) {
            self.failure = None;
        }
        let Some(number) = number else {
            thread.run = 0;
            state::restore_thread(index, None);
            return;
        };
        let States {
            stacks,
            pieces,
            contents,
            ..
        } = &mut self.states;
        let image = &stacks[number];
        thread.run = self.run;
        let control = image.control;
        thread.pending = control.pending;
        thread.site = control.site;
        thread.context = Context::suspended_at(control.stack_pointer);
        thread.float = control.float;
        thread.spawned = control.spawned;
        thread.result = ptr::with_exposed_provenance_mut(control.result);
        thread.published = control.published;
        thread.call = control.call;
        pieces.bytes_of(&image.frames, contents);
        thread.frames.set_bytes(contents);
        if let Some(ending) = &image.ending {
            self.failure.clone_from(&ending.failure);
            self.refusal.clone_from(&ending.refusal);
            self.failure_place = ending.place;
        }
        let top = thread.slot.stack_top;
        pieces.restore(&image.stack, top - image.stack.len());
        pieces.restore(&image.locals, thread.slot.locals);
        state::restore_thread(index, image.local.as_deref());
        if !self.started.contains(&(index as u32)) {
            self.started.push(index as u32);
        }
        if let Pending::Op(op) = control.pending {
            self.compare_from_now(&op);
        }
    }
}

/// Stands for any location.
const NOWHERE: selvedge_core::Location = selvedge_core::Location(0);
