//! How many answers a second a frontier takes up, and how much memory its open units take.
//!
//! `cargo run --release -p selvedge-core --example frontier -- [OPEN [BYTES]]`
//!
//! A given number of units of a given size are open, in a tree that was divided at many places. Units are taken and answered with
//! all calls that a coordinator makes for that, and each of them leaves one unit. The quickest of several rounds counts:
//! others may use the machine.

use std::hint::black_box;
use std::time::Instant;

use selvedge_core::trust::{Bug, Found, Frontier};

const ROUNDS: usize = 40;
const ANSWERS: u32 = 500;

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
    let mut quickest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..ANSWERS {
            let (id, _) = frontier.take().expect("units are left");
            black_box((frontier.known_before(id), frontier.learned().to_vec()));
            black_box((frontier.wants(id), frontier.left()));
            frontier.learn(&[], &[]);
            // The rest is smaller than all others, so that units from all over the tree are taken.
            frontier.answer(id, Found::default(), vec![unit(1.0 / (open * open) as f64)]);
            black_box((frontier.left(), frontier.counts(), frontier.is_done()));
        }
        quickest = quickest.min(start.elapsed().as_secs_f64());
    }
    let rate = f64::from(ANSWERS) / quickest;
    println!(
        "{} open units of {bytes} bytes: {rate:.0} answers per second",
        frontier.units()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmRSS:"));
    println!("memory: {}", memory.unwrap_or("unknown"));
}
