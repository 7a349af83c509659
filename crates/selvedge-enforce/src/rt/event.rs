//! Events: waits before them, publishes them afterwards.

use super::composed::WaitWords;
use super::diverge;
use super::history::{self, Seen};
use super::hold;
use super::mutex;
use super::plan::{self, ANY, Event, Place, Plan};
use super::refresh;
use super::rwlock;
use super::serial;
use super::shared;
use super::sys;
use super::thread::{self, COUNTING, SERIAL, Thread};

/// How often a thread looks before it does something slower.
const SPINS: u32 = 300;
/// On a busy machine giving way may take as long as a time slice, while whoever sleeps is woken at
/// once.
const YIELDS: u32 = 1;
/// A sleeper looks for a weaker prefix when it was not woken for so long, and then for longer each
/// time.
const FIRST_SLEEP: i64 = 2_000_000;
const LONGEST_SLEEP: i64 = 64_000_000;
/// A thread that never sleeps looks for one after this many events.
const LOOK_EVERY: u32 = 4096;

/// How an access is made, beside the number of its bytes.
pub(crate) const WRITES: u32 = 0x100;
pub(crate) const VOLATILE: u32 = 0x200;

/// Runs `operation`, which the program called from the thread's [`Thread::site`] and which others
/// can see.
#[inline(always)]
pub(crate) fn event<R>(operation: impl FnOnce() -> R) -> R {
    step(true, operation)
}

/// The same for an operation that others may not be able to see: it is an event if the place is
/// counted.
#[inline(always)]
pub(crate) fn hidden<R>(operation: impl FnOnce() -> R) -> R {
    step(false, operation)
}

#[inline(always)]
fn step<R>(visible: bool, operation: impl FnOnce() -> R) -> R {
    let me = thread::current();
    if me.active == 0 || history::passes(me, me.site) {
        return operation();
    }
    let counted = before(visible);
    if thread::current().active & SERIAL != 0 {
        return serial::perform(operation);
    }
    let result = operation();
    if counted {
        advance(thread::current());
    }
    result
}

/// The meaning of an operation at some place for the thread.
enum Role {
    /// Its next event.
    Next,
    /// Nothing that is counted.
    Uncounted,
    /// A counted one that does not belong here.
    Misplaced,
    /// The place is unknown.
    Unknown,
}

fn role(plan: &Plan, expected: &Event, site: usize) -> Role {
    if expected.site == site {
        return Role::Next;
    }
    match plan.place(site) {
        None => Role::Unknown,
        Some(Place { counted: false, .. }) => Role::Uncounted,
        Some(_) if expected.site == ANY => Role::Next,
        Some(_) => Role::Misplaced,
    }
}

/// Waits until the thread may perform the operation at its [`Thread::site`]; whether it is an event.
fn before(visible: bool) -> bool {
    let me = thread::current();
    settle(me);
    let site = me.site;
    match compared(me, site) {
        Seen::Fine => {}
        Seen::Unknown if !visible => {}
        Seen::New | Seen::Unknown => {
            diverge::report(me, site, ANY);
        }
    }
    me.counts() && awaited(me, site, visible)
}

/// Compares an event at `site` with what proven executions have there.
#[inline(always)]
fn compared(me: &mut Thread, site: usize) -> Seen {
    if !me.tracks() {
        return Seen::Fine;
    }
    let plan = plan::present();
    if plan.tracks() {
        return history::compare(me, plan, site);
    }
    if plan.serial {
        serial::join(me);
    }
    me.untrack()
}

/// The thread is about to create or to join a thread at `site`, or to end if there is none.
pub(crate) fn about_thread(me: &mut Thread, site: Option<usize>) {
    let plan = plan::present();
    if me.tracks() && plan.serial {
        serial::join(me);
    }
    if !me.tracks() || !plan.tracks() || site.is_none() && !plan.ends {
        return;
    }
    if history::compare_thread(me, plan, site) != Seen::Fine {
        match site {
            Some(site) => {
                diverge::report(me, site, ANY);
            }
            None => diverge::refuse(format_args!(
                "the program left what was verified: thread {} ended too early",
                me.index
            )),
        }
    }
}

/// Performs something that waits for another thread.
pub(crate) fn aside<R>(operation: impl FnOnce() -> R) -> R {
    match thread::current().active & SERIAL {
        0 => operation(),
        _ => serial::perform(operation),
    }
}

