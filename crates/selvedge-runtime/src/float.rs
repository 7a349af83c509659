//! The floating-point environment of a thread: rounding, masked exceptions and exception flags, in
//! the registers MXCSR (SSE) and x87 control and status.
//!
//! Every thread has its own; a new thread inherits that of its creator. The explorer runs with the
//! default modes, whatever the program does to its own. A program that has no means of changing or
//! reading it ([`Image::uses_float`](crate::loader::Image)) does not pay for it.

use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// The contents of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Float {
    mxcsr: u32,
    /// The control word, and the flags of the status word in the upper half.
    x87: u32,
}

/// The exception flags of MXCSR, and those of the x87 status word (the last one: stack fault).
const FLAGS: u32 = 0x3f;
const X87_FLAGS: u32 = 0x7f;

static IN_USE: AtomicBool = AtomicBool::new(false);

/// Says whether the program can tell its environment from another.
pub(crate) fn set_in_use(used: bool) {
    IN_USE.store(used, Ordering::Relaxed);
}

/// Whether it can.
#[inline(always)]
pub(crate) fn in_use() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

impl Float {
    /// As a program finds it: round to nearest, all exceptions masked, none raised.
    pub(crate) const DEFAULT: Float = Float {
        mxcsr: 0x1f80,
        x87: 0x037f,
    };

    /// The environment of the running code.
    #[inline(always)]
    pub(crate) fn now() -> Float {
        let mut control = 0_u16;
        let raised: u16;
        // SAFETY: reads two registers and changes nothing.
        unsafe {
            asm!("fnstcw [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
            asm!("fnstsw ax", out("ax") raised, options(nomem, nostack, preserves_flags));
        }
        Float {
            mxcsr: mxcsr(),
            x87: u32::from(control) | (u32::from(raised) & X87_FLAGS) << 16,
        }
    }

    /// Makes it that of the running code, which has the default modes, and x87 flags that are clear.
    #[inline(always)]
    pub(crate) fn enter(self) {
        if self.mxcsr != mxcsr() {
            set_mxcsr(self.mxcsr);
        }
        if self.x87 != Float::DEFAULT.x87 {
            set_x87(self.x87);
        }
    }

    /// Returns the environment of the running code, which goes on with the default modes.
    #[inline(always)]
    pub(crate) fn leave() -> Float {
        let float = Float::now();
        if float.mxcsr & !FLAGS != Float::DEFAULT.mxcsr {
            set_mxcsr(Float::DEFAULT.mxcsr);
        }
        if float.x87 != Float::DEFAULT.x87 {
            set_x87(Float::DEFAULT.x87);
        }
        float
    }

    /// All of it as one number.
    #[inline(always)]
    pub(crate) fn word(self) -> usize {
        self.mxcsr as usize | (self.x87 as usize) << 32
    }
}

#[inline(always)]
fn mxcsr() -> u32 {
    let mut word = 0_u32;
    // SAFETY: stores a register.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
    word
}

fn set_mxcsr(word: u32) {
    // SAFETY: the word was read from this register, so that no reserved bit is set. Rust code that
    // runs between a thread's entry and its next switch computes with no floating-point numbers
    // whose rounding matters.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
}

#[cold]
fn set_x87(word: u32) {
    let mut environment = [0_u32; 7];
    // SAFETY: saves the environment and loads it with another control word and other flags. Its
    // register stack is empty, as it always is in between functions.
    unsafe {
        let at = environment.as_mut_ptr();
        asm!("fnstenv [{}]", in(reg) at, options(nostack, preserves_flags));
        *at = *at & !0xffff | word & 0xffff;
        *at.add(1) = *at.add(1) & !X87_FLAGS | word >> 16;
        asm!("fldenv [{}]", in(reg) at, options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_left_and_entered_again() {
        let upward = Float {
            mxcsr: 0x5f80 | 0x20,
            x87: 0x0b7f | 0x20 << 16,
        };
        let before = Float::leave();
        upward.enter();
        assert_eq!(Float::now(), upward);
        assert_eq!(Float::leave(), upward);
        let modes = Float::now();
        assert_eq!(modes.mxcsr & !FLAGS, Float::DEFAULT.mxcsr);
        assert_eq!(modes.x87, Float::DEFAULT.x87);
        before.enter();
    }
}
