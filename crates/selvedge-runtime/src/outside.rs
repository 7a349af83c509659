//! Memory of the process that is neither the program's nor the runtime's: the C library's.
//!
//! Programs read it through pointers that the C library hands out, such as the tables behind
//! `isdigit`. A write there would change the worker. All other memory outside of the program's image, heaps and
//! stacks belongs to the checker, and accessing it is a bug of the program.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::loader::Range;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// How much of the thread's own block the C library uses below and above the thread pointer.
const LOCALS: (usize, usize) = (8 << 10, 4 << 10);

/// The memory of the process before the first program was loaded.
pub(crate) fn of_worker() -> Vec<Range> {
    static OF_WORKER: OnceLock<Vec<Range>> = OnceLock::new();
    OF_WORKER.get_or_init(shared).clone()
}

/// The memory of shared libraries, the C library's part of the thread, and the environment.
pub(crate) fn shared() -> Vec<Range> {
    let mut libraries: Vec<Range> = Vec::new();
    // SAFETY: the callback gets the vector that lives meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut libraries).cast()) };
    libraries.extend([thread_block(), environment()]);
    libraries
}

/// Notes the segments of one loaded object; of the process's own program, which has no name, only
/// those that nobody can write, for the runtime hands out constants.
unsafe extern "C" fn note(
    object: *mut libc::dl_phdr_info,
    _: usize,
    libraries: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a description of an object, and what `shared` gave it.
    let (object, libraries) = unsafe { (&*object, &mut *libraries.cast::<Vec<Range>>()) };
    // SAFETY: names are strings that live as long as the object.
    let named = !object.dlpi_name.is_null() && unsafe { *object.dlpi_name } != 0;
    for n in 0..usize::from(object.dlpi_phnum) {
        // SAFETY: there are this many headers.
        let header = unsafe { &*object.dlpi_phdr.add(n) };
        let constant = header.p_flags & libc::PF_W == 0;
        if (named || constant) && header.p_type == libc::PT_LOAD {
            let start = object.dlpi_addr as usize + header.p_vaddr as usize;
            let end = start + header.p_memsz as usize;
            libraries.push(Range { start, end });
        }
    }
    0
}

fn thread_block() -> Range {
    let thread: usize;
    // SAFETY: reads the thread pointer, which points to itself.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly)) };
    Range {
        start: thread - LOCALS.0,
        end: thread + LOCALS.1,
    }
}

fn environment() -> Range {
    // SAFETY: nobody changes the environment of this process; the list ends with a null pointer.
    unsafe {
        let start = environ.addr();
        let mut end = start;
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            end = end.max((*next).addr() + libc::strlen(*next) + 1);
            next = next.add(1);
        }
        Range { start, end }
    }
}
