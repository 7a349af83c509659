//! The machine that explorers drive.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use selvedge_core::{
    Failure, FailureKind, Location, Machine, Op, Outcome, Pending, Site, SpinLoops, ThreadId, Value,
};

use selvedge_page::Sites;

use super::determinism::First;
use super::engine::Engine;
use super::memory::{self, Owner};
use super::stack::Stack;
use super::state::State;
use super::trouble::SourcePlace;
use super::{confine, crash, hook};
use crate::options::SpuriousEvents;
use crate::token::Late;

/// How far a model may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Operations of one thread in one execution.
    pub(crate) max_branches: usize,
    /// Threads, if there is a limit.
    pub(crate) max_threads: Option<usize>,
    /// How many bytes the stack of a thread has.
    pub(crate) stack_size: usize,
    /// Whether values that nothing can drop any more are reported.
    pub(crate) check_leaks: bool,
    /// Whether freed memory is protected in all executions.
    pub(crate) protects: bool,
    /// The spurious events that may happen.
    pub(crate) spurious: SpuriousEvents,
    /// Whether one schedule is run again, rather than all searched.
    pub(crate) replaying: bool,
    /// Whether the calls that lead to each operation are recorded.
    pub(crate) calls: bool,
}

/// A Rust closure that is run again and again under the explorer's control.
pub(crate) struct RustMachine {
    pub(super) engine: Rc<Engine>,
    ran_out_of_time: Cell<bool>,
    /// The threads whose last segment comes after all steps, in the next run and in this one.
    defer_next: Option<Late>,
    defer: Option<Late>,
    /// The thread that is to go on then, and what became of its operation.
    deferred: Cell<Option<(usize, Outcome)>>,
    pub(super) first: First,
    /// Whether new threads run before older ones.
    newest_first: bool,
    /// Where the site of each event is noted, if a report is wanted.
    sites: Option<Rc<RefCell<Sites>>>,
    /// Where crashes are told.
    _spare: Option<Stack>,
}

impl RustMachine {
    /// A machine for `model`. `None` if this OS thread is in a model already.
    pub(crate) fn new(model: Arc<dyn Fn()>, limits: Limits) -> Option<RustMachine> {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        hook::install();
        let owner = memory::allocate_for(Owner::Checker);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        confine::enter();
        let closure = Arc::as_ptr(&model).cast::<u8>().expose_provenance();
        let closure = closure..closure + size_of_val(&*model);
        let mut state = State::new(serial, limits, closure);
        let machine = state.add_thread().ok().and_then(|()| {
            let engine = Rc::new(Engine::new(state, model));
            if !engine.install() {
                // The closure may belong to the model that this one is inside of, which is told that it is freed.
                memory::allocate_for(owner);
                return None;
            }
            Some(RustMachine {
                engine,
                ran_out_of_time: Cell::new(false),
                defer_next: None,
                defer: None,
                deferred: Cell::new(None),
                first: First::default(),
                newest_first: false,
                sites: None,
                _spare: crash::install(),
            })
        });
        if machine.is_none() {
            memory::allocate_for(owner);
        }
        machine
    }

    /// Whether the search has to start over, because something was learned about the program.
    pub(crate) fn starts_over(&self) -> bool {
        std::mem::take(&mut self.engine.state().borrow_mut().again)
    }

    /// The spurious events that may happen.
    pub(crate) fn spurious(&self) -> SpuriousEvents {
        self.engine.state().borrow().limits.spurious
    }

