//! The interface between explorers and programs under test.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::ids::{Location, Site, ThreadId};
use crate::op::{Op, Value};

/// The next operation of a thread, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pending {
    /// The thread has not been created in this execution.
    Absent,
    /// It is about to perform a visible operation.
    Op(Op),
    /// It stopped for good.
    Stopped(Stop),
}

impl Pending {
    /// Whether a join of the thread does not wait: the thread ended, or never existed. A join of a thread
    /// that ends the process never returns.
    pub fn has_ended(self) -> bool {
        match self {
            Pending::Absent => true,
            Pending::Stopped(stop) => {
                matches!(stop, Stop::Finished | Stop::Returned | Stop::Failed)
            }
            Pending::Op(_) => false,
        }
    }
}

/// Whether every thread has ended whose end the operation `op` of `thread` waits for.
pub(crate) fn may_join<M: Machine>(machine: &M, thread: ThreadId, op: Op) -> bool {
    match op {
        Op::Join { child } => machine.pending(child).has_ended(),
        Op::JoinAll => (0..machine.threads() as u32)
            .map(ThreadId)
            .all(|other| other == thread || machine.pending(other).has_ended()),
        _ => true,
    }
}

/// Why a thread takes no further step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// It returned, or called `pthread_exit`.
    Finished,
    /// It is main, and returned, which ends the process. The other threads are explored to their ends
    /// all the same; that they wait or spin for ever is no bug then.
    Returned,
    /// It ended the process (`exit`). The other threads may have run arbitrarily far by then.
    Exited,
    /// It came back to a program point in the state it was there before, having written nothing:
    /// its events from index `since` on are a pure iteration, which only another value can end. It
    /// may have taken mutexes and given them back meanwhile, if no thread ever looks whether a
    /// mutex is held.
    Spinning {
        /// The first event of the iteration.
        since: u32,
    },
    /// An assumption does not hold: this execution is of no interest.
    Assumed,
    /// A loop ran past the bound that the user set.
    Unrolled,
    /// A bug; [`Machine::failure`] tells which.
    Failed,
    /// The machine cannot go on because of something it does not model; [`Machine::refusal`]
    /// tells what. The search ends as incomplete.
    Refused,
}

/// The outcome of an operation, decided by the explorer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The value read by a load or an update, the number picked by a choice.
    pub read: Value,
    /// The value an update wrote, `None` if it left the location as it was. Stores know theirs.
    pub wrote: Option<Value>,
}

/// A program under test that can be driven one visible operation at a time.
///
/// Same decisions, same behaviour: between two calls of [`reset`](Machine::reset), what a thread
/// does depends only on the outcomes it was given and on what happens before it. That is all that
/// explorers rely on.
pub trait Machine {
    /// Back to the initial state: only main exists, stopped before its first visible operation.
    fn reset(&mut self);

    /// One more than the largest thread number handed out so far in the search.
    fn threads(&self) -> usize;

    /// The next operation of `thread`. May be asked for any thread, also absent ones.
    fn pending(&self, thread: ThreadId) -> Pending;

    /// Whether `thread` is about to do `op`.
    fn is_about_to(&self, thread: ThreadId, op: &Op) -> bool {
        matches!(self.pending(thread), Pending::Op(pending) if pending == *op)
    }

    /// The value of `location` before any visible write to it. Asked only while an operation on it
    /// is pending or after one was performed.
    fn initial(&self, location: Location) -> Value;

