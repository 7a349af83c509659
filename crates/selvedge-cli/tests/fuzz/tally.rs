//! Runs one experiment for each seed on all processors, and counts how they end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::common::Outcome;

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// Selvedge and the processor agree.
    Identical,
    /// The program takes too long, here or there.
    Slow(&'static str),
    /// Selvedge says by name what it does not check.
    Refused(String),
    /// Selvedge is wrong.
    Wrong(String),
}

/// The seeds to try: those of the environment's `variable`, or `usual` ones.
pub(crate) fn seeds(variable: &str, usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var(variable) else {
        return usual;
    };
    let range = text
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    range.unwrap_or_else(|| panic!("{variable} is not a range such as 1..201: {text}"))
}

/// Seeds are tried in groups of this many; a table of each is appended to the file that `SELVEDGE_TALLY` names.
const GROUP: u64 = 500;

/// Tries every seed, prints a table of how they ended, and fails if Selvedge is wrong once, if it
/// refuses more than one program in fifty, or if more than one in four is too slow. `reproduce` tells how to try a seed alone.
pub(crate) fn run(
    name: &str,
    seeds: Range<u64>,
    experiment: impl Fn(u64) -> End + Sync,
    reproduce: impl Fn(u64) -> String + Sync,
) {
    let started = Instant::now();
    let mut ends = Vec::new();
    for first in seeds.clone().step_by(GROUP as usize) {
        let (group, began) = (first..seeds.end.min(first + GROUP), Instant::now());
        let some = try_group(name, group.clone(), &experiment, &reproduce);
        let text = table(name, &some, began.elapsed().as_secs());
        log(&format!("{group:?} {text}"));
        ends.extend(some);
    }
    println!("{}", table(name, &ends, started.elapsed().as_secs()));
    let count = |wanted: fn(&End) -> bool| ends.iter().filter(|(end, _)| wanted(end)).count();
    let wrong = count(|end| matches!(end, End::Wrong(_)));
    let refused = count(|end| matches!(end, End::Refused(_)));
    let slow = count(|end| matches!(end, End::Slow(_)));
    assert!(
        wrong == 0 && refused * 50 <= ends.len() && slow * 4 <= ends.len(),
        "{name}: {wrong} wrong, {refused} refused and {slow} slow of {} programs",
        ends.len()
    );
}

/// Tries the seeds on all processors.
fn try_group(
    name: &str,
    seeds: Range<u64>,
    experiment: &(impl Fn(u64) -> End + Sync),
    reproduce: &(impl Fn(u64) -> String + Sync),
) -> Vec<(End, u64)> {
    let next = AtomicU64::new(seeds.start);
    let ends = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let end = catch_unwind(AssertUnwindSafe(|| experiment(seed)))
                .unwrap_or_else(|_| End::Wrong("the experiment failed, see above".to_owned()));
            if !matches!(end, End::Identical | End::Slow(_)) {
                println!("{name} {seed}: {end:?}\n    {}", reproduce(seed));
            }
            ends.lock()
                .expect("no panic while locked")
                .push((end, seed));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    ends.into_inner().expect("no panic while locked")
}

/// Appends to the file of a run that may be stopped before its end.
fn log(text: &str) {
    let Ok(path) = std::env::var("SELVEDGE_TALLY") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{text}"));
    written.unwrap_or_else(|error| panic!("cannot write {path}: {error}"));
}

/// One line for each way to end: how often, and the first seeds that do.
fn table(name: &str, ends: &[(End, u64)], seconds: u64) -> String {
    let mut lines: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (end, seed) in ends {
        let line = match end {
            End::Identical => "identical".to_owned(),
            End::Slow(how) => format!("too slow: {how}"),
            End::Refused(why) => format!("refused: {}", general(why)),
            End::Wrong(how) => format!("wrong: {}", general(how)),
        };
        lines.entry(line).or_default().push(*seed);
    }
    let mut text = format!("{name}: {} programs in {seconds} s\n", ends.len());
    for (line, mut seeds) in lines {
        seeds.sort_unstable();
        let count = seeds.len();
        let some: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
        let some = match line.as_str() {
            "identical" => String::new(),
            _ => format!(
                "  [{}{}]",
                some.join(" "),
                if count > 8 { " …" } else { "" }
            ),
        };
        let _ = writeln!(text, "{count:>7}  {line}{some}");
    }
    text
}

/// The part of a message that is the same for many programs: what comes before a number or a name.
fn general(message: &str) -> &str {
    let end = message.find(|c: char| c.is_ascii_digit() || c == '`');
    message[..end.unwrap_or(message.len())].trim_end()
}

/// The result of a run of `selvedge verify --format json`.
#[derive(Debug)]
pub(crate) enum Verdict {
    Verified,
    /// The kinds and messages of all bugs.
    Bugs(Vec<(String, String)>),
    /// Out of time.
    Slow,
    /// An error, or incomplete for another reason than time.
    Refused(String),
}

impl Verdict {
    pub(crate) fn of(outcome: &Outcome) -> Verdict {
        let error = || {
            let line = outcome
                .stderr
                .lines()
                .find(|line| line.starts_with("error"));
            Verdict::Refused(line.unwrap_or(&outcome.stderr).to_owned())
        };
        if !matches!(outcome.status, Some(0 | 1 | 3)) {
            return error();
        }
        let json = outcome.json();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        // A search that was to keep going may have found bugs and still be incomplete.
        match json["reason"].as_str() {
            Some(reason) if reason.contains("--timeout") => return Verdict::Slow,
            Some(reason) => return Verdict::Refused(reason.to_owned()),
            None => {}
        }
        match json["verdict"].as_str() {
            Some("verified") => Verdict::Verified,
            Some("bug") => {
                let all = json["bugs"].as_array().cloned();
                let all = all.unwrap_or_else(|| vec![json["bug"].clone()]);
                let one = |bug: &serde_json::Value| (text(&bug["kind"]), text(&bug["message"]));
                Verdict::Bugs(all.iter().map(one).collect())
            }
            _ => error(),
        }
    }
}
