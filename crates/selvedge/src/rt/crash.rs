//! A thread of a model that outgrows its stack, or touches memory that is not there, is a failure
//! of the program with a schedule, not the end of the test process.
//!
//! The handler of the signal lets the fiber go on in [`crashed`] on a stack that is kept for that.
//! Its frames are left as they are.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

use selvedge_core::{Failure, FailureKind};

use super::engine::{Next, current, on_fiber};
use super::stack::Stack;

/// How large the stack is on which a crash is told.
const SPARE: usize = 64 << 10;

/// What there was before.
struct Before {
    actions: [libc::sigaction; 2],
    /// Where the C library is: whoever crashes in there may hold its locks.
    library: Vec<Range<usize>>,
}

static BEFORE: OnceLock<Before> = OnceLock::new();

thread_local! {
    /// Where the spare stack of this OS thread ends.
    static SPARE_TOP: Cell<usize> = const { Cell::new(0) };
    /// Which address could not be touched.
    static TOUCHED: Cell<usize> = const { Cell::new(0) };
}

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

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
    if top != 0 && !inside && on_fiber() {
        // SAFETY: both signals have an address, unless it is one that cannot exist.
        let address = unsafe { info_ref.si_addr() }.addr();
        let known = info_ref.si_code != libc::SI_KERNEL;
        TOUCHED.set(if known { address } else { usize::MAX });
        registers[libc::REG_RIP as usize] = crashed as *const () as i64;
        // As after a call.
        registers[libc::REG_RSP as usize] = (top - 64 - 8) as i64;
        return;
    }
    pass_on(before, signal, info, context);
}

/// Lets whoever took care of the signal before do so, or nobody.
fn pass_on(before: &Before, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let which = usize::from(signal == SIGNALS[1]);
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

/// Where a fiber goes on that cannot go on.
extern "C" fn crashed() -> ! {
    let touched = TOUCHED.get();
    current().call(&mut |state| {
        let running = state.running;
        let thread = &mut state.threads[running];
        thread.alive = false;
        // All of the stack may have been used.
        thread.lowest = 0;
        let (kind, message) = if thread.stack.guards(touched) {
            let size = thread.stack.size() >> 10;
            let message = format!(
                "the thread has outgrown its stack of {size} KB, after the operation below: a recursion without an end, or a limit \
                 that is too low (stack_size, SELVEDGE_STACK_SIZE)"
            );
            (FailureKind::StackOverflow, message)
        } else if touched < 4096 {
            let message = "an access through a null pointer, after the operation below";
            (FailureKind::NullDereference, message.to_owned())
        } else {
            let message = format!(
                "an access to memory that is not there, or may not be written, at {touched:#x}, after the operation below"
            );
            (FailureKind::WildAccess, message)
        };
        let failure = Failure {
            kind,
            message,
            thread: state.running(),
            site: state.threads[running].site,
            other: None,
        };
        state.fail(failure);
        Next::Stop
    });
    unreachable!("a thread that crashed is not resumed")
}
