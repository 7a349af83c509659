//! Progress of a search: one line on a terminal's standard error once it takes a while, an
//! event every second for `--format jsonl`, and a history for the HTML report.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_core::report::{Counts, StateCounts};

use super::history::{History, Sample};
use crate::pool::estimate::Estimate;
use crate::report::stream;

/// A check that is done by then needs no progress shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often an event tells of progress.
const EVENTS: Duration = Duration::from_secs(1);

/// The limits that a search can run into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// When it is stopped.
    pub(crate) timeout: Option<Duration>,
    /// After how many executions it is stopped.
    pub(crate) executions: Option<u64>,
    /// The beginning of the line that shows progress: the search that these limits are for.
    pub(crate) label: Option<&'static str>,
    /// Whether progress is printed as events on standard output.
    pub(crate) events: bool,
}

/// How far a search has come at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The executions so far.
    pub(crate) counts: Counts,
    /// The states so far, if the search is about states.
    pub(crate) states: Option<StateCounts>,
    /// The most memory that it has had, in bytes.
    pub(crate) memory: u64,
    /// The memory that it may have.
    pub(crate) memory_limit: u64,
    /// The part of the search tree that is done, if that is known.
    pub(crate) done: Option<f64>,
    /// How many executions there are, about.
    pub(crate) estimate: Option<Estimate>,
    /// How many workers explore it elsewhere, and on how many machines.
    pub(crate) workers: Option<(u64, u64)>,
}

/// Shows and records progress.
pub(crate) struct Progress {
    start: Instant,
    limits: Limits,
    bar: Option<ProgressBar>,
    terminal: bool,
    /// When the last event was printed.
    told: Instant,
    history: History,
}

impl Progress {
    /// Nothing is shown in the first moments, or if the output is no terminal.
    pub(crate) fn new(limits: Limits) -> Progress {
        let start = Instant::now();
        Progress {
            start,
            limits,
            bar: None,
            terminal: stderr().is_terminal(),
            told: start,
            history: History::default(),
        }
    }

