//! Experiment.
use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, NoObserver, Settings};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};
use std::time::Instant;

fn fib(n: u128, joins: bool) -> Program {
    let worker = |a: u32, b: u32, base: u128| -> Vec<I> {
        (0..n)
            .flat_map(|i| [I::Load(0, a), I::Load(1, b), I::Store(a, base + i)])
            .collect()
    };
    let mut main = vec![I::Create(1), I::Create(2)];
    if joins {
        main.extend([I::Join(1), I::Join(2)]);
    }
    main.extend([I::Load(0, 0), I::Load(1, 1)]);
    Program {
        threads: vec![main, worker(0, 1, 100), worker(1, 0, 200)],
        initial: Vec::new(),
    }
}
fn micro() -> Program {
    let worker = |n: u128| {
        let increment = |value| [I::Load(0, 0), I::Store(0, value)];
        [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat()
    };
    Program::of_workers(vec![worker(1), worker(3), worker(5)])
}
fn lastzero(n: u32) -> Program {
    // T0: reads all; writers: read x[i-1], write x[i].
    let mut workers: Vec<Vec<I>> = vec![(0..=n).map(|i| I::Load(0, i)).collect()];
    for i in 1..=n {
        workers.push(vec![I::Load(0, i - 1), I::Store(i, 7)]);
    }
    Program::of_workers(workers)
}
fn lastzero_reader_last(n: u32) -> Program {
    let mut workers: Vec<Vec<I>> = vec![];
    for i in 1..=n {
        workers.push(vec![I::Load(0, i - 1), I::Store(i, 7)]);
    }
    workers.push((0..=n).map(|i| I::Load(0, i)).collect());
    Program::of_workers(workers)
}
fn casw(n: u32) -> Program {
    Program::of_workers(
        (1..=n)
            .map(|i| {
                vec![
                    I::compare_exchange(0, 0, 0, i.into()),
                    I::Store(0, u128::from(i) + 10),
                ]
            })
            .collect(),
    )
}
fn ainc(n: u32) -> Program {
    Program::of_workers((0..n).map(|_| vec![I::fetch_add(0, 0, 1)]).collect())
}
fn coa(n: u128) -> Program {
    Program::of_workers(
        (0..n)
            .map(|i| vec![I::Store(0, 2 * i + 1), I::Store(0, 2 * i + 2)])
            .collect(),
    )
}
fn readers(n: u32) -> Program {
    let mut w = vec![vec![I::Store(0, 1)]];
    for _ in 0..n {
        w.push(vec![I::Load(0, 0)]);
    }
    Program::of_workers(w)
}
fn four() -> Program {
    Program::of_workers(vec![
        vec![
            I::Store(0, 1),
            I::Load(0, 1),
            I::Store(2, 1),
            I::Load(0, 0),
            I::Load(1, 2),
        ],
        vec![
            I::Store(1, 2),
            I::Load(0, 0),
            I::Store(2, 2),
            I::Load(0, 1),
            I::Load(1, 2),
        ],
        vec![I::Store(0, 3), I::Load(0, 2), I::Store(1, 3), I::Load(0, 1)],
        vec![I::Load(0, 0), I::Store(1, 4), I::Load(0, 2)],
    ])
}
fn main() {
    for (name, program) in [
        ("fib5", fib(5, false)),
        ("fib5 joined", fib(5, true)),
        ("micro", micro()),
        ("lastzero9", lastzero(9)),
        ("lastzero9r", lastzero_reader_last(9)),
        ("four", four()),
        ("casw4", casw(4)),
        ("ainc6", ainc(6)),
        ("coa4", coa(4)),
        ("readers9", readers(9)),
    ] {
        let mut machine = ScriptMachine::with_undo(program, 0);
        let start = Instant::now();
        let report = trust::search::<SequentialConsistency, _>(
            &mut machine,
            Settings {
                keep_going: true,
                preemptions: None,
            },
            &mut NoObserver,
        );
        let t = start.elapsed().as_secs_f64();
        let n = report.counts.executions as f64;
        println!(
            "{name} {} executions {} blocked {:.2} us {:.2} steps",
            report.counts.executions,
            report.counts.blocked,
            t * 1e6 / n,
            selvedge_core::STEPS.load(std::sync::atomic::Ordering::Relaxed) as f64 / n
        );
        selvedge_core::STEPS.store(0, std::sync::atomic::Ordering::Relaxed);
    }
}
