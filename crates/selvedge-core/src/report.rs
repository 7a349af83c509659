//! The ends of executions, and the results of searches.

use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::graph::{Graph, Kind, Slot};
use crate::ids::{Site, ThreadId};
use crate::machine::{Machine, Pending, Stop};
use crate::objects::ObjectFunction;
use crate::op::{Function, Op};
use crate::witness::Witness;

/// How many executions there were of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Complete ones, within the bound if there is one.
    pub executions: u64,
    /// Complete ones beyond the bound, which the search had to pass through.
    pub over_bound: u64,
    /// Executions that ended blocked or in undefined behaviour. They are not counted in `executions`.
    pub blocked: u64,
    /// Graphs that were given up because of the bound.
    pub bound_blocked: u64,
}

impl Counts {
    /// The sum of all counts. Sums saturate, because counts may come from a damaged file.
    pub fn all(&self) -> u64 {
        let others = [self.over_bound, self.blocked, self.bound_blocked];
        others
            .into_iter()
            .fold(self.executions, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut self.executions, other.executions);
        add(&mut self.over_bound, other.over_bound);
        add(&mut self.blocked, other.blocked);
        add(&mut self.bound_blocked, other.bound_blocked);
    }
}

/// How far a search over states has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCounts {
    /// Different states met.
    pub states: u64,
    /// Steps taken between them.
    pub transitions: u64,
    /// The number of context switches, or of steps for a search that does not count these, that it
    /// has come to.
    pub layer: u32,
    /// States that wait for their turn.
    pub queue: u64,
    /// Memory that all of this takes.
    pub bytes: u64,
}

/// Why the search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Everything was explored.
    Complete,
    /// A bug was found and that was enough.
    FirstBug,
    /// The observer said so.
    Stopped,
    /// Everything the algorithm asks for was explored, but it is one that may leave executions
    /// out: finding nothing proves nothing.
    Lossy,
    /// As many executions were tried at random as were asked for.
    Sampled(Sampled),
    /// The program does something that is not modelled.
    Refused(String),
    /// The program behaved differently when it was run again under the same schedule.
    Nondeterministic(Divergence),
    /// The search itself went wrong, and not because of the program.
    Internal(String),
}

/// A search starts over at most this often because a loop was judged wrongly.
pub(crate) const RESTARTS: u32 = 10_000;

impl Ending {
    /// The ending of a search that started over [`RESTARTS`] times.
    pub(crate) fn never_settled() -> Ending {
        Ending::Internal(format!(
            "the search started over {RESTARTS} times: whether a loop only waits was judged \
             differently each time"
        ))
    }

    /// The ending, if the whole search ends there and not only a slice of it.
    pub fn of_search(self) -> Option<Ending> {
        match self {
            Ending::Complete | Ending::Stopped => None,
            ending => Some(ending),
        }
    }
}

/// The consequence of a thread's stop that all searches share: a failure to be recorded, or the end of the search.
pub(crate) fn halted<M: Machine>(
    machine: &M,
    stop: Stop,
    unrolled: &mut bool,
) -> ControlFlow<Ending, Option<Failure>> {
    match stop {
        Stop::Failed => {
            let failure = machine.failure();
            ControlFlow::Continue(Some(failure.expect("a failed thread has a failure")))
        }
        Stop::Refused => {
            let what = machine.refusal().unwrap_or_default();
            ControlFlow::Break(Ending::Refused(what))
        }
        Stop::Unrolled => {
            *unrolled = true;
            ControlFlow::Continue(None)
        }
        _ => ControlFlow::Continue(None),
    }
}

/// How a program behaved differently when it was run again under the same schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Divergence {
    /// A thread did something else.
    Operation {
        /// The thread.
        thread: ThreadId,
        /// Its earlier operation.
        expected: Box<Op>,
        /// Its next operation now.
        got: Box<Pending>,
    },
    /// Something else could not be repeated.
    Other(String),
}

impl From<String> for Divergence {
    fn from(what: String) -> Divergence {
        Divergence::Other(what)
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Divergence::Operation {
                thread,
                expected,
                got,
            } => write!(
                f,
                "{thread} did something else when it was run again (expected {expected:?}, got \
                 {got:?}): the program does not depend on its schedule alone"
            ),
            Divergence::Other(what) => f.write_str(what),
        }
    }
}

/// The runs of a random search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// How many runs it made.
    pub runs: u64,
    /// How many different complete executions there were among them.
    pub distinct: u64,
    /// The depth of bugs that PCT looked for.
    pub depth: Option<u32>,
    /// The most threads a run had.
    pub threads: u64,
    /// The most steps a run had.
    pub steps: u64,
}

impl Sampled {
    /// The probability with which each run of PCT meets a bug of its depth: at least 1 / (n · k^(d−1)).
    pub fn guarantee(&self) -> Option<f64> {
        let depth = self.depth?;
        let steps = (self.steps as f64).powi(depth.saturating_sub(1) as i32);
        Some(1.0 / (self.threads as f64 * steps))
    }
}

