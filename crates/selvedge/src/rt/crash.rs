//! A thread of a model that outgrows its stack, touches memory that is not there or was freed, or
//! aborts, is a failure of the program with a schedule, not the end of the test process.
//!
//! The handler of the signal lets the fiber go on in [`crashed`] on a stack that is kept for that.
//! Its frames are left as they are.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

use selvedge_core::{Failure, FailureKind};

use super::block::FREED;
use super::call_stack::{frames, program_place};
use super::confine;
use super::engine::{current, host, on_fiber, stop};
use super::stack::Stack;
use super::state::State;

/// The code of a fault whose address the kernel does not know; older versions of `libc` do not name it.
const SI_KERNEL: i32 = 0x80;

/// How large the stack is on which a crash is told.
const SPARE: usize = 64 << 10;

/// Why a thread cannot go on.
#[derive(Clone, Copy, Debug)]
enum Crash {
    /// It has used up its stack.
    Overflow,
    /// It touched this address.
    Touched(usize),
    /// It followed a pointer that was loaded from freed memory.
    Followed,
    /// It ended the process.
    Abort,
    /// It made this system call, which its confinement forbids.
    Forbidden(i64),
}

/// The signal handlers and signal stack from before.
struct Before {
    actions: [libc::sigaction; SIGNALS.len()],
    /// Where the C library is: a thread that crashes in there may hold its locks.
    library: Vec<Range<usize>>,
}

static BEFORE: OnceLock<Before> = OnceLock::new();

thread_local! {
    /// Where the spare stack of this OS thread ends.
    static SPARE_TOP: Cell<usize> = const { Cell::new(0) };
    /// The crash of the thread.
    static CRASH: Cell<Crash> = const { Cell::new(Crash::Abort) };
}

const SIGNALS: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGSYS,
];

/// The value of a register that was loaded from freed memory.
const FREED_WORD: u64 = u64::from_ne_bytes([FREED; 8]);

/// Makes crashes on this OS thread failures, as long as the spare stack that is returned is there.
pub(super) fn install() -> Option<Stack> {
    BEFORE.get_or_init(|| {
        let actions = SIGNALS.map(|signal| {
            // SAFETY: all zero is a valid action; the handler has the signature that the flags ask for.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(signal, &raw const action, &raw mut before);
                before
            }
        });
        let mut library = Vec::new();
        let found: *mut Vec<Range<usize>> = &raw mut library;
        // SAFETY: the callback is given the vector it expects.
        unsafe { libc::dl_iterate_phdr(Some(add_library), found.cast()) };
        Before { actions, library }
    });
    let spare = Stack::new(SPARE).ok()?;
    SPARE_TOP.set(spare.top());
    Some(spare)
}

unsafe extern "C" fn add_library(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: what `dl_iterate_phdr` promises, and what `install` passes.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Range<usize>>>()) };
    // SAFETY: a string of the dynamic linker.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let file = name.rsplit(|&letter| letter == b'/').next();
    if file.is_some_and(|file| file.starts_with(b"libc.")) {
        // SAFETY: the table of program headers of a loaded object.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        for header in headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
        {
            let begin = info.dlpi_addr as usize + header.p_vaddr as usize;
            found.push(begin..begin + header.p_memsz as usize);
        }
    }
    0
}

/// Called by the system, on the signal stack of the OS thread.
unsafe extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: what the system promises a handler with `SA_SIGINFO`.
    let (info_ref, registers) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        (&*info, &mut context.uc_mcontext.gregs)
    };
    let at = registers[libc::REG_RIP as usize] as usize;
    let top = SPARE_TOP.get();
    let inside = before.library.iter().any(|range| range.contains(&at));
    let aborts = [libc::SIGABRT, libc::SIGILL].contains(&signal);
    let anywhere = [libc::SIGABRT, libc::SIGSYS].contains(&signal);
    if top != 0 && (!inside || anywhere) && on_fiber() {
        // An address that cannot exist is not told.
        let known = info_ref.si_code != SI_KERNEL;
        let near = |register: &i64| (*register as u64).abs_diff(FREED_WORD) < 1 << 16;
        // SAFETY: signals that are no aborts have an address.
        let touched = || unsafe { info_ref.si_addr() }.addr();
        let crash = match () {
            () if aborts => Crash::Abort,
            () if signal == libc::SIGSYS => Crash::Forbidden(registers[libc::REG_RAX as usize]),
            () if known && overflows(touched()) => Crash::Overflow,
            () if known => Crash::Touched(touched()),
            () if registers.iter().any(near) => Crash::Followed,
            () => Crash::Touched(usize::MAX),
        };
        CRASH.set(crash);
        if signal == libc::SIGABRT {
            // The C library blocks it before it raises it.
            unblock(signal);
        }
        let mut stack_pointer = top - 64;
        if !matches!(crash, Crash::Overflow) {
            // As if the instruction were a call, so that its place can be told.
            stack_pointer = registers[libc::REG_RSP as usize] as usize;
        }
        stack_pointer -= 8;
        let return_to = std::ptr::with_exposed_provenance_mut::<usize>(stack_pointer);
        // SAFETY: room on the spare stack, or on that of the fiber, which is not continued.
        unsafe { return_to.write(at + 1) };
        registers[libc::REG_RIP as usize] = enter as *const () as i64;
        registers[libc::REG_RSP as usize] = stack_pointer as i64;
        return;
    }
    pass_on(before, signal, info, context);
}

