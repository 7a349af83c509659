//! The one running program: state shared by the machine, the ABI functions and signal handlers.
//!
//! Everything that a state consists of lies in memory that the runtime owns, at fixed addresses;
//! [`states`](crate::states) saves and restores it.

use std::cell::UnsafeCell;
use std::io;
use std::path::PathBuf;

use selvedge_core::{Failure, Location, MemoryOrder, ThreadEnd};

use crate::access::Access;
use crate::fiber::Context;
use crate::float::Float;
use crate::layout::Layout;
use crate::lines::Lines;
use crate::liveness::Liveness;
use crate::loader::{Image, Range};
use crate::locations::{Extent, Locations};
use crate::overlooked::{Compared, Overlooked};
use crate::portable::Facts;
use crate::rounds::Loops;
use crate::settings::Settings;
use crate::shadow::Shadow;
use crate::signals::Watchdog;
use crate::snapshot::Snapshot;
use crate::states::States;
use crate::thread::Thread;
use crate::undo::Undo;
use crate::visits::Hottest;
use crate::watch::Watch;

/// The side that is running.
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

/// A store that was announced, whose value is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred {
    pub(crate) access: Access,
    pub(crate) order: MemoryOrder,
    /// The bytes before.
    pub(crate) old: u128,
    /// The object that it begins a new life of.
    pub(crate) object: Option<Location>,
}

