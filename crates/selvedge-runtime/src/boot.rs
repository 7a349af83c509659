//! Begins a program: the address space that it takes, and its constructors.

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use crate::arena::{self, BOOT_STACK};
use crate::fiber;
use crate::float::Float;
use crate::layout::Layout;
use crate::loader::{self, LoadError};
use crate::machine::{Area, enter};
use crate::runtime::{Phase, with};
use crate::shadow::Shadow;
use crate::{environment, frames};

/// The address space that a program takes.
pub(crate) fn areas(layout: &Layout, image: usize, threads: usize) -> Result<Vec<Area>, LoadError> {
    let Some(heaps) = layout.heaps() else {
        let what = "the heap limit times the limit on threads is too large";
        return Err(LoadError::Unsupported(what.to_owned()));
    };
    let mut areas = vec![
        (arena::STACKS, layout.stacks(), false),
        (arena::HEAPS, heaps, false),
        (arena::LIVENESS, heaps / 8, true),
        (arena::FRAMES, frames::AREA * threads, true),
        (BOOT_STACK.start, BOOT_STACK.end - BOOT_STACK.start, true),
    ];
    let shadow = Shadow::areas(layout.stacks(), heaps, image);
    areas.extend(shadow.map(|(start, size)| (start, size, true)));
    Ok(areas)
}

/// Loads the program on a stack of its own, so that a constructor that fails can be left.
pub(crate) fn boot(library: &Path) -> Result<(), LoadError> {
    struct Boot {
        library: PathBuf,
        result: Option<Result<usize, LoadError>>,
    }
    unsafe extern "C-unwind" fn start(boot: *mut c_void, _: usize, _: usize) -> *mut c_void {
        // SAFETY: `boot` below passes a pointer to its local, which lives while the fiber runs.
        let boot = unsafe { &mut *boot.cast::<Boot>() };
        boot.result = Some(loader::open(&boot.library));
        std::ptr::null_mut()
    }
    extern "C-unwind" fn end(_: *mut c_void) -> ! {
        let host = with(|runtime| runtime.host);
        // SAFETY: the host is suspended in `boot` below.
        unsafe { fiber::leave_to(host) }
    }
    let mut boot = Boot {
        library: library.to_owned(),
        result: None,
    };
    // SAFETY: the boot stack was mapped for this purpose.
    let context =
        unsafe { fiber::prepare(BOOT_STACK.end, start, ((&raw mut boot).cast(), 0, 0), end) };
    with(|runtime| {
        runtime.phase = Phase::Boot;
        runtime.run = 1;
        runtime.begin_thread(0);
        // For constructors that ask for them.
        environment::write(&runtime.settings, runtime.threads[0].slot.stack_top);
    });
    Float::DEFAULT.enter();
    enter(context);
    let float = Float::leave();
    let failed = with(|runtime| {
        runtime.phase = Phase::Host;
        runtime.initial_float = float;
        (runtime.failure.take(), runtime.refusal.take())
    });
    match (failed, boot.result) {
        ((Some(failure), _), _) => Err(LoadError::Constructor(failure)),
        ((_, Some(refusal)), _) => Err(LoadError::Refused(refusal)),
        (_, Some(Err(error))) => Err(error),
        (_, Some(Ok(base))) => {
            with(|runtime| runtime.place(base));
            Ok(())
        }
        (_, None) => Err(LoadError::Unsupported(
            "a constructor ended the process".to_owned(),
        )),
    }
}
