//! Measures the cost of a visible step and of a reset without any search: `cargo run --release --example step_cost`.

#[path = "../tests/all/common/checks.rs"]
mod checks;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_core::{Effect, Machine, Op, Outcome, Pending, ThreadId, Value};
use selvedge_runtime::{NativeMachine, Plain, Settings, support};

/// A program whose two workers repeat `body`.
fn program(body: &str, times: u32) -> String {
    format!(
        "#include <pthread.h>
         #include <stdatomic.h>
         atomic_int x;
         int plain[2][8], shared;
         static void *worker(void *p) {{
             int *own = plain[(long)p];
             for (int i = 0; i < {times}; i++) {{ {body}; }}
             return 0;
         }}
         int main(void) {{
             pthread_t a, b;
             pthread_create(&a, 0, worker, (void *)0);
             pthread_create(&b, 0, worker, (void *)1);
             pthread_join(a, 0);
             pthread_join(b, 0);
             return 0;
         }}"
    )
}

fn build(directory: &Path, source: &str) -> Result<PathBuf, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let at = |name: &str| directory.join(name);
    fs::write(at("program.c"), source)?;
    fs::write(at("stubs.s"), support::stub_assembly())?;
    fs::write(at("shim.c"), support::SHIM)?;
    let compile = |flags: &[&str], from: &str, to: &str| {
        let mut command = Command::new("cc");
        command
            .args(flags)
            .args(["-c", "-o"])
            .args([at(to), at(from)])
            .status()
    };
    let flags = [
        "-g",
        "-O0",
        "-fPIC",
        "-fsanitize=thread",
        "-fno-builtin",
        "-w",
    ];
    let mut command = Command::new("cc");
    let assembly = ["-S", "-o"];
    command
        .args(flags)
        .args(assembly)
        .args([at("program.s"), at("program.c")])
        .status()?;
    let text = fs::read_to_string(at("program.s"))?;
    fs::write(at("program.s"), checks::insert(&text))?;
    compile(&[], "program.s", "program.o")?;
    compile(support::SHIM_FLAGS, "shim.c", "shim.o")?;
    let objects = ["program.o", "shim.o", "stubs.s"].map(at);
    Command::new("cc")
        .args(["-shared", "-o"])
        .arg(at("program.so"))
        .args(objects)
        .status()?;
    Ok(at("program.so"))
}

/// Performs the pending operation of `thread` on the one location that matters.
fn step(machine: &mut NativeMachine, thread: ThreadId, memory: &mut Value, clock: &mut [u32; 3]) {
    let Pending::Op(op) = machine.pending(thread) else {
        return;
    };
    let mut outcome = Outcome::default();
    match op {
        Op::Load { .. } => outcome.read = *memory,
        Op::Store { value, .. } => *memory = value,
        Op::Update { function, .. } => {
            outcome.read = *memory;
            if let Effect::Write(value) = function.apply(*memory) {
                outcome.wrote = Some(value);
                *memory = value;
                clock[thread.index()] += 1;
            }
        }
        _ => {}
    }
    clock[thread.index()] += 1;
    machine.resume(thread, outcome, clock);
}

/// One execution; the workers take turns. Returns the number of their steps.
fn execution(machine: &mut NativeMachine) -> u64 {
    let (mut memory, mut clock, mut steps) = (0, [0; 3], 0);
    while matches!(machine.pending(ThreadId(0)), Pending::Op(Op::Create { .. })) {
        step(machine, ThreadId(0), &mut memory, &mut clock);
    }
    loop {
        let mut busy = false;
        for thread in [ThreadId(1), ThreadId(2)] {
            if matches!(machine.pending(thread), Pending::Op(_)) {
                step(machine, thread, &mut memory, &mut clock);
                steps += 1;
                busy = true;
            }
        }
        if !busy {
            break;
        }
    }
    while matches!(machine.pending(ThreadId(0)), Pending::Op(_)) {
        step(machine, ThreadId(0), &mut memory, &mut clock);
    }
    steps
}

/// Nanoseconds of processor time that this process has used: others may be busy too.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: stores into the structure that it is passed.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds per call of `work`, the best of some rounds.
fn measure(mut work: impl FnMut() -> u64) -> f64 {
    let round = |work: &mut dyn FnMut() -> u64| {
        let (start, mut count) = (processor_time(), 0);
        while processor_time() - start < 20_000_000 {
            for _ in 0..10 {
                count += work();
            }
        }
        (processor_time() - start) as f64 / count as f64
    };
    (0..25)
        .map(|_| round(&mut work))
        .fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("selvedge-step-cost-{}", std::process::id()));
    let cases = [
        ("atomic store", "atomic_store(&x, i)", Plain::Race),
        ("atomic fetch_add", "atomic_fetch_add(&x, 1)", Plain::Race),
        ("atomic load", "atomic_load(&x)", Plain::Race),
        ("plain increment as two events", "shared++", Plain::Sc),
        (
            "fetch_add and 8 plain accesses",
            "for (int j = 0; j < 8; j += 2) own[j]++; atomic_fetch_add(&x, 1)",
            Plain::Race,
        ),
    ];
    // With an argument, only the measurements whose names contain it.
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, body, plain) in cases.into_iter().filter(|case| case.0.contains(&wanted)) {
        let library = build(&directory.join(name), &program(body, 1000))?;
        let settings = Settings {
            plain,
            ..Settings::default()
        };
        let mut machine = NativeMachine::load(&library, settings)?;
        let cost = measure(|| {
            machine.reset();
            execution(&mut machine)
        });
        println!("{name:32} {cost:8.1} ns per step");
    }
    let library = build(&directory.join("short"), &program("atomic_store(&x, i)", 1))?;
    let mut machine = NativeMachine::load(&library, Settings::default())?;
    let whole = measure(|| {
        machine.reset();
        execution(&mut machine);
        1
    });
    let reset = measure(|| {
        machine.reset();
        1
    });
    println!("{:32} {reset:8.1} ns", "reset up to main's first step");
    println!("{:32} {whole:8.1} ns", "execution of 3 threads, 6 steps");
    fs::remove_dir_all(&directory)?;
    Ok(())
}