    /// Whether executions were left out because a thread had timed out as often as it may.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        self.ran_out_of_time.get()
    }

    /// Whether memory was freed that was not protected.
    pub(crate) fn left_unprotected(&self) -> bool {
        self.engine.state().borrow().unprotected
    }

    /// The places where values are created whose reference counts are atomics.
    pub(crate) fn counted_places(&self) -> Vec<String> {
        let state = self.engine.state().borrow();
        let places = state
            .counted
            .iter()
            .map(|&site| state.place_of(site).to_string());
        let mut places: Vec<String> = places.collect();
        places.sort();
        places
    }

    /// Makes the reference counts of values created at these places atomics.
    pub(crate) fn count_at(&self, places: Vec<String>) {
        self.engine.state().borrow_mut().counted_places = places;
    }

    /// Lets new threads run before older ones, and has freed memory protected, or not any longer.
    pub(crate) fn run_newest_first(&mut self, newest_first: bool) {
        self.newest_first = newest_first;
        self.engine.state().borrow_mut().protects_always = newest_first;
    }

    /// In the next run, lets the last stretch of a thread come after all steps.
    pub(crate) fn defer(&mut self, late: Option<Late>) {
        self.defer_next = late;
    }

    /// The thread whose last segment came after all steps.
    pub(crate) fn late(&self) -> Option<Late> {
        self.defer
    }

    /// Whether what `thread` does now, after this many events, comes after all steps.
    fn defers(&self, thread: usize, outcome: Outcome) -> bool {
        let events = self.engine.state().borrow().threads[thread].counted(thread);
        let thread_number = thread as u32;
        let late = Late {
            thread: thread_number,
            events,
        };
        let defers = self.defer == Some(late);
        if defers {
            self.deferred.set(Some((thread, outcome)));
        }
        defers
    }

    /// Notes the site of each event from now on.
    pub(crate) fn note_sites(&mut self) {
        self.sites.get_or_insert_default();
    }

    /// Where the sites of events are noted, if they are.
    pub(crate) fn sites(&self) -> Option<Rc<RefCell<Sites>>> {
        self.sites.clone()
    }

    /// Where `site` is in the source.
    pub(crate) fn place_of(&self, site: Site) -> SourcePlace {
        self.engine.state().borrow().place_of(site)
    }

    /// The description of `location`, and where it was created.
    pub(crate) fn describe(&self, location: Location) -> (&'static str, SourcePlace, bool) {
        let state = self.engine.state().borrow();
        let place = &state.places[location.index()];
        (place.what, state.place_of(place.site), place.pointers)
    }

    /// The calls in which `thread` stands before its next operation, if they are recorded.
    pub(crate) fn take_calls(&self, thread: ThreadId) -> Option<Arc<Backtrace>> {
        let mut state = self.engine.state().borrow_mut();
        state.threads.get_mut(thread.index())?.calls.take()
    }

    /// Tells where sites are in the source, also while the machine runs.
    pub(crate) fn places(&self) -> impl Fn(Site) -> SourcePlace + use<> {
        let engine = Rc::clone(&self.engine);
        move |site| engine.state().borrow().place_of(site)
    }

    /// The name that the program gave to `thread`.
    pub(crate) fn thread_name(&self, thread: ThreadId) -> Option<String> {
        let state = self.engine.state().borrow();
        state.threads.get(thread.index())?.name.clone()
    }
}

impl Machine for RustMachine {
    fn reset(&mut self) {
        self.note_first();
        self.defer = self.defer_next.take();
        self.deferred.set(None);
        let mut state = self.engine.state().borrow_mut();
        let overwritten = state.begin_run();
        self.engine.set_stamp(state.stamp());
        state.begin_thread(0);
        self.engine.prepare(&mut state, 0);
        drop(state);
        self.engine.run(0);
        if overwritten {
            self.engine.state().borrow_mut().start_over();
        }
    }

    fn threads(&self) -> usize {
        self.engine.state().borrow().threads.len()
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        let state = self.engine.state().borrow();
        match state.threads.get(thread.index()) {
            Some(known) if known.run == state.run => known.pending,
            _ => Pending::Absent,
        }
    }

