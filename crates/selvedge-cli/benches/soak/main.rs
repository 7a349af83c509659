//! Random programs with random options, killed processes, limits and full disks, for as long as asked.
//! Every verdict is compared with brute force.
//!
//! `cargo bench -p selvedge-cli --bench soak -- --minutes N [--seed S]`. A run that contradicts brute
//! force is printed with its seed, and its program is kept; the command then ends with status 1.
#![allow(missing_docs)]

mod check;
mod programs;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use check::Round;

/// The results of the rounds.
#[derive(Default)]
struct Tally {
    rounds: u64,
    programs: u64,
    /// By what was done to the command, and how it ended.
    ends: BTreeMap<(&'static str, String), u64>,
    wrong: Vec<String>,
}

fn main() -> ExitCode {
    let minutes = option("--minutes").unwrap_or(1.0);
    let first = option("--seed").unwrap_or(0.0) as u64;
    let deadline = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let work = || {
        while Instant::now() < deadline {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let round = Round::new(seed);
            let end = round.run();
            let mut tally = tally.lock().expect("no thread panics");
            tally.rounds += 1;
            tally.programs += round.programs() as u64;
            let described = match &end {
                Ok(status) => format!("status {status}"),
                Err(_) => "wrong".to_owned(),
            };
            *tally.ends.entry((round.trouble(), described)).or_default() += 1;
            if let Err(why) = end {
                println!("seed {seed}: {why}");
                tally.wrong.push(why);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let tally = tally.into_inner().expect("no thread panics");
    println!("{:<20} {:<10} {:>7}", "trouble", "end", "rounds");
    for ((trouble, end), rounds) in &tally.ends {
        println!("{trouble:<20} {end:<10} {rounds:>7}");
    }
    let killed = check::KILLED.load(Ordering::Relaxed);
    println!("commands killed while they searched: {killed}");
    println!(
        "{} rounds with {} programs, seeds {first} to {}: {} wrong",
        tally.rounds,
        tally.programs,
        first + tally.rounds - 1,
        tally.wrong.len()
    );
    ExitCode::from(u8::from(!tally.wrong.is_empty()))
}

/// The number after `name` on the command line.
fn option(name: &str) -> Option<f64> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1)?.parse().ok()
}
