//! Creating, joining and ending threads, and what may be asked about them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

use libc::{EDEADLK, EINVAL};
use selvedge_core::failure::Other;
use selvedge_core::{Failure, FailureKind, Op, Site, ThreadId};

use super::program;
use super::state::{Claim, process};
use super::{attributes, strings};
use crate::current;

entry_points![
    pthread_create(4),
    pthread_join(2),
    pthread_detach(1),
    pthread_self(0),
    pthread_equal(2),
    pthread_setname_np(2),
    pthread_getname_np(3),
    pthread_setaffinity_np(3),
    pthread_getaffinity_np(3),
    pthread_setschedparam(3),
    pthread_getschedparam(3),
    pthread_setschedprio(2),
    pthread_setconcurrency(1),
    pthread_getconcurrency(0),
    pthread_yield(0),
    sched_yield(0),
    sched_setaffinity(3),
    sched_getaffinity(3),
    sched_getcpu(0),
    pthread_setcancelstate(2),
    pthread_setcanceltype(2),
    pthread_testcancel(0),
    selvedge_cancellable(1),
    selvedge_check_thread(2),
];

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The handle of a thread; zero is none, as C++ wants it.
pub(crate) fn handle(thread: ThreadId) -> usize {
    thread.index() + 1
}

/// The thread with a handle, which must exist.
fn thread_of(handle: usize, what: &str, site: Site) -> ThreadId {
    let thread = u32::try_from(handle.wrapping_sub(1)).map(ThreadId).ok();
    match thread.filter(|&thread| current::exists(thread)) {
        Some(thread) => thread,
        None => misuse(format!("{what} of something that is no thread"), site),
    }
}

fn misuse(what: String, site: Site) -> ! {
    current::fail(FailureKind::ObjectMisuse, what, site)
}

/// Starts a thread at the function `start`. Its handle is stored before it can run.
pub(crate) fn create(result: usize, start: usize, argument: usize, detached: bool, site: Site) {
    if current::booting() {
        current::refuse(
            String::from("a thread that is created in a constructor"),
            site,
        );
    }
    program::check_not_null(start, site);
    let thread = current::next_thread();
    program::store_word(result, handle(thread), site);
    // SAFETY: the program says that this is a thread's start routine; a function that returns an
    // `int` differs only in the unused half of the register.
    let start = unsafe { std::mem::transmute::<usize, Start>(start) };
    current::spawn(start, with_exposed_provenance_mut(argument), site);
    if detached {
        claim(thread, detached, site);
    }
}

/// Waits for a thread; its result, or an error number.
pub(crate) fn join(handle: usize, site: Site) -> Result<usize, c_int> {
    let thread = thread_of(handle, "join", site);
    if thread == current::thread() {
        return Err(EDEADLK);
    }
    check_claim(thread, false, site);
    current::perform(Op::Join { child: thread }, site);
    claim(thread, false, site);
    Ok(current::result(thread).expose_provenance())
}

/// Gives up the right to join a thread.
pub(crate) fn detach(handle: usize, site: Site) {
    let thread = thread_of(handle, "detach", site);
    check_claim(thread, true, site);
    claim(thread, true, site);
}

/// Reports what the running thread should know better. What another thread did may come earlier
/// or later in other runs of the same execution, so it has to wait for [`leftover`].
fn check_claim(thread: ThreadId, detached: bool, site: Site) {
    let by = current::thread();
    let Some(earlier) = process(|process| process.thread(thread).claim) else {
        return;
    };
    if earlier.by == by {
        let now = Claim { by, site, detached };
        misuse(contention(thread, earlier, now), site);
    }
}

fn claim(thread: ThreadId, detached: bool, site: Site) {
    let now = Claim {
        by: current::thread(),
        site,
        detached,
    };
    let (before, contended) = process(|process| {
        let target = process.thread(thread);
        ((target.claim, target.second_claim), process.contended)
    });
    current::claims(thread, before, contended);
    process(|process| {
        let target = process.thread(thread);
        if target.claim.is_none() {
            target.claim = Some(now);
        } else {
            target.second_claim = Some(now);
            process.contended = true;
        }
    });
    current::changes(thread);
}

fn contention(thread: ThreadId, one: Claim, other: Claim) -> String {
    let what = |claim: Claim| if claim.detached { "detached" } else { "joined" };
    format!(
        "{thread} was {} by {} and then {} by {}",
        what(one),
        one.by,
        what(other),
        other.by
    )
}

