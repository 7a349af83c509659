//! The program's libc, as far as the runtime stands in for it: POSIX and C11 threads, memory,
//! strings, output, time.
//!
//! Functions take addresses of the program as plain numbers: they are claims of the program, not
//! pointers that Rust could rely on (see [`program`]). A function that may stop for good (a bug, a
//! refusal) or be suspended holds nothing at that moment that would have to be dropped.

/// Defines `entries`: the listed functions of the module, each with the number of its arguments.
macro_rules! entry_points {
    ($($name:ident($arguments:tt)),* $(,)?) => {
        pub(crate) fn entries() -> Vec<crate::abi::EntryPoint> {
            vec![$((
                stringify!($name),
                crate::posix::entry_points!(@address $name $arguments),
                $arguments,
            )),*]
        }
    };
    (@address $name:ident 0) => { $name as extern "C" fn() -> _ as usize };
    (@address $name:ident 1) => { $name as extern "C" fn(_) -> _ as usize };
    (@address $name:ident 2) => { $name as extern "C" fn(_, _) -> _ as usize };
    (@address $name:ident 3) => { $name as extern "C" fn(_, _, _) -> _ as usize };
    (@address $name:ident 4) => { $name as extern "C" fn(_, _, _, _) -> _ as usize };
    (@address $name:ident 5) => { $name as extern "C" fn(_, _, _, _, _) -> _ as usize };
    (@address $name:ident 6) => { $name as extern "C" fn(_, _, _, _, _, _) -> _ as usize };
}
pub(crate) use entry_points;

mod attributes;
mod barrier;
mod bytes;
mod c11;
mod calendar;
mod clock;
mod condition;
mod exit;
mod format;
mod futex;
mod handlers;
mod heap;
mod host;
mod key;
pub(crate) mod library;
mod locale;
mod multibyte;
mod mutex;
mod numbers;
pub(crate) mod object;
pub(crate) mod once;
mod output;
mod print;
mod process;
pub(crate) mod program;
mod random;
mod registers;
mod resources;
mod rwlock;
mod semaphore;
mod spin;
pub(crate) mod state;
mod strings;
mod system;
mod system_values;
pub(crate) mod temporal;
mod thread;
mod verifier;
mod wide;

pub(crate) use exit::{after_main, after_start};
pub(crate) use resources::forget_files;
pub(crate) use state::{begin, booted, reset};
pub(crate) use thread::leftover;

/// The functions of which all that they change is written to the log of [`crate::undo`].
pub(crate) const UNDOABLE: [&str; 39] = [
    "memcpy",
    "memmove",
    "memset",
    "__errno_location",
    "__tls_get_addr",
    "malloc",
    "calloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "pthread_create",
    "pthread_join",
    "pthread_self",
    "pthread_equal",
    "sched_yield",
    "pthread_mutex_init",
    "pthread_mutex_destroy",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_cond_init",
    "pthread_cond_destroy",
    "pthread_cond_wait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_unlock",
    "pthread_barrier_init",
    "pthread_barrier_wait",
    "sem_init",
    "sem_wait",
    "sem_post",
    "__VERIFIER_assume",
    "__VERIFIER_nondet_bool",
    "selvedge_choose",
    "selvedge_assume",
    "selvedge_assert",
    "selvedge_range",
];

/// The functions that the stubs inside the program's shared object jump to.
pub(crate) fn entries() -> Vec<crate::abi::EntryPoint> {
    [
        attributes::entries(),
        barrier::entries(),
        bytes::entries(),
        c11::entries(),
        calendar::entries(),
        clock::entries(),
        condition::entries(),
        exit::entries(),
        exit::unwinding(),
        futex::entries(),
        handlers::entries(),
        heap::entries(),
        key::entries(),
        key::aliases(),
        library::entries(),
        locale::entries(),
        multibyte::entries(),
        mutex::entries(),
        numbers::entries(),
        once::entries(),
        output::entries(),
        print::entries(),
        process::entries(),
        random::entries(),
        resources::entries(),
        rwlock::entries(),
        semaphore::entries(),
        spin::entries(),
        strings::entries(),
        system::entries(),
        system_values::entries(),
        temporal::entries(),
        thread::entries(),
        verifier::entries(),
        wide::entries(),
    ]
    .concat()
}
