//! The classic litmus tests with each meaningful order and fence: under each model the outcomes are
//! those of sequential consistency and the listed weak ones, no more and no fewer.
//!
//! An outcome is what each thread reads, in program order, threads set apart by `|`, then the final
//! values of the variables that are written more than once.

mod buffering;
mod passing;
mod readers;
mod synchronisation;
mod z6;

use std::collections::BTreeSet;

use selvedge_core::MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use selvedge_core::op::Rmw;
use selvedge_core::{EventId, MemoryOrder};
use selvedge_testkit::Axioms::{self, Ra, Rc11, Sc, Tso};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Execution, Program};

use crate::common::explore;

const X: u32 = 0;
const Y: u32 = 1;
const Z: u32 = 2;

fn r(variable: u32, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::Load(0, variable)]
}

fn w(variable: u32, value: u128, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::Store(variable, value)]
}

/// fetch_add(variable, 1)
fn u(variable: u32, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::memory(0, variable, Rmw::Add(1))]
}

fn f(order: MemoryOrder) -> Vec<I> {
    vec![I::Fence(order)]
}

/// Two accesses with fences of `order` between them, if any.
fn two(first: Vec<I>, fence: Option<MemoryOrder>, second: Vec<I>) -> Vec<I> {
    let fence = fence.map(f).unwrap_or_default();
    [first, fence, second].concat()
}

fn outcome(execution: &Execution) -> String {
    let reads = execution.threads[1..].iter().map(|thread| {
        let values = thread.iter().filter(|record| record.source.is_some());
        let values = values.filter_map(|record| record.read);
        values.map(|value| value.to_string()).collect::<String>()
    });
    let finals = execution
        .coherence
        .iter()
        .filter(|(_, writes)| writes.len() > 1);
    let finals = finals.map(|(location, writes)| {
        let EventId { thread, index } = *writes.last().expect("written more than once");
        let record = &execution.threads[thread.index()][index as usize];
        let name = ["x", "y", "z"][location.index()];
        format!(" {name}={}", record.wrote.expect("a write"))
    });
    reads.collect::<Vec<_>>().join("|") + &finals.collect::<String>()
}

fn outcomes(threads: &[Vec<I>], model: Axioms) -> BTreeSet<String> {
    let program = Program::of_workers(threads.to_vec());
    let (seen, _) = explore(&program, model);
    assert!(seen.stuck.is_empty() && !seen.twice);
    seen.complete.iter().map(outcome).collect()
}

fn executions(threads: &[Vec<I>], model: Axioms) -> u64 {
    let program = Program::of_workers(threads.to_vec());
    explore(&program, model).1.counts.executions
}

/// Checks that there are `sc` outcomes under SC, and which models allow `weak` besides.
fn check(threads: &[Vec<I>], sc: usize, weak: &str, allowed_by: &[Axioms]) {
    check_all(threads, sc, &[(weak, allowed_by)]);
}

fn check_all(threads: &[Vec<I>], sc: usize, weak: &[(&str, &[Axioms])]) {
    let strong = outcomes(threads, Sc);
    assert_eq!(strong.len(), sc, "{strong:?}");
    for model in [Tso, Ra, Rc11] {
        let mut expected = strong.clone();
        for (outcome, allowed_by) in weak {
            assert!(!strong.contains(*outcome), "{outcome} is not weak");
            if allowed_by.contains(&model) {
                expected.insert((*outcome).to_owned());
            }
        }
        assert_eq!(outcomes(threads, model), expected, "{model:?}");
    }
}
