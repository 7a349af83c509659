//! Steps of a proof that can be interrupted and taken up later, in another process.
//!
//! A step is a search of its own, so it is explored in slices: what is left of it is a work unit. What
//! else a step collects, traces and places, is added up over the slices.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::constrained::Constrained;
use super::demands::Demands;
use super::log::Log;
use super::part::Part;
use super::plan::{Plan, Reversed};
use super::relax::{Context, Listener, Reason, Relaxed, StepResult, Watcher, Work, miscounts};
use super::reversal::Pair;
use crate::ids::{Site, ThreadId};
use crate::machine::Portable;
use crate::model::SequentialConsistency;
use crate::report::{Bug, Counts, Ending};
use crate::trust::{self, Found, Frontier, Unit, UnitId};

/// A step, and how far it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// For which input.
    inputs: Vec<u32>,
    /// The demands.
    demands: Demands,
    /// See [`Plan`].
    reversed: Option<Reversed>,
    /// Whether the number of executions is limited.
    limited: bool,
    /// Why it failed, once it has.
    failed: Option<Failed>,
    work: Frontier<Option<Unit>, Bug>,
    /// Whether units were explored in another order than one process would have.
    #[serde(default)]
    divided: bool,
    /// Whether only one process explores it.
    #[serde(default)]
    alone: bool,
    traces: u64,
    log: Log,
}

/// Why a step failed, if there may be a smaller one.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Failed {
    TooMany,
    Unsafe(Reason),
}

impl Attempt {
    fn is(&self, of: &Relaxed, demands: &Demands, key: (Option<Reversed>, bool)) -> bool {
        let same = self.inputs == of.inputs && self.demands == *demands;
        same && (self.reversed, self.limited) == key
    }
}

impl<M: Portable, W: Watcher<M>> Context<'_, M, W> {
    /// Explores what keeps to `demands`, all of it or only what is contrary to a demand, from where an attempt
    /// at that was interrupted.
    pub(super) fn explore(
        &mut self,
        of: &Relaxed,
        demands: &Demands,
        reversed: Option<Reversed>,
        limit: Option<u64>,
    ) -> StepResult {
        let key = (reversed, limit.is_some());
        let begun = self
            .attempts
            .iter()
            .position(|one| one.is(of, demands, key));
        let mut attempt = match begun {
            Some(at) => self.attempts.remove(at),
            None => Attempt {
                inputs: of.inputs.clone(),
                demands: demands.clone(),
                reversed,
                limited: limit.is_some(),
                failed: None,
                work: Frontier::new(None),
                divided: false,
                alone: false,
                traces: 0,
                log: Log::default(),
            },
        };
        let step = match &attempt.failed {
            Some(Failed::TooMany) => StepResult::TooMany,
            Some(Failed::Unsafe(reason)) => StepResult::Unsafe(reason.clone()),
            None => self.go_on(of, &mut attempt, limit),
        };
        match &step {
            StepResult::TooMany => attempt.failed = Some(Failed::TooMany),
            StepResult::Unsafe(reason) => attempt.failed = Some(Failed::Unsafe(reason.clone())),
            StepResult::Paused | StepResult::Ended(Ending::Stopped) => {}
            StepResult::Safe { .. } | StepResult::Ended(_) => return step,
        }
        self.attempts.push(attempt);
        step
    }

    /// Explores what is left of an attempt.
    fn go_on(&mut self, of: &Relaxed, attempt: &mut Attempt, limit: Option<u64>) -> StepResult {
        let demands = attempt.demands.clone();
        let plan = Plan {
            inputs: &of.inputs,
            counted: self.counted,
            places: &of.trace.places,
            demands: &demands,
            reversed: attempt.reversed,
        };
        let pair = Pair::default();
        let mut machine = Constrained::new(self.machine, plan, &pair);
        attempt.work.give_back_all();
        machine.learn(attempt.work.learned());
        while let Some((id, unit)) = attempt.work.take() {
            let work = Work {
                before: self.explored + attempt.traces,
                executions: attempt.work.counts().executions,
                reversed: attempt.reversed,
                pair: &pair,
                places: &of.trace.places,
                inputs: &of.inputs,
                limit,
                tells: attempt.alone_so_far(),
            };
            let helpers = if attempt.alone {
                0
            } else {
                self.watcher.helpers()
            };
            let (others, parts) = attempt.parts(helpers, self.counted, work);
            if !parts.is_empty() {
                self.watcher.ask(parts);
            }
            let mut slice = explore_unit(&mut machine, self.watcher, self.bugs, work, unit);
            let explored = match others.is_empty() {
                true => Vec::new(),
                false => self.watcher.answers(),
            };
            let ending = slice.answer.report.ending.clone();
            let (exceeded, paused) = (slice.exceeded, slice.paused);
            let usable = explored
                .iter()
                .all(|one| one.usable && adopt(&mut machine, &one.spawned));
            if let (Ending::FirstBug, Some(reason)) = (&ending, slice.found.take())
                && attempt.alone_so_far()
            {
                return StepResult::Unsafe(reason);
            }
            if ending == Ending::FirstBug || !usable || explored.len() < others.len() {
                attempt.begin_alone();
                continue;
            }
            attempt.log.merge(std::mem::take(&mut machine.log));
            attempt.log.add_histories(&machine.histories);
            let mut wrong = attempt.work.learn(&machine.relied_on(), &machine.learned());
            wrong |= slice.answer.misjudged;
            for one in &explored {
                wrong |= attempt.work.learn(&one.relied, &one.learned) || one.misjudged;
                machine.learn(&one.learned);
            }
            if wrong {
                attempt.work.start_over();
                attempt.traces = 0;
            } else {
                // More units than processes, because some are explored at once.
                let pieces = match attempt.work.waiting() {
                    few if few < helpers => 1 + 2 * helpers,
                    _ => 1,
                };
                attempt.add(id, slice.counted(), pieces);
                for (id, one) in others.into_iter().zip(explored) {
                    attempt.log.merge(one.log);
                    attempt.add(id, (one.counts, one.unrolled, one.traces, one.rest), pieces);
                }
            }
            let executions = attempt.work.counts().executions;
            match ending {
                _ if limit.is_some_and(|limit| executions > limit) => return StepResult::TooMany,
                Ending::Complete => {}
                Ending::Stopped if exceeded => return StepResult::TooMany,
                Ending::Stopped if paused => return StepResult::Paused,
                ending => return StepResult::Ended(ending),
            }
        }
        let log = std::mem::take(&mut attempt.log);
        if attempt.work.found().unrolled {
            StepResult::Ended(Ending::Refused("a loop was cut off by --unroll".to_owned()))
        } else if miscounts(&attempt.demands, &of.log, &log) {
            StepResult::Unsafe(Reason::Spins)
        } else {
            StepResult::Safe {
                traces: attempt.traces,
                log,
            }
        }
    }
}

