//! Switches between the threads of a model and its explorer, and passes on what a fiber asks for.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use selvedge_core::{Op, Outcome, Pending, Site, Stop, ThreadId, Value};
use selvedge_fiber::{self as fiber, Context};

use super::memory::Owner;
use super::panic_count::PanicCount;
use super::state::{State, Statics};
use super::stop::refuse;
use super::thread::{Local, Start};
use super::{gate, hook, memory};

/// A search in progress.
pub(crate) struct Engine {
    state: RefCell<State>,
    model: Arc<dyn Fn()>,
    /// Where the explorer goes on when a fiber stops.
    host: Cell<Context>,
    /// Where the fiber that stopped last goes on.
    fiber: Cell<Context>,
    /// The request of a fiber.
    request: Cell<Option<Request>>,
    /// The outcome of the operation of the thread that is resumed.
    outcome: Cell<Outcome>,
    pub(super) on_fiber: Cell<bool>,
    /// All threads have ended, and lazy statics are dropped: nobody else can see what that does.
    alone: Cell<bool>,
    /// The calls that lead to each operation are recorded.
    records: Cell<bool>,
    /// Where `std` counts panics.
    panics: Option<PanicCount>,
    /// Tells this execution from all others of the process.
    stamp: Cell<u64>,
}

type Request = NonNull<dyn FnMut(&mut State) -> Next>;

/// The next step of a fiber after its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It goes on.
    Back,
    /// The explorer goes on.
    Stop,
}

thread_local! {
    static CURRENT: Cell<*const Engine> = const { Cell::new(ptr::null()) };
}

impl Engine {
    pub(super) fn new(state: State, model: Arc<dyn Fn()>) -> Engine {
        Engine {
            records: Cell::new(state.limits.calls),
            state: RefCell::new(state),
            model,
            host: Cell::new(Context::NONE),
            fiber: Cell::new(Context::NONE),
            request: Cell::new(None),
            outcome: Cell::new(Outcome::default()),
            on_fiber: Cell::new(false),
            alone: Cell::new(false),
            panics: PanicCount::find(),
            stamp: Cell::new(0),
        }
    }

    /// A new execution begins.
    pub(super) fn set_stamp(&self, stamp: u64) {
        self.stamp.set(stamp);
    }

    pub(super) fn stamp(&self) -> u64 {
        self.stamp.get()
    }

    pub(super) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    /// Makes this the search of the OS thread. False if it has one.
    pub(super) fn install(&self) -> bool {
        if !CURRENT.get().is_null() {
            return false;
        }
        CURRENT.set(self);
        true
    }

    pub(super) fn uninstall(&self) {
        CURRENT.set(ptr::null());
    }

    pub(super) fn set_outcome(&self, outcome: Outcome) {
        self.outcome.set(outcome);
    }

    /// Runs the fiber of `thread` until it stops. Keep this call chain shallow: every return after a stack switch is
    /// mispredicted (see [`fiber::switch`]).
    #[inline(always)]
    pub(super) fn run(&self, thread: usize) {
        let (mut context, outer) = {
            let mut state = self.state.borrow_mut();
            state.running = thread;
            let known = &state.threads[thread];
            let outer = self.panics.map(|count| count.replace(known.panics));
            (known.context, outer)
        };
        self.on_fiber.set(true);
        // A request may come from code of the checker on the fiber, which goes on allocating for itself.
        let mut owner = Owner::Model;
        loop {
            memory::allocate_for(owner);
            // SAFETY: `host` is this engine's own cell, and `context` a fiber that was prepared or
            // suspended and not continued since: each context is taken from `fiber` once, right
            // after it was saved there.
            unsafe { fiber::switch(self.host.as_ptr(), context) };
            owner = memory::allocate_for(Owner::Checker);
            context = self.fiber.get();
            let Some(mut request) = self.request.take() else {
                break;
            };
            self.on_fiber.set(false);
            // SAFETY: the request lives on the stack of the fiber, which is suspended until it is
            // answered.
            let next = unsafe { request.as_mut() }(&mut self.state.borrow_mut());
            self.on_fiber.set(true);
            if next == Next::Stop {
                break;
            }
        }
        self.on_fiber.set(false);
        let mut state = self.state.borrow_mut();
        let known = &mut state.threads[thread];
        known.context = context;
        if let (Some(count), Some(outer)) = (self.panics, outer) {
            known.panics = count.replace(outer);
        }
        known.lowest = known.lowest.min(context.stack_pointer());
    }

