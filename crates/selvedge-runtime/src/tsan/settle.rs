//! Plain stores that were announced: at the next entry their values are known.

use std::ffi::c_int;

use selvedge_core::{FailureKind, MemoryOrder, Op, Site};

use super::plain::perform_store;
use crate::abi;
use crate::code::{self, Frame};
use crate::current;
use crate::gate::gate;
use crate::loader::Range;
use crate::memory;
use crate::runtime::{Deferred, Phase, with};
use crate::signals;

/// What the assembly routine in front of [`at_entry`] saves, lowest address first.
#[repr(C)]
pub(crate) struct Arguments {
    vectors: [u128; 8],
    r10: usize,
    r9: usize,
    r8: usize,
    rcx: usize,
    rdx: usize,
    rsi: usize,
    rdi: usize,
    rax: usize,
    stub: usize,
    return_address: usize,
}

/// A stub found something left over. Returns whether the entry has been dealt with as well, so that
/// the stub must return to the program.
pub(crate) extern "C" fn at_entry(arguments: *const Arguments, base_pointer: usize) -> c_int {
    // SAFETY: the assembly routine passes what it has just built.
    let arguments = unsafe { &*arguments };
    // SAFETY: the gate is mapped while a program is loaded.
    let slot = unsafe { (*gate()).entering };
    if abi::announces_read(slot) && is_same_statement(arguments, base_pointer) {
        read_in_between(arguments, slot);
        return 1;
    }
    if abi::announces_write(slot) && is_same_statement(arguments, base_pointer) {
        // Its value is not known yet, and will not be known from this one on.
        current::refuse(
            String::from("two stores that the compiler makes at once (compile with -O0)"),
            Site(arguments.return_address as u64),
        );
    }
    now();
    0
}

/// Whether the announced store has not been made yet, because it belongs to the same statement as
/// the read that is being announced now.
fn is_same_statement(arguments: &Arguments, base_pointer: usize) -> bool {
    let stack_pointer = (&raw const arguments.return_address).addr() + 8;
    with(|runtime| {
        let first = runtime.deferred.as_ref().or(runtime.deferred_parts.first());
        let Some(&Deferred {
            access,
            by_program: true,
            ..
        }) = first
        else {
            return false;
        };
        let range = (access.site, arguments.return_address);
        let slot = (access.site ^ arguments.return_address) % runtime.statements.len();
        if runtime.statements[slot] == range {
            return false;
        }
        let frame = Frame {
            stack_pointer,
            base_pointer,
        };
        let target = Range {
            start: access.address,
            end: access.address + access.size,
        };
        let written = code::may_have_written(runtime.image.whole, range, frame, target);
        if written && !runtime.on_own_stack(access.address) {
            runtime.statements[slot] = range;
        }
        !written
    })
}

/// Lets the program announce its read, and keeps waiting for the store.
#[cold]
fn read_in_between(arguments: &Arguments, slot: usize) {
    let (deferred, parts) = with(|runtime| {
        (
            runtime.deferred.take(),
            std::mem::take(&mut runtime.deferred_parts),
        )
    });
    // SAFETY: the gate is mapped while a program is loaded; the slot is that of a callback that
    // announces a read, which has this signature or ignores the second argument.
    let read: extern "C" fn(usize, usize) = unsafe {
        (*gate()).attention = 0;
        (*gate()).site = arguments.return_address;
        (*gate()).stack_pointer = 0;
        std::mem::transmute::<usize, extern "C" fn(usize, usize)>((*gate()).table[slot])
    };
    read(arguments.rdi, arguments.rsi);
    // Others may have run meanwhile.
    let renew = |part: Deferred| Deferred {
        old: memory::read(part.access.address, part.access.size as u8),
        ..part
    };
    with(|runtime| {
        runtime.deferred = deferred.map(renew);
        runtime.deferred_parts = parts.into_iter().map(renew).collect();
    });
    // SAFETY: as above.
    unsafe { (*gate()).attention = 1 };
}

/// Performs what is left over from the thread's last entry.
pub(crate) fn now() {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).attention = 0 };
    let (deferred, parts, expired, phase) = with(|runtime| {
        let expired = std::mem::take(&mut runtime.watchdog.expired);
        let parts = std::mem::take(&mut runtime.deferred_parts);
        (runtime.deferred.take(), parts, expired, runtime.phase)
    });
    if phase != Phase::Fiber {
        return;
    }
    if expired {
        current::fail(
            FailureKind::EndlessLoop,
            signals::endless(),
            current::site(),
        );
    }
    if let Some(Deferred {
        access,
        volatile,
        old,
        ..
    }) = deferred
    {
        let width = access.size as u8;
        let value = memory::read(access.address, width);
        memory::write(access.address, width, old);
        let order = if volatile {
            MemoryOrder::Relaxed
        } else {
            MemoryOrder::Plain
        };
        perform_store(
            access.address,
            width,
            value,
            order,
            Site(access.site as u64),
        );
    }
    if !parts.is_empty() {
        perform_parts(parts);
    }
}

/// Performs the stores to visible locations that were announced as a range.
#[cold]
fn perform_parts(parts: Vec<Deferred>) {
    let take = |part: Deferred| {
        let (address, width) = (part.access.address, part.access.size as u8);
        let value = memory::read(address, width);
        // What an object's memory holds matters only before its first use.
        if part.object.is_none() {
            memory::write(address, width, part.old);
        }
        (part, value)
    };
    let stores: Vec<_> = parts.into_iter().map(take).collect();
    for (Deferred { access, object, .. }, value) in stores {
        let (address, width) = (access.address, access.size as u8);
        let (order, site) = (MemoryOrder::Plain, Site(access.site as u64));
        match object {
            None => perform_store(address, width, value, order, site),
            Some(at) => {
                current::forget_entry();
                current::perform(Op::Store { at, value, order }, site);
            }
        }
    }
}
