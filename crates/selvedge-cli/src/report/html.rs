//! `--report FILE.html`: what a check found, as one page to look at.
//!
//! The page is made by the crate `selvedge-page`; here is what it is about. The names below are known
//! to its script only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use selvedge_core::witness;
use serde::Serialize;

use super::request::Asked;
use super::{Bug, Place, Report, Step, Verdict, human, kind_name, table, unordered};
use crate::args;
use crate::describe::title;
use crate::explain;
use crate::input;
use crate::problem::Problem;
use crate::worker::history::Sample;
use crate::worker::origins::Origin;
use crate::worker::protocol::FoundBug;

/// Files of the program that are larger than this are not shown.
const LARGEST_SOURCE: usize = 200 << 10;

/// Everything on the page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Page<'a> {
    title: String,
    version: &'static str,
    command: String,
    /// `verified`, `bug`, `incomplete`, or nothing.
    verdict: Option<Verdict>,
    /// The verdict in a sentence.
    sentence: String,
    bugs: Vec<BugPage<'a>>,
    /// What was explored under which assumptions.
    facts: Vec<(String, String)>,
    notes: Vec<String>,
    history: &'a [Sample],
    origins: &'a [Origin],
    /// The lines that no execution reached, if they are known.
    unreached: Option<&'a [Place]>,
    /// What several algorithms made of the program.
    runs: Vec<RunFacts>,
    /// Headings and text.
    texts: Vec<(String, String)>,
    sources: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct BugPage<'a> {
    heading: String,
    title: &'static str,
    name: String,
    explanation: &'static str,
    /// Why a read of the other thread's write does not order the accesses of a race.
    unordered: String,
    #[serde(flatten)]
    bug: &'a Bug,
    /// For each step, its text, its location, and what its clock adds to that of its thread's step
    /// before.
    relations: Vec<Relation>,
}

/// What relates a step to others.
#[derive(Debug, Serialize)]
struct Relation {
    text: String,
    location: Option<u32>,
    clock: Vec<(u32, u32)>,
}

/// One algorithm in a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct RunFacts {
    /// Its name.
    pub(crate) name: &'static str,
    /// Complete executions, or states.
    pub(crate) executions: u64,
    /// Blocked ones.
    pub(crate) blocked: u64,
    /// Time in seconds.
    pub(crate) seconds: f64,
    /// Memory in bytes.
    pub(crate) memory: u64,
    /// The verdict in words.
    pub(crate) verdict: String,
}

impl<'a> Page<'a> {
    /// A page with nothing but its heading.
    pub(crate) fn new(title: String, sentence: String) -> Page<'a> {
        Page {
            title,
            version: env!("CARGO_PKG_VERSION"),
            command: human::command(std::env::args_os(), &[]),
            sentence,
            ..Page::default()
        }
    }

    /// The result of a check.
    pub(crate) fn of_check(report: &Report, asked: &Asked<'_>, bugs: &'a [FoundBug]) -> Page<'a> {
        let sentence = match report.all_bugs().first() {
            Some(bug) => human::heading(bug),
            None => {
                let verdict = human::plain_verdict(report);
                verdict.lines().next().unwrap_or_default().to_owned()
            }
        };
        let mut page = Page {
            verdict: Some(report.verdict),
            facts: facts(report, asked.verify),
            notes: report
                .notes
                .iter()
                .chain(&report.warnings)
                .cloned()
                .collect(),
            ..Page::new(asked.program(), sentence)
        };
        bugs.iter().for_each(|bug| page.add_bug(bug));
        page.add_sources(asked.files());
        page
    }

    /// A failure that was replayed.
    pub(crate) fn of_replay(title: String, bug: &'a FoundBug) -> Page<'a> {
        let mut page = Page {
            verdict: Some(Verdict::Bug),
            ..Page::new(title, human::heading(&bug.described))
        };
        page.add_bug(bug);
        page
    }

    fn add_bug(&mut self, found: &'a FoundBug) {
        let bug = &found.described;
        let mut places: BTreeSet<&str> = BTreeSet::new();
        let mut see = |place: &'a Place| {
            let shown = |place: &&Place| place.is_users() || place.is_library();
            let lines = [Some(place), place.library.as_deref()];
            for place in lines.into_iter().flatten().filter(shown) {
                places.extend(place.file.as_deref());
            }
        };
        see(&bug.place);
        bug.trace.iter().for_each(|step| see(&step.place));
        let calls = bug.call_stacks.iter().flatten();
        calls.filter(|call| call.is_users()).for_each(&mut see);
        bug.other.iter().for_each(|other| see(&other.place));
        bug.waiting.iter().for_each(|wait| see(&wait.place));
        let changes = bug.advice.iter().flat_map(|advice| &advice.changes);
        changes.for_each(|change| see(&change.place));
        let files: Vec<String> = places.into_iter().map(str::to_owned).collect();
        self.add_sources(files);
        self.bugs.push(BugPage {
            heading: human::heading(bug),
            title: title(bug.kind),
            name: kind_name(bug.kind),
            explanation: explain::page(bug.kind),
            unordered: unordered::in_words(bug),
            bug,
            relations: relations(&bug.trace, &found.raw.witness.steps),
        });
    }

    /// What the search did, and where its executions come from.
    pub(crate) fn searched(mut self, history: &'a [Sample], origins: &'a [Origin]) -> Page<'a> {
        (self.history, self.origins) = (history, origins);
        let places = origins.iter().flat_map(|origin| {
            let other = origin.other.as_ref();
            [Some(&origin.place), other].into_iter().flatten()
        });
        let files = places
            .filter(|place| place.is_users())
            .filter_map(|place| place.file.clone());
        let files: BTreeSet<String> = files.collect();
        self.add_sources(files.into_iter().collect());
        self
    }

    /// The lines that no execution reached.
    pub(crate) fn unreached(mut self, places: Option<&'a [Place]>) -> Page<'a> {
        self.unreached = places;
        let files = places.unwrap_or_default().iter();
        let files: BTreeSet<String> = files.filter_map(|place| place.file.clone()).collect();
        self.add_sources(files.into_iter().collect());
        self
    }

    /// A verdict on a comparison, and its rows.
    pub(crate) fn compared(mut self, verdict: Verdict, runs: Vec<RunFacts>) -> Page<'a> {
        (self.verdict, self.runs) = (Some(verdict), runs);
        self
    }

    /// A heading with text below.
    pub(crate) fn text(mut self, heading: String, text: String) -> Page<'a> {
        self.texts.push((heading, text));
        self
    }

    fn add_sources(&mut self, files: Vec<String>) {
        for file in files {
            let Ok(bytes) = input::read(Path::new(&file)) else {
                continue;
            };
            if bytes.len() <= LARGEST_SOURCE {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.sources.insert(file, text);
            }
        }
    }

    /// The page itself.
    pub(crate) fn html(&self) -> Result<String, Problem> {
        let title = format!("{} – Selvedge", self.title);
        selvedge_page::html(&title, self)
            .map_err(|error| Problem::internal(format!("the report cannot be made: {error}")))
    }

    /// Writes it to `path`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Problem> {
        fs::write(path, self.html()?).map_err(|error| {
            Problem::request(format!(
                "cannot write the report to {}: {error}",
                path.display()
            ))
        })
    }
}

