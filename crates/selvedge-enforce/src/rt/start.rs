//! The beginning and the end of threads.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::diverge;
use super::event::{self, hidden};
use super::history;
use super::inputs;
use super::plan;
use super::refresh;
use super::serial;
use super::shared;
use super::stub::stubs;
use super::sys::{self, Start};
use super::thread::{self, COUNTING, TRACKING};

stubs![
    "__wrap_main" => main,
    "__wrap_pthread_create" => create,
    "__wrap_pthread_join" => join,
    "__wrap_pthread_exit" => exit,
    "__wrap_thrd_exit" => exit_c11,
];

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

unsafe extern "C" {
    #[cfg_attr(not(test), link_name = "__real_main")]
    #[cfg_attr(test, link_name = "main")]
    fn program(count: c_int, arguments: *mut *mut c_char, variables: *mut *mut c_char) -> c_int;
    #[cfg_attr(not(test), link_name = "__real_pthread_exit")]
    fn pthread_exit(result: *mut c_void) -> !;
    #[cfg_attr(not(test), link_name = "__real_thrd_exit")]
    fn thrd_exit(result: c_int) -> !;
}

// C++'s library does without atomic operations as long as the C library says that there is only one thread; the
// verifier never says so. Older C libraries do not have the variable.
core::arch::global_asm!(
    ".weak __libc_single_threaded",
    ".p2align 4",
    "selvedge_has_threads:",
    "mov rax, qword ptr [rip + __libc_single_threaded@GOTPCREL]",
    "test rax, rax",
    "je 2f",
    "mov byte ptr [rax], 0",
    "2: ret",
);

unsafe extern "C" {
    fn selvedge_has_threads();
}

/// How much of a thread's own control block lies above its thread pointer, in glibc.
const ABOVE_POINTER: usize = 4096;

extern "C" fn main(count: c_int, arguments: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
    let me = thread::current();
    // The memory above belongs to the main thread as well: arguments and environment.
    me.stack_top = usize::MAX;
    // SAFETY: it writes a variable that is there for that.
    unsafe { selvedge_has_threads() };
    refresh::begin();
    inputs::check(count);
    begin(0);
    let program: Main = program;
    // SAFETY: what the program was started with, and an environment that ends where it begins.
    let status = unsafe { program(count, arguments, inputs::NOTHING.as_ptr()) };
    event::end(thread::current());
    status
}

/// The running thread becomes the one with this number.
fn begin(number: u32) {
    let me = thread::current();
    let pointer = thread::pointer();
    me.index = number;
    me.locals = (pointer - shared::size_of_locals(), pointer + ABOVE_POINTER);
    let plan = plan::present();
    let counts = if plan.list(number).len() > 0 {
        COUNTING
    } else {
        0
    };
    let tracks = if plan.tracks() { TRACKING } else { 0 };
    me.active = counts | tracks;
    history::begin(me, number);
    if plan.serial {
        serial::join(me);
    }
}

/// The data that a new thread is given.
struct Birth {
    start: AtomicUsize,
    argument: AtomicPtr<c_void>,
    number: AtomicU32,
    stage: AtomicU32,
}

/// The record is free.
const UNUSED: u32 = 0;
/// The creator has something to do before the thread may begin.
const HELD: u32 = 1;
/// The thread sleeps until then.
const ASLEEP: u32 = 2;
/// The thread may begin.
const BORN: u32 = 3;

/// Records for threads that are about to begin. They are not allocated, because a thread that has
/// to give back another one's memory gets an arena of its own for that, which takes as long as
/// starting it.
static BIRTHS: [Birth; 64] = [const {
    Birth {
        start: AtomicUsize::new(0),
        argument: AtomicPtr::new(core::ptr::null_mut()),
        number: AtomicU32::new(0),
        stage: AtomicU32::new(UNUSED),
    }
}; 64];

/// A record that nobody uses, which is held from now on.
fn birth() -> &'static Birth {
    loop {
        let order = Ordering::SeqCst;
        let taken = |birth: &&Birth| {
            birth
                .stage
                .compare_exchange(UNUSED, HELD, order, order)
                .is_ok()
        };
        if let Some(free) = BIRTHS.iter().find(taken) {
            return free;
        }
        // All entries are in use by threads that are about to begin. One of them soon has. SAFETY:
        // nothing to rely on.
        unsafe { sys::sched_yield() };
    }
}

