//! What a search has done so far, on a terminal's standard error, once it takes a while.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_core::report::{Counts, StateCounts};

/// A check that is done by then needs no progress shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The limits that a search can run into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// When it is stopped.
    pub(crate) timeout: Option<Duration>,
    /// After how many executions it is stopped.
    pub(crate) executions: Option<u64>,
    /// What the line that shows progress begins with: whose limits these are.
    pub(crate) label: Option<&'static str>,
}

/// The line that shows progress.
pub(crate) struct Progress {
    start: Instant,
    limits: Limits,
    bar: Option<ProgressBar>,
    enabled: bool,
}

impl Progress {
    /// Nothing is shown before it has taken a while, or where nobody looks.
    pub(crate) fn new(limits: Limits) -> Progress {
        Progress {
            start: Instant::now(),
            limits,
            bar: None,
            enabled: stderr().is_terminal(),
        }
    }

    /// Shows `counts`.
    pub(crate) fn update(&mut self, counts: Counts) {
        let elapsed = self.start.elapsed();
        self.show(|limits| line(counts, elapsed, limits));
    }

    /// Shows how far a search over states has come, which has so much `memory` of what it may have.
    pub(crate) fn update_states(&mut self, counts: StateCounts, memory: u64, most: u64) {
        let elapsed = self.start.elapsed();
        self.show(|limits| states_line(counts, elapsed, limits, (memory, most)));
    }

    fn show(&mut self, line: impl FnOnce(Limits) -> String) {
        if !self.enabled || self.start.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // Cut off where the terminal ends.
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(line(self.limits));
    }

    /// Takes the line away.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn line(counts: Counts, elapsed: Duration, limits: Limits) -> String {
    let seconds = elapsed.as_secs_f64();
    let all = counts.executions + counts.blocked;
    let rate = all as f64 / seconds;
    let label = limits.label.map(|label| format!("{label}: "));
    let mut line = format!(
        "{}{} executions, {} blocked, {} per second, {}",
        label.unwrap_or_default(),
        HumanCount(counts.executions),
        HumanCount(counts.blocked),
        HumanCount(rate as u64),
        clock(elapsed),
    );
    let by_count = limits.executions.filter(|_| rate > 0.0).map(|limit| {
        let left = limit.saturating_sub(all) as f64 / rate;
        (left, format!("stops at {} executions", HumanCount(limit)))
    });
    let by_time = limits.timeout.map(|limit| {
        (
            limit.as_secs_f64() - seconds,
            format!("stops at {}", clock(limit)),
        )
    });
    let first = by_count
        .into_iter()
        .chain(by_time)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, limit)) = first {
        line.push_str(", ");
        line.push_str(&limit);
    }
    line
}

fn states_line(
    counts: StateCounts,
    elapsed: Duration,
    limits: Limits,
    (memory, most): (u64, u64),
) -> String {
    let seconds = elapsed.as_secs_f64();
    let label = limits.label.map(|label| format!("{label}: "));
    let mut line = format!(
        "{}{} states, {}/s, layer {}, {} to go, {}, {}",
        label.unwrap_or_default(),
        brief(counts.states),
        brief((counts.states as f64 / seconds) as u64),
        counts.layer,
        brief(counts.queue),
        HumanBytes(memory),
        clock(elapsed),
    );
    // Memory grows with the states.
    let growth = memory as f64 / seconds;
    let until = |limit: u64| limit.saturating_sub(memory) as f64 / growth.max(1.0);
    let by_memory = (most < u64::MAX).then(|| (until(most), HumanBytes(most).to_string()));
    let by_time = limits
        .timeout
        .map(|limit| (limit.as_secs_f64() - seconds, clock(limit)));
    let first = by_memory
        .into_iter()
        .chain(by_time)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, limit)) = first {
        line.push_str(", stops at ");
        line.push_str(&limit);
    }
    line
}

/// A number in a few characters: the line is to fit a terminal.
fn brief(count: u64) -> String {
    match count {
        0..1_000_000 => HumanCount(count).to_string(),
        1_000_000..1_000_000_000 => format!("{:.1}M", count as f64 / 1e6),
        _ => format!("{:.2}G", count as f64 / 1e9),
    }
}

fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: Counts = Counts {
        executions: 1_000_000,
        over_bound: 0,
        blocked: 0,
        bound_blocked: 0,
    };

    fn at_ten_seconds(timeout: Option<u64>, executions: Option<u64>) -> String {
        let limits = Limits {
            timeout: timeout.map(Duration::from_secs),
            executions,
            label: None,
        };
        line(COUNTS, Duration::from_secs(10), limits)
    }

    #[test]
    fn a_search_over_states_tells_which_limit_comes_first() {
        let counts = StateCounts {
            states: 4_000_000,
            transitions: 20_000_000,
            layer: 7,
            queue: 120_000,
            bytes: 0,
        };
        let line = |timeout: Option<u64>| {
            let limits = Limits {
                timeout: timeout.map(Duration::from_secs),
                ..Limits::default()
            };
            let memory = (1 << 30, 2 << 30);
            states_line(counts, Duration::from_secs(10), limits, memory)
        };
        let plain = "4.0M states, 400,000/s, layer 7, 120,000 to go, 1.00 GiB, 0:10";
        assert_eq!(line(None), format!("{plain}, stops at 2.00 GiB"));
        assert_eq!(line(Some(15)), format!("{plain}, stops at 0:15"));
        assert_eq!(line(Some(60)), format!("{plain}, stops at 2.00 GiB"));
    }

    #[test]
    fn the_line_names_the_limit_that_comes_first() {
        let plain = "1,000,000 executions, 0 blocked, 100,000 per second, 0:10";
        assert_eq!(at_ten_seconds(None, None), plain);
        assert_eq!(
            at_ten_seconds(Some(3600), None),
            format!("{plain}, stops at 1:00:00")
        );
        assert_eq!(
            at_ten_seconds(Some(3600), Some(2_000_000)),
            format!("{plain}, stops at 2,000,000 executions")
        );
        assert_eq!(
            at_ten_seconds(Some(15), Some(2_000_000)),
            format!("{plain}, stops at 0:15")
        );
    }
}