/// The counts of a unit, whether a loop was cut off, how many traces are new, and the rest of the unit.
type Counted = (Counts, bool, u64, Option<Unit>);

impl Attempt {
    /// Takes units for as many helpers as there is work for: their numbers, and what helpers are told.
    fn parts(
        &mut self,
        helpers: usize,
        counted: &FxHashSet<Site>,
        work: Work<'_>,
    ) -> (Vec<UnitId>, Vec<Part>) {
        let (mut ids, mut parts) = (Vec::new(), Vec::new());
        while parts.len() < helpers
            && let Some((id, unit)) = self.work.take()
        {
            let Some(unit) = unit else {
                self.work.give_back(id);
                break;
            };
            ids.push(id);
            parts.push(Part {
                inputs: work.inputs.to_vec(),
                counted: counted.clone(),
                places: work.places.to_vec(),
                demands: self.demands.clone(),
                reversed: self.reversed,
                unit,
                learned: self.work.learned().to_vec(),
                limit: work
                    .limit
                    .map(|limit| limit.saturating_sub(work.executions)),
            });
        }
        (ids, parts)
    }

    /// Adds what was found in a unit, and divides what is left of it.
    fn add(&mut self, id: UnitId, (counts, unrolled, traces, rest): Counted, pieces: usize) {
        self.traces += traces;
        self.divided |= pieces > 1;
        let found = Found {
            counts,
            unrolled,
            ..Found::default()
        };
        let units = rest.map_or_else(Vec::new, |rest| rest.pieces(pieces as u64));
        let units = units.into_iter().map(|unit| {
            let share = unit.share();
            (Some(unit), share)
        });
        self.work.answer(id, found, units.collect());
    }

    /// Whether what was explored is what one process would have explored by now.
    fn alone_so_far(&self) -> bool {
        self.alone || !self.divided
    }

    /// Explores everything once more, with one process: which bug is found must not depend on how many there are.
    fn begin_alone(&mut self) {
        self.alone = true;
        self.work = Frontier::new(None);
        self.traces = 0;
        self.log = Log::default();
    }
}

/// Numbers threads as a helper does, if that is possible.
fn adopt<M: Portable>(machine: &mut M, spawned: &[(ThreadId, u32)]) -> bool {
    let own = machine.spawned();
    if spawned.starts_with(&own) && spawned.len() > own.len() {
        machine.number_threads(spawned);
        return true;
    }
    own.starts_with(spawned)
}

/// The result of a unit.
pub(super) struct Slice {
    pub(super) answer: trust::Answer,
    pub(super) traces: u64,
    found: Option<Reason>,
    exceeded: bool,
    paused: bool,
}

impl Slice {
    fn counted(self) -> Counted {
        let report = self.answer.report;
        (
            report.counts,
            report.unrolled,
            self.traces,
            self.answer.rest,
        )
    }
}

/// Explores a unit, as far as `watcher` allows for.
pub(super) fn explore_unit<M: Portable, W: Watcher<M>>(
    machine: &mut Constrained<'_, M>,
    watcher: &mut W,
    bugs: &mut Vec<Bug>,
    work: Work<'_>,
    unit: Option<Unit>,
) -> Slice {
    let mut listener = Listener {
        watcher,
        work,
        traces: 0,
        exceeded: false,
        paused: false,
        bugs,
        found: None,
    };
    let settings = trust::Settings::default();
    let known = Vec::new();
    let answer =
        trust::slice::<SequentialConsistency, _>(machine, settings, (unit, known), &mut listener);
    Slice {
        answer,
        traces: listener.traces,
        found: listener.found,
        exceeded: listener.exceeded,
        paused: listener.paused,
    }
}