    /// Shows and records `now`.
    pub(crate) fn update(&mut self, now: &Now) {
        let elapsed = self.start.elapsed();
        let sample = Sample::new(elapsed, now);
        self.history.record(sample);
        if self.limits.events && self.told.elapsed() >= EVENTS {
            self.told = Instant::now();
            stream::progress(&sample);
        }
        if !self.terminal || elapsed < PATIENCE {
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
        let width = terminal_size::terminal_size_of(stderr()).map_or(80, |(width, _)| width.0);
        bar.set_message(line(now, elapsed, self.limits, width.into()));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Takes the line away for good. What was recorded ends with `now`.
    pub(crate) fn finish(mut self, now: &Now) -> Vec<Sample> {
        self.clear();
        self.history.finish(Sample::new(self.start.elapsed(), now))
    }
}

/// A terminal with this many columns has room for the interval of the estimate.
const WIDE: usize = 100;

/// A piece of the line. Where the terminal is narrow, pieces with a high rank are left out.
struct Piece {
    /// Pieces with rank 0 are always shown; no two others have the same.
    rank: u8,
    text: String,
}

fn piece(rank: u8, text: impl Into<String>) -> Piece {
    Piece {
        rank,
        text: text.into(),
    }
}

fn line(now: &Now, elapsed: Duration, limits: Limits, width: usize) -> String {
    let pieces = match now.states {
        Some(states) => state_pieces(now, states, elapsed, limits),
        None => execution_pieces(now, elapsed, limits, width >= WIDE),
    };
    let label = limits.label.map(|label| format!("{label}: "));
    fit(&label.unwrap_or_default(), &pieces, width)
}

/// Joins the pieces that fit, in their order. The most important ones are chosen first.
fn fit(label: &str, pieces: &[Piece], width: usize) -> String {
    let mut ranks: Vec<u8> = pieces.iter().map(|piece| piece.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let line = |chosen: &[u8]| {
        let pieces = pieces.iter();
        let chosen = pieces.filter(|piece| chosen.contains(&piece.rank));
        let texts: Vec<&str> = chosen.map(|piece| piece.text.as_str()).collect();
        format!("{label}{}", texts.join(", "))
    };
    let mut chosen: Vec<u8> = Vec::new();
    for rank in ranks {
        chosen.push(rank);
        if rank > 0 && line(&chosen).chars().count() > width {
            chosen.pop();
        }
    }
    line(&chosen)
}

/// The limit that will be reached first, of those given with the seconds that are left.
fn first_limit(limits: impl IntoIterator<Item = (f64, String)>) -> Option<Piece> {
    let first = limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    first.map(|(_, limit)| piece(4, format!("stops at {limit}")))
}

fn by_time(limits: Limits, elapsed: Duration) -> Option<(f64, String)> {
    let limit = limits.timeout?;
    Some((limit.as_secs_f64() - elapsed.as_secs_f64(), clock(limit)))
}

fn execution_pieces(now: &Now, elapsed: Duration, limits: Limits, wide: bool) -> Vec<Piece> {
    let counts = now.counts;
    let seconds = elapsed.as_secs_f64();
    let all = counts.executions + counts.blocked;
    let rate = all as f64 / seconds;
    let by_count = limits.executions.filter(|_| rate > 0.0).map(|limit| {
        let left = limit.saturating_sub(all) as f64 / rate;
        (left, format!("{} executions", HumanCount(limit)))
    });
    let mut pieces = Vec::new();
    if let (Some(done), Some(estimate)) = (now.done, now.estimate) {
        let left = Duration::from_secs_f64(estimate.seconds_left.min(1e9));
        pieces.push(piece(0, format!("{:.0}% done", 100.0 * done)));
        pieces.push(piece(1, format!("about {} left", clock(left))));
        pieces.push(piece(2, executed(now, wide)));
    } else {
        pieces.push(piece(0, executed(now, wide)));
    }
    pieces.extend([
        piece(7, format!("{} blocked", HumanCount(counts.blocked))),
        piece(6, format!("{} per second", HumanCount(rate as u64))),
    ]);
    pieces.extend((now.memory > 0).then(|| piece(8, HumanBytes(now.memory).to_string())));
    pieces.push(piece(3, clock(elapsed)));
    pieces.extend(now.workers.map(|workers| piece(5, elsewhere(workers))));
    pieces.extend(first_limit(
        by_count.into_iter().chain(by_time(limits, elapsed)),
    ));
    pieces
}

fn elsewhere((workers, machines): (u64, u64)) -> String {
    match (workers, machines) {
        (0, _) => "no workers (selvedge serve URL)".to_owned(),
        (1, _) => "1 worker".to_owned(),
        (_, 1) => format!("{workers} workers on 1 machine"),
        _ => format!("{workers} workers on {machines} machines"),
    }
}

/// The executions so far, of how many, and where that number lies with a confidence of 95%.
fn executed(now: &Now, wide: bool) -> String {
    let so_far = HumanCount(now.counts.executions);
    match now.estimate {
        Some(all) if all.executions >= now.counts.executions => {
            let interval = match wide && all.low < all.high {
                true => format!(" ({}–{})", brief(all.low), brief(all.high)),
                false => String::new(),
            };
            let about = brief(all.executions);
            format!("{so_far} of about {about}{interval} executions")
        }
        _ => format!("{so_far} executions"),
    }
}

fn state_pieces(now: &Now, states: StateCounts, elapsed: Duration, limits: Limits) -> Vec<Piece> {
    let seconds = elapsed.as_secs_f64();
    // Memory grows with the states.
    let growth = now.memory as f64 / seconds;
    let left = now.memory_limit.saturating_sub(now.memory) as f64 / growth.max(1.0);
    let by_memory =
        (now.memory_limit < u64::MAX).then(|| (left, HumanBytes(now.memory_limit).to_string()));
    let rate = (states.states as f64 / seconds) as u64;
    let mut pieces = vec![
        piece(0, format!("{} states", brief(states.states))),
        piece(5, format!("{}/s", brief(rate))),
        piece(8, format!("layer {}", states.layer)),
        piece(6, format!("{} to go", brief(states.queue))),
        piece(7, HumanBytes(now.memory).to_string()),
        piece(1, clock(elapsed)),
    ];
    pieces.extend(first_limit(
        by_memory.into_iter().chain(by_time(limits, elapsed)),
    ));
    pieces
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

    fn at_ten_seconds(timeout: Option<u64>, executions: Option<u64>, width: usize) -> String {
        let limits = Limits {
            timeout: timeout.map(Duration::from_secs),
            executions,
            ..Limits::default()
        };
        let counts = Counts {
            executions: 1_000_000,
            ..Counts::default()
        };
        let now = Now {
            counts,
            states: None,
            memory: 0,
            memory_limit: u64::MAX,
            done: None,
            estimate: None,
            workers: None,
        };
        line(&now, Duration::from_secs(10), limits, width)
    }

    #[test]
    fn a_search_over_states_tells_which_limit_comes_first() {
        let states = StateCounts {
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
            let now = Now {
                counts: Counts::default(),
                states: Some(states),
                memory: 1 << 30,
                memory_limit: 2 << 30,
                done: None,
                estimate: None,
                workers: None,
            };
            line(&now, Duration::from_secs(10), limits, 100)
        };
        let plain = "4.0M states, 400,000/s, layer 7, 120,000 to go, 1.00 GiB, 0:10";
        assert_eq!(line(None), format!("{plain}, stops at 2.00 GiB"));
        assert_eq!(line(Some(15)), format!("{plain}, stops at 0:15"));
        assert_eq!(line(Some(60)), format!("{plain}, stops at 2.00 GiB"));
    }

    #[test]
    fn the_line_names_the_limit_that_comes_first() {
        let plain = "1,000,000 executions, 0 blocked, 100,000 per second, 0:10";
        let line = |timeout, executions| at_ten_seconds(timeout, executions, 100);
        assert_eq!(line(None, None), plain);
        assert_eq!(line(Some(3600), None), format!("{plain}, stops at 1:00:00"));
        assert_eq!(
            line(Some(3600), Some(2_000_000)),
            format!("{plain}, stops at 2,000,000 executions")
        );
        assert_eq!(
            line(Some(15), Some(2_000_000)),
            format!("{plain}, stops at 0:15")
        );
    }

    #[test]
    fn a_narrow_terminal_leaves_out_what_matters_least() {
        let line = |width| at_ten_seconds(Some(15), None, width);
        assert_eq!(
            line(60),
            "1,000,000 executions, 0 blocked, 0:10, stops at 0:15"
        );
        assert_eq!(line(30), "1,000,000 executions, 0:10");
        assert_eq!(line(10), "1,000,000 executions");
    }

    #[test]
    fn the_share_that_is_done_comes_first() {
        let counts = Counts {
            executions: 225_332,
            ..Counts::default()
        };
        let estimate = Estimate {
            executions: 569_262,
            low: 225_332,
            high: 1_109_228,
            seconds_left: 366.0,
        };
        let now = Now {
            counts,
            states: None,
            memory: 22 << 20,
            memory_limit: u64::MAX,
            done: Some(0.396),
            estimate: Some(estimate),
            workers: None,
        };
        let line = |width| line(&now, Duration::from_secs(240), Limits::default(), width);
        let interval =
            "40% done, about 6:06 left, 225,332 of about 569,262 (225,332–1.1M) executions";
        assert_eq!(
            line(130),
            format!("{interval}, 0 blocked, 938 per second, 22.00 MiB, 4:00")
        );
        assert_eq!(line(100), format!("{interval}, 938 per second, 4:00"));
        assert_eq!(
            line(99),
            "40% done, about 6:06 left, 225,332 of about 569,262 executions, 0 blocked, 938 per second, 4:00"
        );
        assert_eq!(
            line(80),
            "40% done, about 6:06 left, 225,332 of about 569,262 executions, 0 blocked, 4:00"
        );
        assert_eq!(
            line(60),
            "40% done, about 6:06 left, 0 blocked, 938 per second, 4:00"
        );
        assert_eq!(line(40), "40% done, about 6:06 left, 4:00");
        assert_eq!(line(20), "40% done, 4:00");
    }
}
