//! The one running program: state shared by the machine, the ABI functions and signal handlers.

use std::cell::UnsafeCell;

use selvedge_core::{Failure, Location};

use crate::arena::{PAGE, pointer};
use crate::fiber::Context;
use crate::loader::Image;
use crate::locations::Locations;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::thread::{Layout, Thread};

/// Which side the processor is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The explorer runs, or nothing is loaded. Whatever the program does (destructors at the end
    /// of the process) happens natively.
    Host,
    /// The program's constructors run.
    Boot,
    /// A thread of the program runs.
    Fiber,
}

/// Everything about the running program.
pub(crate) struct Runtime {
    pub(crate) phase: Phase,
    pub(crate) running: usize,
    /// The number of this execution; never zero while one is under way.
    pub(crate) run: u32,
    pub(crate) host: Context,
    pub(crate) threads: Vec<Thread>,
    /// The threads of this execution in the order of their creation.
    pub(crate) started: Vec<u32>,
    pub(crate) layout: Layout,
    pub(crate) locations: Locations,
    pub(crate) failure: Option<Failure>,
    pub(crate) refusal: Option<String>,
    pub(crate) image: Image,
    pub(crate) settings: Settings,
    pub(crate) heap_used: usize,
    pub(crate) snapshot: Snapshot,
}

struct Shared(UnsafeCell<Option<Runtime>>);

// SAFETY: the runtime is used by one thread of the process only; `NativeMachine` is neither `Send`
// nor `Sync`, and creating a second one is refused.
unsafe impl Sync for Shared {}

static RUNTIME: Shared = Shared(UnsafeCell::new(None));

/// Installs the state of a newly loaded program.
pub(crate) fn install(runtime: Runtime) {
    // SAFETY: no program is loaded, so nothing refers to the state.
    unsafe { *RUNTIME.0.get() = Some(runtime) };
}

/// Works on the state. The closure must neither switch fibers nor call `with` again.
#[inline(always)]
pub(crate) fn with<R>(work: impl FnOnce(&mut Runtime) -> R) -> R {
    // SAFETY: one thread, and by the rule above one reference at a time; signal handlers use the
    // state only to leave the interrupted code for good or while it holds no reference.
    match unsafe { &mut *RUNTIME.0.get() } {
        Some(runtime) => work(runtime),
        None => unreachable!("no program is loaded"),
    }
}

impl Runtime {
    /// A program that is about to be loaded.
    pub(crate) fn new(settings: Settings, layout: Layout, image: Image, main: Thread) -> Runtime {
        let mut threads = vec![main];
        threads[0].clock.push(0);
        Runtime {
            phase: Phase::Host,
            running: 0,
            run: 0,
            host: Context::NONE,
            threads,
            started: Vec::new(),
            layout,
            locations: Locations::default(),
            failure: None,
            refusal: None,
            image,
            settings,
            heap_used: 0,
            snapshot: Snapshot::default(),
        }
    }

    /// Makes thread `index` exist in this execution; its fiber is up to the caller.
    pub(crate) fn begin_thread(&mut self, index: usize) {
        let run = self.run;
        let locals = self.image.thread_locals;
        let thread = &mut self.threads[index];
        thread.run = run;
        thread.spawned = 0;
        thread.result = std::ptr::null_mut();
        thread.lowest = thread.slot.stack_top;
        thread.clock.fill(0);
        let block = pointer::<u8>(thread.slot.tls);
        // SAFETY: the slot is committed and as large as the layout says; the initial contents are
        // part of the loaded image.
        unsafe {
            block.copy_from(pointer(locals.start), locals.initialised);
            block
                .add(locals.initialised)
                .write_bytes(0, locals.size - locals.initialised);
        }
        self.started.push(index as u32);
    }

    /// Back to the state after the constructors, without any thread.
    pub(crate) fn restore(&mut self) {
        self.snapshot.restore();
        for index in self.started.drain(..) {
            let thread = &mut self.threads[index as usize];
            let used = (thread.lowest & !(PAGE - 1)).saturating_sub(PAGE);
            let from = used.max(thread.slot.stack_low);
            // SAFETY: part of the thread's committed stack; no fiber runs.
            unsafe { pointer::<u8>(from).write_bytes(0, thread.slot.stack_top - from) };
            thread.heap.reset();
        }
        self.heap_used = 0;
        self.failure = None;
        self.refusal = None;
        self.run += 1;
    }

    /// The running thread.
    #[inline(always)]
    pub(crate) fn current(&mut self) -> &mut Thread {
        &mut self.threads[self.running]
    }

    /// Whether `thread` exists in this execution.
    pub(crate) fn exists(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|t| t.run == self.run)
    }

    /// Two different threads at once.
    pub(crate) fn pair(&mut self, one: usize, other: usize) -> (&mut Thread, &mut Thread) {
        match self.threads.get_disjoint_mut([one, other]) {
            Ok([one, other]) => (one, other),
            Err(_) => unreachable!("two threads that exist"),
        }
    }

    /// The number of the running thread's next child.
    pub(crate) fn next_child(&mut self) -> Result<usize, String> {
        let parent = self.running;
        let place = self.threads[parent].spawned as usize;
        let known = self.threads[parent].children.get(place).copied();
        let child = match known {
            Some(child) => child as usize,
            None => {
                let child = self.threads.len();
                if child >= self.settings.max_threads as usize {
                    return Err(format!(
                        "more than {child} threads (the limit can be raised with --max-threads)"
                    ));
                }
                let thread = Thread::new(child, &self.layout);
                thread
                    .slot
                    .open()
                    .map_err(|e| format!("no memory for a stack: {e}"))?;
                self.threads.push(thread);
                for thread in &mut self.threads {
                    thread.clock.resize(child + 1, 0);
                }
                self.threads[parent].children.push(child as u32);
                child
            }
        };
        Ok(child)
    }

    /// What `location` held before its first visible operation, as far as that is known.
    pub(crate) fn initial(&self, location: Location) -> u128 {
        self.locations.initial(location, self.run)
    }
}
