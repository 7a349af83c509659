//! Taking demands back, one at a time, each only after everything that it kept away is proven.
//!
//! The document's verifier (Algorithm 1) explores depth-first and shortens the prefix whenever all
//! that follows it is explored. Here the same is done without a search of its own. Let `C` be
//! proven: every execution that keeps to it ends well. Take a demand *e before c* that is to become
//! a weaker one, and let `C'` be the demands afterwards. What `C'` admits and `C` does not are the
//! executions that keep to `C'` and in which *c comes before e*. That is a constrained program like
//! any other ([`Constrained`]), so any explorer can check it; if nothing fails and nothing gets
//! stuck, `C'` is proven. Each trace belongs to one such step, so nothing is explored twice, and
//! safety (Theorem 1) and progress (Theorem 2) are what the explorer checks, not what an argument
//! about prefixes promises.

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::Verified;
use super::attempt::Attempt;
use super::constrained::Constrained;
use super::demands::{Demand, Demands};
use super::log::{EventPlace, Log};
use super::part::{Explored, Part};
use super::plan::Reversed;
use super::reversal::Pair;
use super::strip::{strip, waits_for_flag};
use super::trace::Trace;
use crate::graph::Graph;
use crate::ids::{Site, ThreadId};
use crate::machine::{Machine, Portable};
use crate::report::{Bug, Counts, Ending, Observer};

/// Why a demand stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Without it, this bug can happen (an index into the bugs found).
    Bug(usize),
    /// Without it, other demands would make the program wait for ever.
    Stuck,
    /// Without it, a thread could spin, and the events after that would be numbered differently.
    Spins,
}

/// A demand that could not be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The demand.
    pub demand: Demand,
    /// Why.
    pub reason: Reason,
}

/// The proof for one input.
#[derive(Clone, Debug)]
pub struct Relaxed {
    /// The values of the choices that main makes before it creates a thread.
    pub inputs: Vec<u32>,
    pub(super) trace: Trace,
    /// Demands that are proven to suffice.
    pub demands: Demands,
    /// Demands that stay.
    pub kept: Vec<Kept>,
    /// How many traces are proven.
    pub traces: u64,
    pub(super) log: Log,
}

/// The result of one step.
pub(super) enum StepResult {
    /// Everything that it adds is safe.
    Safe { traces: u64, log: Log },
    /// Not so.
    Unsafe(Reason),
    /// It takes more executions than it should.
    TooMany,
    /// The watcher interrupted it; it goes on when it is tried again.
    Paused,
    /// The search did not come to an end.
    Ended(Ending),
}

/// The observer of the search.
pub trait Watcher<M> {
    /// A bug was found; the machine stands where it happens, and `bug` leads there without
    /// enforcement too.
    fn bug(&mut self, bug: &Bug, machine: &M) {
        let _ = (bug, machine);
    }

    /// An execution ended; this many traces are proven or about to be. Breaking ends the verification.
    fn progress(&mut self, explored: u64) -> ControlFlow<()> {
        let _ = explored;
        ControlFlow::Continue(())
    }

    /// Whether to interrupt a step, so that [`proven`](Watcher::proven) is told how far it has come.
    fn pauses(&mut self) -> bool {
        false
    }

    /// How many other processes can explore parts of a step.
    fn helpers(&self) -> usize {
        0
    }

    /// Gives a part to each of as many helpers as there are parts.
    fn ask(&mut self, parts: Vec<Part>) {
        let _ = parts;
    }

    /// The findings of each helper that was asked; nothing if they cannot go on.
    fn answers(&mut self) -> Vec<Explored> {
        Vec::new()
    }

    /// Less is demanded than before, or more is known, or a step was interrupted. Breaking ends the verification.
    fn proven(&mut self, verified: &Verified, machine: &M) -> ControlFlow<()> {
        let _ = (verified, machine);
        ControlFlow::Continue(())
    }
}

/// The executions that a search explores.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    /// The executions that were explored before.
    pub(super) before: u64,
    /// The executions of this step before this slice.
    pub(super) executions: u64,
    /// The pair that has to come in another order for an execution to be new.
    pub(super) reversed: Option<Reversed>,
    pub(super) pair: &'a Pair,
    pub(super) places: &'a [Option<EventPlace>],
    pub(super) inputs: &'a [u32],
    /// No more executions than that.
    pub(super) limit: Option<u64>,
    /// Whether bugs are told and kept. Otherwise the search is repeated for them.
    pub(super) tells: bool,
}

