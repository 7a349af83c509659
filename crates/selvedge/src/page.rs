//! `SELVEDGE_REPORT=FILE.html`: what a check found, as one page to look at.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use selvedge_core::trust::Estimate;
use selvedge_page::{BugPage, Origin, Page, input};
use serde::Serialize;

use crate::clerk;
use crate::model::{Builder, Equivalence, Report, Verdict};
use crate::rt::peak_memory;

/// When there are more samples than that, every second one is dropped.
const MOST: usize = 240;

/// The progress of a search at some moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    /// Seconds since it began.
    pub(crate) seconds: f64,
    pub(crate) executions: u64,
    pub(crate) blocked: u64,
    /// The most memory that the process has had, in bytes.
    pub(crate) memory: u64,
}

/// Adds a sample to those before.
pub(crate) fn record(history: &mut Vec<Sample>, sample: Sample) {
    history.push(sample);
    if history.len() > MOST {
        let mut n = 0;
        history.retain(|_| {
            n += 1;
            n % 2 == 1
        });
    }
}

/// The file that a report was asked for in.
pub(crate) fn wanted() -> Option<PathBuf> {
    std::env::var_os("SELVEDGE_REPORT").map(PathBuf::from)
}

/// The contents of a page.
pub(crate) struct Contents<'a> {
    pub(crate) builder: &'a Builder,
    pub(crate) report: &'a Report,
    pub(crate) bug: Option<BugPage>,
    pub(crate) time: Duration,
    pub(crate) history: &'a [Sample],
    pub(crate) origins: &'a [Origin],
    /// How many executions there are, if a limit ended the search.
    pub(crate) estimate: Option<Estimate>,
}

