//! A machine that is watched: counts what happens, and reports steps where asked to.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use selvedge_core::witness::{self, Switch};
use selvedge_core::{
    Location, Machine, MemoryOrder, Op, Outcome, Pending, PendingAccess, Portable, SpinLoops,
    StateMachine, ThreadId, Value,
};
use selvedge_page::Sites;
use selvedge_runtime::NativeMachine;
use selvedge_runtime::peers::Team;

use super::counters::Counters;
use crate::describe::{Accesses, Binary};

/// Told of every step before it is taken, and of every new start with `None`.
pub(super) type Listener<'a> = dyn FnMut(&NativeMachine, Option<&witness::Step>) + 'a;

/// Told of an execution that has become long.
type Long<'a> = dyn FnMut(&NativeMachine) + 'a;

/// An execution with this many steps is long.
const LONG: u64 = 1 << 14;

/// A program whose steps are counted where another process can see it.
pub(super) struct Watched<'a> {
    machine: NativeMachine,
    counters: &'a Counters,
    runs: u64,
    steps: u64,
    /// How many there were when the present run began.
    steps_before: u64,
    long: Option<Box<Long<'a>>>,
    /// From which run on the listener is told.
    journal_from: u64,
    listener: Option<Box<Listener<'a>>>,
    last: ThreadId,
    /// The step with this number is known to end the process.
    pub(super) fatal: Option<u64>,
    /// The processor time that each process of a search over states took, in seconds.
    pub(super) processor_seconds: Vec<f64>,
    /// Where the site of each event is noted, if the search records origins.
    sites: Option<(Accesses<'a>, Rc<RefCell<Sites>>)>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(machine: NativeMachine, counters: &'a Counters) -> Watched<'a> {
        let (listener, journal_from) = (None, u64::MAX);
        let last = ThreadId::MAIN;
        Watched {
            machine,
            counters,
            runs: 0,
            steps: 0,
            steps_before: 0,
            long: None,
            journal_from,
            listener,
            last,
            fatal: None,
            processor_seconds: Vec::new(),
            sites: None,
        }
    }

    /// Tells `listener` of every step from the run with number `from` on.
    pub(super) fn journal(&mut self, from: u64, listener: Box<Listener<'a>>) {
        (self.journal_from, self.listener) = (from, Some(listener));
    }

    /// Notes the site of each event from now on.
    pub(super) fn note_sites(&mut self, binary: &'a Binary) -> Rc<RefCell<Sites>> {
        let sites = self
            .sites
            .get_or_insert_with(|| (Accesses::new(binary), Rc::default()));
        Rc::clone(&sites.1)
    }

    /// Tells `long` of the first execution that becomes long, while it goes on.
    pub(super) fn tell_of_long(&mut self, long: Box<Long<'a>>) {
        self.long = Some(long);
    }

    #[cold]
    fn is_long(&mut self) {
        if let Some(mut tell) = self.long.take() {
            tell(&self.machine);
        }
    }

    /// Makes this many processes of this one, if that is more than one.
    pub(super) fn copies(&mut self, count: usize) -> io::Result<Option<Team>> {
        match count {
            0 | 1 => Ok(None),
            _ => Team::fork(&mut self.machine, count).map(Some),
        }
    }

    /// How many steps were taken.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The program itself.
    pub(super) fn inner(&self) -> &NativeMachine {
        &self.machine
    }

    /// The same, to be told something.
    pub(super) fn inner_mut(&mut self) -> &mut NativeMachine {
        &mut self.machine
    }

    #[cold]
    fn note_site(&self, thread: ThreadId, clock: &[u32]) {
        if let (Some((accesses, sites)), Some(&count)) = (&self.sites, clock.get(thread.index())) {
            let site = accesses.site(&self.machine, thread);
            sites.borrow_mut().note(thread, count, site);
        }
    }

    fn note(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        let Pending::Op(op) = self.machine.pending(thread) else {
            return;
        };
        let reads = matches!(op, Op::Load { .. } | Op::Update { .. } | Op::Choose { .. });
        let wrote = match op {
            // Where states are kept, it is not known before it is made.
            Op::Store {
                order: MemoryOrder::Plain,
                ..
            } if self.fatal.is_some() => None,
            Op::Store { value, .. } => Some(value),
            _ => outcome.wrote,
        };
        let step = witness::Step {
            thread,
            switch: if thread == self.last {
                Switch::Same
            } else {
                Switch::Free
            },
            op,
            site: self.machine.site(thread),
            read: reads.then_some(outcome.read),
            origin: None,
            wrote,
            choice: if matches!(op, Op::Choose { .. }) {
                outcome.read as u32
            } else {
                0
            },
            newer: Vec::new(),
            clock: clock.to_vec(),
        };
        self.last = thread;
        listener(&self.machine, Some(&step));
    }
}

