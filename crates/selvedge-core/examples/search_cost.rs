//! Measures the cost of the search itself, on a scripted machine that does next to nothing.
//!
//! `cargo run --release -p selvedge-core --example search_cost`

use std::time::Instant;

use selvedge_core::interleave::Run;
use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, NoObserver, Settings};
use selvedge_core::{Machine, ThreadId};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

const ALL_BUGS: Settings = Settings {
    keep_going: true,
    preemptions: None,
};

fn micro() -> Program {
    let worker = |n: u128| {
        let increment = |value| [I::Load(0, 0), I::Store(0, value)];
        [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat()
    };
    Program::of_workers(vec![worker(1), worker(3), worker(5)])
}

fn main() {
    let mut machine = ScriptMachine::new(micro());
    let start = Instant::now();
    let report = trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut NoObserver);
    let search = start.elapsed();
    let start = Instant::now();
    let mut run = Run::new(&mut machine);
    for _ in 0..report.counts.executions {
        run.restart();
        while let Some(thread) = run.next_from(ThreadId::MAIN) {
            run.step(thread, 0);
        }
        assert!(run.machine().threads() > 0);
    }
    let bare = start.elapsed();
    let executions = report.counts.executions as f64;
    println!(
        "{} executions, {} blocked: {:.0} per second, {:.2} us each; without search {:.2} us each",
        report.counts.executions,
        report.counts.blocked,
        executions / search.as_secs_f64(),
        search.as_secs_f64() * 1e6 / executions,
        bare.as_secs_f64() * 1e6 / executions,
    );
}
