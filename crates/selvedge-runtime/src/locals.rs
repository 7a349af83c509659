//! Thread-local variables.

use std::ffi::c_void;

use crate::abi::EntryPoint;
use crate::arena::pointer;
use crate::liveness::Liveness;
use crate::runtime::{Phase, Runtime, with};
use crate::{current, loader};

/// The argument that the compiler passes to `__tls_get_addr`: a module, of which there is one, and an offset.
#[repr(C)]
struct Index {
    module: usize,
    offset: usize,
}

/// The address of a thread-local variable of the running thread.
extern "C" fn tls_get_addr(index: *const Index) -> *mut c_void {
    let site = current::site();
    with(|runtime| {
        if runtime.phase == Phase::Boot && !runtime.placed {
            // A constructor asks before the dynamic linker has told where the program lies.
            runtime.place(loader::base_of(site.0 as usize));
        }
        // SAFETY: the compiler passes a pointer to its index, which lies in the loaded image.
        let offset = unsafe { (*index).offset };
        pointer(runtime.threads[runtime.running].slot.locals + offset)
    })
}

/// The address of the running thread's `errno`.
extern "C" fn errno_location() -> *mut c_void {
    with(|runtime| pointer(runtime.threads[runtime.running].slot.errno()))
}

/// The entry points.
pub(crate) fn entries() -> Vec<EntryPoint> {
    vec![
        ("__tls_get_addr", tls_get_addr as *const () as usize, 1),
        ("__errno_location", errno_location as *const () as usize, 0),
    ]
}

impl Runtime {
    /// The program was loaded at `base`.
    pub(crate) fn place(&mut self, base: usize) {
        if !self.placed {
            self.placed = true;
            self.image.place(base);
            self.liveness = Liveness::new(&self.image);
            self.shadow.place(self.image.whole);
            self.initialise_locals(0);
        }
    }

    /// Gives thread `index` fresh thread-local variables.
    pub(crate) fn initialise_locals(&mut self, index: usize) {
        let block = pointer::<u8>(self.threads[index].slot.locals);
        let locals = self.image.thread_locals;
        let (from, initialised) = match (&self.main_locals, index) {
            (Some(saved), 0) => (saved.as_ptr(), saved.len()),
            _ => (pointer::<u8>(locals.start).cast_const(), locals.initialised),
        };
        // SAFETY: the slot is committed and as large as the layout says; the initial contents are
        // part of the loaded image, or what `save_main_locals` copied.
        unsafe {
            block.copy_from(from, initialised);
            block
                .add(initialised)
                .write_bytes(0, locals.size - initialised);
        }
    }

    /// Makes main's thread-local variables, as constructors left them, its initial ones.
    pub(crate) fn save_main_locals(&mut self) {
        let size = self.image.thread_locals.size;
        let block = pointer::<u8>(self.threads[0].slot.locals);
        // SAFETY: main's slot is committed and as large as the layout says.
        self.main_locals = Some(unsafe { std::slice::from_raw_parts(block, size) }.into());
    }
}