/// Performs something that waits for a moment.
pub(crate) fn sleep<R>(operation: impl FnOnce() -> R) -> R {
    let me = thread::current();
    settle(me);
    if me.active & SERIAL != 0 {
        serial::may_wait();
    }
    operation()
}

/// Waits as the plan demands; whether the operation is an event of the plan.
#[cold]
fn awaited(me: &mut Thread, site: usize, visible: bool) -> bool {
    loop {
        let Some(plan) = follow(me) else { return false };
        let Some(event) = plan.list(me.index).get(me.next as usize) else {
            return false;
        };
        match role(plan, &event, site) {
            Role::Next if admitted(plan, &event) => return true,
            Role::Next => {}
            Role::Unknown if visible && plan.strict => {
                return diverge::report(me, site, event.site);
            }
            Role::Misplaced => return diverge::report(me, site, event.site),
            Role::Uncounted | Role::Unknown => return false,
        }
    }
}

/// A plain or volatile access that the program is about to make, from the assembly.
pub(crate) extern "C" fn announced(address: usize, site: usize, how: u32) {
    if !history::passes(thread::current(), site) {
        announced_slowly(address, site, how);
    }
}

#[cold]
extern "C" fn announced_slowly(address: usize, site: usize, how: u32) {
    let me = thread::current();
    settle(me);
    match compared(me, site) {
        Seen::Fine => {}
        Seen::New => {
            diverge::report(me, site, ANY);
        }
        Seen::Unknown => check(me, plan::present(), (address, site, how)),
    }
    if me.counts() {
        ordered(me, (address, site, how));
    }
}

/// Waits as the plan demands before an announced access.
#[cold]
fn ordered(me: &mut Thread, (address, site, how): (usize, usize, u32)) {
    loop {
        let Some(plan) = follow(me) else { return };
        let list = plan.list(me.index);
        let next = me.next as usize;
        let Some(event) = list.get(next) else { return };
        match role(plan, &event, site) {
            Role::Next => {}
            Role::Uncounted => return,
            Role::Unknown => {
                check(me, plan, (address, site, how));
                return;
            }
            Role::Misplaced => {
                // A compiler may announce the store of a statement before its load.
                let second = plan
                    .expected_after(me.index, next)
                    .is_some_and(|event| event.site == site);
                if how & WRITES != 0 && second {
                    me.early = 1;
                } else {
                    diverge::report(me, site, event.site);
                }
                return;
            }
        }
        let mut both = list.from(next).take(1 + usize::from(me.early));
        if both.all(|event| admitted(plan, &event)) {
            break;
        }
    }
    me.pending = 1 + me.early;
    me.early = 0;
}

/// A load that the program is about to make, and after that a store that it has announced already:
/// what is pending, if anything is, is that store.
pub(crate) extern "C" fn announced_between(address: usize, site: usize) {
    let me = thread::current();
    let plan = plan::present();
    match plan.place(site) {
        Some(Place { counted: true, .. }) if me.pending == 0 => announced(address, site, 0),
        Some(Place { counted: true, .. }) => announced_too(site),
        Some(_) => {}
        None => check(me, plan, (address, site, 0)),
    }
}

/// The second of two accesses that are announced together.
pub(crate) fn announced_too(site: usize) {
    let me = thread::current();
    if me.pending == 0 {
        return;
    }
    loop {
        let plan = plan::present();
        let second = me.next as usize + usize::from(me.pending);
        let Some(event) = plan.list(me.index).get(second) else {
            return;
        };
        if !matches!(role(plan, &event, site), Role::Next) {
            return;
        }
        if admitted(plan, &event) {
            me.pending += 1;
            return;
        }
    }
}

/// An access at a place that was not verified when the program was built, whatever the thread does
/// there.
pub(crate) extern "C" fn unreached(address: usize, site: usize, how: u32) {
    let me = thread::current();
    // Most of them: variables of main on its stack.
    if how & VOLATILE == 0 && me.owns(address) {
        return;
    }
    let plan = plan::present();
    if plan.place(site).is_none() {
        check(me, plan, (address, site, how));
    }
}

/// The same for an operation that others can see, unless the thread holds `object` in the way that
/// `how` says.
pub(crate) extern "C" fn unreached_operation(site: usize, object: usize, how: u32) {
    let plan = plan::present();
    if plan.strict && plan.place(site).is_none() && !held(object, how) {
        diverge::report(thread::current(), site, ANY);
    }
}

