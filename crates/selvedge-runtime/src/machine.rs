//! The machine that explorers drive.

use std::cell::Cell;
use std::marker::PhantomData;
use std::path::Path;

use selvedge_core::{
    Failure, Location, Machine, Op, Outcome, Pending, Site, SpinLoops, Stop, ThreadId, Value,
};

use crate::arena;
use crate::boot::{areas, boot};
use crate::current;
use crate::fiber::{self, Context};
use crate::float::{self, Float};
use crate::layout::Layout;
use crate::loader::{Image, LoadError};
use crate::problem::UNSEEN;
use crate::runtime::{self, Phase, Runtime, with};
use crate::settings::Settings;
use crate::signals::{self, Handlers};
use crate::thread::Thread;
use crate::watch::Watch;
use crate::{abi, environment, gate, outside};

/// A C or C++ program that is loaded into this process.
///
/// There can be one per process at a time, because the program's globals, the fixed addresses and
/// the signal handlers exist once.
pub struct NativeMachine {
    /// Puts the process's own signal handlers back when the program is unloaded.
    handlers: Option<Handlers>,
    areas: Vec<Area>,
    /// Makes the type neither `Send` nor `Sync`: fibers belong to one thread of the process.
    confined: PhantomData<Cell<*mut ()>>,
}

/// Reserved address space: start, size, and whether it reads as zero (or is opened piece by piece).
pub(crate) type Area = (usize, usize, bool);

thread_local! {
    static LOADED: Cell<bool> = const { Cell::new(false) };
}

impl NativeMachine {
    /// Loads the shared object at `library`, runs its constructors, and stops before `main`'s first
    /// visible operation.
    pub fn load(library: &Path, mut settings: Settings) -> Result<NativeMachine, LoadError> {
        settings.skip_retries &= std::env::var_os("SELVEDGE_RETRIES").is_none_or(|set| set != "0");
        if LOADED.replace(true) {
            return Err(LoadError::Busy);
        }
        let result = load(library, settings);
        if result.is_err() {
            LOADED.set(false);
        }
        result
    }

    /// Whether threads that make pure iterations are stopped, as they are unless this says otherwise:
    /// so that tests can look at what such a thread would go on to do.
    #[doc(hidden)]
    pub fn set_parking(&mut self, on: bool) {
        with(|runtime| runtime.parking = on);
    }

    /// Goes on counting executions at `number`, for tests of what happens when numbers run out.
    #[doc(hidden)]
    pub fn set_execution(&mut self, number: u32) {
        with(|runtime| runtime.run = number);
    }

    /// Sees to it that a state means the same in all copies that are made of the process.
    pub(crate) fn prepare_copies(&mut self) -> std::io::Result<()> {
        with(|runtime| {
            crate::posix::state::reserve(runtime.settings.max_threads as usize);
            runtime.locations.agree()
        })
    }

    /// Starts the watchdog's timer, which a copy of the process does not inherit.
    pub(crate) fn restart_watchdog(&mut self) -> std::io::Result<()> {
        let limit = with(|runtime| runtime.settings.watchdog);
        match &mut self.handlers {
            Some(handlers) => handlers.restart(limit),
            None => Ok(()),
        }
    }
}

fn load(library: &Path, settings: Settings) -> Result<NativeMachine, LoadError> {
    let library = library.canonicalize()?;
    let image = Image::read(&library)?;
    float::set_in_use(image.uses_float);
    let threads = settings.max_threads.max(1) as usize;
    if threads > usize::from(u16::MAX) {
        return Err(LoadError::Unsupported(
            "a limit of more than 65535 threads".to_owned(),
        ));
    }
    if !environment::fits(&settings) {
        return Err(LoadError::Unsupported(
            "arguments and an environment that take more than a quarter of the stack".to_owned(),
        ));
    }
    let locals = (image.thread_locals.size, image.thread_locals.alignment);
    let layout = Layout::new(settings.stack_size, locals, settings.heap_limit, threads);
    let image_size = image.whole.end - image.whole.start;
    // From here on, dropping the machine gives everything back.
    let mut machine = NativeMachine {
        handlers: None,
        areas: areas(&layout, image_size, threads)?,
        confined: PhantomData,
    };
    gate::map()?;
    abi::fill_table()?;
    for &(start, size, zeroed) in &machine.areas {
        if zeroed {
            arena::reserve_zeroed(start, size)?;
        } else {
            arena::reserve(start, size)?;
        }
    }
    let main = Thread::new(0, &layout);
    main.slot.open()?;
    let (watchdog, filled) = (settings.watchdog, settings.filled);
    gate::set_targets(|targets| targets.settings = settings.fingerprint())?;
    runtime::install(Runtime::new(
        settings,
        layout,
        (library.clone(), image),
        main,
    ));
    with(|runtime| runtime.outside = outside::of_worker());
    machine.handlers = Some(signals::install(watchdog)?);
    crate::posix::begin();
    crate::posix::forget_files();
    filled(gate::place());
    boot(&library)?;
    with(Runtime::keep)?;
    with(Runtime::meet_libraries);
    crate::posix::booted();
    with(Runtime::merge_locations);
    machine.reset();
    Ok(machine)
}

/// Runs a context until it comes back to the host.
#[inline(always)]
pub(crate) fn enter(context: Context) {
    let save = with(|runtime| &raw mut runtime.host);
    // SAFETY: `save` points into the installed runtime, which is not replaced while the program
    // is loaded; `context` was just prepared or is a suspended thread's.
    unsafe { fiber::switch(save, context) };
}