/// A thread that several others have joined or detached, at the end of an execution.
pub(crate) fn leftover() -> Option<Failure> {
    process(|process| {
        if !process.contended {
            return None;
        }
        (0..process.threads() as u32)
            .map(ThreadId)
            .find_map(|thread| {
                let local = process.thread(thread);
                let (one, other) = (local.claim?, local.second_claim?);
                let (one, other) = if one.by < other.by {
                    (one, other)
                } else {
                    (other, one)
                };
                Some(Failure {
                    kind: FailureKind::ObjectMisuse,
                    message: contention(thread, one, other).replace(" then ", " "),
                    thread: other.by,
                    site: other.site,
                    other: Some(Other {
                        thread: one.by,
                        site: one.site,
                        what: String::from(if one.detached { "detach" } else { "join" }),
                        events: None,
                    }),
                })
            })
    })
}

extern "C" fn pthread_create(
    result: usize,
    attributes: usize,
    start: usize,
    argument: usize,
) -> c_int {
    let site = current::site();
    let wanted = attributes::wanted(attributes);
    if let Some(size) = wanted.stack_size.filter(|_| !current::booting()) {
        current::want_stack(size, site);
    }
    create(result, start, argument, wanted.detached, site);
    0
}

extern "C" fn pthread_join(handle: usize, result: usize) -> c_int {
    let site = current::site();
    match join(handle, site) {
        Ok(value) if result != 0 => {
            program::store_word(result, value, site);
            0
        }
        Ok(_) => 0,
        Err(number) => number,
    }
}

extern "C" fn pthread_detach(handle: usize) -> c_int {
    detach(handle, current::site());
    0
}

extern "C" fn pthread_self() -> usize {
    handle(current::thread())
}

extern "C" fn pthread_equal(one: usize, other: usize) -> c_int {
    (one == other).into()
}

extern "C" fn pthread_setname_np(_handle: usize, name: usize) -> c_int {
    strings::read_length(name, current::site());
    0
}

extern "C" fn pthread_getname_np(_handle: usize, buffer: usize, size: usize) -> c_int {
    if size == 0 {
        return libc::ERANGE;
    }
    program::write::<c_char>(buffer, 0, current::site());
    0
}

extern "C" fn pthread_setaffinity_np(_handle: usize, size: usize, set: usize) -> c_int {
    current::touch(set, size, false, current::site());
    0
}

extern "C" fn pthread_getaffinity_np(_handle: usize, size: usize, set: usize) -> c_int {
    affinity(size, set)
}

/// Every thread may run on all of the processors that `sysconf` tells of.
fn affinity(size: usize, set: usize) -> c_int {
    if size < 8 {
        return EINVAL;
    }
    current::touch(set, size, true, current::site());
    program::wipe(set, size);
    program::poke::<u64>(set, (1 << super::system_values::PROCESSORS) - 1);
    0
}

extern "C" fn pthread_setschedparam(_handle: usize, _policy: c_int, parameters: usize) -> c_int {
    program::read::<c_int>(parameters, current::site());
    0
}

extern "C" fn pthread_getschedparam(_handle: usize, policy: usize, parameters: usize) -> c_int {
    let site = current::site();
    program::store_int(policy, libc::SCHED_OTHER, site);
    program::store_int(parameters, 0, site);
    0
}

extern "C" fn pthread_setschedprio(_handle: usize, _priority: c_int) -> c_int {
    0
}

extern "C" fn pthread_setconcurrency(_level: c_int) -> c_int {
    0
}

extern "C" fn pthread_getconcurrency() -> c_int {
    0
}

extern "C" fn pthread_yield() -> c_int {
    0
}

extern "C" fn sched_yield() -> c_int {
    0
}

extern "C" fn sched_setaffinity(_process: c_int, size: usize, set: usize) -> c_int {
    current::touch(set, size, false, current::site());
    0
}

extern "C" fn sched_getaffinity(_process: c_int, size: usize, set: usize) -> c_int {
    program::or_error(affinity(size, set))
}

extern "C" fn sched_getcpu() -> c_int {
    0
}

/// Whether the running thread can be cancelled, in a program that cancels threads.
extern "C" fn selvedge_cancellable(site: usize) -> c_int {
    if current::keeps_states() {
        // A thread that waits in vain would be a cycle of states there, and no deadlock.
        let what = "cancellation of threads, which searches over states do not model";
        current::refuse(what.to_owned(), Site(site as u64));
    }
    (current::thread() != ThreadId::MAIN && !current::booting()).into()
}

extern "C" fn selvedge_check_thread(handle: usize, site: usize) {
    thread_of(handle, "pthread_cancel", Site(site as u64));
}

// Programs that call `pthread_cancel` have other definitions of these (`environment/cancellation.c`). In all
// others no thread is ever cancelled, so asking for it or not is all the same.

extern "C" fn pthread_setcancelstate(_state: c_int, old: usize) -> c_int {
    remember_zero(old)
}

extern "C" fn pthread_setcanceltype(_kind: c_int, old: usize) -> c_int {
    remember_zero(old)
}

fn remember_zero(old: usize) -> c_int {
    if old != 0 {
        program::store_int(old, 0, current::site());
    }
    0
}

extern "C" fn pthread_testcancel() {}
