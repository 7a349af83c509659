//! What an execution consists of, seen from the host.

use std::alloc::Layout;
use std::any::Any;
use std::panic::Location as Caller;
use std::ptr::NonNull;

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_core::failure::Other;
use selvedge_core::{
    Effect, Failure, FailureKind, Location, Op, Outcome, Pending, Site, Stop, ThreadId, Value,
};

use super::engine::may_leave;
use super::machine::Limits;
use super::memory::{Freed, Memory, Name};
use super::place::{New, Place};
use super::race::{Access, CellId, Ended, Kind, LASTING, Race, View};
use super::spin::{Arrival, Fingerprint};
use super::stack::Stack;
use super::thread::{Local, Thread};

/// A place in the source of the program under test.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourcePlace {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Sites of panics have no static description; they are numbered from here on.
const PANICS: u64 = 1 << 63;

/// The site of a call.
pub(crate) fn site_of(caller: &'static Caller<'static>) -> Site {
    Site(ptr_of(caller))
}

fn ptr_of(caller: &'static Caller<'static>) -> u64 {
    std::ptr::from_ref(caller).expose_provenance() as u64
}

/// One execution, and what is kept from one to the next.
pub(crate) struct State {
    /// Tells this search from others of the process.
    serial: u32,
    pub(super) run: u32,
    pub(super) limits: Limits,
    pub(super) threads: Vec<Thread>,
    /// The thread that runs, or ran last.
    pub(super) running: usize,
    /// The threads of this execution in the order they began.
    pub(super) begun: Vec<usize>,
    pub(super) ends: Vec<Ended>,
    pub(super) places: Vec<Place>,
    cells: Vec<Race>,
    pub(super) memory: Memory,
    /// Locations of statics, by address.
    named: FxHashMap<usize, Location>,
    /// The values of lazy statics, by address.
    pub(super) statics: Vec<(usize, Box<dyn Any>)>,
    pub(super) failure: Option<Failure>,
    pub(super) refusal: Option<String>,
    /// Something was learned that makes the search start over.
    pub(super) again: bool,
    /// Reads that are passed more than once without an effect.
    watched: FxHashSet<u64>,
    /// Where reference-counted values are created whose counts matter.
    pub(super) counted: FxHashSet<Site>,
    /// Reference-counted values that are alive.
    pub(super) shared: FxHashMap<usize, super::shared::Shared>,
    pub(super) tracked: FxHashMap<usize, (&'static str, Site)>,
    panics: Vec<SourcePlace>,
}

impl State {
    pub(super) fn new(serial: u32, limits: Limits) -> State {
        State {
            serial,
            run: 0,
            limits,
            threads: Vec::new(),
            running: 0,
            begun: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            cells: Vec::new(),
            memory: Memory::default(),
            named: FxHashMap::default(),
            statics: Vec::new(),
            failure: None,
            refusal: None,
            again: false,
            watched: FxHashSet::default(),
            counted: FxHashSet::default(),
            shared: FxHashMap::default(),
            tracked: FxHashMap::default(),
            panics: Vec::new(),
        }
    }

    /// Tells this execution from all others of the process.
    pub(crate) fn stamp(&self) -> u64 {
        u64::from(self.serial) << 32 | u64::from(self.run)
    }

    /// Whether stacks have to begin empty, so that what lies on them tells of this execution only.
    pub(super) fn clears_stacks(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Forgets the execution. Its threads must have left their frames.
    pub(super) fn begin_run(&mut self) {
        self.run += 1;
        self.memory.reset();
        self.cells.clear();
        self.shared.clear();
        self.tracked.clear();
        self.ends.fill(Ended::NOT);
        self.failure = None;
        self.refusal = None;
    }

    /// Makes thread `index` exist in this execution.
    pub(super) fn begin_thread(&mut self, index: usize) {
        self.threads[index].begin(self.run);
        self.begun.push(index);
    }

    fn current(&mut self) -> &mut Thread {
        &mut self.threads[self.running]
    }

    /// The running thread.
    pub(crate) fn running(&self) -> ThreadId {
        ThreadId(self.running as u32)
    }

    /// The number of the running thread's next child.
    pub(crate) fn next_child(&mut self, name: Option<String>) -> Result<ThreadId, String> {
        let parent = self.current();
        let place = parent.spawned;
        parent.spawned += 1;
        let child = match parent.children.get(place) {
            Some(&child) => child as usize,
            None => {
                let child = self.threads.len();
                self.add_thread()?;
                self.current().children.push(child as u32);
                child
            }
        };
        self.threads[child].name = name;
        Ok(ThreadId(child as u32))
    }

    pub(super) fn add_thread(&mut self) -> Result<(), String> {
        let limit = self.limits.max_threads;
        if limit.is_some_and(|limit| self.threads.len() >= limit) {
            return Err(format!(
                "more threads than max_threads allows ({})",
                self.threads.len()
            ));
        }
        let stack =
            Stack::new().map_err(|e| format!("no memory for the stack of a thread: {e}"))?;
        self.threads.push(Thread::new(stack));
        self.ends.push(Ended::NOT);
        Ok(())
    }

    fn view(&self) -> View<'_> {
        View {
            thread: self.running as u32,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        }
    }

