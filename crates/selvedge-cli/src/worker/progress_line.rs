//! The line that shows the progress of a search, for terminals of every width.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use selvedge_core::report::StateCounts;

use super::progress::{Limits, Now};

/// A terminal with so many columns has room for the interval of the estimate.
const WIDE: usize = 100;

/// A piece of the line. Where the line in full words does not fit, every piece is written in short; where that
/// does not fit either, pieces with a high rank are left out.
struct Piece {
    /// Pieces with rank 0 are always shown; no two others have the same.
    rank: u8,
    text: String,
    short: String,
}

fn piece(rank: u8, text: impl Into<String>) -> Piece {
    let text = text.into();
    shortened(rank, text.clone(), text)
}

fn shortened(rank: u8, text: impl Into<String>, short: impl Into<String>) -> Piece {
    Piece {
        rank,
        text: text.into(),
        short: short.into(),
    }
}

pub(super) fn line(now: &Now, elapsed: Duration, limits: Limits, width: usize) -> String {
    let pieces = match now.states {
        Some(states) => state_pieces(now, states, elapsed, limits),
        None => execution_pieces(now, elapsed, limits, width >= WIDE),
    };
    let label = limits.label.map(|label| format!("{label}: "));
    fit(&label.unwrap_or_default(), &pieces, width)
}

/// Joins the pieces in their order: in full, or in short those that fit, the most important ones first.
fn fit(label: &str, pieces: &[Piece], width: usize) -> String {
    let fits = |line: &str| line.chars().count() <= width;
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let full = format!("{label}{}", texts.join(", "));
    if fits(&full) {
        return full;
    }
    let mut ranks: Vec<u8> = pieces.iter().map(|piece| piece.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let line = |chosen: &[u8]| {
        let pieces = pieces.iter();
        let chosen = pieces.filter(|piece| chosen.contains(&piece.rank));
        let texts: Vec<&str> = chosen.map(|piece| piece.short.as_str()).collect();
        format!("{label}{}", texts.join(", "))
    };
    let mut chosen: Vec<u8> = Vec::new();
    for rank in ranks {
        chosen.push(rank);
        if rank > 0 && !fits(&line(&chosen)) {
            chosen.pop();
        }
    }
    line(&chosen)
}

/// The limit that will be reached first, of those given with the seconds that are left.
fn first_limit(limits: impl IntoIterator<Item = (f64, String)>) -> Option<Piece> {
    let first = limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    first.map(|(_, limit)| piece(9, format!("stops at {limit}")))
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
        pieces.push(piece(0, format!("{} done", percent(done))));
        let left = clock(left);
        pieces.push(shortened(
            1,
            format!("about {left} left"),
            format!("{left} left"),
        ));
        pieces.push(shortened(2, executed(now, wide), executed_in_short(now)));
    } else {
        pieces.push(shortened(0, executed(now, wide), executed_in_short(now)));
    }
    pieces.push(shortened(
        3,
        format!("{} per second", HumanCount(rate as u64)),
        format!("{}/s", compact(rate as u64)),
    ));
    pieces.push(shortened(
        4,
        format!("{} blocked", HumanCount(counts.blocked)),
        format!("{} blocked", compact(counts.blocked)),
    ));
    let memory = (now.memory > 0).then(|| {
        let short = match now.memory >> 20 {
            mebibytes @ 0..10_000 => format!("{mebibytes} MiB"),
            mebibytes => format!("{} GiB", mebibytes >> 10),
        };
        shortened(5, HumanBytes(now.memory).to_string(), short)
    });
    pieces.extend(memory);
    pieces.push(piece(7, clock(elapsed)));
    pieces.extend(now.workers.map(|workers| piece(6, elsewhere(workers))));
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

/// The same in a few characters.
fn executed_in_short(now: &Now) -> String {
    let so_far = compact(now.counts.executions);
    match now.estimate {
        Some(all) if all.executions >= now.counts.executions => {
            format!("{so_far} of ~{}", compact(all.executions))
        }
        _ => format!("{so_far} executions"),
    }
}

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent < 9.95 {
        true => format!("{percent:.1}%"),
        false => format!("{percent:.0}%"),
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

/// A number in at most four characters, up to the billions.
fn compact(count: u64) -> String {
    let (unit, name) = match count {
        0..1000 => return count.to_string(),
        1000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    // Rounded down: 999,999 is not 1000k.
    let tenths = (10.0 * count as f64 / unit) as u64;
    match tenths {
        0..100 => format!("{}.{}{name}", tenths / 10, tenths % 10),
        _ => format!("{}{name}", tenths / 10),
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
    use selvedge_core::report::Counts;

    use super::*;
    use crate::pool::estimate::Estimate;

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
        let plain = "1,000,000 executions, 100,000 per second, 0 blocked, 0:10";
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
            "1.0M executions, 100k/s, 0 blocked, 0:10, stops at 0:15"
        );
        assert_eq!(line(50), "1.0M executions, 100k/s, 0 blocked, 0:10");
        assert_eq!(line(30), "1.0M executions, 100k/s, 0:10");
        assert_eq!(line(10), "1.0M executions");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (999, "999"),
            (1000, "1.0k"),
            (9_940, "9.9k"),
            (9_960, "9.9k"),
            (847_311, "847k"),
            (999_999, "999k"),
            (273_900_000, "273M"),
            (2_500_000_000, "2.5G"),
        ];
        for (count, short) in cases {
            assert_eq!(compact(count), short);
        }
        assert_eq!(percent(0.0031), "0.3%");
        assert_eq!(percent(0.0996), "10%");
    }

    fn with_estimate(width: usize, timeout: Option<u64>) -> String {
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
        let limits = Limits {
            timeout: timeout.map(Duration::from_secs),
            ..Limits::default()
        };
        line(&now, Duration::from_secs(240), limits, width)
    }

    #[test]
    fn everything_of_interest_fits_below_eighty_columns() {
        let line = |width| with_estimate(width, None);
        let interval =
            "40% done, about 6:06 left, 225,332 of about 569,262 (225,332–1.1M) executions";
        assert_eq!(
            line(130),
            format!("{interval}, 938 per second, 0 blocked, 22.00 MiB, 4:00")
        );
        let short = "40% done, 6:06 left, 225k of ~569k, 938/s, 0 blocked, 22 MiB";
        for width in [79, 80, 100] {
            assert_eq!(line(width), format!("{short}, 4:00"));
        }
        assert_eq!(line(60), short);
        assert_eq!(
            with_estimate(79, Some(3600)),
            format!("{short}, 4:00"),
            "the limit is left out before the rest"
        );
        assert_eq!(
            line(50),
            "40% done, 6:06 left, 225k of ~569k, 938/s, 22 MiB"
        );
        assert_eq!(line(20), "40% done, 6:06 left");
    }
}