pub(super) extern "C" fn create(
    handle: *mut usize,
    attributes: usize,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let me = thread::current();
    event::settle(me);
    refresh::decide();
    event::about_thread(me, Some(me.site));
    let plan = plan::present();
    let number = plan::numbering().child(me.index, me.children);
    if number.is_none() && plan.strict {
        diverge::refuse(format_args!(
            "the program left what was verified: thread {} created its thread number {}",
            me.index, me.children
        ));
    }
    // Storing the handle may be an event.
    let event = |place: plan::Place| place.counted || place.tracked;
    let counted = me.active != 0 && plan.place(me.site).is_some_and(event);
    let serial = plan::present().serial;
    if serial {
        serial::expect(number.unwrap_or(u32::MAX));
    }
    let birth = birth();
    birth.start.store(start as usize, Ordering::Relaxed);
    birth.argument.store(argument, Ordering::Relaxed);
    birth
        .number
        .store(number.unwrap_or(u32::MAX), Ordering::Relaxed);
    if !counted {
        birth.stage.store(BORN, Ordering::SeqCst);
    }
    let mut made = 0;
    let first = if counted { &raw mut made } else { handle };
    let told = (&raw const *birth).cast_mut().cast();
    // SAFETY: `started` gets what it expects.
    let result = unsafe { sys::pthread_create(first, attributes, started, told) };
    if result != 0 {
        birth.stage.store(UNUSED, Ordering::SeqCst);
        if serial {
            serial::forget(number.unwrap_or(u32::MAX));
        }
        return result;
    }
    thread::current().children += 1;
    if counted {
        // SAFETY: the program says that a variable is there.
        hidden(|| unsafe { handle.write(made) });
        if birth.stage.swap(BORN, Ordering::SeqCst) == ASLEEP {
            sys::futex_wake_all(birth.stage.as_ptr());
        }
    }
    0
}

/// Waits until the creator is ready.
fn await_birth(stage: &AtomicU32) {
    const FOR_EVER: i64 = 1_000_000_000;
    let order = Ordering::SeqCst;
    while stage.load(order) != BORN {
        if stage.compare_exchange(HELD, ASLEEP, order, order) != Err(BORN) {
            sys::futex_wait(stage.as_ptr(), ASLEEP, FOR_EVER);
        }
    }
}

unsafe extern "C" fn started(told: *mut c_void) -> *mut c_void {
    // SAFETY: one of the records.
    let birth = unsafe { &*told.cast::<Birth>() };
    let frame = 0_u8;
    thread::current().stack_top = (&raw const frame).addr();
    await_birth(&birth.stage);
    begin(birth.number.load(Ordering::Relaxed));
    let start = birth.start.load(Ordering::Relaxed);
    let argument = birth.argument.load(Ordering::Relaxed);
    birth.stage.store(UNUSED, Ordering::SeqCst);
    // SAFETY: what the program asked for, as `create` noted it.
    let start = unsafe { core::mem::transmute::<usize, Start>(start) };
    // SAFETY: as above.
    let result = unsafe { start(argument) };
    event::end(thread::current());
    result
}

/// Joins a thread.
pub(super) fn wait_for(handle: usize, result: usize) -> c_int {
    let me = thread::current();
    event::settle(me);
    event::about_thread(me, Some(me.site));
    // SAFETY: as the program asks.
    event::aside(|| unsafe { sys::pthread_join(handle, result) })
}

extern "C" fn join(handle: usize, result: *mut usize) -> c_int {
    let mut value = 0_usize;
    let number = wait_for(handle, (&raw mut value).expose_provenance());
    if number == 0 && !result.is_null() {
        // SAFETY: the program says that a variable is there.
        hidden(|| unsafe { result.write(value) });
    }
    number
}

extern "C" fn exit(result: *mut c_void) -> ! {
    event::end(thread::current());
    // SAFETY: as the program asks.
    unsafe { pthread_exit(result) }
}

extern "C" fn exit_c11(result: c_int) -> ! {
    event::end(thread::current());
    // SAFETY: as the program asks.
    unsafe { thrd_exit(result) }
}