    /// What the running thread does now, between two of its events.
    fn access(&self, site: Site) -> Access {
        Access {
            thread: self.running as u32,
            epoch: self.threads[self.running].counted(self.running),
            site,
        }
    }

    /// The next atomic or object of the running thread.
    pub(crate) fn create(&mut self, new: New) -> (u64, Location) {
        let next = Location(self.places.len() as u32);
        let thread = self.current();
        let at = match thread.objects.get(thread.created) {
            Some(&at) => at,
            None => {
                thread.objects.push(next);
                next
            }
        };
        thread.created += 1;
        if at == next {
            self.places.push(Place::new());
        }
        let creation = self.access(new.site);
        self.places[at.index()].begin(self.run, &new, Some(creation));
        (self.stamp(), at)
    }

    /// The location of the static at `address`.
    pub(crate) fn create_static(&mut self, address: usize, new: New) -> (u64, Location) {
        let next = Location(self.places.len() as u32);
        let at = *self.named.entry(address).or_insert(next);
        if at == next {
            self.places.push(Place::new());
        }
        if self.places[at.index()].run != self.run {
            self.places[at.index()].begin(self.run, &new, None);
        }
        (self.stamp(), at)
    }

    /// The running thread is about to perform `op`.
    pub(super) fn arrive(&mut self, op: Op, site: Site, stack_pointer: usize) {
        let running = self.running;
        if let Some(&arc) = self.threads[running].uncounted.first() {
            self.counted.insert(arc);
            return self.start_over();
        }
        let limit = self.limits.max_branches;
        let watched = self.watched.contains(&site.0);
        let thread = &mut self.threads[running];
        thread.site = site;
        thread.pending = Pending::Op(op);
        let events = thread.counted(running);
        if events as usize >= limit {
            let place = self.place_of(site);
            return self.refuse(format!(
                "a thread performed more than {limit} operations, the last one at {place}: a loop that does not \
                 come to an end by itself, or a limit (max_branches, SELVEDGE_MAX_BRANCHES) that is too low"
            ));
        }
        if !matches!(op, Op::Load { .. } | Op::Update { .. }) {
            return;
        }
        if let Some(before) = thread.spin.heap
            && self.memory.fingerprint() != before
        {
            self.threads[running].spin.effect();
        }
        let thread = &mut self.threads[running];
        let stack = &thread.stack;
        let state = watched.then_some(|| {
            let mut hash = Fingerprint::new();
            stack.words(stack_pointer).for_each(|word| hash.word(word));
            hash.finish()
        });
        match thread.spin.arrive(site.0, stack_pointer, events, state) {
            Arrival::New => {}
            Arrival::Again(since) => thread.pending = Pending::Stopped(Stop::Spinning { since }),
            Arrival::Unwatched => {
                self.watched.insert(site.0);
                self.start_over();
            }
        }
    }

    /// The pending operation of `thread` is performed. False if that is a failure.
    pub(super) fn perform(&mut self, thread: usize, outcome: Outcome, clock: &[u32]) -> bool {
        self.running = thread;
        let known = &mut self.threads[thread];
        let Pending::Op(op) = known.pending else {
            panic!("T{thread} has no pending operation");
        };
        known.clock.clear();
        known.clock.extend_from_slice(clock);
        known.sizes.clear();
        let site = known.site;
        let (at, wrote) = match op {
            Op::Load { at, .. } => (at, None),
            Op::Store { at, value, .. } => (at, Some(value)),
            Op::Update { at, .. } => (at, outcome.wrote),
            Op::Fence { .. } => return true,
            Op::Join { child } => {
                self.joined(child.index());
                self.current().spin.effect();
                return true;
            }
            Op::JoinAll | Op::Create { .. } | Op::Choose { .. } => {
                known.spin.effect();
                return true;
            }
        };
        if wrote.is_some() {
            known.spin.effect();
        } else if known.spin.watching() {
            known.spin.heap = Some(self.memory.fingerprint());
        }
        let mut access = self.access(site);
        access.epoch = access.epoch.wrapping_sub(1);
        let view = View {
            thread: thread as u32,
            clock: &self.threads[thread].clock,
            ends: &self.ends,
        };
        let clash = self.places[at.index()].performed(wrote, access, &view);
        let Some((other, kind)) = clash else {
            return true;
        };
        let what = self.places[at.index()].what;
        let verb = if wrote.is_some() { "write" } else { "read" };
        let message = format!(
            "an atomic {verb} of an {what} races with a {} that is not atomic",
            kind.noun()
        );
        let failure = self.race(message, site, &other, kind);
        self.fail(failure);
        false
    }

