//! The result of a search, and its report.

use selvedge_core::report::{Ending, Sampled};
use selvedge_runtime::Extent;

use crate::args;
use crate::describe::title;
use crate::explorer::Explorer;
use crate::pool::estimate::Estimate;
use crate::report::html::Page;
use crate::report::request::Asked;
use crate::report::{Report, SCHEMA, Verdict};
use crate::worker::protocol::{FoundBug, HotLoop, Searched};
use crate::worker::supervise::{self, Watch};

/// The result of a search.
pub(crate) struct Found {
    pub(super) bugs: Vec<FoundBug>,
    pub(super) searched: Option<Searched>,
    pub(super) watch: Watch,
    /// Warnings that the user got during the search.
    pub(super) warned: Option<String>,
    /// The part of the search tree that is done, and how many executions there are, about.
    pub(super) progress: Option<(f64, Option<Estimate>)>,
}

impl Found {
    /// The first bug was found in the execution with this number, of all that ended in any way.
    pub(crate) fn first_bug(&self) -> Option<u64> {
        // A program that ends its own process does so in the last run.
        let dead = || (!self.bugs.is_empty()).then_some(self.watch.runs);
        let told = self.searched.as_ref().and_then(|end| end.first_bug);
        told.or_else(dead)
    }

    /// Bytes that the search refused because threads access them with different widths.
    pub(super) fn mixed(&self) -> Option<Extent> {
        let end = self.searched.as_ref()?;
        end.mixed
            .filter(|_| matches!(end.ending, Ending::Refused(_)))
    }

