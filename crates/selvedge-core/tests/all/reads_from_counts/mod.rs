//! Numbers of reads-from classes that are known from the literature or by hand.
//!
//! The tables are those of Abdulla et al., "Optimal Stateless Model Checking under the
//! Release-Acquire Semantics", §6; programs are written from their descriptions.

mod loops;
mod objects;
mod tables;
mod what_the_printed_algorithm_loses;

use selvedge_core::report::{Counts, Ending, NoObserver};
use selvedge_core::tracer::{self, Consistency, SaturatedRa, SaturatedSc};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Execution, Program, ScriptMachine};

fn counts<C: Consistency>(program: Program) -> Counts {
    let mut machine = ScriptMachine::new(program);
    let report = tracer::search::<C, _>(&mut machine, true, &mut NoObserver);
    assert_eq!(report.ending, Ending::Complete);
    report.counts
}

fn ra(workers: Vec<Vec<I>>) -> u64 {
    counts::<SaturatedRa>(Program::of_workers(workers)).executions
}

fn sc(workers: Vec<Vec<I>>) -> u64 {
    counts::<SaturatedSc>(Program::of_workers(workers)).executions
}

/// Under both models, where they must agree.
fn both(workers: Vec<Vec<I>>) -> u64 {
    let under_ra = ra(workers.clone());
    assert_eq!(under_ra, sc(workers));
    under_ra
}

/// Program order and reads-from alone.
fn class(mut execution: Execution) -> Execution {
    execution.coherence.clear();
    execution
}

const X: u32 = 0;
const Y: u32 = 1;
const Z: u32 = 2;