    fn joined(&mut self, child: usize) {
        let by = self.running;
        let at = self.threads[by].counted(by).wrapping_sub(1);
        let events = self.threads[child].counted(child);
        if self.ends[child].events == u32::MAX {
            self.ends[child] = Ended {
                events,
                by: by as u32,
                at,
            };
        }
    }

    /// Performs `op` in an execution that is over, as if nobody else were there. `None` if it would have to wait.
    pub(super) fn perform_alone(&mut self, op: Op) -> Option<Outcome> {
        let running = self.running;
        if !self.threads.is_empty() && !may_leave(&mut self.threads[running].leaving) {
            return None;
        }
        let mut outcome = Outcome::default();
        match op {
            Op::Load { at, .. } => outcome.read = self.places[at.index()].current,
            Op::Store { at, value, .. } => self.places[at.index()].current = value,
            Op::Update { at, function, .. } => {
                outcome.read = self.places[at.index()].current;
                outcome.wrote = match function.apply(outcome.read) {
                    Effect::Write(value) => Some(value),
                    Effect::Choose(_) => Some(function.choose(outcome.read, 0)),
                    Effect::Keep => None,
                    Effect::Block => return None,
                };
                if let Some(value) = outcome.wrote {
                    self.places[at.index()].current = value;
                }
            }
            Op::Join { child } if self.threads[child.index()].alive => return None,
            _ => {}
        }
        Some(outcome)
    }

    /// Whether the running thread is leaving its frames.
    pub(super) fn is_unwinding(&self) -> bool {
        let thread = &self.threads[self.running];
        thread.leaving > 0 || thread.panic.is_some()
    }

    /// The running thread begins to panic.
    pub(super) fn panics(&mut self, message: String, place: Option<(String, u32, u32)>) {
        let site = match place {
            None => Site(0),
            Some((file, line, column)) => {
                let place = SourcePlace { file, line, column };
                let known = self.panics.iter().position(|known| *known == place);
                let index = known.unwrap_or_else(|| {
                    self.panics.push(place);
                    self.panics.len() - 1
                });
                Site(PANICS | index as u64)
            }
        };
        self.current().panic = Some((message, site));
    }

    /// The panic of the running thread was caught by nobody.
    pub(super) fn fail_with_panic(&mut self) {
        let thread = self.running();
        let (message, site) = self
            .current()
            .panic
            .take()
            .unwrap_or_else(|| ("a panic without a message".to_owned(), Site(0)));
        self.fail(Failure {
            kind: FailureKind::Assertion,
            message,
            thread,
            site,
            other: None,
        });
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.current().pending = Pending::Stopped(Stop::Failed);
        self.failure.get_or_insert(failure);
    }

    pub(super) fn refuse(&mut self, what: String) {
        self.current().pending = Pending::Stopped(Stop::Refused);
        self.refusal.get_or_insert(what);
    }

    pub(super) fn start_over(&mut self) {
        self.again = true;
        self.refuse("the search starts over".to_owned());
    }

    fn race(&self, message: String, site: Site, other: &Access, kind: Kind) -> Failure {
        Failure {
            kind: FailureKind::DataRace,
            message,
            thread: self.running(),
            site,
            other: Some(Other {
                thread: ThreadId(other.thread),
                site: other.site,
                what: kind.noun().to_owned(),
            }),
        }
    }

    /// An access to an atomic that is not atomic. What it holds, if that is certain.
    pub(crate) fn plain_access(
        &mut self,
        at: Location,
        kind: Kind,
        site: Site,
    ) -> Result<Option<Value>, Failure> {
        let access = self.access(site);
        let view = View {
            thread: self.running as u32,
            clock: &self.threads[self.running].clock,
            ends: &self.ends,
        };
        let place = &mut self.places[at.index()];
        match place.plain(kind, access, &view) {
            None => Ok(place.settled()),
            Some((other, other_kind)) => {
                let message = format!(
                    "a {} of an {} that is not atomic races with another access",
                    kind.noun(),
                    place.what
                );
                Err(self.race(message, site, &other, other_kind))
            }
        }
    }

