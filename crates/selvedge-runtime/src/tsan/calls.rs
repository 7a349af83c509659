//! Function entry and exit, and what needs no work.

use crate::abi::{Entry, Export};
use crate::gate::gate;
use crate::runtime::with;

extern "C" fn enter(return_address: usize) {
    // SAFETY: the gate is mapped while a program is loaded.
    let stack_pointer = unsafe { (*gate()).stack_pointer };
    with(|runtime| {
        let thread = runtime.current();
        thread.frames.enter(return_address, stack_pointer);
        thread.reached(stack_pointer);
    });
}

extern "C" fn leave() {
    with(|runtime| runtime.current().frames.leave());
}

/// `__tsan_init`, and requests to look away, which are not granted: a race is a race.
extern "C" fn nothing() {}

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let functions: [(&'static str, *const ()); 5] = [
        ("__tsan_func_entry", enter as _),
        ("__tsan_func_exit", leave as _),
        ("__tsan_init", nothing as _),
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
