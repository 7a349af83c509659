//! The program's libc, as far as the runtime stands in for it: POSIX and C11 threads, memory,
//! strings, output, time.
//!
//! Functions take addresses of the program as plain numbers: they are claims of the program, not
//! pointers that Rust could rely on (see [`program`]). A function that may stop for good (a bug, a
//! refusal) or be suspended holds nothing at that moment that would have to be dropped.

/// Defines `entries`: the listed functions of the module, by name and address.
macro_rules! entry_points {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn entries() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), $name as *const () as usize)),*]
        }
    };
}
pub(crate) use entry_points;

mod attributes;
mod barrier;
mod bytes;
mod c11;
mod clock;
mod condition;
mod exit;
mod format;
mod futex;
mod handlers;
mod heap;
mod host;
mod key;
mod mutex;
mod numbers;
pub(crate) mod object;
pub(crate) mod once;
mod output;
mod print;
mod process;
pub(crate) mod program;
mod random;
mod rwlock;
mod semaphore;
mod spin;
pub(crate) mod state;
mod strings;
mod system;
mod thread;
mod verifier;
mod wide;

pub(crate) use exit::{after_main, after_start};
pub(crate) use state::{begin, booted, reset};
pub(crate) use thread::leftover;

/// The functions that the stubs inside the program's shared object jump to: name and address.
pub(crate) fn entries() -> Vec<(&'static str, usize)> {
    [
        attributes::entries(),
        barrier::entries(),
        bytes::entries(),
        c11::entries(),
        clock::entries(),
        condition::entries(),
        exit::entries(),
        handlers::entries(),
        heap::entries(),
        key::entries(),
        key::aliases(),
        mutex::entries(),
        numbers::entries(),
        numbers::aliases(),
        once::entries(),
        output::entries(),
        print::entries(),
        process::entries(),
        random::entries(),
        rwlock::entries(),
        semaphore::entries(),
        spin::entries(),
        strings::entries(),
        system::entries(),
        thread::entries(),
        verifier::entries(),
        wide::entries(),
    ]
    .concat()
}
