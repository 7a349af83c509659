//! Finds the prefix file and reads it.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};

use super::arena::{self, space};
use super::image::{self, Identity};
use super::sys::{self, Status};

/// Names the prefix file; without it, it lies beside the executable with `.irs` behind its name.
const VARIABLE: &[u8] = b"SELVEDGE_IRS\0";
const ENDING: &[u8] = b".irs\0";

/// A file in memory.
#[derive(Clone, Copy)]
pub(super) struct Contents {
    pub(super) bytes: &'static [u8],
    /// Whether the memory can be given back.
    mapped: bool,
}

impl Contents {
    /// No file.
    pub(super) const NONE: Contents = Contents {
        bytes: &[],
        mapped: false,
    };

    /// The one that is part of the program.
    fn built_in() -> Contents {
        Contents {
            bytes: image::file(),
            mapped: false,
        }
    }

    /// Gives the memory back, where that is possible. Nobody may look at it any more.
    pub(super) fn forget(self) {
        if self.mapped {
            // SAFETY: it was mapped by [`map`], once.
            unsafe { sys::munmap(self.bytes.as_ptr().cast_mut().cast(), self.bytes.len()) };
        }
    }
}

/// The prefix that a program begins with.
pub(super) enum First {
    /// The prefix that it was built with.
    BuiltIn(Contents),
    /// Another one.
    Other(Contents),
    /// There is none, or none that can be read.
    Missing,
}

/// Where the file is: a path that ends with a zero.
static PATH: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// How large a file may be to be read rather than mapped, which takes longer.
const SMALL: usize = 16 << 10;

const READ_ONLY_AT_ONCE: c_int = 0o2_004_000;

/// The identity of the file that is there now.
pub(super) fn present() -> Option<Identity> {
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero and is not changed any more.
    let found = unsafe { sys::stat(PATH.load(Ordering::Relaxed), &raw mut status) } == 0;
    found.then(|| identity(&status))
}

/// Finds the file, and reads it if it is not the one that the program was built with; before there
/// are other threads. Also, which file it is.
pub(super) fn find() -> (First, Option<Identity>) {
    // SAFETY: the name ends with a zero, and so does what it is given.
    let named = unsafe { sys::getenv(VARIABLE.as_ptr().cast()) };
    let prepared = !image::composed().is_empty();
    let found = match named.is_null() {
        true => beside_program(),
        false => set_path(named, b"\0").then(present).flatten(),
    };
    let first = match found {
        Some(found) if prepared && found == image::head().identity => {
            First::BuiltIn(Contents::built_in())
        }
        Some(_) => open_first().map_or(First::Missing, First::Other),
        // The prefix that the program was built with is proven, and no other was asked for.
        None if prepared && named.is_null() => First::BuiltIn(Contents::built_in()),
        None => First::Missing,
    };
    (first, found)
}

/// Looks beside the executable.
fn beside_program() -> Option<Identity> {
    // The kernel passes the path that the program was started by.
    const EXECUTED_AS: usize = 31;
    // SAFETY: the kernel passes a string, or nothing.
    let started = unsafe { sys::getauxval(EXECUTED_AS) };
    let started = core::ptr::with_exposed_provenance::<c_char>(started);
    if !started.is_null()
        && set_path(started, ENDING)
        && let Some(found) = present()
    {
        return Some(found);
    }
    beside_executable()
}

/// The same by the name that the kernel has for the executable; apart, because of the room that it
/// takes.
#[cold]
#[inline(never)]
fn beside_executable() -> Option<Identity> {
    let mut own = [0; 4000];
    // SAFETY: there is so much room, and a zero behind it.
    let length = unsafe {
        let name = c"/proc/self/exe".as_ptr();
        sys::readlink(name, own.as_mut_ptr(), own.len() - 1)
    };
    (length > 0 && set_path(own.as_ptr(), ENDING))
        .then(present)
        .flatten()
}

/// Notes where the file is: the path that ends with a zero at `first`, and `ending`.
fn set_path(first: *const c_char, ending: &[u8]) -> bool {
    let mut length = 0;
    // SAFETY: the string is read up to its zero.
    while unsafe { first.add(length).read() } != 0 {
        length += 1;
    }
    // SAFETY: this many bytes are there.
    let first = unsafe { core::slice::from_raw_parts(first.cast::<u8>(), length) };
    let path = space(length + ending.len(), 0_u8);
    for (to, from) in path.iter_mut().zip(first.iter().chain(ending)) {
        *to = *from;
    }
    PATH.store(path.as_mut_ptr().cast(), Ordering::Relaxed);
    !path.is_empty()
}

/// Reads the file for the first time.
fn open_first() -> Option<Contents> {
    // SAFETY: the path ends with a zero; there are no other threads that could know the memory.
    unsafe {
        let file = sys::open(PATH.load(Ordering::Relaxed), READ_ONLY_AT_ONCE);
        if file < 0 {
            return None;
        }
        let room = arena::room(SMALL);
        let size = sys::read(file, room.as_mut_ptr().cast(), room.len());
        sys::close(file);
        let size = usize::try_from(size).ok()?;
        if size < room.len() {
            arena::use_room(size);
            let bytes = room.get(..size)?;
            let mapped = false;
            return Some(Contents { bytes, mapped });
        }
        map().map(|(contents, _)| contents)
    }
}

fn identity(status: &Status) -> Identity {
    let modified = status.modified;
    let (seconds, nanoseconds) = (modified.seconds, modified.nanoseconds);
    [
        status.device,
        status.inode,
        seconds.cast_unsigned(),
        nanoseconds.cast_unsigned(),
    ]
}

/// Maps the file, and tells which one it is.
pub(super) fn map() -> Option<(Contents, Identity)> {
    const READ: c_int = 1;
    const PRIVATE_POPULATED: c_int = 0x2 | 0x8000;
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero; the file is mapped as long as it is, and replaced but
    // never changed.
    unsafe {
        let file = sys::open(PATH.load(Ordering::Relaxed), READ_ONLY_AT_ONCE);
        if file < 0 {
            return None;
        }
        let known = sys::fstat(file, &raw mut status) == 0 && status.size > 0;
        let size = status.size as usize;
        let start = match known {
            true => sys::mmap(
                core::ptr::null_mut(),
                size,
                READ,
                PRIVATE_POPULATED,
                file,
                0,
            ),
            false => core::ptr::without_provenance_mut(usize::MAX),
        };
        sys::close(file);
        if start.addr() == usize::MAX {
            return None;
        }
        let bytes = core::slice::from_raw_parts(start.cast(), size);
        let mapped = true;
        Some((Contents { bytes, mapped }, identity(&status)))
    }
}