/// Whether the operation is no event, because of how the thread holds `object`.
fn held(object: usize, how: u32) -> bool {
    match how {
        hold::MUTEX_TAKEN => mutex::is_taken_again(object),
        hold::MUTEX_GIVEN => mutex::is_kept(object),
        hold::LOCK_TAKEN => rwlock::is_written(object),
        _ => false,
    }
}

/// Complains if an access at a place that nobody knows is one that others can see.
fn check(me: &Thread, plan: &Plan, (address, site, how): (usize, usize, u32)) {
    let visible = how & VOLATILE != 0
        || plan.plain_events && !me.owns(address) && !shared::is_private(address);
    if plan.strict && visible {
        let expected = plan.list(me.index).get(me.next as usize);
        diverge::report(me, site, expected.map_or(ANY, |event| event.site));
    }
}

/// An access to a range of bytes: events for those parts of it that are counted.
pub(crate) fn range() {
    let me = thread::current();
    settle(me);
    let mut pending = 0;
    'parts: while let Some(plan) = follow(me) {
        for event in plan.list(me.index).from(me.next as usize + pending) {
            // A place that is counted at all makes one event at least.
            let first = pending == 0 && matches!(role(plan, &event, me.site), Role::Next);
            if !(first || event.site == me.site) || pending == u8::MAX.into() {
                break;
            }
            if !admitted(plan, &event) {
                continue 'parts;
            }
            pending += 1;
        }
        break;
    }
    me.pending = pending as u8;
}

/// Tells of the events that the program has made since the thread's last call of the library.
#[inline]
pub(crate) fn settle(me: &mut Thread) {
    for _ in 0..core::mem::take(&mut me.pending) {
        advance(me);
    }
}

/// The thread has performed an event.
fn advance(me: &mut Thread) {
    let list = plan::present().list(me.index);
    let done = me.next as usize;
    me.next += 1;
    if let Some(counter) = plan::counter(me.index) {
        match list.get(done).is_some_and(|event| event.awaited) {
            true => counter.reach(me.next),
            // A newer plan may make others wait for it all the same.
            false => counter.pass(me.next),
        }
    }
    if me.next as usize >= list.len() {
        me.active &= !COUNTING;
    }
}

/// The thread has performed its last event.
pub(crate) fn end(me: &mut Thread) {
    settle(me);
    // The events of main end only with the process.
    if me.index != 0 {
        about_thread(me, None);
    }
    if me.active & SERIAL != 0 {
        serial::leave();
    }
    me.active = 0;
    plan::present().ends(me.index, me.children);
}

/// The plan that holds now, if it has events for the thread; otherwise the thread
/// waits for nothing any more.
fn follow(me: &mut Thread) -> Option<&'static Plan> {
    me.since_look += 1;
    if me.since_look >= LOOK_EVERY {
        me.since_look = 0;
        refresh::look();
    }
    let plan = plan::present();
    if (me.next as usize) < plan.list(me.index).len() {
        return Some(plan);
    }
    me.active &= !COUNTING;
    if plan.serial {
        serial::join(me);
    }
    None
}

/// Waits for what an event has to wait for; `false` as soon as another plan holds.
fn admitted(plan: &Plan, event: &Event) -> bool {
    plan.waits_of(event)
        .iter()
        .all(|wait| wait_for(plan, *wait))
}

fn wait_for(plan: &Plan, [thread, count]: WaitWords) -> bool {
    let Some(counter) = plan::counter(thread) else {
        return true;
    };
    if counter.done() >= count {
        return true;
    }
    for _ in 0..refresh::spins(SPINS) {
        core::hint::spin_loop();
        if counter.done() >= count {
            return true;
        }
    }
    for _ in 0..YIELDS {
        // SAFETY: nothing to rely on.
        unsafe { sys::sched_yield() };
        if counter.done() >= count {
            return true;
        }
    }
    let mut limit = FIRST_SLEEP;
    loop {
        let done = counter.done();
        if done >= count {
            return true;
        }
        if !core::ptr::eq(plan, plan::present()) {
            return false;
        }
        counter.sleep(done, limit);
        if counter.done() == done {
            refresh::look();
            limit = (2 * limit).min(LONGEST_SLEEP);
        }
    }
}
