//! The state of one execution, seen from the host.

use std::any::Any;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_core::{
    Effect, Failure, Location, Op, Outcome, Pending, Site, Stop, ThreadEnd, ThreadId,
};

use super::call_stack::{CallStacks, Recorded};
use super::machine::Limits;
use super::memory::Memory;
use super::outside::{Change, Outside, Segment};
use super::owners::Owners;
use super::place::{New, Place};
use super::race::{CellState, View};
use super::reach::Reach;
use super::shared::{Counter, Shared};
use super::spin::Arrival;
use super::stack::Stack;
use super::thread::{Destructor, Thread};
use super::trouble::SourcePlace;
use crate::token::Late;

/// The values of lazy statics, by address.
pub(super) type Statics = Vec<(usize, Box<dyn Any>)>;

/// The most operations that the destructors of lazy statics may perform.
const ALONE_STEPS: u32 = 100_000;

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
    pub(super) ends: Vec<ThreadEnd>,
    pub(super) places: Vec<Place>,
    pub(super) cells: Vec<CellState>,
    pub(super) memory: Memory,
    /// Locations of statics, by address.
    named: FxHashMap<usize, Location>,
    /// The values of lazy statics, by address.
    pub(super) statics: Statics,
    /// The findings about call stacks in which an object ended that was not known to be ordered.
    pub(super) call_stacks: CallStacks,
    /// The calls that were recorded so far.
    pub(super) recorded: Recorded,
    /// Whether freed memory is looked at after each step: somebody has written there.
    pub(super) eager: bool,
    /// Whether freed memory is protected in all executions.
    pub(super) protects_always: bool,
    /// Whether memory was freed that was not protected.
    pub(super) unprotected: bool,
    /// Whether it is found out where in the program something is freed or dropped.
    pub(super) looks_closer: bool,
    /// Operations since all threads ended.
    pub(super) alone_steps: u32,
    pub(super) failure: Option<Failure>,
    /// The thread that used freed memory after its last event.
    pub(super) late: Option<Late>,
    pub(super) refusal: Option<String>,
    /// Something was learned that makes the search start over.
    pub(super) again: bool,
    /// Reads that are passed more than once without an effect.
    pub(super) watched: FxHashSet<u64>,
    pub(super) outside: Outside,
    reach: Reach,
    /// The fingerprint of the heap, if no thread ran since it was computed.
    heap: Option<(u64, u64)>,
    /// The memory of the model's closure.
    closure: Range<usize>,
    /// Where reference-counted values are created whose counts matter.
    pub(super) counted: FxHashSet<Site>,
    /// The same by name, for a schedule from elsewhere.
    pub(super) counted_places: Vec<String>,
    /// Who owned values of `std::sync::Arc`s.
    pub(super) owners: Owners,
    /// Reference-counted values that are alive.
    pub(super) shared: FxHashMap<usize, Shared>,
    /// Weak references that are raw pointers, by address.
    pub(super) raw_weaks: FxHashMap<usize, Counter>,
    pub(super) tracked: FxHashMap<usize, (&'static str, Site)>,
    pub(super) marks: usize,
    pub(super) panics: Vec<SourcePlace>,
}