/// Everything about the running program.
pub(crate) struct Runtime {
    pub(crate) phase: Phase,
    pub(crate) running: usize,
    /// The number of this execution; never zero while one is under way.
    pub(crate) run: u32,
    pub(crate) host: Context,
    /// The thread that stopped for good last, if its context was kept.
    pub(crate) kept: Option<usize>,
    pub(crate) threads: Vec<Thread>,
    /// The threads of this execution in the order of their creation.
    pub(crate) started: Vec<u32>,
    /// How the threads of this execution ended, by number.
    pub(crate) ends: Vec<ThreadEnd>,
    pub(crate) layout: Layout,
    /// Bytes of address space for heaps, and for stacks.
    pub(crate) heaps: usize,
    pub(crate) stacks: usize,
    /// Memory of shared libraries that the worker uses, which programs may read.
    pub(crate) outside: Vec<Range>,
    /// Memory of other libraries, and of the runtime, which programs may write as well.
    pub(crate) exposed: Vec<Range>,
    pub(crate) heap_used: usize,
    pub(crate) shadow: Shadow,
    pub(crate) locations: Locations,
    /// Stores that the runtime makes on the program's behalf, to be performed at its next entry.
    pub(crate) owed: Vec<Deferred>,
    /// The visible locations inside of the range that is being accessed.
    pub(crate) parts: Vec<Location>,
    /// For each place in the program whether an access there was no event, if that is recorded.
    pub(crate) eventless: Vec<u64>,
    /// The same of places where one access was several events.
    pub(crate) parted: Vec<u64>,
    /// Heap addresses that visible operations wrote in this execution, if leaks are looked for.
    pub(crate) written_addresses: Vec<usize>,
    pub(crate) failure: Option<Failure>,
    pub(crate) refusal: Option<String>,
    /// The address that the failure or the refusal is about.
    pub(crate) failure_place: usize,
    /// The file the program was loaded from.
    pub(crate) library: PathBuf,
    pub(crate) image: Image,
    /// Whether the addresses in `image` are real ones yet.
    pub(crate) placed: bool,
    pub(crate) main_locals: Option<Box<[u8]>>,
    /// The floating-point environment that the constructors left behind.
    pub(crate) initial_float: Float,
    pub(crate) snapshot: Snapshot,
    pub(crate) watchdog: Watchdog,
    pub(crate) lines: Lines,
    /// The visible operation that was passed most often in one execution.
    pub(crate) hottest: Hottest,
    /// A slot that was taken for private was entered by another thread.
    pub(crate) misjudged: bool,
    /// Facts about the program that hold beyond one execution.
    pub(crate) facts: Facts,
    /// The places of the failure that is being repeated.
    pub(crate) watch: Watch,
    /// The parts of a stopped thread's stack that matter.
    pub(crate) liveness: Liveness,
    /// The loops of the program, if they are bounded.
    pub(crate) loops: Loops,
    /// Pointers to heap blocks that compare-exchanges of this execution had as operands.
    pub(crate) compared: Compared,
    /// Behaviour of the program that only options explore in full.
    pub(crate) overlooked: Overlooked,
    /// Whether pure iterations stop a thread.
    pub(crate) parking: bool,
    /// Whether the running thread only shows where another value would have led it, see [`crate::retry`].
    pub(crate) simulating: bool,
    /// The steps that can be taken back.
    pub(crate) undo: Undo,
    /// The saved states, if states are saved.
    pub(crate) states: States,
    pub(crate) settings: Settings,
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

/// Forgets the program, which must not run any more.
pub(crate) fn uninstall() {
    // SAFETY: called by the machine that owns the program, outside of `with`.
    if let Some(runtime) = unsafe { &mut *RUNTIME.0.get() } {
        runtime.phase = Phase::Host;
        // Loading the same file again would find its globals as they are now.
        runtime.snapshot.restore();
        runtime.snapshot.release();
    }
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
    pub(crate) fn new(
        settings: Settings,
        layout: Layout,
        (library, image): (PathBuf, Image),
        main: Thread,
    ) -> Runtime {
        let mut threads = vec![main];
        threads[0].clock.push(0);
        let heaps = layout.heaps().unwrap_or(0);
        Runtime {
            phase: Phase::Host,
            running: 0,
            run: 0,
            host: Context::NONE,
            kept: None,
            threads,
            started: Vec::new(),
            ends: vec![ThreadEnd::NOT_AWAITED],
            layout,
            heaps,
            stacks: layout.stacks(),
            outside: Vec::new(),
            exposed: Vec::new(),
            heap_used: 0,
            shadow: Shadow::new(layout.stacks(), heaps),
            locations: Locations::default(),
            owed: Vec::new(),
            parts: Vec::new(),
            eventless: Vec::new(),
            parted: Vec::new(),
            written_addresses: Vec::new(),
            failure: None,
            refusal: None,
            failure_place: 0,
            library,
            image,
            placed: false,
            main_locals: None,
            initial_float: Float::DEFAULT,
            snapshot: Snapshot::default(),
            watchdog: Watchdog::default(),
            lines: Lines::default(),
            hottest: Hottest::default(),
            misjudged: false,
            facts: Facts::default(),
            watch: Watch::default(),
            liveness: Liveness::default(),
            loops: Loops::default(),
            compared: Compared::default(),
            overlooked: Overlooked::default(),
            parking: !settings.stateful,
            simulating: false,
            undo: Undo::new(),
            states: States::default(),
            settings,
        }
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

    /// Makes thread `index` exist in this execution; its fiber is up to the caller.
    pub(crate) fn begin_thread(&mut self, index: usize) {
        self.threads[index].begin(self.run);
        self.ends[index] = ThreadEnd::NOT_AWAITED;
        self.started.push(index as u32);
        let slot = self.threads[index].slot;
        self.wrote(slot.stack_low, slot.end - slot.stack_low);
        if self.placed {
            self.initialise_locals(index);
        }
    }

    /// Makes the present state, after the constructors, the initial one.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        self.save_main_locals();
        let mut ranges = self.image.writable.clone();
        ranges.extend(self.threads[0].heap.keep());
        self.snapshot = Snapshot::take(&ranges)?;
        Ok(())
    }

    /// Gives merged locations their numbers.
    pub(crate) fn merge_locations(&mut self) {
        for extent in &self.settings.merged {
            let base = if extent.global {
                self.image.whole.start
            } else {
                0
            };
            let address = base + extent.start as usize;
            self.locations.merge(&self.shadow, address, extent.width);
        }
    }

    /// Where some bytes lie.
    pub(crate) fn extent(&self, (address, width): (usize, u8)) -> Extent {
        let global = self.image.whole.contains(address);
        let base = if global { self.image.whole.start } else { 0 };
        Extent {
            start: (address - base) as u64,
            global,
            width,
        }
    }

    /// Back to the state after the constructors, without any thread.
    pub(crate) fn restore(&mut self) {
        self.undo.begin();
        self.snapshot.restore();
        for index in self.started.drain(..) {
            let thread = &mut self.threads[index as usize];
            thread.slot.clear(thread.lowest);
            if self.settings.stateful {
                thread.heap.begin_again();
            } else {
                thread.heap.reset();
            }
        }
        self.heap_used = 0;
        self.failure = None;
        self.refusal = None;
        self.owed.clear();
        self.written_addresses.clear();
        self.compared.clear();
        self.shadow.reset();
        if self.run == u32::MAX {
            self.forget_runs();
        }
        self.run += 1;
        self.locations.begin(self.run);
    }

    /// Starts counting executions again.
    #[cold]
    fn forget_runs(&mut self) {
        self.shadow.forget();
        self.locations.forget_runs();
        self.locations.relink();
        for thread in &mut self.threads {
            thread.run = 0;
            thread.visits.forget();
        }
        self.run = 0;
    }

    /// Notes that the running thread has just waited for the end of `child`.
    pub(crate) fn joined(&mut self, child: usize) {
        if self.exists(child) && !self.ends[child].is_awaited() {
            let at = self.threads[self.running].clock[self.running].wrapping_sub(1);
            let events = self.threads[child].clock[child];
            self.undo.ends(child, self.ends[child]);
            self.ends[child] = ThreadEnd::awaited(events, self.running as u32, at);
        }
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
        if let Some(&child) = self.threads[parent].children.get(place) {
            return Ok(child as usize);
        }
        self.add_child(parent)
    }

    /// Gives the next number to a further child of `parent`.
    fn add_child(&mut self, parent: usize) -> Result<usize, String> {
        let child = self.add_thread()?;
        self.threads[parent].children.push(child as u32);
        self.recall_slot(child);
        Ok(child)
    }

    /// Adds a thread with the next number.
    pub(crate) fn add_thread(&mut self) -> Result<usize, String> {
        let child = self.threads.len();
        if child >= self.settings.max_threads as usize {
            let limit = self.settings.max_threads;
            return Err(format!(
                "more than {limit} threads (--max-threads raises the limit)"
            ));
        }
        let thread = Thread::new(child, &self.layout);
        thread
            .slot
            .open()
            .map_err(|e| format!("no memory for the stack of a thread: {e}"))?;
        self.threads.push(thread);
        self.ends.push(ThreadEnd::NOT_AWAITED);
        for thread in &mut self.threads {
            thread.clock.resize(child + 1, 0);
        }
        Ok(child)
    }

    /// Gives the next number to the child of `parent` at `place`.
    pub(crate) fn introduce(&mut self, parent: usize, place: usize) {
        debug_assert_eq!(self.threads[parent].children.len(), place);
        if let Err(problem) = self.add_child(parent) {
            unreachable!("{problem} where there was one before");
        }
    }

    /// Takes the newest number back.
    pub(crate) fn forget_newest(&mut self) {
        let newest = self.threads.len() as u32 - 1;
        self.threads.pop();
        self.ends.pop();
        for thread in &mut self.threads {
            thread.clock.truncate(newest as usize);
            thread.children.retain(|&child| child != newest);
        }
    }
}