    /// Performs the pending operation of `thread` with `outcome` and runs the thread up to its
    /// next visible operation or its end.
    ///
    /// `clock` is the happens-before clock of the performed operation, itself included: of
    /// thread *u*, the first `clock[u]` events happen before whatever `thread` does next. A thread
    /// number beyond its length counts as zero. Events are counted as explorers count them: an
    /// update that writes is two (read and write), everything else is one.
    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]);

    /// Takes back the last `steps` calls of [`resume`](Machine::resume) and
    /// [`retry`](SpinLoops::retry) since the last reset that were not taken back yet, as if they had
    /// never happened. What the machine knows for the whole search stays. False if it cannot; it has
    /// to be reset then.
    fn undo(&mut self, steps: usize) -> bool {
        let _ = steps;
        false
    }

    /// Where in the program the pending operation of `thread` stands.
    fn site(&self, thread: ThreadId) -> Site;

    /// Whether an execution in which `thread` never gets to perform its pending operation is of no
    /// interest, as if an assumption did not hold. Otherwise that is a deadlock.
    fn pointless(&self, thread: ThreadId) -> bool {
        let _ = thread;
        false
    }

    /// The run that begins next will repeat `failure`, for its report: the machine may look closer.
    fn watch(&mut self, failure: &Failure) {
        let _ = failure;
    }

    /// The bug found, if a thread is [`Stop::Failed`].
    fn failure(&self) -> Option<Failure>;

    /// A failure of the program although every thread has ended well, such as leaked
    /// memory. Asked at the end of each complete execution.
    fn leftover(&self) -> Option<Failure> {
        None
    }

    /// The behaviour that is not modelled, if a thread is [`Stop::Refused`].
    fn refusal(&self) -> Option<String>;

    /// A change of memory by something that the machine did not see, which is not modelled either. Asked at the end of
    /// each execution in which threads wait for ever; a thread that ends looks for itself.
    fn unseen(&self) -> Option<String> {
        None
    }
}

/// Questions of explorers that drop iterations of spin loops and continue them in place.
/// A machine that has no answers of its own need not define anything: every iteration is kept then.
pub trait SpinLoops: Machine {
    /// Whether `thread`, which is [`Stop::Spinning`], touched nothing in its iteration that others can
    /// reach except by visible operations. If it did, the iteration may take part in a race with
    /// something that has not happened yet, and explorers must not drop it before.
    fn quiet(&mut self, thread: ThreadId) -> bool {
        let _ = thread;
        false
    }

    /// Whether `location` is accessed by atomic operations only and lives as long as the program,
    /// so that no operation on it can ever take part in a race.
    fn never_races(&mut self, location: Location) -> bool {
        let _ = location;
        false
    }

    /// Whether a search extends the graph by the newest thread that can go on, rather than by the oldest.
    /// It visits the same executions; what threads do between events comes in another order.
    fn newest_first(&self) -> bool {
        false
    }

    /// Whether [`retry`](SpinLoops::retry) can take back operations on `location`: nothing is left of
    /// them.
    fn can_retry(&mut self, location: Location) -> bool {
        let _ = location;
        false
    }

    /// Takes `thread`, which is [`Stop::Spinning`] since its last event, back to before that event.
    /// A pure iteration ends in the state that it began in, so the thread just is about to perform
    /// the same operation again.
    fn retry(&mut self, thread: ThreadId) {
        unreachable!("{thread} cannot be taken back");
    }

    /// Whether [`quiet`](SpinLoops::quiet), [`never_races`](SpinLoops::never_races) or
    /// [`can_retry`](SpinLoops::can_retry) gave an answer, since this was last asked, that turned out
    /// to be wrong. The search then starts over.
    fn misjudged(&mut self) -> bool {
        false
    }
}

/// Something about the program that a machine learns only when it happens, such as that a variable is
/// accessed plainly. The number means the same in every process that runs the program.
pub type Fact = u64;

/// A machine in one of several processes that search together.
pub trait Portable: SpinLoops {
    /// The creator of each thread but main, and how many threads that creates before: in the order of
    /// the threads' numbers.
    fn spawned(&self) -> Vec<(ThreadId, u32)> {
        Vec::new()
    }

    /// Gives the first numbers to these threads. The machine is [reset](Machine::reset) next.
    fn number_threads(&mut self, spawned: &[(ThreadId, u32)]) {
        let _ = spawned;
    }

