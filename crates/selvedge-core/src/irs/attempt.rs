//! Steps of a proof that can be interrupted and taken up later, in another process.
//!
//! A step is a search of its own, so it is explored in slices: what is left of it is a work unit. What
//! else a step collects, traces and places, is added up over the slices.

use serde::{Deserialize, Serialize};

use super::constrained::Constrained;
use super::demands::Demands;
use super::log::Log;
use super::plan::{Plan, Reversed};
use super::relax::{Context, Listener, Reason, Relaxed, Step, Watcher, miscounts};
use super::reversal::Pair;
use crate::machine::Portable;
use crate::model::SequentialConsistency;
use crate::report::{Bug, Ending};
use crate::trust::{self, Found, Frontier, Unit};

/// A step, and how far it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// For which input.
    inputs: Vec<u32>,
    /// What is demanded.
    demands: Demands,
    /// See [`Plan`].
    reversed: Option<Reversed>,
    /// Whether the number of executions is limited.
    limited: bool,
    /// Why it failed, once it has.
    failed: Option<Failed>,
    work: Frontier<Option<Unit>, Bug>,
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
    ) -> Step {
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
                traces: 0,
                log: Log::default(),
            },
        };
        let step = match &attempt.failed {
            Some(Failed::TooMany) => Step::TooMany,
            Some(Failed::Unsafe(reason)) => Step::Unsafe(reason.clone()),
            None => self.go_on(of, &mut attempt, limit),
        };
        match &step {
            Step::TooMany => attempt.failed = Some(Failed::TooMany),
            Step::Unsafe(reason) => attempt.failed = Some(Failed::Unsafe(reason.clone())),
            Step::Paused | Step::Ended(Ending::Stopped) => {}
            Step::Safe { .. } | Step::Ended(_) => return step,
        }
        self.attempts.push(attempt);
        step
    }

    /// Explores what is left of an attempt.
    fn go_on(&mut self, of: &Relaxed, attempt: &mut Attempt, limit: Option<u64>) -> Step {
        let plan = Plan {
            inputs: &of.inputs,
            counted: self.counted,
            places: &of.trace.places,
            demands: &attempt.demands,
            reversed: attempt.reversed,
        };
        let pair = Pair::default();
        let mut machine = Constrained::new(self.machine, plan, &pair);
        attempt.work.give_back_all();
        machine.learn(attempt.work.learned());
        while let Some((id, unit)) = attempt.work.take() {
            let mut listener = Listener {
                watcher: self.watcher,
                before: self.explored + attempt.traces,
                executions: attempt.work.counts().executions,
                reversed: attempt.reversed,
                pair: &pair,
                places: &of.trace.places,
                inputs: &of.inputs,
                traces: 0,
                limit,
                exceeded: false,
                paused: false,
                bugs: self.bugs,
                found: None,
            };
            let settings = trust::Settings::default();
            let answer = trust::slice::<SequentialConsistency, _>(
                &mut machine,
                settings,
                (unit, Vec::new()),
                &mut listener,
            );
            let Listener {
                traces,
                found,
                exceeded,
                paused,
                ..
            } = listener;
            let ending = answer.report.ending;
            if let (Ending::FirstBug, Some(reason)) = (&ending, found) {
                return Step::Unsafe(reason);
            }
            attempt.log.merge(std::mem::take(&mut machine.log));
            attempt.log.add_histories(&machine.histories);
            let wrong = attempt.work.learn(&machine.relied_on(), &machine.learned());
            if wrong || answer.misjudged {
                attempt.work.start_over();
                attempt.traces = 0;
            } else {
                attempt.traces += traces;
                let found = Found {
                    counts: answer.report.counts,
                    unrolled: answer.report.unrolled,
                    ..Found::default()
                };
                let rest = answer.rest.map(|unit| (Some(unit.clone()), unit.share()));
                attempt.work.answer(id, found, rest.into_iter().collect());
            }
            match ending {
                Ending::Complete => {}
                Ending::Stopped if exceeded => return Step::TooMany,
                Ending::Stopped if paused => return Step::Paused,
                ending => return Step::Ended(ending),
            }
        }
        let log = std::mem::take(&mut attempt.log);
        if attempt.work.found().unrolled {
            Step::Ended(Ending::Refused("a loop was cut off by --unroll".to_owned()))
        } else if miscounts(&attempt.demands, &of.log, &log) {
            Step::Unsafe(Reason::Spins)
        } else {
            Step::Safe {
                traces: attempt.traces,
                log,
            }
        }
    }
}
