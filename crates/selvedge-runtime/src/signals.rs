//! Faults of the program under test, and loops without visible operations.
//!
//! A fault in a thread of the program becomes a failure of that thread: the handler, which runs on a
//! stack of its own, notes it and continues with the explorer instead of the thread.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::time::Duration;

use libc::{REG_ERR, REG_RAX, REG_RDI, REG_RIP, sigaction, siginfo_t, ucontext_t};
use selvedge_core::{Failure, FailureKind, Pending, Site, Stop, ThreadId};

use syscalls::Sysno;

use crate::fiber;
use crate::gate::gate;
use crate::runtime::{Phase, Runtime, with};

/// Signals that the processor raises, and the kernel for a system call that is forbidden.
const FAULTS: [c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];
/// The signal of the watchdog's timer.
const TICK: c_int = libc::SIGVTALRM;
/// How many ticks without a visible operation are too many.
const TICKS: u32 = 4;
/// `FPE_INTDIV`: the code of a division by zero, or of one whose result does not fit.
const INTEGER_DIVISION: c_int = 1;
const HANDLER_STACK: usize = 64 << 10;

/// The handlers to remove when the program is unloaded.
pub(crate) struct Handlers {
    previous: Vec<(c_int, sigaction)>,
    previous_stack: libc::stack_t,
    timer: libc::timer_t,
    _stack: Box<[MaybeUninit<u8>]>,
}

/// The observations of the watchdog.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// Counted by the machine: one per resumption.
    pub(crate) steps: u64,
    /// Set when the running thread has to be stopped at its next entry.
    pub(crate) expired: bool,
    seen: u64,
    ticks: u32,
}

/// Installs the handlers for this thread of the process.
pub(crate) fn install(limit: Duration) -> io::Result<Handlers> {
    let mut stack = Box::new_uninit_slice(HANDLER_STACK);
    let alternate = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: HANDLER_STACK,
    };
    // SAFETY: plain C structures for which zero is a valid value.
    let mut previous_stack: libc::stack_t = unsafe { zeroed() };
    // SAFETY: the stack lives as long as `Handlers`, which takes it out of use.
    check(unsafe { libc::sigaltstack(&raw const alternate, &raw mut previous_stack) })?;
    let mut previous = Vec::new();
    for signal in FAULTS {
        previous.push((signal, handle(signal, on_fault as *const () as usize)?));
    }
    previous.push((TICK, handle(TICK, on_tick as *const () as usize)?));
    let timer = start_timer(limit)?;
    Ok(Handlers {
        previous,
        previous_stack,
        timer,
        _stack: stack,
    })
}

impl Handlers {
    /// Starts the timer again in a process that has none.
    pub(crate) fn restart(&mut self, limit: Duration) -> io::Result<()> {
        self.timer = start_timer(limit)?;
        Ok(())
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        // SAFETY: the timer was created and the actions were saved by `install`.
        unsafe {
            libc::timer_delete(self.timer);
            for (signal, action) in &self.previous {
                libc::sigaction(*signal, action, ptr::null_mut());
            }
            libc::sigaltstack(&raw const self.previous_stack, ptr::null_mut());
        }
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn handle(signal: c_int, handler: usize) -> io::Result<sigaction> {
    // SAFETY: plain C structures for which zero is a valid value.
    let (mut action, mut previous): (sigaction, sigaction) = unsafe { (zeroed(), zeroed()) };
    action.sa_sigaction = handler;
    // A handler that leaves for the explorer never returns to the kernel's idea of "handled".
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for.
    check(unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) })?;
    Ok(previous)
}

