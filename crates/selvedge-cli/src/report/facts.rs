//! The explored executions and the assumptions: for the HTML report and for `--explain`.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration};

use super::{Report, human};
use crate::args;
use crate::args::{Equivalence, Model, Plain};
use crate::pool::estimate::Estimate;

/// A name and what is to be said about it.
type Fact = (&'static str, String);

/// The explored executions, how far the search came, and its assumptions.
pub(super) fn all(report: &Report, verify: &args::Verify) -> Vec<(String, String)> {
    let mut facts: Vec<Fact> = vec![("algorithm", report.algorithm.clone())];
    match &report.states {
        Some(states) => facts.extend([
            ("states", states.states.to_string()),
            ("transitions", states.transitions.to_string()),
        ]),
        None => facts.extend([
            ("complete executions", report.executions.to_string()),
            ("blocked executions", report.blocked.to_string()),
        ]),
    }
    facts.push(("time", format!("{:.2} s", report.seconds)));
    let beyond = (report.over_bound + report.bound_blocked).to_string();
    facts.extend(given([
        (
            "executions beyond the bound",
            Some(beyond).filter(|_| report.bound.is_some()),
        ),
        ("property", report.holds.clone()),
        ("not explored", report.reason.clone()),
        ("search tree", report.progress.map(selvedge_page::done)),
        ("estimated executions", report.estimate.map(estimated)),
    ]));
    facts.extend(assumptions(report, verify));
    let owned = |(name, value): Fact| (name.to_owned(), value);
    facts.into_iter().map(owned).collect()
}

/// The scope of the verdict: the model, the bounds, the limits, and the omissions.
pub(crate) fn assumptions(report: &Report, verify: &args::Verify) -> Vec<Fact> {
    let (search, machine) = (&verify.search, &verify.machine);
    let model = match report.model {
        Model::Sc => "memory is sequentially consistent: no thread reads old values",
        Model::Tso => "memory behaves as on x86: writes may be delayed",
        Model::Ra => "every atomic access is release or acquire",
        Model::Rc11 => "memory behaves as C11 allows, with the orders in the source",
    };
    let mut facts = vec![("memory model", format!("{}: {model}", report.model))];
    let same = match search.equivalence {
        Equivalence::Mazurkiewicz => {
            "mazurkiewicz: the same reads-from and the same order of writes to each location"
        }
        Equivalence::ReadsFrom => "reads-from: each read gets its value from the same write",
    };
    let same = report.states.is_none().then(|| same.to_owned());
    let bound = report.bound.map(|bound| match report.complete {
        true => format!("at most {bound} {}s; nothing lies beyond", report.bounds),
        false => format!("at most {bound} {}s; more is not explored", report.bounds),
    });
    let time = search.timeout;
    facts.extend(given([
        ("executions that count as the same", same),
        ("bound", bound),
        ("loops cut", human::cut_loops(report)),
        ("time limit", time.map(seconds)),
        (
            "execution limit",
            search.max_executions.map(|limit| limit.to_string()),
        ),
    ]));
    let either = |on: bool, yes: &str, no: &str| if on { yes } else { no }.to_owned();
    let memory = match machine.memory_limit {
        Some(bytes) => HumanBytes(bytes as u64).to_string(),
        None => "half of the machine's".to_owned(),
    };
    facts.extend([
        (
            "plain accesses",
            either(
                machine.plain == Plain::Race,
                "checked for data races, not scheduling points",
                "each one is a step; no data races",
            ),
        ),
        (
            "condition variables",
            either(
                machine.spurious_wakeups,
                "may wake up for no reason",
                "wake up when signalled (--spurious-wakeups explores more)",
            ),
        ),
        (
            "weak compare-exchanges",
            either(
                machine.spurious_failures,
                "may fail for no reason",
                "fail where strong ones do (--spurious-failures explores more)",
            ),
        ),
        (
            "freed memory",
            either(
                machine.reuse_memory,
                "may be allocated again",
                "is not allocated again (--reuse-memory explores more)",
            ),
        ),
        (
            "memory leaks",
            either(
                machine.leaks,
                "are bugs",
                "are not looked for (--leaks does)",
            ),
        ),
        (
            "threads",
            format!(
                "at most {} (--max-threads)",
                HumanCount(machine.max_threads.into())
            ),
        ),
        (
            "stack of a thread",
            format!(
                "at most {} (--stack-size)",
                HumanBytes(machine.stack_size as u64)
            ),
        ),
        (
            "heap of an execution",
            format!(
                "at most {} (--heap-limit)",
                HumanBytes(machine.heap_limit as u64)
            ),
        ),
        (
            "memory of the search",
            format!("at most {memory} (--memory-limit)"),
        ),
        (
            "endless loops",
            format!(
                "a thread that runs for {} without a visible operation (--watchdog)",
                seconds(machine.watchdog)
            ),
        ),
    ]);
    facts
}

fn given(facts: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Vec<Fact> {
    let given = |(name, value)| Some((name, value?));
    facts.into_iter().filter_map(given).collect()
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn estimated(estimate: Estimate) -> String {
    let left = HumanDuration(Duration::from_secs_f64(estimate.seconds_left.min(1e15)));
    selvedge_page::estimated(&estimate, &left.to_string())
}
