//! The state of the C library between two calls.
//!
//! It belongs to the execution: every reset brings back what the program's constructors left
//! behind. What a thread knows about itself (which locks it holds, its clock) is kept here and not
//! in shared objects, so asking for it is no visible operation.

use std::cell::RefCell;
use std::ffi::c_int;

use selvedge_core::{Site, ThreadId};
use serde::{Deserialize, Serialize};

use super::exit::ForcedUnwind;
use super::handlers::{Handler, Order};
use super::key::{Key, Specific};
use super::random::Generator;
use crate::current;

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Where the lock is.
    pub(crate) address: usize,
    /// How often it was taken.
    pub(crate) count: u32,
    /// Whether others may hold it too.
    pub(crate) shared: bool,
}

/// How a thread was joined or detached, which may happen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The thread that did it.
    pub(crate) by: ThreadId,
    /// Where.
    pub(crate) site: Site,
    /// Whether it was detached.
    pub(crate) detached: bool,
}

/// A destructor of a thread-local object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Destructor {
    /// The function.
    pub(crate) function: usize,
    /// Its argument.
    pub(crate) object: usize,
}

/// The data of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Local {
    /// Its `errno`; the program holds pointers to it, so a `Local` never moves.
    pub(crate) errno: c_int,
    /// The locks it holds, the latest last.
    pub(crate) held: Vec<Held>,
    /// Its values of keys.
    pub(crate) specific: Vec<Specific>,
    /// The destructors of its thread-local objects, the latest last.
    pub(crate) destructors: Vec<Destructor>,
    /// How many keys it has created.
    pub(crate) keys: u32,
    /// Nanoseconds that have passed for it.
    pub(crate) nanoseconds: u64,
    /// How often it has read a clock.
    pub(crate) readings: u32,
    /// Its random numbers.
    pub(crate) random: Generator,
    /// The thread that joined or detached it first.
    pub(crate) claim: Option<Claim>,
    /// Another thread that did so as well, which is a bug.
    pub(crate) second_claim: Option<Claim>,
    /// Whether it has woken up without a signal.
    pub(crate) woke_spuriously: bool,
    /// The static initialisations it is in the middle of.
    pub(crate) initialising: Vec<usize>,
    /// The buffers of its `pthread_cleanup_push`, the latest last.
    pub(crate) cleanups: Vec<usize>,
    /// The exit handlers it has called.
    pub(crate) called: Vec<Order>,
    /// The thrown objects that it has made known to other threads.
    pub(crate) shared_exceptions: Vec<usize>,
    /// The value it gave to `pthread_exit`.
    pub(crate) result: usize,
    /// The exception that unwinds its stack then.
    pub(crate) unwinding: ForcedUnwind,
}

impl Local {
    pub(crate) const NEW: Local = Local {
        errno: 0,
        held: Vec::new(),
        specific: Vec::new(),
        destructors: Vec::new(),
        keys: 0,
        nanoseconds: 0,
        readings: 0,
        random: Generator::NEW,
        claim: None,
        second_claim: None,
        woke_spuriously: false,
        initialising: Vec::new(),
        cleanups: Vec::new(),
        called: Vec::new(),
        shared_exceptions: Vec::new(),
        result: 0,
        unwinding: ForcedUnwind::NEW,
    };

    /// The entry for the lock at `address`, if it is held.
    pub(crate) fn find(&mut self, address: usize) -> Option<&mut Held> {
        self.held
            .iter_mut()
            .rev()
            .find(|held| held.address == address)
    }

    /// Notes one more acquisition of the lock at `address`.
    pub(crate) fn hold(&mut self, address: usize, shared: bool) {
        match self.find(address) {
            Some(held) => held.count += 1,
            None => self.held.push(Held {
                address,
                count: 1,
                shared,
            }),
        }
    }

    /// Notes one release of the lock at `address`; says whether that was the last one.
    pub(crate) fn drop_hold(&mut self, address: usize) -> bool {
        let Some(index) = self.held.iter().rposition(|held| held.address == address) else {
            return false;
        };
        self.held[index].count -= 1;
        let last = self.held[index].count == 0;
        if last {
            self.held.remove(index);
        }
        last
    }