/// A bug with the execution that shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bug {
    /// The failure.
    pub failure: Failure,
    /// How to get there.
    pub witness: Witness,
    /// For a deadlock, the threads that wait.
    pub waiting: Vec<Waiting>,
}

/// A thread that cannot go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// The thread.
    pub thread: ThreadId,
    /// Its next operation. A spinning thread has none.
    pub op: Option<Op>,
    /// Where.
    pub site: Site,
    /// The thread it waits for, where one can be named: the owner of a mutex, the joined thread.
    pub on: Option<ThreadId>,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Why it ended.
    pub ending: Ending,
    /// How many executions it saw.
    pub counts: Counts,
    /// The bugs, each once.
    pub bugs: Vec<Bug>,
    /// Whether some loop was cut off by the bound that the user set.
    pub unrolled: bool,
    /// How many states there were, if it was a search over states. It counts no executions.
    pub states: Option<StateCounts>,
}

impl Report {
    /// Nothing was looked at, for this reason.
    pub fn refused(why: String) -> Report {
        Report {
            ending: Ending::Refused(why),
            counts: Counts::default(),
            bugs: Vec::new(),
            unrolled: false,
            states: None,
        }
    }
}

/// Watches a search.
pub trait Observer<M> {
    /// A complete execution was reached.
    fn complete(&mut self, graph: &Graph) {
        let _ = graph;
    }

    /// A complete execution was reached that has more preemptions than wanted.
    fn over_bound(&mut self, graph: &Graph) {
        let _ = graph;
    }

    /// The next execution is an alternative to the executions so far, and the event in `slot` of `graph` is its first
    /// different event. Only searches over graphs call this; the execution may turn out not to be complete.
    fn alternative(&mut self, graph: &Graph, slot: Slot) {
        let _ = (graph, slot);
    }

    /// The search starts over; what was seen so far will be seen again.
    fn restart(&mut self) {}

    /// An execution ended in a deadlock.
    fn stuck(&mut self, graph: &Graph) {
        let _ = graph;
    }

    /// A bug was found and replayed; the machine stands where it happened.
    fn bug(&mut self, bug: &Bug, machine: &M) {
        let _ = (bug, machine);
    }

    /// A bug was found in an execution beyond the bound and replayed. It is not among the bugs that the search reports.
    fn bug_beyond(&mut self, bug: &Bug, machine: &M) {
        let _ = (bug, machine);
    }

    /// An execution ended; breaking ends the search.
    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        let _ = counts;
        ControlFlow::Continue(())
    }

    /// A search over states has got on; breaking ends it.
    fn states(&mut self, counts: &StateCounts) -> ControlFlow<()> {
        let _ = counts;
        ControlFlow::Continue(())
    }

    /// A search over states has met one in which every thread has ended well; the machine is in it.
    fn ended(&mut self, machine: &M) {
        let _ = machine;
    }
}

/// An observer that watches nothing.
pub struct NoObserver;

impl<M> Observer<M> for NoObserver {}

/// Two reports of one bug.
pub fn same_bug(one: &Failure, other: &Failure) -> bool {
    let place = |failure: &Failure| {
        // The order of exploration decides which side of a race is reported.
        let mut sites = [Some(failure.site), failure.other.as_ref().map(|o| o.site)];
        sites.sort_unstable();
        (failure.kind, sites)
    };
    let stuck = matches!(one.kind, FailureKind::Deadlock | FailureKind::Livelock);
    place(one) == place(other) && (!stuck || one.message == other.message)
}

/// How an execution ended.
pub(crate) enum End {
    Complete,
    /// An assumption or a limit ended it.
    Blocked,
    /// A thread waits for a value that is no longer the newest one. Other executions, in which it reads newer
    /// values, stand for this one.
    Stale,
    /// Something changed memory that the machine did not see.
    Unseen(String),
    Stuck(Failure, Vec<Waiting>),
}

/// The reason why a thread cannot perform its pending operation.
pub(crate) struct Obstacle {
    /// Whether it waits only because it has not seen what is newest.
    pub(crate) stale: bool,
    /// The thread that could take it away.
    pub(crate) owner: Option<ThreadId>,
}

/// Tells how the execution ended that `machine` and `graph` are at the end of.
pub(crate) fn classify<M: Machine>(machine: &M, graph: &Graph) -> End {
    // Mutexes that spinning threads take and give back are as they were.
    let idle = |&write: &Slot| {
        let id = graph.event(write).id;
        let pending = machine.pending(id.thread);
        matches!(pending, Pending::Stopped(Stop::Spinning { since }) if id.index >= since)
    };
    let spins = |thread: ThreadId, since: u32| {
        let events = &graph.thread(thread)[since as usize..];
        events.iter().all(|&slot| reads_newest(graph, slot, idle))
    };
    let waits = |thread: ThreadId, _: Op| {
        let last = graph.thread(thread).last().copied();
        let parked = last.filter(|&slot| graph.event(slot).kind == Kind::Parked);
        Obstacle {
            stale: parked.is_some_and(|slot| !reads_newest(graph, slot, |_| false)),
            owner: parked.and_then(|slot| owner(graph, slot)),
        }
    };
    classify_by(machine, spins, waits)
}

