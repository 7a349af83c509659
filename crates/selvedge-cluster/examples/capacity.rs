//! How many work units a second one broker and one coordinator can handle.
//!
//! `nats-server -js -sd /tmp/broker` and then
//! `cargo run --release -p selvedge-cluster --example capacity -- nats://127.0.0.1:4222 [UNITS [BYTES [WORKERS]]]`
//!
//! Workers take units and answer them at once, so everything but the search is measured.

use std::time::{Duration, Instant};

use selvedge_cluster::{Access, Cluster, Error};

/// How long a worker waits for a unit before it takes the queue to be empty.
const EMPTY: Duration = Duration::from_secs(2);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next();
    let mut number = |default: usize| -> usize {
        let given = arguments.next().and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (units, bytes, workers) = (number(20_000), number(4_000), number(16));
    let cluster = Cluster::connect(&Access {
        url: url.unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned()),
        credentials: None,
        authority: None,
        certificate: None,
        prefix: "capacity".to_owned(),
    })?;
    let run = cluster.run("capacity");
    run.create()?;
    let start = Instant::now();
    let queue = run.units();
    for _ in 0..units {
        queue.add(vec![7; bytes]);
    }
    while queue.held()? < units as u64 {
        std::thread::sleep(Duration::from_millis(10));
    }
    tell("queued", units, bytes, start);
    let start = Instant::now();
    let answers = run.answers(0);
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let queue = run.queue();
            std::thread::spawn(move || -> Result<(), Error> {
                while let Some(unit) = queue.take(EMPTY)? {
                    unit.answer(&unit.unit)?;
                }
                Ok(())
            })
        })
        .collect();
    for _ in 0..units {
        let answer = answers.next(Duration::from_secs(30));
        assert!(answer.is_some(), "an answer is missing");
    }
    tell("taken, answered and read", units, bytes, start);
    for worker in workers {
        worker.join().expect("a worker does not panic")?;
    }
    run.close();
    run.remove()
}

fn tell(what: &str, units: usize, bytes: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let rate = units as f64 / seconds;
    println!("{units} units of {bytes} bytes {what} in {seconds:.1} s, {rate:.0} per second");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmHWM:"));
    println!("the most memory so far: {}", memory.unwrap_or("unknown"));
}