    /// Forgets the lock at `address`, whose life begins or ends.
    pub(crate) fn forget(&mut self, address: usize) {
        self.held.retain(|held| held.address != address);
    }
}

/// The data of the process.
#[derive(Debug)]
pub(crate) struct Process {
    #[expect(clippy::vec_box, reason = "a `Local` must not move")]
    /// Per thread number; boxed because the program holds pointers to `errno`.
    locals: Vec<Box<Local>>,
    /// The keys that exist.
    pub(crate) keys: Vec<Key>,
    /// The functions that `exit` has to call.
    pub(crate) handlers: Vec<Handler>,
    /// Where the program keeps the lock that the first thread takes that ends it.
    pub(crate) exit_lock: usize,
    /// How many handlers were ever registered.
    pub(crate) registered: i64,
    /// Whether a thread was joined or detached by several others.
    pub(crate) contended: bool,
    /// Once controls whose routine ran in a constructor: done for good.
    pub(crate) settled: Vec<usize>,
    /// Main, the keys and the handlers as the constructors left them.
    initial: (Local, Vec<Key>, Vec<Handler>),
}

impl Process {
    /// The data of `thread`.
    pub(crate) fn thread(&mut self, thread: ThreadId) -> &mut Local {
        while self.locals.len() <= thread.index() {
            self.locals.push(Box::new(Local::NEW));
        }
        &mut self.locals[thread.index()]
    }

    /// How many threads something is known about.
    pub(crate) fn threads(&self) -> usize {
        self.locals.len()
    }

    fn reset(&mut self) {
        let (main, keys, handlers) = &self.initial;
        let mut first = Some(main);
        for local in &mut self.locals {
            local.restore(first.take().unwrap_or(&NEW));
        }
        self.contended = false;
        self.keys.clone_from(keys);
        self.handlers.clone_from(handlers);
    }
}

/// A thread that has not begun.
static NEW: Local = Local::NEW;

impl Local {
    /// Whether nothing is to be known, as is nearly always the case.
    fn is_new(&self) -> bool {
        let lists = self.held.len()
            + self.specific.len()
            + self.destructors.len()
            + self.initialising.len()
            + self.cleanups.len()
            + self.called.len()
            + self.shared_exceptions.len();
        let numbers = self.errno as usize | self.keys as usize | self.result;
        (lists | numbers) == 0
            && self.nanoseconds == 0
            && self.readings == 0
            && self.random == Generator::NEW
            && self.claim.is_none()
            && self.second_claim.is_none()
            && !self.woke_spuriously
            && self.unwinding == ForcedUnwind::NEW
    }

    /// Becomes as `other`, without giving memory back.
    fn restore(&mut self, other: &Local) {
        self.errno = other.errno;
        self.held.clone_from(&other.held);
        self.specific.clone_from(&other.specific);
        self.destructors.clone_from(&other.destructors);
        self.keys = other.keys;
        self.nanoseconds = other.nanoseconds;
        self.readings = other.readings;
        self.random = other.random;
        self.claim = other.claim;
        self.second_claim = other.second_claim;
        self.woke_spuriously = other.woke_spuriously;
        self.initialising.clone_from(&other.initialising);
        self.cleanups.clone_from(&other.cleanups);
        self.called.clone_from(&other.called);
        self.shared_exceptions.clone_from(&other.shared_exceptions);
        self.result = other.result;
    }
}

struct Cell(RefCell<Process>);

// SAFETY: there is one program per operating-system process, and only the thread that runs its
// fibers comes here.
unsafe impl Sync for Cell {}

static PROCESS: Cell = Cell(RefCell::new(Process {
    locals: Vec::new(),
    keys: Vec::new(),
    handlers: Vec::new(),
    exit_lock: 0,
    registered: 0,
    contended: false,
    settled: Vec::new(),
    initial: (Local::NEW, Vec::new(), Vec::new()),
}));

/// Access to everything. `f` must not perform operations, fail, or run program code.
pub(crate) fn process<R>(f: impl FnOnce(&mut Process) -> R) -> R {
    f(&mut PROCESS.0.borrow_mut())
}

/// Access to what is known about the running thread, under the same condition.
pub(crate) fn local<R>(f: impl FnOnce(&mut Local) -> R) -> R {
    let thread = current::thread();
    process(|process| f(process.thread(thread)))
}

