//! Measures the cost of executions with a search, and of the same number without one.

use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use selvedge_core::ThreadId;
use selvedge_core::graph::Graph;
use selvedge_core::interleave::Run;
use selvedge_core::op::Op;
use selvedge_core::report::Observer;
use selvedge_core::settings::Settings;

use super::explore;
use super::journal::Watched;
use super::protocol::Measured;
use crate::explorer::Explorer;

/// Searches the program to its end, then runs one fixed schedule of it as often as there were
/// executions.
pub(super) fn measure(machine: &mut Watched<'_>, explorer: &Explorer) -> Measured {
    let resident_at_start = memory("VmRSS:");
    let mut events = Events(0);
    let settings = Settings {
        keep_going: true,
        preemptions: None,
    };
    let (start, steps) = (processor_time(), machine.steps());
    let report = explore::search(explorer, machine, settings, &mut events);
    let search = processor_time().saturating_sub(start);
    let steps = machine.steps() - steps;
    let resident_at_most = memory("VmHWM:");
    let (bare_events, bare) = without_search(machine, report.counts.executions);
    Measured {
        ending: report.ending,
        counts: report.counts,
        events: events.0,
        steps,
        search,
        bare_events,
        bare,
        resident_at_start,
        resident_at_most,
    }
}

/// Counts the events of complete executions.
struct Events(u64);

impl<M> Observer<M> for Events {
    fn complete(&mut self, graph: &Graph) {
        self.0 += graph.len() as u64;
    }
}

/// Runs the schedule in which every thread goes on for as long as it can, and counts events as a
/// graph does: an update that writes is two.
fn without_search(machine: &mut Watched<'_>, executions: u64) -> (u64, Duration) {
    let mut events = 0;
    let start = processor_time();
    let mut run = Run::new(machine);
    for _ in 0..executions {
        run.restart();
        let mut last = ThreadId::MAIN;
        while let Some(thread) = run.next_from(last) {
            let step = run.step(thread, 0);
            let writes = matches!(step.op, Op::Update { .. }) && step.wrote.is_some();
            events += 1 + u64::from(writes);
            last = thread;
        }
    }
    (events, processor_time().saturating_sub(start))
}

/// The processor time of this process: it does not grow while others have the processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// A line of this process's status, in bytes; zero if it cannot be read.
pub(super) fn memory(line: &str) -> u64 {
    let find = || -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let found = status.lines().find(|text| text.starts_with(line))?;
        let kibibytes: u64 = found.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    find().unwrap_or_default()
}