/// Tells how an execution ended that `machine` is at the end of. `spins` tells whether a spinning
/// thread will do so for ever, `waits` what a thread waits for.
pub(crate) fn classify_by<M: Machine>(
    machine: &M,
    spins: impl Fn(ThreadId, u32) -> bool,
    waits: impl Fn(ThreadId, Op) -> Obstacle,
) -> End {
    let (mut waiting, mut hindered) = (Vec::new(), Vec::new());
    let (mut blocked, mut stale, mut over, mut spinning) = (false, false, false, false);
    for thread in (0..machine.threads() as u32).map(ThreadId) {
        match machine.pending(thread) {
            Pending::Absent | Pending::Stopped(Stop::Finished) => {}
            Pending::Stopped(Stop::Returned | Stop::Exited | Stop::Failed) => over = true,
            Pending::Stopped(Stop::Assumed | Stop::Unrolled | Stop::Refused) => blocked = true,
            Pending::Stopped(Stop::Spinning { since }) => {
                stale |= !spins(thread, since);
                spinning = true;
                waiting.push(wait(machine, thread, None, None));
            }
            Pending::Op(op) => {
                hindered.push(thread);
                let obstacle = waits(thread, op);
                stale |= obstacle.stale;
                let on = match op {
                    Op::Join { child } => Some(child),
                    _ => obstacle.owner,
                };
                let spins = is_memory(op);
                spinning |= spins;
                let op = (!spins).then_some(op);
                waiting.push(wait(machine, thread, op, on.filter(|_| !spins)));
            }
        }
    }
    if stale {
        return End::Stale;
    }
    // Machines are asked only about threads that do wait for ever.
    if blocked || hindered.into_iter().any(|thread| machine.pointless(thread)) {
        return End::Blocked;
    }
    // A thread that ends looks for itself.
    if let Some(what) = (!waiting.is_empty()).then(|| machine.unseen()).flatten() {
        return End::Unseen(what);
    }
    if waiting.is_empty() || over {
        return End::Complete;
    }
    let all_spin = spinning && waiting.iter().all(|waiting| waiting.op.is_none_or(joins));
    let (kind, message) = if all_spin {
        let message = "a thread spins for ever on values that nothing can change any more";
        (FailureKind::Livelock, message)
    } else {
        (FailureKind::Deadlock, "no thread can go on")
    };
    let names: Vec<String> = waiting.iter().map(|w| w.thread.to_string()).collect();
    let first = waiting
        .iter()
        .find(|waiting| !waiting.op.is_some_and(joins))
        .unwrap_or(&waiting[0]);
    let failure = Failure {
        kind,
        message: format!("{message} ({})", names.join(", ")),
        thread: first.thread,
        site: first.site,
        other: None,
    };
    End::Stuck(failure, waiting)
}

/// Whether a thread that cannot perform `op` tries it again and again.
fn is_memory(op: Op) -> bool {
    matches!(
        op,
        Op::Update {
            function: Function::Memory { .. },
            ..
        }
    )
}

fn joins(op: Op) -> bool {
    matches!(op, Op::Join { .. } | Op::JoinAll)
}

fn wait<M: Machine>(
    machine: &M,
    thread: ThreadId,
    op: Option<Op>,
    on: Option<ThreadId>,
) -> Waiting {
    Waiting {
        thread,
        op,
        site: machine.site(thread),
        on,
    }
}

/// Whether no other value was written over what the event reads, except by writes that are `idle`.
fn reads_newest(graph: &Graph, slot: Slot, idle: impl Fn(&Slot) -> bool) -> bool {
    let event = graph.event(slot);
    match event.op.location() {
        Some(location) if event.kind.reads() => {
            let newest = graph.waits_at(location, slot);
            graph.later_writes(location, newest).iter().all(idle)
        }
        _ => true,
    }
}

/// The thread that holds what a parked read waits for. Semaphores, condition variables and barriers are
/// held by no thread: whose write the read is stuck at says nothing about who could help.
fn owner(graph: &Graph, parked: Slot) -> Option<ThreadId> {
    match graph.event(parked).source {
        crate::graph::INIT => None,
        source => {
            let taken = graph.event(source);
            takes_hold(&taken.op).then_some(taken.id.thread)
        }
    }
}

/// Whether a thread that wrote with `op` holds the object from then on.
fn takes_hold(op: &Op) -> bool {
    use ObjectFunction as F;
    matches!(
        op,
        Op::Update {
            function: Function::Object(
                F::MutexLock { .. }
                    | F::MutexTryLock { .. }
                    | F::ReadLock
                    | F::ReadTryLock
                    | F::WriteLock
                    | F::WriteTryLock
                    | F::OnceBegin
                    | F::LockWhen { .. }
            ),
            ..
        }
    )
}
