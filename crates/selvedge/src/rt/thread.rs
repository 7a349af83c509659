//! The state of each thread of a model.

use std::any::Any;
use std::backtrace::Backtrace;
use std::sync::Arc;

use selvedge_core::{Location, Op, Pending, Site};
use selvedge_fiber::Context;

use super::spin::{Spin, Words};
use super::stack::Stack;

/// The closure that a thread runs.
pub(crate) type Start = Box<dyn FnOnce()>;

/// A thread, for the whole search: the same place in the spawn tree has the same number and the
/// same stack in every execution.
pub(super) struct Thread {
    /// The execution it was last created in.
    pub(super) run: u32,
    pub(super) pending: Pending,
    /// The operation that it stands before, also while it is spinning.
    pub(super) next: Option<Op>,
    pub(super) site: Site,
    /// Below it nothing belongs to the thread, while it stands before an operation.
    pub(super) stack_pointer: usize,
    /// How many events of each thread happen before its present point.
    pub(super) clock: Vec<u32>,
    pub(super) stack: Stack,
    pub(super) context: Context,
    /// The lowest stack pointer seen in this execution.
    pub(super) lowest: usize,
    /// Whether its fiber has begun and not ended.
    pub(super) alive: bool,
    /// Where in the program it ends something, if that is known.
    pub(super) ending: Option<Site>,
    /// How many panics are unwinding in it.
    pub(super) panics: usize,
    /// The closure that it is going to run, until its fiber takes it.
    pub(super) start: Option<Start>,
    /// The threads it ever created, in order, and how many of them in this execution.
    pub(super) children: Vec<u32>,
    pub(super) spawned: usize,
    /// The same for atomics and objects.
    pub(super) objects: Vec<Location>,
    pub(super) created: usize,
    /// The blocks it allocated since its last event: size and how many.
    pub(super) sizes: Vec<(usize, u32)>,
    pub(super) spin: Spin,
    /// The calls in which it stands before its next operation or panics, if they are recorded.
    pub(super) calls: Option<Arc<Backtrace>>,
    /// The message and place of its last panic.
    pub(super) panic: Option<(String, Site)>,
    /// Its thread-local values, by key.
    pub(super) locals: Vec<(usize, Local)>,
    pub(super) name: Option<String>,
    /// Whether one of its waits has ended without a reason.
    pub(super) woke: bool,
    /// Whether one of its weak compare-exchanges has failed without a reason.
    pub(super) missed: bool,
    /// How many of its timed waits have timed out.
    pub(super) timeouts: usize,
    /// Whether it is in a timed wait that may not time out any more.
    pub(super) waits_in_time: bool,
    /// The values with a reference count that it is dropping, the outermost first.
    pub(super) destructors: Vec<Destructor>,
}

/// The last owner of an `Arc` of this crate drops its value.
pub(super) enum Destructor {
    /// The reference count is an atomic.
    Counted,
    /// The reference count is not an event.
    Uncounted {
        /// Where the value was created.
        created: Site,
        /// The thread's clock before.
        outer_clock: Vec<u32>,
    },
}

/// A thread-local value.
pub(super) enum Local {
    Value(Box<dyn Any>),
    Destroyed,
}

impl Thread {
    pub(super) fn new(stack: Stack) -> Thread {
        Thread {
            run: 0,
            pending: Pending::Absent,
            next: None,
            site: Site(0),
            stack_pointer: stack.top(),
            clock: Vec::new(),
            lowest: stack.top(),
            stack,
            context: Context::NONE,
            alive: false,
            ending: None,
            panics: 0,
            start: None,
            children: Vec::new(),
            spawned: 0,
            objects: Vec::new(),
            created: 0,
            sizes: Vec::new(),
            spin: Spin::default(),
            calls: None,
            panic: None,
            locals: Vec::new(),
            name: None,
            woke: false,
            missed: false,
            timeouts: 0,
            waits_in_time: false,
            destructors: Vec::new(),
        }
    }

    /// Makes it a thread of execution `run` that has done nothing yet.
    pub(super) fn begin(&mut self, run: u32) {
        self.run = run;
        self.pending = Pending::Absent;
        self.next = None;
        self.clock.clear();
        self.spawned = 0;
        self.created = 0;
        self.sizes.clear();
        self.spin.effect();
        self.spin.open = 0;
        self.panic = None;
        self.woke = false;
        self.missed = false;
        self.timeouts = 0;
        self.waits_in_time = false;
        self.destructors.clear();
    }

    /// Forgets the values of an execution that is over: they belong to memory that is gone.
    pub(super) fn forget_values(&mut self) {
        std::mem::forget(self.start.take());
        self.locals.drain(..).for_each(std::mem::forget);
        self.alive = false;
    }

    /// A fingerprint of its stack while it stands before an operation, including the registers that it saved.
    pub(super) fn stack_state(&self) -> (u64, u64) {
        let mut hash = Words::new();
        let words = self.stack.words(self.stack_pointer);
        words.for_each(|word| hash.word(word));
        hash.finish()
    }

    /// How many events of `thread` it knows of.
    pub(super) fn counted(&self, thread: usize) -> u32 {
        self.clock.get(thread).copied().unwrap_or(0)
    }
}