/// What was explored, under which assumptions.
fn facts(report: &Report, verify: &args::Verify) -> Vec<(String, String)> {
    let (search, machine) = (&verify.search, &verify.machine);
    let mut facts: Vec<(&str, String)> = vec![
        ("memory model", report.model.to_string()),
        ("algorithm", report.algorithm.clone()),
    ];
    match &report.states {
        Some(states) => facts.extend([
            ("states", states.states.to_string()),
            ("transitions", states.transitions.to_string()),
        ]),
        None => facts.extend([
            ("complete executions", report.executions.to_string()),
            ("blocked executions", report.blocked.to_string()),
        ]),
    }
    facts.push(("time", format!("{:.2} s", report.seconds)));
    let bound = report.bound.map(|bound| match report.complete {
        true => format!("at most {bound} {}s; nothing lies beyond", report.bounds),
        false => format!("at most {bound} {}s; more is not explored", report.bounds),
    });
    let beyond = (report.over_bound + report.bound_blocked).to_string();
    let beyond = Some(beyond).filter(|_| report.bound.is_some());
    let optional = [
        ("bound", bound),
        ("executions beyond the bound", beyond),
        ("property", report.holds.clone()),
        ("not explored", report.reason.clone()),
        ("loops cut", human::cut_loops(report)),
        (
            "time limit",
            search
                .timeout
                .map(|time| format!("{} s", time.as_secs_f64())),
        ),
        (
            "execution limit",
            search.max_executions.map(|limit| limit.to_string()),
        ),
    ];
    let given = |(name, value): (&'static str, Option<String>)| Some((name, value?));
    facts.extend(optional.into_iter().filter_map(given));
    let plain = match machine.plain {
        args::Plain::Race => "checked for data races, not scheduling points",
        args::Plain::Sc => "each one is a step; no data races",
    };
    let either = |on: bool, yes: &str, no: &str| if on { yes } else { no }.to_owned();
    facts.extend([
        ("plain accesses", plain.to_owned()),
        (
            "condition variables",
            either(
                machine.spurious_wakeups,
                "may wake up for no reason",
                "wake up when signalled (--spurious-wakeups explores more)",
            ),
        ),
        (
            "weak compare-exchanges",
            either(
                machine.spurious_failures,
                "may fail for no reason",
                "fail where strong ones do (--spurious-failures explores more)",
            ),
        ),
        (
            "freed memory",
            either(
                machine.reuse_memory,
                "may be allocated again",
                "is not allocated again (--reuse-memory explores more)",
            ),
        ),
    ]);
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    facts.into_iter().map(owned).collect()
}

fn relations<'a>(described: &[Step], steps: &'a [witness::Step]) -> Vec<Relation> {
    let mut clocks: BTreeMap<usize, &[u32]> = BTreeMap::new();
    let relation = |(described, step): (&Step, &'a witness::Step)| {
        let before = clocks.insert(step.thread.index(), &step.clock);
        let before = before.unwrap_or_default();
        let changed = (0..).zip(&step.clock).filter_map(|(thread, &count)| {
            let known = before.get(thread as usize).copied().unwrap_or(0);
            (count != known).then_some((thread, count))
        });
        let clock = changed.collect();
        Relation {
            text: table::what(described),
            location: step.op.location().map(|location| location.index() as u32),
            clock,
        }
    };
    described.iter().zip(steps).map(relation).collect()
}