/// Ticks several times per `limit` of processor time of this thread.
fn start_timer(limit: Duration) -> io::Result<libc::timer_t> {
    let tick = (limit / TICKS).max(Duration::from_millis(1));
    let interval = libc::timespec {
        tv_sec: tick.as_secs() as libc::time_t,
        tv_nsec: tick.subsec_nanos().into(),
    };
    // SAFETY: plain C structures; the timer belongs to the calling thread.
    unsafe {
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = TICK;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer = ptr::null_mut();
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        check(libc::timer_create(clock, &raw mut event, &raw mut timer))?;
        let setting = libc::itimerspec {
            it_interval: interval,
            it_value: interval,
        };
        check(libc::timer_settime(
            timer,
            0,
            &raw const setting,
            ptr::null_mut(),
        ))?;
        Ok(timer)
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers.
    let (info, context) = unsafe { (&*info, &mut *context.cast::<ucontext_t>()) };
    let registers = &mut context.uc_mcontext.gregs;
    // SAFETY: asked only for signals that carry an address.
    let address = unsafe { info.si_addr() }.addr();
    let at = registers[REG_RIP as usize] as usize;
    let write = registers[REG_ERR as usize] & 2 != 0;
    let host = with(|runtime| {
        if signal == libc::SIGSEGV && write && runtime.snapshot.open_page(address) {
            return None;
        }
        if signal == libc::SIGTRAP && runtime.lines.reach(at - 1) {
            registers[REG_RIP as usize] = at as i64 - 1;
            return None;
        }
        // A fault on the way out of a thread that has failed: the host's own state is gone.
        let leaving = runtime.current().pending == Pending::Stopped(Stop::Failed);
        if runtime.phase == Phase::Host || leaving {
            runtime.give_up(signal);
            return None;
        }
        if let Some(refusal) = runtime.used_up_stack(signal, address) {
            runtime.refusal.get_or_insert(refusal);
            return Some(runtime.stop_at(at, Stop::Refused));
        }
        let (kind, message) = match signal {
            libc::SIGSYS => forbidden(registers[REG_RAX as usize]),
            _ => runtime.describe_fault(signal, info.si_code, address, write),
        };
        Some(runtime.fail_at(at, kind, message))
    });
    if let Some(host) = host {
        registers[REG_RIP as usize] = fiber::leave_to as *const () as i64;
        registers[REG_RDI as usize] = host.stack_pointer() as i64;
    }
}

extern "C" fn on_tick(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer.
    let context = unsafe { &mut *context.cast::<ucontext_t>() };
    let registers = &mut context.uc_mcontext.gregs;
    let at = registers[REG_RIP as usize] as usize;
    let host = with(|runtime| {
        let watchdog = &mut runtime.watchdog;
        if runtime.phase == Phase::Host || watchdog.seen != watchdog.steps {
            watchdog.seen = watchdog.steps;
            watchdog.ticks = 0;
            return None;
        }
        watchdog.ticks += 1;
        if watchdog.ticks < TICKS {
            return None;
        }
        if !runtime.image.whole.contains(at) || runtime.image.stubs.contains(at) {
            // Inside of the runtime, which must not be left half-way: at the next entry, then.
            watchdog.expired = true;
            // SAFETY: the gate is mapped while a program is loaded.
            unsafe { (*gate()).attention = 1 };
            return None;
        }
        Some(runtime.fail_at(at, FailureKind::EndlessLoop, endless()))
    });
    if let Some(host) = host {
        registers[REG_RIP as usize] = fiber::leave_to as *const () as i64;
        registers[REG_RDI as usize] = host.stack_pointer() as i64;
    }
}

/// The failure of a system call that the confinement of the process forbids.
fn forbidden(number: i64) -> (FailureKind, String) {
    let call = usize::try_from(number).ok().and_then(Sysno::new);
    let call = call.map_or_else(|| number.to_string(), |call| call.name().to_owned());
    let message = format!("the system call {call} is not allowed in a program under test");
    (FailureKind::ForbiddenCall, message)
}

/// The failure that the watchdog reports.
pub(crate) fn endless() -> String {
    "a loop without visible operations does not end".to_owned()
}

impl Runtime {
    /// A fault of Selvedge itself: the next one gets the treatment it would have had.
    fn give_up(&mut self, signal: c_int) {
        if signal == libc::SIGSYS {
            // The call was not made, and whatever relies on it is wrong.
            eprintln!("error: Selvedge made a system call that its own confinement forbids");
            // SAFETY: ends the process with the status of an internal error, and runs nothing.
            unsafe { libc::_exit(4) };
        }
        // SAFETY: resets the action of one signal.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }

    /// Notes a failure of the running thread and returns where to go on.
    fn fail_at(&mut self, at: usize, kind: FailureKind, message: String) -> fiber::Context {
        let host = self.stop_at(at, Stop::Failed);
        let thread = ThreadId(self.running as u32);
        let site = Site(self.current().site as u64);
        self.failure.get_or_insert(Failure {
            kind,
            message,
            thread,
            site,
            other: None,
        });
        host
    }

    /// Stops the running thread for good and returns where to go on.
    fn stop_at(&mut self, at: usize, stop: Stop) -> fiber::Context {
        // SAFETY: the gate is mapped while a program is loaded.
        let entered_at = unsafe {
            (*gate()).attention = 0;
            (*gate()).site
        };
        let inside = self.image.whole.contains(at);
        self.kept = None;
        let thread = self.current();
        thread.pending = Pending::Stopped(stop);
        thread.site = if inside { at } else { entered_at };
        self.host
    }

    /// The failure if the fault at `address` is that the running thread's stack is used up.
    fn used_up_stack(&self, signal: c_int, address: usize) -> Option<String> {
        let slot = &self.threads[self.running].slot;
        let guard = slot.start..slot.stack_low;
        let memory = matches!(signal, libc::SIGSEGV | libc::SIGBUS);
        (memory && guard.contains(&address)).then(|| {
            let size = (slot.stack_top - slot.stack_low) >> 10;
            format!("the stack of {size} KiB of a thread is used up (--stack-size)")
        })
    }

    fn describe_fault(
        &self,
        signal: c_int,
        code: c_int,
        address: usize,
        write: bool,
    ) -> (FailureKind, String) {
        let verb = if write { "write to" } else { "read of" };
        match signal {
            libc::SIGSEGV | libc::SIGBUS => {
                // The processor reports no address for those that cannot exist.
                if code == libc::SI_KERNEL {
                    (
                        FailureKind::WildAccess,
                        "access to an impossible address".to_owned(),
                    )
                } else if address < 4096 {
                    let message = format!("{verb} address {address:#x}, a null pointer");
                    (FailureKind::NullDereference, message)
                } else if self.layout.heap_owner(address).is_some() {
                    let message = format!("{verb} address {address:#x}, outside of any heap block");
                    (FailureKind::HeapOverflow, message)
                } else {
                    let message = format!("{verb} address {address:#x}, which may not be accessed");
                    (FailureKind::WildAccess, message)
                }
            }
            libc::SIGFPE if code == INTEGER_DIVISION => (
                FailureKind::Signal,
                "division by zero or overflow (SIGFPE)".to_owned(),
            ),
            libc::SIGFPE => (FailureKind::Signal, "arithmetic error (SIGFPE)".to_owned()),
            libc::SIGILL => (
                FailureKind::Signal,
                "illegal instruction (SIGILL)".to_owned(),
            ),
            _ => (FailureKind::Signal, "trap (SIGTRAP)".to_owned()),
        }
    }
}
