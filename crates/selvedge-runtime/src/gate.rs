//! The page through which the program under test enters the runtime.
//!
//! It lies at a fixed address below 2 GiB, so that the stubs linked into the program reach it with
//! absolute operands, without relocations and without anything that has to be filled in before
//! the program's constructors run. A stub notes where it was called from and jumps through the
//! table.

use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// Where the gate is mapped.
pub(crate) const ADDRESS: usize = 0x1000_0000;
/// How many entry points the table can hold.
pub(crate) const CAPACITY: usize = 4096;

/// How many arguments the gate notes at most.
pub(crate) const ARGUMENTS: usize = 6;

/// The callee-saved registers of the program at the moment it entered the runtime.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registers {
    pub(crate) rbx: usize,
    pub(crate) rbp: usize,
    pub(crate) r12: usize,
    pub(crate) r13: usize,
    pub(crate) r14: usize,
    pub(crate) r15: usize,
}

/// The names of the [`Registers`], each with its offset.
pub(crate) const CALLEE_SAVED: [(&str, usize); 6] = [
    ("rbx", offset_of!(Registers, rbx)),
    ("rbp", offset_of!(Registers, rbp)),
    ("r12", offset_of!(Registers, r12)),
    ("r13", offset_of!(Registers, r13)),
    ("r14", offset_of!(Registers, r14)),
    ("r15", offset_of!(Registers, r15)),
];

/// The layout of the gate; the stubs know the offsets from `support`.
#[repr(C)]
pub(crate) struct Gate {
    /// Not zero if the next entry has to call `settle` first.
    pub(crate) attention: usize,
    /// Not zero while the running thread has announced stores that it has not made yet, and always
    /// where states are kept.
    pub(crate) stores: usize,
    /// Room for the checks behind stores and for clearing frames.
    pub(crate) scratch: [usize; 3],
    /// Return address of the last entry.
    pub(crate) site: usize,
    /// Stack pointer at the last entry; the return address lies there.
    pub(crate) stack_pointer: usize,
    /// Registers at the last entry through a full stub.
    pub(crate) registers: Registers,
    /// Arguments of the last entry, as many as its stub notes.
    pub(crate) arguments: [usize; ARGUMENTS],
    /// The place in the table of the last entry.
    pub(crate) entering: usize,
    /// Not zero once a function was entered that cannot be undone.
    pub(crate) barrier: usize,
    /// Where the entries lead.
    pub(crate) targets: Targets,
}

/// The functions of the runtime that the program calls. They lie on pages of their own, which nobody
/// can write to while a program is loaded.
#[repr(C, align(4096))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// The function that a stub calls before anything else when `attention` is set.
    pub(crate) settle: usize,
    /// The function that the checks behind stores call.
    pub(crate) stored: usize,
    /// The entry points, in the order of `abi::exports`.
    pub(crate) table: [usize; CAPACITY],
    /// The settings that the program was loaded with, as a fingerprint.
    pub(crate) settings: (u64, u64),
}

/// Has `fill` set the targets of the mapped gate, and protects them again.
pub(crate) fn set_targets(fill: impl FnOnce(&mut Targets)) -> io::Result<()> {
    // SAFETY: the gate is mapped, and no program runs while its targets change.
    let targets = unsafe { &raw mut (*gate()).targets };
    let protect = move |protection| {
        // SAFETY: the targets take whole pages of the gate.
        match unsafe { libc::mprotect(targets.cast(), size_of::<Targets>(), protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: mapped, writable now, valid whatever its bits are, and nobody else's.
    fill(unsafe { &mut *targets });
    protect(libc::PROT_READ)
}

/// The targets of the mapped gate.
pub(crate) fn targets() -> &'static Targets {
    // SAFETY: the gate stays mapped, and its targets are not written to while a program is loaded.
    unsafe { &(*gate()).targets }
}

/// Where the gate lies.
pub(crate) fn place() -> Range<usize> {
    ADDRESS..ADDRESS + size_of::<Gate>()
}

/// Maps the gate, if it is not mapped yet. It stays until the end of the process, because parts of
/// a program that was loaded once can run as late as that.
pub(crate) fn map() -> io::Result<()> {
    static MAPPED: AtomicBool = AtomicBool::new(false);
    if MAPPED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let wanted = ptr::without_provenance_mut(ADDRESS);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh anonymous mapping that may not replace an existing one.
    let got = unsafe { libc::mmap(wanted, size_of::<Gate>(), protection, flags, -1, 0) };
    if got != wanted {
        return Err(io::Error::last_os_error());
    }
    MAPPED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The gate. Only to be used once it is mapped, and never across a switch of fibers.
#[inline(always)]
pub(crate) fn gate() -> *mut Gate {
    ptr::with_exposed_provenance_mut(ADDRESS)
}