    /// The most memory that the search had, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let told = self.searched.as_ref().map_or(0, |end| end.memory);
        told.max(self.watch.memory)
    }

    /// The report about it.
    pub(crate) fn report(
        &self,
        explorer: &Explorer,
        search: &args::SearchOptions,
        machine: &args::ProgramOptions,
    ) -> Report {
        let described = || self.bugs.iter().map(|bug| bug.described.clone());
        let counts = self
            .searched
            .as_ref()
            .map_or(self.watch.counts, |end| end.counts);
        let unrolled = self.searched.as_ref().is_some_and(|end| end.unrolled);
        let beyond = self.searched.as_ref().and_then(|end| end.bound);
        let reason = self.reason(explorer, search);
        let verdict = match (&self.bugs[..], &reason) {
            ([_, ..], _) => Verdict::Bug,
            ([], None) => Verdict::Verified,
            ([], Some(_)) => Verdict::Incomplete,
        };
        let progress = self
            .progress
            .filter(|_| verdict == Verdict::Incomplete && self.searched.is_some());
        Report {
            schema: SCHEMA,
            verdict,
            model: explorer.model(),
            algorithm: explorer.name().to_owned(),
            executions: counts.executions,
            over_bound: counts.over_bound,
            blocked: counts.blocked,
            bound_blocked: counts.bound_blocked,
            states: match &self.searched {
                Some(end) => end.states,
                None => self.watch.states,
            },
            holds: explorer.property(),
            question: explorer.question(),
            bound: match explorer {
                Explorer::Temporal(_) => None,
                _ => search.bound().or(beyond),
            },
            bounds: explorer.descriptor().bounds,
            complete: beyond.is_none(),
            seconds: self.watch.elapsed.as_secs_f64(),
            processor_seconds: match &self.searched {
                Some(end) => end.processor_seconds.clone(),
                None => Vec::new(),
            },
            bug: described().next(),
            bugs: search.keep_going.then(|| described().collect()),
            unroll: machine.rounds().filter(|_| unrolled),
            unroll_functions: match unrolled {
                true => machine.rounds_of_functions(),
                false => Vec::new(),
            }
            .into_iter()
            .collect(),
            reason,
            progress: progress.map(|(done, _)| done),
            estimate: progress.and_then(|(_, estimate)| estimate),
            resume: None,
            notes: self.notes(machine),
            warnings: self.warnings(machine),
        }
    }

    /// The same as a page to look at.
    pub(super) fn page<'a>(&'a self, report: &'a Report, asked: &Asked<'_>) -> Page<'a> {
        let origins = self.searched.as_ref().map(|end| &end.origins[..]);
        let bugs = match report.verdict {
            Verdict::Bug => &self.bugs[..report.all_bugs().len()],
            _ => &[],
        };
        let unreached = self.searched.as_ref();
        let unreached = unreached.and_then(|end| end.unreached.as_deref());
        Page::of_check(report, asked, bugs)
            .searched(&self.watch.history, origins.unwrap_or_default())
            // A search that ends with its first bug has not been everywhere.
            .unreached(unreached.filter(|_| report.verdict != Verdict::Bug))
    }

    /// Why not every execution was explored. A first bug is reason enough to stop.
    fn reason(&self, explorer: &Explorer, search: &args::SearchOptions) -> Option<String> {
        match (&self.searched, &self.watch.cause) {
            (
                Some(Searched {
                    ending,
                    limited,
                    counts,
                    bound,
                    ..
                }),
                cause,
            ) => match ending {
                Ending::Complete
                    if counts.executions == 0
                        && self.bugs.is_empty()
                        && !explorer.keeps_states() =>
                {
                    let what = match bound {
                        Some(_) => "no execution within the bound completed; raise the bound",
                        None => "no execution completed",
                    };
                    Some(what.to_owned())
                }
                Ending::Complete | Ending::FirstBug => None,
                Ending::Stopped if *limited && cause.is_none() => Some(format!(
                    "stopped after {} executions (--max-executions)",
                    search.max_executions.unwrap_or_default()
                )),
                Ending::Lossy if explorer.keeps_states() => Some(
                    "with a bound, csdr may leave out states that csdr-exact does not".to_owned(),
                ),
                Ending::Lossy => Some(
                    "this algorithm may leave executions out, so that finding no bug proves \
                     nothing"
                        .to_owned(),
                ),
                Ending::Sampled(sampled) => Some(tried(sampled, counts.blocked)),
                Ending::Stopped => Some(supervise::reason(cause.as_ref(), search.timeout)),
                Ending::Refused(what) | Ending::Internal(what) => Some(what.clone()),
                Ending::Nondeterministic(what) => Some(format!(
                    "the program did not behave the same under the same schedule: {what}"
                )),
            },
            (None, Some(cause)) => Some(supervise::reason(Some(cause), search.timeout)),
            (None, None) => None,
        }
    }

    /// Notes about behaviour of the program that this search did not explore in full.
    fn notes(&self, machine: &args::ProgramOptions) -> Vec<String> {
        let Some(end) = &self.searched else {
            return Vec::new();
        };
        let weak = end.weak_exchanges && !machine.spurious_failures;
        let freed = end.freed_pointers && !machine.reuse_memory;
        let weak = weak.then_some(
            "weak compare-exchanges were taken to fail only where strong ones do; \
             --spurious-failures lets them fail for no reason",
        );
        let freed = freed.then_some(
            "the program compares pointers to memory that another thread frees; --reuse-memory \
             lets allocations return freed memory again",
        );
        let status = (end.status != 0).then(|| {
            format!(
                "the program ends with status {} in at least one execution, which is no bug by itself",
                end.status
            )
        });
        let alone = self.starts_no_thread().then_some(
            "no execution started a thread; --args gives the program the arguments that it needs, as words after -- \
             do for an executable",
        );
        let told = alone
            .into_iter()
            .chain(weak)
            .chain(freed)
            .map(str::to_owned);
        status.into_iter().chain(told).collect()
    }

    /// Whether the program has one thread only. Where several processes share the states, each knows its own part.
    pub(super) fn starts_no_thread(&self) -> bool {
        let ended = self.searched.as_ref();
        ended.is_some_and(|end| {
            !end.threads && end.states.is_none() && matches!(end.ending, Ending::Complete)
        })
    }

    fn warnings(&self, machine: &args::ProgramOptions) -> Vec<String> {
        let hot = || self.searched.as_ref()?.hot_loop.as_ref();
        let late = || hot().and_then(|hot| about_loop(hot, machine));
        let mut warnings: Vec<String> = self.warned.clone().or_else(late).into_iter().collect();
        warnings.extend(self.about_bug_beyond());
        warnings
    }

    /// The message about a bug that lies beyond the bound.
    fn about_bug_beyond(&self) -> Option<String> {
        let bug = self.searched.as_ref()?.beyond.as_ref()?;
        self.bugs.is_empty().then(|| {
            let number = bug.preemptions;
            let plural = if number == 1 { "" } else { "s" };
            format!(
                "a bug lies beyond the bound: {} at {}, with {number} preemption{plural}; \
                 --preemptions {number} reports it",
                title(bug.kind),
                bug.place,
            )
        })
    }
}

/// The message about a loop with this many rounds, unless the user has bounded it.
pub(super) fn about_loop(
    (place, rounds): &HotLoop,
    machine: &args::ProgramOptions,
) -> Option<String> {
    let library = place.library.as_deref();
    let inside = library.map_or(String::new(), |library| {
        format!(", in {},", library.in_full())
    });
    machine.unroll.is_empty().then(|| {
        format!(
            "the loop at {place}{inside} went round {rounds} times in one execution; --unroll N cuts loops \
             that have no bound of their own, and --algorithm csdr checks programs that never end"
        )
    })
}

/// The description of a random search. A run that ends with a thread spinning is lost, and PCT
/// promises nothing then.
fn tried(sampled: &Sampled, blocked: u64) -> String {
    let mut text = format!(
        "tried {} runs at random, {} different executions, so that finding no bug proves nothing",
        sampled.runs, sampled.distinct
    );
    if let (Some(depth), Some(guarantee), 0) = (sampled.depth, sampled.guarantee(), blocked) {
        let all = 1.0 - (1.0 - guarantee).powf(sampled.runs as f64);
        text += &format!(
            "; a bug of depth {depth} is met in each run with a probability of at least \
             1/({}·{}^{}) = {guarantee:.2e}, in all runs of {all:.2e}",
            sampled.threads,
            sampled.steps,
            depth - 1
        );
    }
    text
}
