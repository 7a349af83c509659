//! How many answers a second a coordinator can add up, and how much memory its open units take.
//!
//! `cargo run --release -p selvedge-core --example frontier -- [OPEN [BYTES]]`
//!
//! OPEN units of BYTES bytes each are open, in a tree that was divided at many places. For two seconds, units are taken
//! and answered, and each of them leaves one unit.

use std::time::{Duration, Instant};

use selvedge_core::trust::{Bug, Found, Frontier};

const TIME: Duration = Duration::from_secs(2);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> usize {
        let given = arguments.next().and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (open, bytes) = (number(4_000), number(1_000));
    let unit = |share: f64| (vec![7; bytes], share);
    let mut frontier: Frontier<Vec<u8>, Bug> = Frontier::new(vec![7; bytes]);
    let (root, _) = frontier.take().expect("the root is open");
    let rest = (0..open).map(|number| unit((1.0 + number as f64) / (open * open) as f64));
    frontier.answer(root, Found::default(), rest.collect());
    let (start, mut answers) = (Instant::now(), 0);
    while start.elapsed() < TIME
        && let Some((id, _)) = frontier.take()
    {
        // The rest is smaller than all others, so that units from all over the tree are taken.
        frontier.answer(id, Found::default(), vec![unit(1.0 / (open * open) as f64)]);
        answers += 1;
    }
    let rate = f64::from(answers) / start.elapsed().as_secs_f64();
    println!(
        "{} open units of {bytes} bytes: {rate:.0} answers per second",
        frontier.units()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmHWM:"));
    println!("the most memory: {}", memory.unwrap_or("unknown"));
}
