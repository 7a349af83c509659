//! The machine that explorers drive.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use selvedge_core::{
    Failure, Location, Machine, Op, Outcome, Pending, Site, SpinLoops, Stop, ThreadId, Value,
};

use crate::arena::{self, BOOT_STACK};
use crate::current;
use crate::fiber::{self, Context};
use crate::float::{self, Float};
use crate::heap::HeapBlock;
use crate::layout::Layout;
use crate::loader::{self, Image, LoadError};
use crate::overlooked::Overlooked;
use crate::runtime::{self, Phase, Runtime, with};
use crate::settings::Settings;
use crate::shadow::Shadow;
use crate::signals::{self, Handlers};
use crate::thread::Thread;
use crate::watch::{Fate, Watch};
use crate::{abi, environment, frames, gate, outside};

/// A C or C++ program that is loaded into this process.
///
/// There can be one per process at a time, because the program's globals, the fixed addresses and
/// the signal handlers exist once.
pub struct NativeMachine {
    /// Puts the process's own signal handlers back when the program is unloaded.
    handlers: Option<Handlers>,
    /// Neither to be sent nor to be shared: fibers belong to one thread of the process.
    areas: Vec<Area>,
    confined: PhantomData<Cell<*mut ()>>,
}

/// Reserved address space: start, size, and whether it reads as zero (or is opened piece by piece).
type Area = (usize, usize, bool);

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

    /// The address and width of a location.
    pub fn range_of(&self, location: Location) -> (u64, u8) {
        with(|runtime| {
            let entry = runtime.locations.entry(location);
            (entry.address as u64, entry.width)
        })
    }

    /// The call stack of `thread`, innermost first: where it stands, then where its calls return to.
    pub fn backtrace(&self, thread: ThreadId) -> Vec<u64> {
        with(|runtime| match runtime.threads.get(thread.index()) {
            Some(known) if known.run == runtime.run => {
                let calls = known.frames.return_addresses();
                std::iter::once(known.site)
                    .chain(calls)
                    .filter(|&address| runtime.image.whole.contains(address))
                    .map(|address| address as u64)
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    /// The same for when `thread` passed `site` last, one of the places of the failure that
    /// [`watch`](Machine::watch) was told of.
    pub fn backtrace_at(&self, thread: ThreadId, site: Site) -> Option<Vec<u64>> {
        with(|runtime| {
            let calls = runtime.watch.calls(thread, site.0 as usize)?;
            let calls = calls.iter().copied();
            let inside = calls.filter(|&address| runtime.image.whole.contains(address));
            let inside = inside.map(|address| address as u64);
            Some(std::iter::once(site.0).chain(inside).collect())
        })
    }

    /// The calls in which `block` was allocated and, if it was, freed, where they are known: in the run
    /// that [`watch`](Machine::watch) was told of.
    pub fn block_calls(&self, block: &HeapBlock) -> [Vec<u64>; 2] {
        with(|runtime| {
            let calls = |fate| {
                let calls = runtime.watch.block(block.start as usize, fate).iter();
                let inside = calls.filter(|&&address| runtime.image.whole.contains(address));
                inside.map(|&address| address as u64).collect()
            };
            [calls(Fate::Allocated), calls(Fate::Freed)]
        })
    }

    /// The words on the stack of `thread`, from the deepest point that is known of to its beginning.
    pub fn stack_words(&self, thread: ThreadId) -> Vec<u64> {
        with(|runtime| match runtime.threads.get(thread.index()) {
            Some(known) if known.run == runtime.run => {
                let stack = known.slot.stack_low..known.slot.stack_top;
                // SAFETY: the gate is mapped while a program is loaded.
                let entered = unsafe { (*gate::gate()).stack_pointer };
                let deepest = match stack.contains(&entered) {
                    true => known.lowest.min(entered),
                    false => known.lowest,
                };
                (deepest.next_multiple_of(8)..stack.end)
                    .step_by(8)
                    // SAFETY: aligned words of the stack of a thread that exists, which is mapped.
                    .map(|word| unsafe { arena::pointer::<u64>(word).read_volatile() })
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    /// The address that the failure is about, and what its message calls it.
    pub fn failure_place(&self) -> Option<(u64, String)> {
        with(|runtime| match runtime.failure_place {
            0 => None,
            address => Some((address as u64, runtime.name(address))),
        })
    }

    /// The visible operation that a thread passed most often, in one frame of one execution, in the
    /// search so far: its site, the calls that it was in, innermost first, and how often.
    pub fn hottest_loop(&self) -> Option<(Site, Vec<u64>, u32)> {
        with(|runtime| {
            let hottest = &runtime.hottest;
            let calls = hottest.calls.iter();
            let inside = calls.filter(|&&address| runtime.image.whole.contains(address));
            let calls = inside.map(|&address| address as u64).collect();
            (hottest.count > 0).then_some((Site(hottest.site as u64), calls, hottest.count))
        })
    }

    /// What the program did in the search so far that is explored in full only with an option.
    pub fn overlooked(&self) -> Overlooked {
        with(|runtime| runtime.overlooked)
    }

    /// From now on it is known where accesses were no events.
    pub fn note_silent(&mut self) {
        with(|runtime| {
            let size = runtime.image.whole.end - runtime.image.whole.start;
            runtime.silent = vec![0; size.div_ceil(64)];
            runtime.parted = runtime.silent.clone();
        });
    }

    /// Whether an access at `site` was no event, in some execution since
    /// [`note_silent`](Self::note_silent).
    pub fn was_silent(&self, site: Site) -> bool {
        with(|runtime| {
            let place = runtime.image.relative(site.0 as usize) as usize;
            has(&runtime.silent, place)
        })
    }

    /// Whether the settings are not those that the program was loaded with: it has written into the memory of the
    /// runtime, and nothing that the runtime says means anything any more.
    pub fn was_modified(&self) -> bool {
        let loaded = gate::settings();
        with(|runtime| runtime.settings.fingerprint()) != loaded
    }

    /// Where accesses were no event, and where they were several, for another process: the words that are not
    /// zero, with their numbers.
    pub fn uncommon_accesses(&self) -> [Vec<(usize, u64)>; 2] {
        with(|runtime| {
            [&runtime.silent, &runtime.parted].map(|words| {
                let words = words.iter().copied().enumerate();
                words.filter(|&(_, word)| word != 0).collect()
            })
        })
    }

    /// Takes over what another process noted.
    pub fn add_uncommon_accesses(&self, noted: &[Vec<(usize, u64)>; 2]) {
        with(|runtime| {
            for (words, noted) in [&mut runtime.silent, &mut runtime.parted]
                .into_iter()
                .zip(noted)
            {
                for &(number, word) in noted {
                    if let Some(own) = words.get_mut(number) {
                        *own |= word;
                    }
                }
            }
        });
    }

    /// Whether an access at `site` was several events, since it overlapped locations of other sizes, in some
    /// execution since [`note_silent`](Self::note_silent).
    pub fn was_parted(&self, site: Site) -> bool {
        with(|runtime| {
            let place = runtime.image.relative(site.0 as usize) as usize;
            has(&runtime.parted, place)
        })
    }

    /// The heap block of this execution that contains `address`, or the last one before it.
    pub fn heap_block(&self, address: u64) -> Option<HeapBlock> {
        with(|runtime| runtime.block_near(address as usize))
    }

    /// The thread whose stack or thread-local variables `address` belongs to.
    pub fn stack_owner(&self, address: u64) -> Option<ThreadId> {
        let owner = with(|runtime| runtime.layout.stack_owner(address as usize))?;
        Some(ThreadId(owner as u32))
    }

    /// The thread whose thread-local variables `address` belongs to, and how far behind their beginning
    /// it lies.
    pub fn thread_local(&self, address: u64) -> Option<(ThreadId, u64)> {
        let owner = self.stack_owner(address)?;
        with(|runtime| {
            let locals = runtime.layout.slot(owner.index()).locals as u64;
            let offset = address.checked_sub(locals)?;
            let size = runtime.image.thread_locals.size as u64;
            (offset < size).then_some((owner, offset))
        })
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

    /// Notes which of the instructions at these addresses are reached from now on.
    pub fn watch_lines(&mut self, addresses: Vec<u64>) -> io::Result<()> {
        let addresses = addresses.into_iter().map(|at| at as usize).collect();
        with(|runtime| runtime.watch_lines(addresses))
    }

    /// Those that were reached.
    pub fn reached_lines(&self) -> Vec<u64> {
        with(|runtime| runtime.lines.reached().map(|at| at as u64).collect())
    }

    /// The address the program was loaded at: sites minus this are addresses in its file.
    pub fn load_base(&self) -> u64 {
        with(|runtime| runtime.image.base as u64)
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
    let watchdog = settings.watchdog;
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
    boot(&library)?;
    with(Runtime::keep)?;
    with(Runtime::meet_libraries);
    crate::posix::booted();
    with(Runtime::merge_locations);
    machine.reset();
    Ok(machine)
}

/// The address space that a program takes.
fn areas(layout: &Layout, image: usize, threads: usize) -> Result<Vec<Area>, LoadError> {
    let Some(heaps) = layout.heaps() else {
        let what = "the heap limit times the limit on threads is too large";
        return Err(LoadError::Unsupported(what.to_owned()));
    };
    let mut areas = vec![
        (arena::STACKS, layout.stacks(), false),
        (arena::HEAPS, heaps, false),
        (arena::LIVENESS, heaps / 8, true),
        (arena::FRAMES, frames::AREA * threads, true),
        (BOOT_STACK.start, BOOT_STACK.end - BOOT_STACK.start, true),
    ];
    let shadow = Shadow::areas(layout.stacks(), heaps, image);
    areas.extend(shadow.map(|(start, size)| (start, size, true)));
    Ok(areas)
}

/// Loads the program on a stack of its own, so that a constructor that fails can be left.
fn boot(library: &Path) -> Result<(), LoadError> {
    struct Boot {
        library: PathBuf,
        result: Option<Result<usize, LoadError>>,
    }
    unsafe extern "C-unwind" fn start(boot: *mut c_void, _: usize, _: usize) -> *mut c_void {
        // SAFETY: `boot` below passes a pointer to its local, which lives while the fiber runs.
        let boot = unsafe { &mut *boot.cast::<Boot>() };
        boot.result = Some(loader::open(&boot.library));
        std::ptr::null_mut()
    }
    extern "C-unwind" fn end(_: *mut c_void) -> ! {
        let host = with(|runtime| runtime.host);
        // SAFETY: the host is suspended in `boot` below.
        unsafe { fiber::leave_to(host) }
    }
    let mut boot = Boot {
        library: library.to_owned(),
        result: None,
    };
    // SAFETY: the boot stack was mapped for this purpose.
    let context =
        unsafe { fiber::prepare(BOOT_STACK.end, start, ((&raw mut boot).cast(), 0, 0), end) };
    with(|runtime| {
        runtime.phase = Phase::Boot;
        runtime.run = 1;
        runtime.begin_thread(0);
        // For constructors that ask for them.
        environment::write(&runtime.settings, runtime.threads[0].slot.stack_top);
    });
    Float::DEFAULT.enter();
    enter(context);
    let float = Float::leave();
    let failed = with(|runtime| {
        runtime.phase = Phase::Host;
        runtime.initial_float = float;
        (runtime.failure.take(), runtime.refusal.take())
    });
    match (failed, boot.result) {
        ((Some(failure), _), _) => Err(LoadError::Constructor(failure)),
        ((_, Some(refusal)), _) => Err(LoadError::Refused(refusal)),
        (_, Some(Err(error))) => Err(error),
        (_, Some(Ok(base))) => {
            with(|runtime| runtime.place(base));
            Ok(())
        }
        (_, None) => Err(LoadError::Unsupported(
            "a constructor ended the process".to_owned(),
        )),
    }
}

/// Runs a context until it comes back to the host.
#[inline(always)]
fn enter(context: Context) {
    let save = with(|runtime| &raw mut runtime.host);
    // SAFETY: `save` points into the installed runtime, which is not replaced while the program
    // is loaded; `context` was just prepared or is a suspended thread's.
    unsafe { fiber::switch(save, context) };
}

/// Runs the thread with this number up to its next stop. Functions that return after that are to be
/// few: see [`fiber::switch`].
#[inline(always)]
fn run(thread: usize) {
    let context = with(|runtime| {
        runtime.phase = Phase::Fiber;
        runtime.running = thread;
        runtime.watchdog.steps += 1;
        if runtime.settings.stateful {
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

/// Whether a bit is set.
fn has(bits: &[u64], place: usize) -> bool {
    let word = bits.get(place / 64);
    word.is_some_and(|word| word >> (place % 64) & 1 != 0)
}