impl State {
    pub(super) fn new(serial: u32, limits: Limits, closure: Range<usize>) -> State {
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
            memory: Memory::new(limits.protects),
            named: FxHashMap::default(),
            statics: Vec::new(),
            call_stacks: CallStacks::default(),
            recorded: Recorded::default(),
            eager: false,
            protects_always: false,
            unprotected: false,
            looks_closer: false,
            alone_steps: 0,
            failure: None,
            late: None,
            refusal: None,
            again: false,
            watched: FxHashSet::default(),
            outside: Outside::default(),
            reach: Reach::default(),
            heap: None,
            closure,
            counted: FxHashSet::default(),
            counted_places: Vec::new(),
            owners: Owners::default(),
            shared: FxHashMap::default(),
            raw_weaks: FxHashMap::default(),
            tracked: FxHashMap::default(),
            marks: 0,
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

    /// Forgets the execution: none of its code runs any more, destructors included.
    pub(super) fn forget_run(&mut self) {
        self.threads.iter_mut().for_each(Thread::forget_values);
        self.statics.drain(..).for_each(std::mem::forget);
        self.heap = None;
        if self.memory.has_leftovers() {
            self.memory.sort();
            let kept = self.reach.find(&self.closure, &self.memory);
            self.memory.keep(kept);
        }
        self.memory.reset();
    }

    /// A new execution begins.
    /// Returns whether a thread of the one before wrote to freed memory, which was not looked for:
    /// then the search has to start over.
    pub(super) fn begin_run(&mut self) -> bool {
        let overwritten = !self.eager && self.memory.overwritten().is_some();
        self.eager |= overwritten;
        self.forget_run();
        self.run += 1;
        self.begun.clear();
        self.cells.clear();
        self.owners.clear();
        self.shared.clear();
        self.raw_weaks.clear();
        self.tracked.clear();
        self.ends.fill(ThreadEnd::NOT_AWAITED);
        self.failure = None;
        self.late = None;
        self.refusal = None;
        overwritten
    }

    /// Makes thread `index` exist in this execution.
    pub(super) fn begin_thread(&mut self, index: usize) {
        self.threads[index].begin(self.run);
        self.begun.push(index);
    }

    pub(super) fn current(&mut self) -> &mut Thread {
        &mut self.threads[self.running]
    }

    /// The running thread.
    pub(crate) fn running(&self) -> ThreadId {
        ThreadId(self.running as u32)
    }

    /// The number of the running thread's next child.
    pub(crate) fn next_child(&mut self, name: Option<&str>) -> Result<ThreadId, String> {
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
        self.threads[child].name = name.map(str::to_owned);
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
        let stack = Stack::new(self.limits.stack_size)
            .map_err(|e| format!("no memory for the stack of a thread: {e}"))?;
        self.threads.push(Thread::new(stack));
        self.ends.push(ThreadEnd::NOT_AWAITED);
        Ok(())
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

    /// Whether the reference counts of values created at `site` are atomics.
    pub(super) fn counts(&self, site: Site) -> bool {
        self.counted.contains(&site)
            || !self.counted_places.is_empty()
                && self
                    .counted_places
                    .contains(&self.place_of(site).to_string())
    }

    /// The running thread is about to perform `op`.
    pub(super) fn arrive(&mut self, op: Op, site: Site, stack_pointer: usize) {
        let running = self.running;
        self.note_owners();
        self.check_freed();
        if self.failure.is_some() {
            return;
        }
        let mut destructors = self.threads[running].destructors.iter();
        let uncounted = destructors.find_map(|destructor| match destructor {
            Destructor::Uncounted { created, .. } => Some(*created),
            Destructor::Counted => None,
        });
        if let Some(created) = uncounted {
            self.counted.insert(created);
            return self.start_over();
        }
        let limit = self.limits.max_branches;
        let watched = self.watched.contains(&site.0);
        let thread = &mut self.threads[running];
        (thread.site, thread.stack_pointer) = (site, stack_pointer);
        thread.pending = Pending::Op(op);
        thread.next = Some(op);
        let events = thread.counted(running);
        if events as usize >= limit {
            let place = self.place_of(site);
            return self.refuse(format!(
                "a thread performed more than {limit} operations, the last one at {place}: a loop that does not \
                 come to an end by itself, or a limit (max_branches, SELVEDGE_MAX_BRANCHES) that is too low"
            ));
        }
        // Without the allocator nothing is known of the heap, where a loop may count its rounds.
        if self.limits.replaying || cfg!(not(feature = "allocator")) {
            return;
        }
        // Changes of the heap by others while the thread was stopped do not count as its own.
        if let Some(before) = thread.spin.heap.take() {
            let after = self.memory.fingerprint();
            self.heap = Some(after);
            let segment = Segment {
                site: site.0,
                thread: running,
                events,
            };
            let change = match after == before {
                true => self.outside.change(segment, self.run),
                false => Change::Certain,
            };
            match change {
                Change::None => {}
                Change::Certain => self.threads[running].spin.effect(),
                Change::Perhaps => return self.start_over(),
            }
        }
        if !matches!(op, Op::Load { .. } | Op::Update { .. }) {
            return;
        }
        let thread = &mut self.threads[running];
        let state = watched.then(|| thread.stack_state());
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
        let heap = self.heap.take();
        let known = &mut self.threads[thread];
        let Some(op) = known.next.take() else {
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
            Op::Fence { .. } => {
                self.watch(thread, heap);
                return true;
            }
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
        // A thread that writes the value that is there changes nothing, as a failed test-and-set does.
        let changes = match op {
            Op::Update { .. } => wrote.is_some_and(|wrote| wrote != outcome.read),
            _ => wrote.is_some(),
        };
        if changes {
            known.spin.effect();
        }
        self.watch(thread, heap);
        let mut access = self.access(site);
        access.epoch = access.epoch.wrapping_sub(1);
        let view = View::of(thread, &self.threads, &self.ends);
        if let Some(gone) = self.places[at.index()].gone {
            let failure = self.use_of_gone(self.places[at.index()].what, &gone, site);
            self.fail(failure);
            return false;
        }
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

    /// Notes what the heap and the memory outside of the model are before `thread` goes on, if that
    /// matters.
    fn watch(&mut self, thread: usize, heap: Option<(u64, u64)>) {
        if self.threads[thread].spin.watching() {
            let heap = heap.unwrap_or_else(|| self.memory.fingerprint());
            self.threads[thread].spin.heap = Some(heap);
            let mut outside = std::mem::take(&mut self.outside);
            outside.remember(&self.closure, self.stacks_beside(thread));
            self.outside = outside;
        }
    }

    /// The stacks of the threads other than `thread`, as far as they are in use.
    fn stacks_beside(&self, thread: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let others = self.begun.iter().filter(move |&&other| other != thread);
        let stacks = others.map(|&other| &self.threads[other]);
        stacks
            .filter(|other| other.alive)
            .map(|other| other.context.stack_pointer()..other.stack.top())
    }

    /// Performs `op` when all threads have ended, as if nobody else were there. `None` if it would
    /// have to wait.
    pub(super) fn perform_alone(&mut self, op: Op) -> Option<Outcome> {
        self.alone_steps += 1;
        if self.alone_steps > ALONE_STEPS {
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
            _ => {}
        }
        Some(outcome)
    }
}