    /// On a fiber: has `request` done on the host's stack, and returns when the fiber is to go on.
    pub(super) fn call(&self, request: &mut dyn FnMut(&mut State) -> Next) {
        // SAFETY: only the lifetime changes; the host uses the request while this call lasts.
        let request: Request = unsafe { std::mem::transmute(NonNull::from(request)) };
        self.request.set(Some(request));
        // SAFETY: `fiber` is the engine's own cell; the host is suspended in `run`.
        unsafe { fiber::switch_from_fiber(self.fiber.as_ptr(), self.host.get()) };
    }

    /// Drops what outlives all threads of an execution, as nobody else can see any more.
    pub(super) fn drop_alone(&self, values: Statics) {
        let mut state = self.state.borrow_mut();
        state.threads[0].start = Some(Box::new(move || drop(values)));
        state.alone_steps = 0;
        self.prepare(&mut state, 0);
        drop(state);
        self.alone.set(true);
        self.run(0);
        self.alone.set(false);
    }

    /// Prepares the fiber of `thread`, whose stack nothing uses.
    pub(super) fn prepare(&self, state: &mut State, thread: usize) {
        let clear = state.clears_stacks();
        let known = &mut state.threads[thread];
        let top = known.stack.top();
        if clear {
            known.stack.clear(known.lowest);
            known.lowest = top;
        }
        known.alive = true;
        known.panics = 0;
        let arguments = (ptr::null_mut(), thread, 0);
        // SAFETY: the top of a page-aligned stack on which nothing runs.
        known.context = unsafe { fiber::prepare(top, begin, arguments, end) };
    }
}

/// The search of this OS thread.
#[track_caller]
pub(super) fn current<'a>() -> &'a Engine {
    let engine = CURRENT.get();
    assert!(
        !engine.is_null(),
        "this type can be used only inside of selvedge::model (or after the end of the execution it belongs to)"
    );
    // SAFETY: installed by `RustMachine`, which uninstalls it before it is dropped, and not sent
    // elsewhere.
    unsafe { &*engine }
}

/// Whether the caller runs in a model.
pub(crate) fn active() -> bool {
    !CURRENT.get().is_null()
}

/// Whether the caller is a thread of a model.
pub(super) fn on_fiber() -> bool {
    active() && current().on_fiber.get()
}

/// Whether one schedule is run again.
pub(super) fn replaying() -> bool {
    host(|state| state.limits.replaying)
}

/// Whether the caller is a thread of a model whose execution is not over.
pub(super) fn in_execution() -> bool {
    on_fiber() && !current().alone.get()
}

/// The running thread is never continued: its frames are left as they are.
pub(super) fn stop(why: impl FnOnce(&mut State)) -> ! {
    let mut why = Some(why);
    current().call(&mut |state| {
        if let Some(why) = why.take() {
            why(state);
        }
        Next::Stop
    });
    unreachable!("a thread that has stopped for good is not continued")
}

/// Has `work` done on the host's stack.
#[track_caller]
pub(crate) fn host<R>(work: impl FnOnce(&mut State) -> R) -> R {
    let engine = current();
    if !engine.on_fiber.get() {
        let owner = memory::allocate_for(Owner::Checker);
        let result = work(&mut engine.state.borrow_mut());
        memory::allocate_for(owner);
        return result;
    }
    let mut work = Some(work);
    let mut result = None;
    engine.call(&mut |state| {
        result = work.take().map(|work| work(state));
        Next::Back
    });
    match result {
        Some(result) => result,
        None => unreachable!("the host answers each request"),
    }
}

/// Performs a visible operation: the thread stops until the explorer has decided about it.
#[inline(always)]
pub(crate) fn visible(op: Op, site: Site) -> Outcome {
    let mut answer = Answer {
        read: 0,
        wrote: 0,
        writes: 0,
    };
    // SAFETY: both pointers are to locals.
    unsafe { gate::enter(&raw const op, site.0, &raw mut answer) };
    Outcome {
        read: answer.read,
        wrote: (answer.writes != 0).then_some(answer.wrote),
    }
}

