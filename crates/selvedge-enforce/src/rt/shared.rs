//! Tells which memory the threads of the program share.

use core::ffi::{c_int, c_void};

use super::image;
use super::sys::{self, Header, Module};

const LOAD: u32 = 1;
const THREAD_LOCALS: u32 = 7;
/// The segment that is written only while the program is loaded, with tables of virtual functions
/// for example.
const RELOCATED: u32 = 0x6474_e552;
const WRITABLE: u32 = 2;

/// Whether an address is none that threads share: constants of the program, variables of the C
/// library. Asked only about accesses that nobody expected, so it may take its time.
pub(crate) fn is_private(address: usize) -> bool {
    struct Asked {
        address: usize,
        private: bool,
    }
    unsafe extern "C" fn visit(module: *mut Module, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: both pointers are what `dl_iterate_phdr` and its caller pass.
        let (module, asked) = unsafe { (&*module, &mut *data.cast::<Asked>()) };
        // SAFETY: the table of a loaded module.
        let headers = unsafe { headers(module.headers, module.count.into()) };
        let inside = |header: &&Header| {
            let start = module.base + header.address;
            (start..start + header.size).contains(&asked.address)
        };
        let of_kind = |kind| {
            headers
                .iter()
                .filter(inside)
                .find(|header| header.kind == kind)
        };
        let relocated = of_kind(RELOCATED).is_some();
        let Some(loaded) = of_kind(LOAD) else {
            return 0;
        };
        let ours = module.base == image::base();
        asked.private = !ours || relocated || loaded.flags & WRITABLE == 0;
        1
    }
    let mut asked = Asked {
        address,
        private: address < 4096,
    };
    // SAFETY: `visit` gets the data that it expects.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut asked).cast()) };
    asked.private
}

/// The size of the executable's thread-local variables, which end at the thread pointer.
pub(crate) fn size_of_locals() -> usize {
    let (table, count) = image::program_headers();
    // SAFETY: the table of the running executable.
    let headers = unsafe { headers(table, count) };
    let locals = headers.iter().find(|header| header.kind == THREAD_LOCALS);
    // The linker may leave a gap for alignment below the thread pointer.
    locals.map_or(0, |header| header.size.next_multiple_of(64))
}

/// # Safety
///
/// There are `count` headers at `table`, for as long as the program runs.
unsafe fn headers(table: *const Header, count: usize) -> &'static [Header] {
    // SAFETY: as promised.
    unsafe { core::slice::from_raw_parts(table, count) }
}
