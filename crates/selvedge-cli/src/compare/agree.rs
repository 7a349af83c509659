//! Whether the algorithms agree. They are independent implementations, so a contradiction shows that one
//! of them is wrong.

use selvedge_core::FailureKind;

use super::Run;
use crate::args::{Equivalence, Model};
use crate::report::{Bug, Verdict};

/// The contradictions in `runs`.
pub(super) fn contradictions(runs: &[Run]) -> Vec<String> {
    let mut found = Vec::new();
    for one in runs {
        for other in runs {
            found.extend(verdicts(one, other));
            found.extend(counts(one, other));
        }
    }
    found
}

/// A bug that `other`, which leaves nothing out, says is not there.
fn verdicts(one: &Run, other: &Run) -> Option<String> {
    let bug = one.report.bug.as_ref()?;
    let denied = other.report.verdict == Verdict::Verified && covers(other, bug);
    denied.then(|| {
        format!(
            "{} finds a bug ({}), and {} says that there is none",
            name(one),
            bug.message,
            name(other)
        )
    })
}

/// Whether `run` would have had to find `bug`.
fn covers(run: &Run, bug: &Bug) -> bool {
    // Of a process that died it is not known how few preemptions would have been enough.
    // Under a weak model those of the schedule that is shown are not those of the execution.
    let least = bug.kind != FailureKind::Signal && run.explorer.model() == Model::Sc;
    let preemptions = least.then_some(bug.preemptions);
    let within = run.report.bound.zip(preemptions);
    run.report.complete || within.is_some_and(|(bound, least)| least <= bound)
}

/// Numbers of executions that do not fit together. What follows a bug is not explored by all alike, so
/// only those are compared that found none.
fn counts(one: &Run, other: &Run) -> Option<String> {
    let verified = |run: &Run| run.report.verdict == Verdict::Verified;
    let exact = |run: &Run| {
        let explorer = run.explorer.descriptor();
        explorer.visits_once && explorer.equivalence == Equivalence::Mazurkiewicz
    };
    let over_states = one.explorer.keeps_states() || other.explorer.keeps_states();
    if over_states || !verified(one) || !verified(other) {
        return None;
    }
    if !exact(one) || !same_scope(one, other) {
        return None;
    }
    let (here, there) = (one.report.executions, other.report.executions);
    let (wrong, should) = if exact(other) {
        // Of two that are equal in rank, the pair is looked at once.
        (here > there, "as many")
    } else if other.explorer.descriptor().equivalence == Equivalence::ReadsFrom {
        (there > here, "no more")
    } else {
        (there < here, "no fewer")
    };
    wrong.then(|| {
        format!(
            "{} visits {here} executions and {} {there}, where there should be {should}",
            name(one),
            name(other),
        )
    })
}

/// Whether both explored the same executions.
fn same_scope(one: &Run, other: &Run) -> bool {
    let (one, other) = (&one.report, &other.report);
    (one.complete && other.complete) || (one.bound.is_some() && one.bound == other.bound)
}

fn name(run: &Run) -> String {
    match run.report.bound {
        Some(bound) => format!("{} (bound {bound})", run.explorer.name()),
        None => run.explorer.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::dpor::Engine;

    use super::*;
    use crate::args::Model;
    use crate::explorer::Explorer;
    use crate::report::{Place, Report, SCHEMA};

    fn run(explorer: Explorer, executions: u64) -> Run {
        let report = Report {
            schema: SCHEMA,
            verdict: Verdict::Verified,
            model: Model::Sc,
            algorithm: explorer.name().to_owned(),
            executions,
            over_bound: 0,
            blocked: 0,
            bound_blocked: 0,
            states: None,
            holds: None,
            question: None,
            processor_seconds: Vec::new(),
            bound: None,
            bounds: "preemption",
            complete: true,
            seconds: 0.0,
            bug: None,
            bugs: None,
            unroll: None,
            unroll_functions: Default::default(),
            progress: None,
            estimate: None,
            resume: None,
            reason: None,
            notes: Vec::new(),
            warnings: Vec::new(),
        };
        Run {
            explorer,
            report,
            memory: 0,
            first_bug_after: None,
        }
    }

    fn bounded(engine: Engine, executions: u64) -> Run {
        let mut run = run(Explorer::Interleaving(engine), executions);
        run.report.bound = Some(1);
        run.report.complete = false;
        run
    }

    fn failing(explorer: Explorer, preemptions: u32) -> Run {
        let mut run = run(explorer, 1);
        run.report.verdict = Verdict::Bug;
        run.report.bug = Some(Bug {
            kind: FailureKind::Assertion,
            message: "x == 1".to_owned(),
            preemptions,
            context_switches: preemptions,
            thread: 0,
            place: Place::default(),
            other: None,
            waiting: Vec::new(),
            blocks: Vec::new(),
            stacks: Vec::new(),
            advice: None,
            cycle: None,
            schedule: String::new(),
            trace: Vec::new(),
            plain: Vec::new(),
            call_stacks: Vec::new(),
        });
        run
    }

    const TRUST: Explorer = Explorer::Trust(Model::Sc);
    const OPTIMAL: Explorer = Explorer::Interleaving(Engine::OptimalDpor);
    const CLASSIC: Explorer = Explorer::Interleaving(Engine::ClassicDpor);
    const TRACER: Explorer = Explorer::Tracer(Model::Sc);

    #[test]
    fn those_that_visit_each_execution_once_visit_as_many() {
        assert!(contradictions(&[run(TRUST, 6), run(OPTIMAL, 6)]).is_empty());
        let found = contradictions(&[run(TRUST, 6), run(OPTIMAL, 5)]);
        assert_eq!(
            found,
            ["trust visits 6 executions and optimal-dpor 5, where there should be as many"]
        );
        assert_eq!(contradictions(&[run(TRUST, 5), run(OPTIMAL, 6)]).len(), 1);
    }

    #[test]
    fn repetitions_and_coarser_classes_are_no_contradiction() {
        assert!(contradictions(&[run(TRUST, 6), run(CLASSIC, 9), run(TRACER, 4)]).is_empty());
        assert_eq!(contradictions(&[run(TRUST, 6), run(CLASSIC, 5)]).len(), 1);
        assert_eq!(contradictions(&[run(TRUST, 6), run(TRACER, 7)]).len(), 1);
    }

    #[test]
    fn a_bound_is_compared_with_the_same_bound() {
        let lazy = |executions| bounded(Engine::LazyBpor, executions);
        assert!(contradictions(&[run(TRUST, 6), lazy(4)]).is_empty());
        let second = bounded(Engine::LazyBpor2, 3);
        assert_eq!(contradictions(&[lazy(4), second]).len(), 1);
    }

    #[test]
    fn a_bug_within_the_bound_must_be_found() {
        assert_eq!(
            contradictions(&[failing(TRUST, 5), run(OPTIMAL, 6)]).len(),
            1
        );
        let bpor = || bounded(Engine::Bpor, 6);
        assert!(contradictions(&[failing(TRUST, 2), bpor()]).is_empty());
        assert_eq!(contradictions(&[failing(TRUST, 1), bpor()]).len(), 1);
    }
}
