//! The same tests under Selvedge, loom and shuttle: executions and time, side by side.
//!
//! `cargo run --release --manifest-path comparison/Cargo.toml [SECONDS [TEST]]`, where each library
//! has so many seconds (30) for each test. shuttle searches depth-first, and knows sequential
//! consistency only. Fails if a test has more executions than loom needs, or if loom is less than
//! 20 times slower in total.

mod parity;
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The result of one library for one test.
#[derive(Clone, Copy)]
struct Run {
    executions: u64,
    seconds: f64,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    OutOfTime,
    /// The library gave up, or found fault with the test.
    Failed,
}

impl Run {
    fn cells(self) -> String {
        let mark = match self.end {
            End::Complete => " ",
            End::OutOfTime => "+",
            End::Failed => "!",
        };
        format!("{:>9}{mark} {:>9.3}", self.executions, self.seconds)
    }
}

/// Measures `search`, which is given the test with a counter, and tells whether it came to an end.
fn measure(test: fn(), search: impl FnOnce(Box<dyn Fn() + Send + Sync>) -> End) -> Run {
    let executions = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executions);
    let counted = Box::new(move || {
        count.fetch_add(1, Relaxed);
        test();
    });
    let begin = Instant::now();
    let end = catch_unwind(AssertUnwindSafe(|| search(counted))).unwrap_or(End::Failed);
    Run {
        executions: executions.load(Relaxed),
        seconds: begin.elapsed().as_secs_f64(),
        end,
    }
}

fn selvedge(test: fn(), limit: Duration) -> Run {
    let mut builder = selvedge::model::Builder::new();
    builder.max_duration = Some(limit);
    let begin = Instant::now();
    let report = builder.explore(test);
    let end = match report.verdict {
        selvedge::model::Verdict::Verified => End::Complete,
        selvedge::model::Verdict::Stopped => End::OutOfTime,
        selvedge::model::Verdict::Failed(failure) => {
            eprintln!("{failure}");
            End::Failed
        }
        selvedge::model::Verdict::Incomplete(why) => {
            eprintln!("{why}");
            End::Failed
        }
    };
    Run {
        executions: report.executions,
        seconds: begin.elapsed().as_secs_f64(),
        end,
    }
}

fn loom(test: fn(), limit: Duration) -> Run {
    measure(test, |test| {
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 10_000;
        builder.checkpoint_interval = 100;
        builder.max_duration = Some(limit);
        let begin = Instant::now();
        builder.check(test);
        match begin.elapsed() < limit {
            true => End::Complete,
            false => End::OutOfTime,
        }
    })
}

fn shuttle(test: fn(), limit: Duration) -> Run {
    measure(test, |test| {
        let mut config = shuttle::Config::new();
        config.max_time = Some(limit);
        let scheduler = shuttle::scheduler::DfsScheduler::new(None, false);
        let begin = Instant::now();
        shuttle::Runner::new(scheduler, config).run(test);
        match begin.elapsed() < limit {
            true => End::Complete,
            false => End::OutOfTime,
        }
    })
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(30));
    let wanted = std::env::args().nth(2);
    std::panic::set_hook(Box::new(|_| {}));
    println!(
        "{:20} {:^20} {:^20} {:^20}",
        "", "selvedge", "loom", "shuttle"
    );
    let heading = format!("{:>9}  {:>9}", "runs", "seconds");
    println!("{:20} {heading} {heading} {heading}", "test");
    let mut totals = [0.0; 3];
    let mut more = Vec::new();
    for (n, &(name, test)) in tests::selvedge::ALL.iter().enumerate() {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let runs = [
            selvedge(test, limit),
            loom(tests::loom::ALL[n].1, limit),
            shuttle(tests::shuttle::ALL[n].1, limit),
        ];
        for (total, run) in totals.iter_mut().zip(runs) {
            *total += run.seconds;
        }
        if runs[0].end != End::Complete || runs[0].executions > runs[1].executions {
            more.push(name);
        }
        println!(
            "{name:20} {} {} {}",
            runs[0].cells(),
            runs[1].cells(),
            runs[2].cells()
        );
    }
    let total = |n: usize| format!("{:>10} {:>9.3}", "", totals[n]);
    println!("{:20} {} {} {}", "total", total(0), total(1), total(2));
    println!(
        "+ stopped after {} s   ! gave up or failed",
        limit.as_secs()
    );
    let ratio = totals[1] / totals[0];
    match more.as_slice() {
        [] => println!("no test has more executions than loom needs"),
        names => println!(
            "more executions than loom, or not complete: {}",
            names.join(", ")
        ),
    }
    println!("loom takes at least {ratio:.0} times as long in total");
    match more.is_empty() && (ratio >= 20.0 || wanted.is_some()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