impl Machine for Watched<'_> {
    fn reset(&mut self) {
        self.runs += 1;
        self.steps_before = self.steps;
        self.counters.runs().store(self.runs, Ordering::Relaxed);
        let doomed = self.doomed();
        if (self.runs >= self.journal_from || doomed)
            && let Some(listener) = &mut self.listener
        {
            self.last = ThreadId::MAIN;
            if doomed {
                self.journal_from = self.runs;
            }
            listener(&self.machine, None);
        }
        self.machine.reset();
    }

    #[inline(always)]
    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        self.steps += 1;
        self.counters.steps().store(self.steps, Ordering::Relaxed);
        if self.steps - self.steps_before == LONG {
            self.is_long();
        }
        if self.runs >= self.journal_from {
            self.note(thread, outcome, clock);
        }
        if self.sites.is_some() {
            self.note_site(thread, clock);
        }
        self.machine.resume(thread, outcome, clock);
    }

    fn undo(&mut self, steps: usize) -> bool {
        // Steps that were reported cannot be taken back, nor those of a run that is to be reported
        // from its beginning.
        if self.runs + 1 >= self.journal_from || !self.machine.undo(steps) {
            return false;
        }
        // It is counted like a reset, which takes its place where it is impossible.
        self.runs += 1;
        self.steps_before += steps as u64;
        self.counters.runs().store(self.runs, Ordering::Relaxed);
        true
    }

    selvedge_core::forward_machine!(
        machine: around, pending, is_about_to, initial, pointless
    );
}

impl SpinLoops for Watched<'_> {
    fn can_retry(&mut self, location: Location) -> bool {
        // Steps that were reported cannot be taken back.
        self.runs < self.journal_from && self.machine.can_retry(location)
    }

    selvedge_core::forward_machine!(machine: quiet, never_races, retry, misjudged);
}

impl Portable for Watched<'_> {
    selvedge_core::forward_machine!(machine: portable);
}

impl StateMachine for Watched<'_> {
    fn parts(&self) -> usize {
        self.machine.parts()
    }

    fn identify(&mut self, part: usize, into: &mut Vec<u8>) {
        self.machine.identify(part, into);
    }

    fn save(&mut self, part: usize, into: &mut Vec<u8>) {
        self.machine.save(part, into);
    }

    fn restore(&mut self, part: usize, from: &[u8]) {
        self.machine.restore(part, from);
    }

    fn kept(&self) -> usize {
        self.machine.kept()
    }

    fn doomed(&self) -> bool {
        self.fatal == Some(self.steps + 1)
    }

    fn pack(&mut self, part: usize, saved: &[u8], into: &mut Vec<u8>) {
        self.machine.pack(part, saved, into);
    }

    fn unpack(&mut self, part: usize, packed: &[u8], into: &mut Vec<u8>) {
        self.machine.unpack(part, packed, into);
    }

    fn origin(&self, thread: ThreadId) -> (ThreadId, u32) {
        self.machine.origin(thread)
    }

    fn introduce(&mut self, parent: ThreadId, place: u32) {
        self.machine.introduce(parent, place);
    }

    fn forget_newest(&mut self) {
        self.machine.forget_newest();
    }

    fn changed(&mut self, into: &mut Vec<u32>) {
        self.machine.changed(into);
    }

    fn value(&self, location: Location) -> Value {
        self.machine.value(location)
    }

    fn access(&self, thread: ThreadId) -> Option<PendingAccess> {
        self.machine.access(thread)
    }

    fn ends_with_main(&self) -> bool {
        self.machine.ends_with_main()
    }

    fn marks_progress(&self, thread: ThreadId) -> bool {
        self.machine.marks_progress(thread)
    }

    fn propositions(&self) -> Vec<String> {
        self.machine.propositions()
    }

    fn holds(&mut self, proposition: usize) -> bool {
        self.machine.holds(proposition)
    }
}