    /// The facts that were taken not to hold, for an answer of [`quiet`](SpinLoops::quiet),
    /// [`never_races`](SpinLoops::never_races) or [`can_retry`](SpinLoops::can_retry), since this was last
    /// asked. The search starts over if one of them turns out to hold, in any of the processes.
    fn relied_on(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// The facts that were found to hold since this was last asked, as ranges of first and last.
    fn learned(&mut self) -> Vec<(Fact, Fact)> {
        Vec::new()
    }

    /// These facts were found to hold.
    fn learn(&mut self, facts: &[(Fact, Fact)]) {
        let _ = facts;
    }
}

/// Defines methods of [`Machine`], [`SpinLoops`] and [`Portable`] for a machine around another one, which is its field
/// `$inner`: those named do what the inner one does. `around` stands for those that a wrapper hardly ever has
/// an answer of its own to, `portable` for all of [`Portable`].
#[macro_export]
macro_rules! forward_machine {
    ($inner:ident: $($method:ident),+ $(,)?) => {
        $($crate::forward_machine!(@$method $inner);)+
    };
    (@around $inner:ident) => {
        $crate::forward_machine!(
            $inner: threads, site, watch, failure, leftover, refusal, unseen
        );
    };
    (@portable $inner:ident) => {
        fn spawned(&self) -> Vec<($crate::ThreadId, u32)> {
            self.$inner.spawned()
        }

        fn number_threads(&mut self, spawned: &[($crate::ThreadId, u32)]) {
            self.$inner.number_threads(spawned);
        }

        fn relied_on(&mut self) -> Vec<$crate::Fact> {
            self.$inner.relied_on()
        }

        fn learned(&mut self) -> Vec<($crate::Fact, $crate::Fact)> {
            self.$inner.learned()
        }

        fn learn(&mut self, facts: &[($crate::Fact, $crate::Fact)]) {
            self.$inner.learn(facts);
        }
    };
    (@reset $inner:ident) => {
        fn reset(&mut self) {
            self.$inner.reset();
        }
    };
    (@threads $inner:ident) => {
        fn threads(&self) -> usize {
            self.$inner.threads()
        }
    };
    (@pending $inner:ident) => {
        fn pending(&self, thread: $crate::ThreadId) -> $crate::Pending {
            self.$inner.pending(thread)
        }
    };
    (@is_about_to $inner:ident) => {
        fn is_about_to(&self, thread: $crate::ThreadId, op: &$crate::Op) -> bool {
            self.$inner.is_about_to(thread, op)
        }
    };
    (@initial $inner:ident) => {
        fn initial(&self, location: $crate::Location) -> $crate::Value {
            self.$inner.initial(location)
        }
    };
    (@resume $inner:ident) => {
        fn resume(&mut self, thread: $crate::ThreadId, outcome: $crate::Outcome, clock: &[u32]) {
            self.$inner.resume(thread, outcome, clock);
        }
    };
    (@undo $inner:ident) => {
        fn undo(&mut self, steps: usize) -> bool {
            self.$inner.undo(steps)
        }
    };
    (@site $inner:ident) => {
        fn site(&self, thread: $crate::ThreadId) -> $crate::Site {
            self.$inner.site(thread)
        }
    };
    (@quiet $inner:ident) => {
        fn quiet(&mut self, thread: $crate::ThreadId) -> bool {
            self.$inner.quiet(thread)
        }
    };
    (@never_races $inner:ident) => {
        fn never_races(&mut self, location: $crate::Location) -> bool {
            self.$inner.never_races(location)
        }
    };
    (@can_retry $inner:ident) => {
        fn can_retry(&mut self, location: $crate::Location) -> bool {
            self.$inner.can_retry(location)
        }
    };
    (@retry $inner:ident) => {
        fn retry(&mut self, thread: $crate::ThreadId) {
            self.$inner.retry(thread);
        }
    };
    (@misjudged $inner:ident) => {
        fn misjudged(&mut self) -> bool {
            self.$inner.misjudged()
        }
    };
    (@pointless $inner:ident) => {
        fn pointless(&self, thread: $crate::ThreadId) -> bool {
            self.$inner.pointless(thread)
        }
    };
    (@watch $inner:ident) => {
        fn watch(&mut self, failure: &$crate::Failure) {
            self.$inner.watch(failure);
        }
    };
    (@failure $inner:ident) => {
        fn failure(&self) -> Option<$crate::Failure> {
            self.$inner.failure()
        }
    };
    (@leftover $inner:ident) => {
        fn leftover(&self) -> Option<$crate::Failure> {
            self.$inner.leftover()
        }
    };
    (@refusal $inner:ident) => {
        fn refusal(&self) -> Option<String> {
            self.$inner.refusal()
        }
    };
    (@unseen $inner:ident) => {
        fn unseen(&self) -> Option<String> {
            self.$inner.unseen()
        }
    };
}
