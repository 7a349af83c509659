//! Hints to the compiler, as in [`std::hint`].

/// Signals the processor that it is inside a busy-wait spin loop.
///
/// Nothing depends on it: loops that only wait are recognised without.
pub fn spin_loop() {}

/// Informs the compiler that this point in the code is not reachable. Reaching it is a failure.
///
/// # Safety
///
/// None is needed here: this function panics.
#[track_caller]
pub unsafe fn unreachable_unchecked() -> ! {
    unreachable!("unreachable_unchecked was reached!");
}

#[doc(no_inline)]
pub use std::hint::black_box;
