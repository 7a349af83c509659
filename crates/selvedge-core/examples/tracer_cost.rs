//! Measures the cost of the search up to reads-from beside the graph search, on a scripted machine
//! that does next to nothing.
//!
//! `cargo run --release -p selvedge-core --example tracer_cost`

use std::time::Duration;

use selvedge_core::model::{Model, ReleaseAcquire, SequentialConsistency};
use selvedge_core::report::{NoObserver, Report};
use selvedge_core::tracer::{self, Consistency, SaturatedRa, SaturatedSc};
use selvedge_core::trust::{self, Settings};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

const ALL_BUGS: Settings = Settings {
    keep_going: true,
    preemptions: None,
};

/// Two threads that add each other's variable to their own.
fn fibonacci(rounds: usize) -> Program {
    let worker = |own, other, value| {
        [I::Load(0, own), I::Load(1, other), I::Store(own, value)].repeat(rounds)
    };
    Program::of_workers(vec![worker(0, 1, 1), worker(1, 0, 2)])
}

fn fetch_adds(threads: usize, each: usize) -> Program {
    Program::of_workers(vec![vec![I::fetch_add(0, 0, 1); each]; threads])
}

fn critical_sections(threads: u32, each: usize) -> Program {
    let worker = |thread| {
        let section = [
            I::lock(9, thread),
            I::Load(0, 0),
            I::Store(0, thread.into()),
            I::unlock(9),
        ];
        section.repeat(each)
    };
    Program::of_workers((1..=threads).map(worker).collect())
}

/// A plain `x++`, twice, and a look at it.
fn micro() -> Program {
    let worker = |n: u128| {
        let increment = |value| [I::Load(0, 0), I::Store(0, value)];
        [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat()
    };
    Program::of_workers(vec![worker(1), worker(3), worker(5)])
}

fn redundant_coherence(n: usize) -> Program {
    let writer = |value| vec![I::Store(0, value); n];
    Program::of_workers(vec![
        writer(1),
        writer(2),
        vec![I::Load(0, 0), I::Load(1, 0)],
    ])
}

fn independent_reads() -> Program {
    let reader = |first, second| vec![I::Load(0, first), I::Load(1, second)];
    let writer = |variable| vec![I::Store(variable, 1)];
    Program::of_workers(vec![
        writer(0),
        writer(1),
        reader(0, 1),
        reader(1, 0),
        reader(0, 1),
        reader(1, 0),
    ])
}

/// How long this thread has run, whatever else the machine has to do.
fn processor_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat");
    let statistics = statistics.expect("Linux tells");
    let time = statistics
        .split(' ')
        .next()
        .and_then(|time| time.parse().ok());
    Duration::from_nanos(time.expect("the first field is a number of nanoseconds"))
}

/// The least time of five attempts. The clock is coarse, so an attempt is many runs.
fn measure(run: impl Fn() -> Report) -> (Report, Duration) {
    let attempt = |_| {
        let start = processor_time();
        let mut runs = 0;
        while processor_time() - start < Duration::from_millis(100) {
            run();
            runs += 1;
        }
        (processor_time() - start) / runs
    };
    let best = (0..5).map(attempt).min();
    (run(), best.expect("there are five"))
}

fn compare<C: Consistency, G: Model>(model: &str, name: &str, program: &Program) {
    let (tracer, tracer_time) = measure(|| {
        let mut machine = ScriptMachine::new(program.clone());
        tracer::search::<C, _>(&mut machine, true, &mut NoObserver)
    });
    let (graphs, graphs_time) = measure(|| {
        let mut machine = ScriptMachine::new(program.clone());
        trust::search::<G, _>(&mut machine, ALL_BUGS, &mut NoObserver)
    });
    let each = |report: &Report, time: Duration| {
        time.as_secs_f64() * 1e6 / report.counts.executions as f64
    };
    let (one, other) = (each(&tracer, tracer_time), each(&graphs, graphs_time));
    println!(
        "{model:3} {name:24} reads-from {:8} in {:8.2?} ({one:6.2} us each)   graphs {:8} in \
         {:8.2?} ({other:6.2} us each)   each {:.2}, in all {:.2}",
        tracer.counts.executions,
        tracer_time,
        graphs.counts.executions,
        graphs_time,
        one / other,
        tracer_time.as_secs_f64() / graphs_time.as_secs_f64(),
    );
}

fn main() {
    let programs = [
        ("fetch_add, 3 x 3", fetch_adds(3, 3)),
        ("fetch_add, 6 x 1", fetch_adds(6, 1)),
        ("critical sections, 2 x 7", critical_sections(2, 7)),
        ("critical sections, 3 x 3", critical_sections(3, 3)),
        ("fibonacci, 4 rounds", fibonacci(4)),
        ("IRIW, 4 readers", independent_reads()),
        ("micro", micro()),
        ("redundant coherence, 4", redundant_coherence(4)),
    ];
    for (name, program) in &programs {
        compare::<SaturatedRa, ReleaseAcquire>("ra", name, program);
        compare::<SaturatedSc, SequentialConsistency>("sc", name, program);
    }
}