/// Runs the thread with this number up to its next stop. Keep this call chain shallow: every return
/// after a stack switch is mispredicted (see [`fiber::switch`]).
#[inline(always)]
fn run(thread: usize) {
    let context = with(|runtime| {
        runtime.phase = Phase::Fiber;
        runtime.running = thread;
        runtime.watchdog.steps += 1;
        if runtime.settings.stateful {
            runtime.begin_comparison();
            // Every store tells when it is made.
            // SAFETY: the gate is mapped while a program is loaded.
            unsafe { (*gate::gate()).stores = 1 };
        }
        let thread = &runtime.threads[thread];
        if float::in_use() {
            thread.float.enter();
        }
        thread.context
    });
    enter(context);
    with(|runtime| {
        runtime.phase = Phase::Host;
        runtime.stepped(thread);
        let thread = &mut runtime.threads[thread];
        if float::in_use() {
            thread.float = Float::leave();
        }
        thread.reached(thread.context.stack_pointer());
    });
}

impl Machine for NativeMachine {
    fn reset(&mut self) {
        with(|runtime| runtime.watch.begin());
        with(Runtime::restore);
        crate::posix::reset();
        current::start_main();
        with(Runtime::begin_states);
        run(0);
    }

    fn threads(&self) -> usize {
        with(|runtime| runtime.threads.len())
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        with(|runtime| match runtime.threads.get(thread.index()) {
            Some(known) if known.run == runtime.run => known.pending,
            _ => Pending::Absent,
        })
    }

    fn is_about_to(&self, thread: ThreadId, op: &Op) -> bool {
        with(|runtime| {
            let known = runtime.threads.get(thread.index());
            let known = known.filter(|known| known.run == runtime.run);
            matches!(known, Some(Thread { pending: Pending::Op(pending), .. }) if pending == op)
        })
    }

    fn initial(&self, location: Location) -> Value {
        with(|runtime| runtime.locations.initial(location, runtime.run))
    }

    #[inline(always)]
    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        let index = thread.index();
        let created = with(|runtime| {
            runtime.begin_step(index);
            runtime.note_attempt(index, outcome);
            let thread = &mut runtime.threads[index];
            let known = clock.len().min(thread.clock.len());
            thread.clock[..known].copy_from_slice(&clock[..known]);
            thread.clock[known..].fill(0);
            thread.outcome = outcome;
            match thread.pending {
                Pending::Op(Op::Create { child }) => Some(child.index()),
                Pending::Op(_) => None,
                Pending::Absent | Pending::Stopped(_) => {
                    panic!(
                        "{thread_id} has no pending operation",
                        thread_id = ThreadId(index as u32)
                    )
                }
            }
        });
        run(index);
        if let Some(child) = created {
            run(child);
        }
        with(|runtime| runtime.end_step(index));
        while with(|runtime| runtime.begin_simulation(index)) {
            run(index);
            with(|runtime| runtime.end_simulation(index));
        }
    }

    fn undo(&mut self, steps: usize) -> bool {
        with(|runtime| runtime.take_back(steps))
    }

    fn site(&self, thread: ThreadId) -> Site {
        with(|runtime| Site(runtime.threads[thread.index()].site as u64))
    }

    fn watch(&mut self, failure: &Failure) {
        with(|runtime| runtime.watch = Watch::over(failure));
    }

    fn failure(&self) -> Option<Failure> {
        with(|runtime| {
            let mut failure = runtime.failure.clone()?;
            failure.message = runtime.fill_in_place(&failure.message);
            Some(failure)
        })
    }

    fn leftover(&self) -> Option<Failure> {
        let leak = || {
            with(|runtime| {
                runtime
                    .settings
                    .check_leaks
                    .then(|| runtime.leak())
                    .flatten()
            })
        };
        crate::posix::leftover().or_else(leak)
    }

    fn refusal(&self) -> Option<String> {
        with(|runtime| {
            runtime
                .refusal
                .as_ref()
                .map(|what| runtime.fill_in_place(what))
        })
    }

    fn unseen(&self) -> Option<String> {
        with(|runtime| {
            let access = runtime.unseen_change()?;
            runtime.failure_place = access.address;
            Some(runtime.fill_in_place(UNSEEN))
        })
    }
}

impl SpinLoops for NativeMachine {
    fn quiet(&mut self, thread: ThreadId) -> bool {
        match self.pending(thread) {
            Pending::Stopped(Stop::Spinning { since }) => {
                with(|runtime| runtime.quiet_since(thread.index(), since))
            }
            _ => false,
        }
    }

    fn never_races(&mut self, location: Location) -> bool {
        with(|runtime| runtime.never_races(location))
    }

    fn can_retry(&mut self, location: Location) -> bool {
        // The shadow remembers accesses: an access is forgotten only where no race is looked for.
        self.never_races(location)
    }

    fn retry(&mut self, thread: ThreadId) {
        with(|runtime| {
            runtime.begin_step(thread.index());
            runtime.end_retry();
            let known = &mut runtime.threads[thread.index()];
            let spins = matches!(known.pending, Pending::Stopped(Stop::Spinning { .. }));
            let op = known.repeated.take().filter(|_| spins);
            known.pending = Pending::Op(op.expect("only a thread that spins can be taken back"));
        });
    }

    fn misjudged(&mut self) -> bool {
        with(|runtime| std::mem::take(&mut runtime.misjudged))
    }
}

impl Drop for NativeMachine {
    fn drop(&mut self) {
        self.handlers = None;
        runtime::uninstall();
        for &(start, size, _) in &self.areas {
            arena::unreserve(start, size);
        }
        LOADED.set(false);
    }
}
