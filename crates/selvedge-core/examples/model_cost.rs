//! Measures the cost of each memory model per execution, on scripted machines that do next to
//! nothing.
//!
//! `cargo run --release -p selvedge-core --example model_cost`

use std::time::Duration;

use selvedge_core::MemoryOrder;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::trust::{self, NoObserver, Settings};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

/// Three threads that increment a plain counter twice and look at it.
fn micro() -> Program {
    let worker = |n: u128| {
        let increment = |value| [I::Load(0, 0), I::Store(0, value)];
        [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat()
    };
    Program::of_workers(vec![worker(1), worker(3), worker(5)])
}

/// Four threads that write one variable and read the next, three times.
fn ring() -> Program {
    let worker = |n: u32| {
        let next = (n + 1) % 4;
        let round = |value| vec![I::Store(n, value), I::Load(0, next)];
        [round(1), round(2), round(3)].concat()
    };
    Program::of_workers((0..4).map(worker).collect())
}

/// Three threads that pass through a ticket lock made of updates, twice.
fn updates() -> Program {
    let worker = |n: u32| {
        let round = [
            I::fetch_add(0, 0, 1),
            I::Store(1 + n, 1),
            I::Load(1, 1 + (n + 1) % 3),
        ];
        [&round[..], &round].concat()
    };
    Program::of_workers((0..3).map(worker).collect())
}

fn with_order(mut program: Program, order: MemoryOrder) -> Program {
    for code in &mut program.threads {
        let accesses = |i: &I| matches!(i, I::Load(..) | I::Store(..) | I::Update(..));
        let old = std::mem::take(code);
        for instruction in old {
            if accesses(&instruction) {
                code.push(I::with(order));
            }
            code.push(instruction);
        }
    }
    program
}

fn fenced(mut program: Program) -> Program {
    program = with_order(program, MemoryOrder::Relaxed);
    for code in &mut program.threads[1..] {
        code.insert(2, I::Fence(MemoryOrder::SeqCst));
    }
    program
}

/// Time this thread has run, which other programs on the machine do not disturb as much.
fn cpu_time() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = times.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(running.unwrap_or_default())
}

fn measure<C: Model>(name: &str, program: &Program) {
    let mut best = Duration::MAX;
    let mut executions = 0;
    for _ in 0..5 {
        let mut machine = ScriptMachine::new(program.clone());
        let start = cpu_time();
        let report = trust::search::<C, _>(&mut machine, Settings::default(), &mut NoObserver);
        best = best.min(cpu_time() - start);
        executions = report.counts.executions;
    }
    let each = best.as_secs_f64() * 1e6 / executions as f64;
    println!("  {name:<18} {executions:>8} executions, {each:.2} us each");
}

fn main() {
    for (name, program) in [("micro", micro()), ("ring", ring()), ("updates", updates())] {
        println!("{name}");
        measure::<SequentialConsistency>("sc", &program);
        measure::<TotalStoreOrder>("tso", &program);
        measure::<ReleaseAcquire>("ra", &program);
        measure::<Rc11>("rc11, seq_cst", &program);
        let order = MemoryOrder::AcqRel;
        measure::<Rc11>("rc11, acq_rel", &with_order(program.clone(), order));
        let order = MemoryOrder::Relaxed;
        measure::<Rc11>("rc11, relaxed", &with_order(program.clone(), order));
        measure::<Rc11>("rc11, fences", &fenced(program.clone()));
    }
}