    /// A thread that is taken to spin can perform its operation all the same. A replay asks for that where
    /// something left over on the stack kept the iteration from being recognised before.
    fn is_about_to(&self, thread: ThreadId, op: &Op) -> bool {
        let state = self.engine.state().borrow();
        let known = state.threads.get(thread.index());
        known.is_some_and(|known| known.run == state.run && known.next.as_ref() == Some(op))
    }

    fn initial(&self, location: Location) -> Value {
        self.engine.state().borrow().places[location.index()].initial
    }

    #[inline(always)]
    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        let index = thread.index();
        let mut state = self.engine.state().borrow_mut();
        let next = state.threads[index].next;
        self.first.step(thread, next, outcome, clock);
        if let (Some(sites), Some(&count)) = (&self.sites, clock.get(index)) {
            let site = state.threads[index].site;
            sites.borrow_mut().note(thread, count, site);
        }
        if !state.perform(index, outcome, clock) {
            return;
        }
        let mut created = None;
        if let Some(Op::Create { child }) = next {
            let child = child.index();
            state.begin_thread(child);
            let mut clock = std::mem::take(&mut state.threads[child].clock);
            clock.extend_from_slice(&state.threads[index].clock);
            if let Some(own) = clock.get_mut(child) {
                *own = 0;
            }
            state.threads[child].clock = clock;
            self.engine.prepare(&mut state, child);
            created = Some(child);
        }
        if let Some(child) = created {
            // Until it comes to an operation, that is where it comes from.
            state.threads[child].site = state.threads[index].site;
        }
        drop(state);
        let child = created.map(|child| (child, Outcome::default()));
        let mut stretches = [Some((index, outcome)), child];
        if self.newest_first {
            stretches.reverse();
        }
        for (thread, outcome) in stretches.into_iter().flatten() {
            if self.defer.is_none() || !self.defers(thread, outcome) {
                self.engine.set_outcome(outcome);
                self.engine.run(thread);
            }
        }
    }

    fn site(&self, thread: ThreadId) -> Site {
        let state = self.engine.state().borrow();
        state
            .threads
            .get(thread.index())
            .map_or(Site(0), |thread| thread.site)
    }

    fn pointless(&self, thread: ThreadId) -> bool {
        let state = self.engine.state().borrow();
        let timed = state.threads[thread.index()].waits_in_time;
        self.ran_out_of_time
            .set(self.ran_out_of_time.get() || timed);
        timed
    }

    fn watch(&mut self, failure: &Failure) {
        let kinds = [FailureKind::UseAfterFree, FailureKind::DoubleFree];
        let mut state = self.engine.state().borrow_mut();
        state.looks_closer = kinds.contains(&failure.kind);
        self.defer_next = state.late;
        // A failure that protected memory led to must be seen again.
        state.eager |= state.looks_closer;
    }

    fn failure(&self) -> Option<Failure> {
        if let Some((thread, outcome)) = self.deferred.take() {
            self.engine.set_outcome(outcome);
            self.engine.run(thread);
        }
        self.engine.state().borrow().failure.clone()
    }

    fn leftover(&self) -> Option<Failure> {
        let statics = std::mem::take(&mut self.engine.state().borrow_mut().statics);
        if !statics.is_empty() {
            self.engine.drop_alone(statics);
        }
        let state = self.engine.state().borrow();
        state.limits.check_leaks.then(|| state.leak()).flatten()
    }

    fn refusal(&self) -> Option<String> {
        self.engine.state().borrow().refusal.clone()
    }
}

impl SpinLoops for RustMachine {
    fn quiet(&mut self, thread: ThreadId) -> bool {
        let state = self.engine.state().borrow();
        let spin = &state.threads[thread.index()].spin;
        !spin.touched && spin.open == 0
    }

    fn newest_first(&self) -> bool {
        self.newest_first
    }
}

impl Drop for RustMachine {
    fn drop(&mut self) {
        self.engine.state().borrow_mut().forget_run();
        self.engine.uninstall();
        memory::allocate_for(Owner::Outside);
    }
}
