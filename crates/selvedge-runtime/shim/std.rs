//! Replaces functions of Rust's standard library in programs that are checked.
//!
//! Everything else of the standard library runs as it is, instrumented like the rest of the
//! program. A replacement does nothing that the program could tell from the original, and avoids
//! steps that a check would have to explore for nothing: loops that spin a hundred times before
//! they wait, signal stacks, counters of threads, locks around standard output.
//!
//! The linking step puts the mangled symbol of the compiler at hand in the place of each path below.
//! It is compiled with that compiler, and a path that its library does not have is an error.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::num::NonZero;
use std::panic::{PanicHookInfo, RefUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

unsafe extern "C" {
    fn __assert_fail(
        text: *const c_char,
        file: *const c_char,
        line: c_uint,
        function: *const c_char,
    ) -> !;
    fn write(file: c_int, data: *const c_void, size: usize) -> isize;
    fn malloc(size: usize) -> *mut c_void;
    /// Notes what `std::env::args` returns. The loader has called it with the arguments of the checker.
    #[link_name = "std::sys::args::unix::imp::ARGV_INIT_ARRAY::init_wrapper"]
    fn note_arguments(count: c_int, values: *const *const u8, environment: *const *const u8);
}

/// A panic that may end the program.
struct Panic {
    message: CString,
    file: CString,
    line: u32,
}

thread_local! {
    static LAST: Cell<Option<Panic>> = const { Cell::new(None) };
}

/// Runs `main` without signal stacks and signal handlers. A panic that leaves it is a bug.
#[unsafe(export_name = "std::rt::lang_start_internal")]
pub fn lang_start(
    main: &(dyn Fn() -> i32 + Sync + RefUnwindSafe),
    arguments: isize,
    values: *const *const u8,
    _signals: u8,
) -> isize {
    // SAFETY: what `main` was given; the environment is not looked at.
    unsafe { note_arguments(arguments as c_int, values, ptr::null()) };
    // State that is set up on first use is set up here, where no other thread can be first.
    LAST.set(None);
    let _ = std::thread::current();
    match catch_unwind(main) {
        Ok(code) => code as isize,
        Err(payload) => {
            std::mem::forget(payload);
            // A hook of the program's own, or a payload that is passed on, leaves nothing here.
            let panic = LAST.take().unwrap_or_else(|| Panic {
                message: c"the main thread panicked".to_owned(),
                file: CString::default(),
                line: 0,
            });
            let (message, file) = (panic.message.as_ptr(), panic.file.as_ptr());
            // SAFETY: these are strings with an end.
            unsafe { __assert_fail(message, file, panic.line, c"main".as_ptr()) }
        }
    }
}

/// Shows a panic without a backtrace, and remembers it.
#[unsafe(export_name = "std::panicking::default_hook")]
pub fn default_hook(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("Box<dyn Any>");
    let (file, line) = info.location().map_or(("", 0), |at| (at.file(), at.line()));
    show(2, format_args!("a thread panicked at {file}:{line}: {text}\n"));
    let c = |text: &str| CString::new(text).unwrap_or_default();
    LAST.set(Some(Panic {
        message: c(&format!("panicked at {file}:{line}: {text}")),
        file: c(file),
        line,
    }));
}

fn show(file: c_int, text: fmt::Arguments<'_>) {
    let text = fmt::format(text);
    // SAFETY: the text lives until the call returns.
    unsafe { write(file, text.as_ptr().cast(), text.len()) };
}

/// `print!` without a buffer and its lock: a line of output is one step.
#[unsafe(export_name = "std::io::stdio::_print")]
pub fn print(text: fmt::Arguments<'_>) {
    show(1, text);
}

/// The same for `eprint!`.
#[unsafe(export_name = "std::io::stdio::_eprint")]
pub fn eprint(text: fmt::Arguments<'_>) {
    show(2, text);
}

/// Backtraces are not shown, so that the code for that is not part of the program.
#[unsafe(export_name = "<<std::sys::backtrace::BacktraceLock>::print::DisplayBacktrace as core::fmt::Display>::fmt")]
pub fn show_backtrace(_backtrace: *const c_void, _to: &mut fmt::Formatter<'_>) -> fmt::Result {
    Ok(())
}

/// A number that no other thread has: the address of a block that is never freed. A counter would
/// depend on the order in which threads are created.
#[unsafe(export_name = "<std::thread::id::ThreadId>::new")]
pub fn thread_id() -> NonZero<u64> {
    // SAFETY: always safe.
    let address = unsafe { malloc(1) };
    NonZero::new(address as u64).expect("there is memory")
}

/// Functions that the standard library uses where the system has them. Others are refused.
///
/// # Safety
///
/// `name` is a string with an end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    unsafe extern "C" {
        fn dlvsym(
            library: *mut c_void,
            name: *const c_char,
            version: *const c_char,
        ) -> *mut c_void;
    }
    const OPTIONAL: [&CStr; 2] = [c"__pthread_get_minstack", c"gnu_get_libc_version"];
    // SAFETY: as the caller says.
    match OPTIONAL.contains(&unsafe { CStr::from_ptr(name) }) {
        true => ptr::null_mut(),
        // SAFETY: as the caller says.
        false => unsafe { dlvsym(library, name, c"".as_ptr()) },
    }
}

/// Waits for a mutex, whose state is 0 if it is free and 1 if it is held.
#[unsafe(export_name = "<std::sys::sync::mutex::futex::Mutex>::lock_contended")]
pub fn lock_contended(state: &AtomicU32) {
    while state.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
}

/// Held for writing; otherwise these bits are the number of readers.
const WRITTEN: u32 = (1 << 30) - 1;
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 31;

/// Waits until no writer has a lock nor waits for it.
#[unsafe(export_name = "<std::sys::sync::rwlock::futex::RwLock>::read_contended")]
pub fn read_contended(state: &AtomicU32) {
    loop {
        let now = state.load(Relaxed);
        let free = now & (READERS_WAIT | WRITERS_WAIT) == 0 && now < WRITTEN - 1;
        if free && state.compare_exchange(now, now + 1, Acquire, Relaxed).is_ok() {
            return;
        }
    }
}

/// Waits until nobody has a lock, and keeps others from reading meanwhile. The standard library
/// takes the mark away when it unlocks.
#[unsafe(export_name = "<std::sys::sync::rwlock::futex::RwLock>::write_contended")]
pub fn write_contended(state: &AtomicU32) {
    loop {
        let now = state.load(Relaxed);
        let (next, order) = match now & WRITTEN {
            0 => (now | WRITTEN, Acquire),
            _ if now & WRITERS_WAIT == 0 => (now | WRITERS_WAIT, Relaxed),
            _ => continue,
        };
        let done = state.compare_exchange(now, next, order, Relaxed).is_ok();
        if done && now & WRITTEN == 0 {
            return;
        }
    }
}
