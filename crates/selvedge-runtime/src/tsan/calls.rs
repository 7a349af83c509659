//! Function entry and exit, and what needs no work.

use std::arch::naked_asm;

use crate::abi::{Entry, Export};
use crate::gate::gate;
use crate::liveness::MARK;
use crate::problem::report;
use crate::runtime::{Phase, with};
use crate::tsan::settle;

/// Passes on the frame pointer of the function that was entered.
#[unsafe(naked)]
extern "C" fn enter(return_address: usize) {
    naked_asm!("mov rsi, rbp", "jmp {entered}", entered = sym entered)
}

extern "C" fn entered(return_address: usize, frame_pointer: usize) {
    // SAFETY: the gate is mapped while a program is loaded.
    let (site, stack_pointer) = unsafe { ((*gate()).site, (*gate()).stack_pointer) };
    with(|runtime| {
        let thread = runtime.current();
        thread.frames.enter(return_address, stack_pointer);
        thread.reached(stack_pointer);
        thread.spin.enters_function(frame_pointer + 16);
        if runtime.settings.stateful && runtime.phase == Phase::Fiber {
            let liveness = &mut runtime.liveness;
            // The return address lies below the frame.
            liveness.begin_frame(site, stack_pointer + 8, frame_pointer);
        }
    });
}

/// Passes on the frame pointer of the function that is left.
#[unsafe(naked)]
extern "C" fn leave() {
    naked_asm!("mov rdi, rbp", "jmp {left}", left = sym left)
}

extern "C" fn left(frame_pointer: usize) {
    // SAFETY: the gate is mapped while a program is loaded.
    if unsafe { (*gate()).stores } != 0 {
        settle::leave();
    }
    let ended = with(|runtime| {
        let thread = runtime.current();
        thread.frames.leave();
        thread.open_range = None;
        match frame_pointer > thread.visible_stack {
            true => runtime.end_frame(frame_pointer),
            false => Ok(()),
        }
    });
    if let Err((problem, access)) = ended {
        report(problem, access);
    }
}

/// Passes on the frame pointer of the function that the mark lies in.
#[unsafe(naked)]
extern "C" fn mark() {
    naked_asm!("mov rdi, rbp", "jmp {passed}", passed = sym passed)
}

extern "C" fn passed(frame_pointer: usize) {
    // SAFETY: the gate is mapped while a program is loaded.
    let site = unsafe { (*gate()).site };
    with(|runtime| {
        if runtime.phase == Phase::Fiber && runtime.settings.unroll.is_set() {
            runtime.passes_mark(site, frame_pointer);
        }
    });
}

/// `__tsan_init`, and requests to look away, which are not granted: a race is a race.
extern "C" fn nothing() {}

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let functions: [(&'static str, *const ()); 6] = [
        ("__tsan_func_entry", enter as _),
        ("__tsan_func_exit", leave as _),
        ("__tsan_init", nothing as _),
        (MARK, mark as _),
        ("__tsan_ignore_thread_begin", nothing as _),
        ("__tsan_ignore_thread_end", nothing as _),
    ];
    let export = |(name, function): (&'static str, *const ())| Export {
        name: name.into(),
        function: function.addr(),
        entry: Entry::Light,
    };
    functions.into_iter().map(export).collect()
}
