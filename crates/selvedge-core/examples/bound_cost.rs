//! Measures the cost of a bound: the time of a bounded search as a multiple of the unbounded one,
//! for every bound from zero until nothing lies beyond it, on a scripted machine that does next to
//! nothing (with a real program the search itself weighs less).
//!
//! `cargo run --release -p selvedge-core --example bound_cost`, with the beginning of a program's
//! name if not all are wanted, and with `MODEL=ra`, `tso` or `rc11` in the environment for another
//! memory model than `sc`: the mixed programs are written with relaxed accesses then, and shorter.
//! With a name and a bound (`none` or a number) one search is run and nothing measured, for
//! counting instructions from outside:
//! `valgrind --tool=callgrind target/release/examples/bound_cost mixed-1 2`.

use std::time::Duration;

use selvedge_core::MemoryOrder::Relaxed;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::report::{Counts, NoObserver};
use selvedge_core::trust::{self, Settings};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::random::Random;
use selvedge_testkit::{Program, ScriptMachine};

/// Four threads with five to ten accesses each to a few variables.
fn mixed(seed: u64, variables: u64, reads: u64) -> Program {
    let mut random = Random::new(seed);
    let mut worker = |thread: u32| {
        let accesses = 5 + random.below(6);
        (0..accesses)
            .map(|n| {
                let variable = random.below(variables) as u32;
                match random.below(10) {
                    kind if kind < reads => I::Load(0, variable),
                    _ => I::Store(variable, u128::from(thread * 100) + u128::from(n)),
                }
            })
            .collect()
    };
    Program::of_workers((1..=4).map(&mut worker).collect())
}

/// Each thread takes a spin lock once: every execution is within bound zero.
fn spin_locks(threads: usize) -> Program {
    let worker = vec![
        I::compare_exchange(0, 0, 0, 1),
        I::JumpIf(0, 1, 0),
        I::Store(0, 0),
    ];
    Program::of_workers(vec![worker; threads])
}

/// Each thread adds to one variable once.
fn adders(threads: usize) -> Program {
    Program::of_workers(vec![vec![I::fetch_add(0, 0, 1)]; threads])
}

/// Each thread takes a mutex this many times.
fn mutexes(threads: u32, times: usize) -> Program {
    let worker = |thread| [I::lock(9, thread), I::unlock(9)].repeat(times);
    Program::of_workers((1..=threads).map(worker).collect())
}

fn programs() -> Vec<(String, Program)> {
    let mut programs = vec![
        ("spin-7".to_owned(), spin_locks(7)),
        ("adders-8".to_owned(), adders(8)),
        ("mutex-2x9".to_owned(), mutexes(2, 9)),
        ("mutex-3x4".to_owned(), mutexes(3, 4)),
    ];
    for (n, (seed, variables, reads)) in MIXED.into_iter().enumerate() {
        let mut program = mixed(seed, variables, reads);
        if model() != "sc" {
            for code in program.threads.iter_mut().skip(1) {
                code.truncate(6);
                let relaxed = |&instruction: &I| [I::With(Relaxed, Relaxed), instruction];
                *code = code.iter().flat_map(relaxed).collect();
            }
        }
        programs.push((format!("mixed-{}", n + 1), program));
    }
    programs
}

/// Seeds that give between 50,000 and 100,000 executions, with this many variables and reads among
/// ten accesses.
const MIXED: [(u64, u64, u64); 6] = [
    (27, 2, 8),
    (14, 3, 8),
    (53, 4, 7),
    (34, 4, 8),
    (15, 6, 5),
    (22, 6, 8),
];

/// The memory model that the environment asks for.
fn model() -> String {
    std::env::var("MODEL").unwrap_or_else(|_| "sc".to_owned())
}

fn search(program: &Program, preemptions: Option<u32>) -> Counts {
    match model().as_str() {
        "ra" => search_under::<ReleaseAcquire>(program, preemptions),
        "tso" => search_under::<TotalStoreOrder>(program, preemptions),
        "rc11" => search_under::<Rc11>(program, preemptions),
        _ => search_under::<SequentialConsistency>(program, preemptions),
    }
}

fn search_under<C: Model>(program: &Program, preemptions: Option<u32>) -> Counts {
    let settings = Settings {
        keep_going: true,
        preemptions,
    };
    let mut machine = ScriptMachine::new(program.clone());
    trust::search::<C, _>(&mut machine, settings, &mut NoObserver).counts
}

/// Processor time of this thread so far: others may keep the machine busy.
fn now() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The shortest of three runs.
fn timed(program: &Program, preemptions: Option<u32>) -> (Counts, Duration) {
    let run = |_| {
        let start = now();
        let counts = search(program, preemptions);
        (counts, now() - start)
    };
    (0..3)
        .map(run)
        .min_by_key(|&(_, time)| time)
        .expect("three runs")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let (Some(name), Some(bound)) = (arguments.next(), arguments.next()) {
        let all = programs();
        let (_, program) = all.iter().find(|(n, _)| *n == name).expect("a program");
        println!("{:?}", search(program, bound.parse().ok()));
        return;
    }
    let mut worst: f64 = 0.0;
    let chosen = std::env::args().nth(1).unwrap_or_default();
    for (name, program) in programs() {
        if !name.starts_with(&chosen) {
            continue;
        }
        let (counts, unbounded) = timed(&program, None);
        println!(
            "{name}: {} executions, {:.3} s unbounded",
            counts.executions,
            unbounded.as_secs_f64()
        );
        if unbounded < Duration::from_millis(2) {
            continue;
        }
        for bound in 0.. {
            let (counts, time) = timed(&program, Some(bound));
            let ratio = time.as_secs_f64() / unbounded.as_secs_f64();
            worst = worst.max(ratio);
            println!(
                "  {bound:2} {ratio:5.2}x  {} executions, {} beyond, {} cut off",
                counts.executions, counts.over_bound, counts.bound_blocked
            );
            if counts.over_bound + counts.bound_blocked == 0 {
                break;
            }
        }
    }
    println!("worst {worst:.2}x");
}
