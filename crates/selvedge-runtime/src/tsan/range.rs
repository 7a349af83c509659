//! Accesses to ranges of bytes, and the functions that copy and fill memory.

use std::ffi::{c_int, c_void};

use crate::abi::{Entry, Export};
use crate::current;
use crate::tsan::plain::{self, By};

extern "C" fn read_range(address: usize, size: usize) {
    plain::range(address, size, false, current::site(), By::Program);
}

extern "C" fn write_range(address: usize, size: usize) {
    plain::range(address, size, true, current::site(), By::Program);
}

extern "C" fn copy(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void {
    let site = current::site();
    plain::range(from.addr(), size, false, site, By::Runtime);
    plain::range(to.addr(), size, true, site, By::Runtime);
    current::writes_range(to.addr(), size);
    // SAFETY: the program asked for this copy; a bad address faults and is reported. Overlapping
    // ranges, which `memcpy` does not allow, are copied as `memmove` does.
    unsafe { libc::memmove(to, from, size) }
}

extern "C" fn fill(to: *mut c_void, byte: c_int, size: usize) -> *mut c_void {
    let site = current::site();
    plain::range(to.addr(), size, true, site, By::Runtime);
    current::writes_range(to.addr(), size);
    // SAFETY: the program asked for this; a bad address faults and is reported.
    unsafe { libc::memset(to, byte, size) }
}

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let functions: [(&'static str, *const (), u8); 8] = [
        ("__tsan_read_range", read_range as _, 2),
        ("__tsan_write_range", write_range as _, 2),
        ("__tsan_memcpy", copy as _, 3),
        ("__tsan_memmove", copy as _, 3),
        ("__tsan_memset", fill as _, 3),
        ("memcpy", copy as _, 3),
        ("memmove", copy as _, 3),
        ("memset", fill as _, 3),
    ];
    let export = |(name, function, arguments): (&'static str, *const (), u8)| Export {
        name: name.into(),
        function: function.addr(),
        entry: Entry::Arguments(arguments),
    };
    functions.into_iter().map(export).collect()
}