    /// A new cell.
    pub(super) fn create_cell(&mut self, site: Site) -> CellId {
        let index = self.cells.len() as u32;
        let mut race = Race::default();
        race.note(Kind::Write, self.access(site));
        self.cells.push(race);
        CellId {
            stamp: self.stamp(),
            index,
        }
    }

    /// An access to a cell begins, which lasts until it is said to end.
    pub(super) fn begin_access(
        &mut self,
        cell: CellId,
        kind: Kind,
        site: Site,
    ) -> Result<(), Failure> {
        if kind == Kind::Write {
            self.current().spin.effect();
        }
        let access = Access {
            epoch: LASTING,
            ..self.access(site)
        };
        let race = &self.cells[cell.index as usize];
        if let Some((other, other_kind)) = race.clash(kind, &self.view()) {
            let message = if other.thread == access.thread {
                format!(
                    "a {} of an UnsafeCell while a {} of it by the same thread is not over",
                    kind.noun(),
                    other_kind.noun()
                )
            } else {
                format!(
                    "a {} and a {} of an UnsafeCell are not ordered",
                    kind.noun(),
                    other_kind.noun()
                )
            };
            return Err(self.race(message, site, &other, other_kind));
        }
        self.cells[cell.index as usize].note(kind, access);
        Ok(())
    }

    /// A lasting access to a cell ends.
    pub(super) fn end_access(&mut self, cell: CellId, kind: Kind) {
        if cell.stamp == self.stamp() {
            let epoch = self.threads[self.running].counted(self.running);
            self.cells[cell.index as usize].end(kind, self.running as u32, epoch);
        }
    }

    pub(super) fn allocated(&mut self, address: usize, layout: Layout) {
        let running = self.running;
        let thread = &mut self.threads[running];
        thread.spin.effect();
        let size = layout.size();
        let known = thread.sizes.iter_mut().find(|known| known.0 == size);
        let ordinal = match known {
            Some(known) => {
                known.1 += 1;
                known.1
            }
            None => {
                thread.sizes.push((size, 0));
                0
            }
        };
        let name = Name {
            thread: running as u32,
            events: thread.counted(running),
            size,
            ordinal,
        };
        self.memory.allocated(address, layout, name);
    }

    pub(super) fn freed(&mut self, address: usize) -> Freed {
        if !self.threads.is_empty() {
            self.current().spin.effect();
        }
        self.memory.freed(address)
    }

    /// The value that stands for `address` in atomics.
    pub(crate) fn value_of(&mut self, address: usize) -> Value {
        self.memory.value_of(address)
    }

    /// The address that `value` stands for.
    pub(crate) fn address_of(&self, value: Value) -> usize {
        self.memory.address_of(value)
    }

    /// Whether this is the first timed wait of the running thread.
    pub(crate) fn may_time_out(&mut self) -> bool {
        !std::mem::replace(&mut self.current().timed_out, true)
    }

    /// The name of the running thread.
    pub(crate) fn running_name(&self) -> Option<String> {
        self.threads[self.running].name.clone()
    }

    /// The thread-local value of the running thread with this key; an error if it was destroyed.
    pub(crate) fn local(&mut self, key: usize) -> Result<Option<NonNull<()>>, ()> {
        let mut locals = self.current().locals.iter_mut();
        match locals.find(|local| local.0 == key) {
            None => Ok(None),
            Some((_, Local::Destroyed)) => Err(()),
            Some((_, Local::Value(value))) => Ok(Some(NonNull::from(&mut **value).cast())),
        }
    }

    /// Gives the running thread a thread-local value.
    pub(crate) fn set_local(&mut self, key: usize, value: Box<dyn Any>) {
        self.current().locals.push((key, Local::Value(value)));
    }

    /// Where `site` is in the source.
    pub(crate) fn place_of(&self, site: Site) -> SourcePlace {
        let unknown = SourcePlace {
            file: "?".to_owned(),
            line: 0,
            column: 0,
        };
        match site.0 {
            0 => unknown,
            PANICS.. => match self.panics.get((site.0 & !PANICS) as usize) {
                Some(place) => place.clone(),
                None => unknown,
            },
            address => {
                let caller = std::ptr::with_exposed_provenance::<Caller<'static>>(address as usize);
                // SAFETY: a site that is no panic is the address of a static description of a call.
                let caller = unsafe { &*caller };
                SourcePlace {
                    file: caller.file().to_owned(),
                    line: caller.line(),
                    column: caller.column(),
                }
            }
        }
    }
}

impl std::fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
