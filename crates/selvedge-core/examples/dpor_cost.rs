//! Measures the cost of a step in the interleaving engines, beside the graph engine, on a scripted
//! machine that does next to nothing.
//!
//! `cargo run --release -p selvedge-core --example dpor_cost`

use std::time::Duration;

use selvedge_core::dpor::{self, Engine};
use selvedge_core::model::SequentialConsistency;
use selvedge_core::report::{Counts, NoObserver};
use selvedge_core::trust::{self, Settings};
use selvedge_core::{Machine, Outcome, SpinLoops, ThreadId};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

/// A machine that counts the steps it takes, repeated ones too.
struct Counted {
    machine: ScriptMachine,
    steps: u64,
}

impl Machine for Counted {
    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        self.steps += 1;
        self.machine.resume(thread, outcome, clock);
    }

    selvedge_core::forward_machine!(machine: reset, around, pending, initial);
}

impl SpinLoops for Counted {
    selvedge_core::forward_machine!(machine: quiet, misjudged);
}

/// Three threads, each with two increments of one variable and a look at it.
fn micro() -> Program {
    let worker = |n: u128| {
        let increment = |value| [I::Load(0, 0), I::Store(0, value)];
        [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat()
    };
    Program::of_workers(vec![worker(1), worker(3), worker(5)])
}

/// Seven critical sections in each of two threads.
fn locks() -> Program {
    let worker = |t| [I::lock(9, t), I::unlock(9)].repeat(7);
    Program::of_workers(vec![worker(1), worker(2)])
}

/// A writer and readers that have something of their own to do first.
fn readers() -> Program {
    let reader = |own| vec![I::Load(1, own), I::Load(0, 0)];
    let mut workers: Vec<Vec<I>> = (0..11).map(|n| reader(100 + n)).collect();
    workers.insert(0, vec![I::Store(0, 1)]);
    Program::of_workers(workers)
}

/// Processor time of this process so far: others may keep the machine busy.
fn now() -> Duration {
    let times = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn print(name: &str, counts: &Counts, steps: u64, time: Duration, unit: f64) -> f64 {
    let nanoseconds = time.as_secs_f64() * 1e9 / steps as f64;
    let times = if unit > 0.0 { nanoseconds / unit } else { 1.0 };
    let executions = counts.executions + counts.blocked;
    println!(
        "  {name:13} {:8} + {:6} executions  {:6.1} steps each  {:6.2} us each  {nanoseconds:6.1} ns a step  {times:4.2}x",
        counts.executions,
        counts.blocked,
        steps as f64 / executions as f64,
        time.as_secs_f64() * 1e6 / executions as f64,
    );
    nanoseconds
}

fn main() {
    for (name, program) in [
        ("micro", micro()),
        ("locks", locks()),
        ("readers", readers()),
    ] {
        println!("{name}");
        let mut machine = Counted {
            machine: ScriptMachine::new(program),
            steps: 0,
        };
        let settings = Settings {
            keep_going: true,
            preemptions: None,
        };
        let start = now();
        let report =
            trust::search::<SequentialConsistency, _>(&mut machine, settings, &mut NoObserver);
        let unit = print("graph", &report.counts, machine.steps, now() - start, 0.0);
        for engine in Engine::ALL.into_iter().filter(|engine| !engine.bounded()) {
            if engine == Engine::ClassicDpor && name == "readers" {
                continue;
            }
            machine.steps = 0;
            let start = now();
            let (report, _) = dpor::search(&mut machine, engine, settings, &mut NoObserver);
            let time = now() - start;
            print(engine.name(), &report.counts, machine.steps, time, unit);
        }
    }
}