/// Writes the page to the file `path`. The second model of the process is written to another file,
/// with the number 2 in its name, and so on.
pub(crate) fn write(path: &Path, contents: Contents<'_>) {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let path = numbered(path, WRITTEN.fetch_add(1, Ordering::Relaxed) + 1);
    let html = page(contents).html();
    let name = path.display().to_string();
    let written = match html {
        Ok(html) => clerk::have(move || selvedge_page::output::write(&path, html)),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = written {
        panic!("cannot write the report to {name}: {error}");
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn page(contents: Contents<'_>) -> Page<'_, Sample> {
    let Contents {
        builder,
        report,
        bug,
        time,
        history,
        origins,
        estimate,
    } = contents;
    let (verdict, sentence) = match (&report.verdict, &bug) {
        (Verdict::Failed(failure), None) => (selvedge_page::Verdict::Bug, failure.message.clone()),
        (Verdict::Failed(_), Some(bug)) => (selvedge_page::Verdict::Bug, bug.heading().to_owned()),
        (Verdict::Verified, _) => {
            let sentence = format!("verified: none of {} executions fails", report.executions);
            (selvedge_page::Verdict::Verified, sentence)
        }
        (Verdict::Stopped, _) => (
            selvedge_page::Verdict::Incomplete,
            "a limit left executions out; none of the others fails".to_owned(),
        ),
        (Verdict::Incomplete(why), _) => (selvedge_page::Verdict::Incomplete, why.clone()),
    };
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let test = std::thread::current().name().map(str::to_owned);
    let title = test.filter(|name| name != "main");
    let program = || {
        let program = arguments.first().map(Path::new).and_then(Path::file_name);
        program.unwrap_or_default().to_string_lossy().into_owned()
    };
    let notes = match &report.verdict {
        Verdict::Failed(failure) => vec![format!(
            "to run the failing execution again: SELVEDGE_REPLAY={:?}",
            failure.replay
        )],
        _ => Vec::new(),
    };
    let mut files: BTreeSet<String> = bug.iter().flat_map(BugPage::files).collect();
    files.extend(origins.iter().flat_map(Origin::files).map(str::to_owned));
    let page = Page::new(title.unwrap_or_else(program), sentence, command.join(" "))
        .verdict(verdict)
        .facts(facts(builder, report, time, estimate), notes)
        .searched(history, origins)
        .sources(files, |file| source(Path::new(file)));
    match bug {
        Some(bug) => page.bug(bug),
        None => page,
    }
}

/// A file of the program. Its name is relative to the directory of its workspace, and tests run in the
/// directory of their package.
fn source(file: &Path) -> Option<Vec<u8>> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .find_map(|directory| input::read(&directory.join(file)).ok())
}

/// The searches that were made and their assumptions.
fn facts(
    builder: &Builder,
    report: &Report,
    time: Duration,
    estimate: Option<Estimate>,
) -> Vec<(String, String)> {
    let either = |on: bool, yes: &str, no: &str| Some(if on { yes } else { no }.to_owned());
    let model = builder.random.map_or(builder.model.name(), |_| "sc");
    let equivalence = match (builder.random, builder.equivalence) {
        (Some(random), _) => format!("{} random executions, {:?}", random.runs, random.strategy),
        (None, Equivalence::Mazurkiewicz) => "mazurkiewicz".to_owned(),
        (None, Equivalence::ReadsFrom) => "reads-from".to_owned(),
    };
    let bound = |bound: u32| format!("at most {bound} preemptions; more is not explored");
    let facts = [
        ("memory model", Some(model.to_owned())),
        ("equivalence", Some(equivalence)),
        ("complete executions", Some(report.executions.to_string())),
        ("blocked executions", Some(report.blocked.to_string())),
        ("time", Some(format!("{:.2} s", time.as_secs_f64()))),
        (
            "memory",
            Some(format!("at most {} MiB", peak_memory() >> 20)),
        ),
        (
            "search tree",
            estimate.map(|estimate| selvedge_page::done(estimate.done(report.executions))),
        ),
        (
            "estimated executions",
            estimate.map(|estimate| {
                let left = format!("{:.0} s", estimate.seconds_left);
                selvedge_page::estimated(&estimate, &left)
            }),
        ),
        ("bound", report.bound.map(bound)),
        (
            "time limit",
            builder
                .max_duration
                .map(|time| format!("{} s", time.as_secs_f64())),
        ),
        (
            "execution limit",
            builder.max_permutations.map(|most| most.to_string()),
        ),
        (
            "waits on condition variables and parks",
            either(
                builder.spurious_wakeups,
                "may end for no reason",
                "end when they are woken (spurious_wakeups explores more)",
            ),
        ),
        (
            "timed waits",
            Some(format!(
                "{} of each thread may time out",
                builder.max_timeouts
            )),
        ),
        (
            "weak compare-exchanges",
            either(
                builder.spurious_failures,
                "may fail for no reason",
                "fail where strong ones do (spurious_failures explores more)",
            ),
        ),
        (
            "freed memory",
            either(
                builder.reuse_memory,
                "may be allocated again",
                "is not allocated again (reuse_memory explores more)",
            ),
        ),
        (
            "reads of freed memory",
            report.unprotected.then(|| {
                "through raw pointers: noticed in the first executions only (protect_memory finds more)"
                    .to_owned()
            }),
        ),
    ];
    let given = |(name, value): (&str, Option<String>)| Some((name.to_owned(), value?));
    facts.into_iter().filter_map(given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_models_have_files_of_their_own() {
        let path = Path::new("out/report.html");
        assert_eq!(numbered(path, 1), path);
        assert_eq!(numbered(path, 2), Path::new("out/report-2.html"));
        assert_eq!(numbered(Path::new("page"), 3), Path::new("page-3"));
    }

    #[test]
    fn a_long_search_has_few_samples() {
        let mut history = Vec::new();
        for n in 0..10_000 {
            let sample = Sample {
                seconds: n as f64,
                executions: n,
                blocked: 0,
                memory: 0,
            };
            record(&mut history, sample);
        }
        assert!((MOST / 2..=MOST).contains(&history.len()));
        assert_eq!(history[0].executions, 0);
    }
}