/// An outcome without a bit that is left uninitialised: the space for it is part of the state that
/// `spin` looks at.
#[repr(C)]
pub(super) struct Answer {
    read: Value,
    wrote: Value,
    writes: u128,
}

impl Answer {
    fn set(&mut self, outcome: Outcome) {
        self.read = outcome.read;
        self.wrote = outcome.wrote.unwrap_or(0);
        self.writes = u128::from(outcome.wrote.is_some());
    }
}

/// The function that [`gate::enter`] calls. `frames` is the address where the thread's own frames
/// begin.
///
/// # Safety
///
/// The pointers must be valid, `answer` for writing.
pub(super) unsafe extern "C-unwind" fn perform(
    op: *const Op,
    site: u64,
    answer: *mut Answer,
    frames: usize,
) {
    // SAFETY: the caller's promise.
    let (op, answer) = unsafe { (&*op, &mut *answer) };
    let engine = current();
    if engine.alone.get() {
        return match host(|state| state.perform_alone(*op)) {
            Some(alone) => answer.set(alone),
            None => stop(|_| {}),
        };
    }
    if engine.records.get() {
        record_calls();
    }
    engine.call(&mut |state| {
        state.arrive(*op, Site(site), frames);
        Next::Stop
    });
    answer.set(engine.outcome.get());
}

/// Records the calls that the running thread is in.
pub(super) fn record_calls() {
    let owner = memory::allocate_for(Owner::Checker);
    let mut calls = super::call_stack::recorded();
    host(|state| {
        let running = state.running;
        state.threads[running].calls = calls.take();
    });
    memory::allocate_for(owner);
}

/// Whether the calls that lead to each operation are recorded.
pub(super) fn records_calls() -> bool {
    current().records.get()
}

/// Starts a thread and returns its number.
pub(crate) fn spawn(start: Start, name: Option<String>, site: Site) -> ThreadId {
    let child = host(|state| state.next_child(name.as_deref()));
    let child = match child {
        Ok(child) => child,
        Err(why) => refuse(&why),
    };
    host(|state| state.threads[child.index()].start = Some(start));
    visible(Op::Create { child }, site);
    child
}

/// The main function of a fiber: runs the closure of its thread, or the model.
unsafe extern "C-unwind" fn begin(_: *mut c_void, thread: usize, _: usize) -> *mut c_void {
    let start = host(|state| state.threads[thread].start.take());
    let run = || match start {
        Some(start) => start(),
        None => (current().model)(),
    };
    let ended = catch_unwind(AssertUnwindSafe(run));
    let ended = ended.and_then(|()| catch_unwind(AssertUnwindSafe(drop_locals)));
    if let Err(payload) = ended {
        panicked(payload);
    }
    ptr::null_mut()
}

/// Drops the thread-local values of the running thread, which may make new ones.
fn drop_locals() {
    loop {
        let value = host(|state| {
            let running = state.running;
            let locals = &mut state.threads[running].locals;
            let left = locals
                .iter_mut()
                .rev()
                .find(|local| matches!(local.1, Local::Value(_)))?;
            Some(std::mem::replace(&mut left.1, Local::Destroyed))
        });
        match value {
            Some(value) => drop(value),
            None => return,
        }
    }
}

/// A panic came to the end of its thread.
fn panicked(payload: Box<dyn Any + Send>) {
    let owner = memory::allocate_for(Owner::Checker);
    let message = hook::message(&*payload);
    memory::allocate_for(owner);
    // The payload must not run its destructor any more.
    std::mem::forget(payload);
    if in_execution() {
        host(|state| state.fail_with_panic(message));
    }
}

/// The end of a fiber.
extern "C-unwind" fn end(_: *mut c_void) -> ! {
    let engine = current();
    engine.call(&mut |state| {
        let running = state.running;
        let thread = &mut state.threads[running];
        thread.alive = false;
        if thread.pending != Pending::Stopped(Stop::Failed) {
            thread.pending = Pending::Stopped(Stop::Finished);
            state.note_owners();
            state.check_freed();
        }
        Next::Stop
    });
    unreachable!("a thread that has ended is not resumed")
}