/// Passes on what a search tells.
pub(super) struct Listener<'a, W> {
    pub(super) watcher: &'a mut W,
    pub(super) work: Work<'a>,
    pub(super) traces: u64,
    pub(super) exceeded: bool,
    pub(super) paused: bool,
    pub(super) bugs: &'a mut Vec<Bug>,
    pub(super) found: Option<Reason>,
}

impl<M: Machine, W: Watcher<M>> Observer<Constrained<'_, M>> for Listener<'_, W> {
    fn complete(&mut self, graph: &Graph) {
        let work = self.work;
        let new = work.reversed.is_none_or(|Reversed { first, later }| {
            work.pair.is_new(graph, (first.0, later.0), work.places)
        });
        self.traces += u64::from(new);
    }

    fn restart(&mut self) {
        self.traces = 0;
    }

    fn bug(&mut self, bug: &Bug, machine: &Constrained<'_, M>) {
        let flags = machine.flags();
        if waits_for_flag(bug, flags) {
            self.found = Some(Reason::Stuck);
            return;
        }
        if !self.work.tells {
            self.found = Some(Reason::Bug(usize::MAX));
            return;
        }
        let bug = strip(bug, flags, self.work.inputs);
        let known = |other: &Bug| crate::report::same_bug(&other.failure, &bug.failure);
        let index = match self.bugs.iter().position(known) {
            Some(index) => index,
            None => {
                self.watcher.bug(&bug, machine.inner());
                self.bugs.push(bug);
                self.bugs.len() - 1
            }
        };
        self.found = Some(Reason::Bug(index));
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        let executions = self.work.executions + counts.executions;
        self.exceeded = self.work.limit.is_some_and(|limit| executions > limit);
        self.watcher.progress(self.work.before + self.traces)?;
        self.paused = !self.exceeded && self.watcher.pauses();
        match self.exceeded || self.paused {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Data that all steps share.
pub(super) struct Context<'a, M, W> {
    pub(super) machine: &'a mut M,
    pub(super) watcher: &'a mut W,
    pub(super) counted: &'a FxHashSet<Site>,
    pub(super) bugs: &'a mut Vec<Bug>,
    /// Traces explored so far, for all inputs.
    pub(super) explored: u64,
    /// See [`Settings`](super::Settings).
    pub(super) patience: u64,
    /// Steps that were interrupted, and how those ended that came before them.
    pub(super) attempts: &'a mut Vec<Attempt>,
}

/// Whether some demand mentions an event that comes after an iteration that only waits, or is in
/// one: at run time there may be many such iterations.
pub(super) fn miscounts(demands: &Demands, old: &Log, new: &Log) -> bool {
    let spin = |thread: ThreadId| {
        let of = |log: &Log| log.spins.get(thread.index()).copied().flatten();
        of(old).into_iter().chain(of(new)).min()
    };
    demands.iter().any(|demand| {
        spin(demand.thread).is_some_and(|first| demand.event > first)
            || spin(demand.source).is_some_and(|first| demand.count > first)
    })
}

impl Relaxed {
    /// Nothing is proven yet.
    pub(super) fn new(inputs: Vec<u32>, trace: Trace) -> Relaxed {
        Relaxed {
            inputs,
            trace,
            demands: Demands::default(),
            kept: Vec::new(),
            traces: 0,
            log: Log::default(),
        }
    }

    /// The demand to weaken next: the one whose event comes last in the trace, so that nothing that
    /// comes after it is demanded any more; among its demands the one for the latest event.
    pub(super) fn next(&self) -> Option<Demand> {
        let stays = |demand: &Demand| self.kept.iter().any(|kept| kept.demand == *demand);
        let open = self.demands.iter().filter(|demand| !stays(demand));
        open.max_by_key(|demand| self.trace.ends(demand)).copied()
    }

    /// A guess of how many traces there are: as if each step back from the initial demands
    /// multiplied their number by the same factor, as it does where pairs of events are independent
    /// of each other.
    pub fn estimate(&self) -> u64 {
        let steps = |demands: &Demands| -> u32 {
            let chain = |&demand: &Demand| {
                std::iter::successors(Some(demand), |demand| self.trace.lowered(demand)).count()
            };
            demands.iter().map(|demand| chain(demand) as u32).sum()
        };
        let (all, left) = (steps(&self.trace.demands()), steps(&self.demands));
        if left == 0 || all <= left {
            return self.traces;
        }
        let exponent = f64::from(all) / f64::from(all - left);
        (self.traces as f64).powf(exponent).min(1e18) as u64
    }

    /// Tries to weaken `demand`. `Break` if the search did not come to an end.
    pub(super) fn weaken<M: Portable, W: Watcher<M>>(
        &mut self,
        demand: Demand,
        context: &mut Context<'_, M, W>,
    ) -> ControlFlow<Ending> {
        let lowered = self.trace.lowered(&demand);
        let without = self.demands.replaced(&demand, lowered);
        let postponed = self.trace.postponed(&demand);
        let postponed = postponed.map(|later| {
            self.demands
                .replaced(&demand, lowered.into_iter().chain([later]))
        });
        let reversed = Some(Reversed::of(&demand));
        let limit = postponed
            .is_some()
            .then(|| self.traces.max(context.patience));
        let mut step = context.explore(self, &without, reversed, limit);
        let mut accepted = without.clone();
        // Where a step is too large, or fails, a smaller one may do: only until the next event of
        // the thread.
        let smaller = matches!(
            step,
            StepResult::TooMany | StepResult::Unsafe(Reason::Bug(_))
        );
        if let Some(postponed) = postponed.filter(|_| smaller) {
            let large = matches!(step, StepResult::TooMany);
            match context.explore(self, &postponed, reversed, None) {
                StepResult::Unsafe(Reason::Stuck | Reason::Spins) if large => {
                    step = context.explore(self, &without, reversed, None);
                }
                StepResult::Unsafe(reason) if large => step = StepResult::Unsafe(reason),
                StepResult::Paused => return ControlFlow::Continue(()),
                StepResult::Unsafe(_) | StepResult::TooMany => {}
                done => (step, accepted) = (done, postponed),
            }
        }
        if !matches!(step, StepResult::Paused | StepResult::Ended(_)) {
            context.attempts.clear();
        }
        match step {
            StepResult::Paused => {}
            StepResult::Safe { traces, log } => self.accept(accepted, traces, log),
            StepResult::Unsafe(reason) => self.kept.push(Kept { demand, reason }),
            StepResult::TooMany => unreachable!("only steps that have smaller ones are limited"),
            StepResult::Ended(ending) => return ControlFlow::Break(ending),
        }
        ControlFlow::Continue(())
    }

    fn accept(&mut self, demands: Demands, traces: u64, log: Log) {
        self.demands = demands;
        self.traces += traces;
        self.log.merge(log);
        // Demands that were kept because of other demands may be removed now.
        self.kept
            .retain(|kept| matches!(kept.reason, Reason::Bug(_)));
    }

    /// No demand can be weakened alone, but not because of a bug: tries to do without all of those.
    pub(super) fn leave_out_the_rest<M: Portable, W: Watcher<M>>(
        &mut self,
        context: &mut Context<'_, M, W>,
    ) -> ControlFlow<Ending> {
        let stays = |demand: &Demand| {
            let mut kept = self.kept.iter();
            kept.any(|kept| kept.demand == *demand && matches!(kept.reason, Reason::Bug(_)))
        };
        let rest = Demands::new(self.demands.iter().copied().filter(stays));
        if rest == self.demands {
            return ControlFlow::Continue(());
        }
        match context.explore(self, &rest, None, None) {
            StepResult::Paused => return ControlFlow::Continue(()),
            StepResult::Safe { traces, log } => {
                self.traces = 0;
                self.accept(rest, traces, log);
            }
            StepResult::Unsafe(_) | StepResult::TooMany => {}
            StepResult::Ended(ending) => return ControlFlow::Break(ending),
        }
        context.attempts.clear();
        ControlFlow::Continue(())
    }
}