/// Passes the signal on to the action that was installed before.
fn pass_on(before: &Before, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let which = SIGNALS
        .iter()
        .position(|&known| known == signal)
        .unwrap_or(0);
    let action = before.actions[which];
    match action.sa_sigaction {
        // SAFETY: the default action of the signal comes with the instruction that is tried again.
        libc::SIG_DFL => unsafe {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        },
        libc::SIG_IGN => {}
        handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: the flags say that this is its signature, and it is called as the system would.
            unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) };
        }
        handler => {
            // SAFETY: the same for a handler of the old kind.
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal) };
        }
    }
}

/// Lets the signal come again, although this handler does not return.
fn unblock(signal: c_int) {
    // SAFETY: a set of signals on the stack, which is made before it is used.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, ptr::null_mut());
    }
}

/// Whether `address` lies where the stack of the running thread ends.
fn overflows(address: usize) -> bool {
    let state = current().state().try_borrow();
    state.is_ok_and(|state| state.threads[state.running].stack.guards(address))
}

/// Where a fiber goes on that cannot go on, with any alignment of its stack.
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "and rsp, -16",
        "call {crashed}",
        "ud2",
        ".cfi_endproc",
        crashed = sym crashed,
    )
}

extern "C-unwind" fn crashed() -> ! {
    let crash = CRASH.get();
    let closer = !matches!(crash, Crash::Overflow) && host(|state| state.looks_closer);
    let place = closer.then(|| frames(program_place)).flatten();
    stop(|state| {
        let failure = state.crash(crash, place);
        let thread = state.current();
        thread.alive = false;
        // All of the stack may have been used.
        thread.lowest = 0;
        match failure.kind {
            FailureKind::UseAfterFree => state.fail_late(failure),
            _ => state.fail(failure),
        }
    })
}

impl State {
    fn crash(&mut self, crash: Crash, place: Option<(String, u32, u32)>) -> Failure {
        let place = place.map(|place| self.panic_site(Some(place)));
        let when = match place {
            Some(_) => "",
            None => ", after the operation",
        };
        let thread = &self.threads[self.running];
        let (kind, message) = match crash {
            Crash::Overflow => {
                let size = thread.stack.size() >> 10;
                let message = format!(
                    "the thread has outgrown its stack of {size} KB, after the operation below: a recursion without an end, or a limit \
                     that is too low (stack_size, SELVEDGE_STACK_SIZE)"
                );
                (FailureKind::StackOverflow, message)
            }
            Crash::Touched(address) if self.memory.freed_at(address).is_some() => {
                let message = format!("an access to a block of the heap that was freed{when}");
                (FailureKind::UseAfterFree, message)
            }
            Crash::Touched(address) if address < 4096 => {
                let message = "an access through a null pointer, after the operation below";
                (FailureKind::NullDereference, message.to_owned())
            }
            Crash::Touched(address) => {
                let message = format!(
                    "an access to memory that is not there, or may not be written, at {address:#x}, after the operation below"
                );
                (FailureKind::WildAccess, message)
            }
            Crash::Followed => {
                let message =
                    format!("an access through a pointer that was read from freed memory{when}");
                (FailureKind::UseAfterFree, message)
            }
            Crash::Forbidden(number) => {
                let message = format!(
                    "the system call {} is not allowed in a program under test (cargo selvedge test --no-confinement)",
                    confine::call_name(number)
                );
                (FailureKind::ForbiddenCall, message)
            }
            Crash::Abort => match &thread.panic {
                Some((message, _)) => (FailureKind::Abort, format!("{message}: this aborts")),
                None => {
                    let message = "the program aborts, after the operation below";
                    (FailureKind::Abort, message.to_owned())
                }
            },
        };
        let panicked = match crash {
            Crash::Abort => thread.panic.as_ref().map(|panic| panic.1),
            _ => None,
        };
        let freed = match crash {
            Crash::Touched(address) => self.memory.freed_at(address),
            _ => None,
        };
        Failure {
            kind,
            message,
            thread: self.running(),
            site: panicked.or(place).unwrap_or(thread.site),
            other: freed.map(|freed| freed.describe("free")),
        }
    }
}