/// Forgets everything: a program is about to be loaded.
pub(crate) fn begin() {
    process(|process| {
        process.locals.clear();
        process.keys.clear();
        process.handlers.clear();
        process.settled.clear();
        process.initial = (Local::NEW, Vec::new(), Vec::new());
    });
}

/// Makes room for this many threads, so that what is known about each lies at the same place in
/// processes that are made of this one.
pub(crate) fn reserve(threads: usize) {
    process(|process| {
        if let Some(last) = threads.checked_sub(1) {
            process.thread(ThreadId(last as u32));
        }
    });
}

/// Remembers the state that the constructors left behind.
pub(crate) fn booted() {
    process(|process| {
        let main = process.thread(ThreadId::MAIN).clone();
        process.initial = (main, process.keys.clone(), process.handlers.clone());
    });
}

/// Back to that state.
pub(crate) fn reset() {
    process(Process::reset);
}

/// The data of the process as a whole.
#[derive(Serialize, Deserialize)]
pub(crate) struct Shared {
    keys: Vec<Key>,
    handlers: Vec<Handler>,
    registered: i64,
    contended: bool,
}

/// Appends `value` to `into` in a form that tells it from others.
pub(crate) fn encode(value: &impl Serialize, into: &mut Vec<u8>) {
    let encoded = postcard::to_extend(value, std::mem::take(into));
    *into = encoded.unwrap_or_else(|_| unreachable!("plain data can be encoded"));
}

/// Tells what is known about the process as a whole.
pub(crate) fn identify_shared(into: &mut Vec<u8>) {
    process(|process| {
        if process.keys.is_empty() && process.handlers.is_empty() && !process.contended {
            return;
        }
        encode(&process.keys, into);
        encode(&process.handlers, into);
        encode(&(process.registered, process.contended), into);
    });
}

/// Saves it.
pub(crate) fn save_shared() -> Shared {
    process(|process| Shared {
        keys: process.keys.clone(),
        handlers: process.handlers.clone(),
        registered: process.registered,
        contended: process.contended,
    })
}

/// Restores it.
pub(crate) fn restore_shared(saved: &Shared) {
    process(|process| {
        process.keys.clone_from(&saved.keys);
        process.handlers.clone_from(&saved.handlers);
        process.registered = saved.registered;
        process.contended = saved.contended;
    });
}

/// Tells what is known about a thread; of one that has ended, only whether it was joined counts.
pub(crate) fn identify_thread(thread: usize, runs: bool, into: &mut Vec<u8>) {
    process(|process| {
        let local = process.thread(ThreadId(thread as u32));
        match runs {
            true if local.is_new() => into.push(0),
            true => {
                into.push(1);
                encode(local, into);
            }
            false => encode(&(local.claim, local.second_claim), into),
        }
    });
}

/// Saves it; nothing if there is nothing to be known.
pub(crate) fn save_thread(thread: usize) -> Option<Box<Local>> {
    process(|process| {
        let local = process.thread(ThreadId(thread as u32));
        (!local.is_new()).then(|| Box::new(local.clone()))
    })
}

/// Copies it.
pub(crate) fn copy_thread(thread: usize, into: &mut Local) {
    process(|process| {
        let local = process.thread(ThreadId(thread as u32));
        into.restore(local);
        into.unwinding.clone_from(&local.unwinding);
    });
}

/// The same in words.
pub(crate) fn words(thread: usize) -> String {
    process(|process| format!("{:?}", process.thread(ThreadId(thread as u32))))
}

/// Sets the thread that has joined or detached another one, and whether that was contended anywhere.
pub(crate) fn set_claims(
    thread: u32,
    (claim, second): (Option<Claim>, Option<Claim>),
    contended: bool,
) {
    process(|process| {
        let local = process.thread(ThreadId(thread));
        (local.claim, local.second_claim) = (claim, second);
        process.contended = contended;
    });
}

/// Restores it; a thread that does not exist is as before it began.
pub(crate) fn restore_thread(thread: usize, saved: Option<&Local>) {
    process(|process| {
        let local = process.thread(ThreadId(thread as u32));
        let saved = saved.unwrap_or(&NEW);
        local.restore(saved);
        local.unwinding.clone_from(&saved.unwinding);
    });
}
