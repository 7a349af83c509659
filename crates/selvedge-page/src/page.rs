//! The data of the page. Only the page's script knows the names below.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::witness;
use serde::{Deserialize, Serialize};

use crate::{
    Advice, Bug, Origin, Place, Stack, Step, Verdict, heading, html, kind_name, title, unordered,
    what,
};

/// Files of the program that are larger than this are not shown.
const LARGEST_SOURCE: usize = 200 << 10;

/// The most origins of executions that are shown.
const ORIGINS: usize = 200;

/// Everything on the page. `S` is what a search had done by some moment.
#[derive(Debug, Serialize)]
pub struct Page<'a, S = ()> {
    title: String,
    version: &'static str,
    command: String,
    /// `verified`, `bug`, `incomplete`, or nothing.
    verdict: Option<Verdict>,
    /// The verdict in a sentence.
    sentence: String,
    bugs: Vec<BugPage>,
    /// The searches that were made and their assumptions.
    facts: Vec<(String, String)>,
    notes: Vec<String>,
    history: &'a [S],
    origins: &'a [Origin],
    /// The lines that no execution reached, if they are known.
    unreached: Option<&'a [Place]>,
    /// The results of several algorithms for the program.
    runs: Vec<RunFacts>,
    /// Headings and text.
    texts: Vec<(String, String)>,
    sources: BTreeMap<String, String>,
}

/// A bug as the page shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BugPage {
    heading: String,
    title: String,
    name: String,
    explanation: String,
    /// Why a read of the other thread's write does not order the accesses of a race.
    unordered: String,
    #[serde(flatten)]
    bug: Bug,
    /// For each step, its text, its location, and what its clock adds to that of its thread's step
    /// before.
    relations: Vec<Relation>,
}

/// A relation of a step to others.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Relation {
    text: String,
    location: Option<u32>,
    clock: Vec<(u32, u32)>,
}

/// One algorithm in a comparison.
#[derive(Debug, Serialize)]
pub struct RunFacts {
    /// Its name.
    pub name: &'static str,
    /// Complete executions, or states.
    pub executions: u64,
    /// Blocked ones.
    pub blocked: u64,
    /// Time in seconds.
    pub seconds: f64,
    /// Memory in bytes.
    pub memory: u64,
    /// The verdict in words.
    pub verdict: String,
}

impl BugPage {
    /// The bug, which the schedule `steps` leads to. `explanation` is about its kind of bugs.
    pub fn new(bug: Bug, steps: &[witness::Step], explanation: &str) -> BugPage {
        BugPage {
            heading: heading(&bug),
            title: title(bug.kind).to_owned(),
            name: kind_name(bug.kind),
            explanation: explanation.to_owned(),
            unordered: unordered(&bug),
            relations: relations(&bug.trace, steps),
            bug,
        }
    }

    /// The same with advice about it.
    pub fn advice(mut self, advice: Option<Advice>) -> BugPage {
        self.bug.advice = advice;
        self
    }

    /// The same with the calls of its steps, innermost first, and those of threads at its end.
    pub fn calls(mut self, steps: Vec<Vec<Place>>, last: Vec<(u32, Vec<Place>)>) -> BugPage {
        let bug = &mut self.bug;
        for (step, calls) in bug.trace.iter_mut().zip(steps) {
            let Some(innermost) = calls.first() else {
                continue;
            };
            step.place.function = innermost.function.clone();
            let known = bug.call_stacks.iter().position(|known| *known == calls);
            let stack = known.unwrap_or_else(|| {
                bug.call_stacks.push(calls);
                bug.call_stacks.len() - 1
            });
            step.stack = Some(stack as u32);
        }
        let waits = |thread: u32| bug.waiting.iter().any(|wait| wait.thread == thread);
        bug.stacks = last
            .into_iter()
            .filter(|(_, frames)| !frames.is_empty())
            .map(|(thread, frames)| Stack {
                thread,
                state: if waits(thread) { "waits" } else { "fails" }.to_owned(),
                frames,
            })
            .collect();
        self
    }

    /// The bug in a sentence.
    pub fn heading(&self) -> &str {
        &self.heading
    }

    /// The files of the program that it names.
    pub fn files(&self) -> BTreeSet<String> {
        let bug = &self.bug;
        let mut files: BTreeSet<&str> = BTreeSet::new();
        let mut see = |place| files.extend(shown_files(place));
        see(&bug.place);
        bug.trace.iter().for_each(|step| see(&step.place));
        let calls = bug.call_stacks.iter().flatten();
        calls.filter(|call| call.is_users()).for_each(&mut see);
        bug.other.iter().for_each(|other| see(&other.place));
        bug.waiting.iter().for_each(|wait| see(&wait.place));
        let changes = bug.advice.iter().flat_map(|advice| &advice.changes);
        changes.for_each(|change| see(&change.place));
        files.into_iter().map(str::to_owned).collect()
    }
}

/// The files of a line of the program and of the library that it called.
fn shown_files(place: &Place) -> impl Iterator<Item = &str> {
    let lines = [Some(place), place.library.as_deref()]
        .into_iter()
        .flatten();
    let shown = lines.filter(|place| place.is_users() || place.is_library());
    shown.filter_map(|place| place.file.as_deref())
}

impl<'a, S> Page<'a, S> {
    /// A page with nothing but its heading, which `command` made.
    pub fn new(title: String, sentence: String, command: String) -> Page<'a, S> {
        Page {
            title,
            version: env!("CARGO_PKG_VERSION"),
            command,
            verdict: None,
            sentence,
            bugs: Vec::new(),
            facts: Vec::new(),
            notes: Vec::new(),
            history: &[],
            origins: &[],
            unreached: None,
            runs: Vec::new(),
            texts: Vec::new(),
            sources: BTreeMap::new(),
        }
    }

    /// The verdict.
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }

    /// The searches that were made and their assumptions, and notes about that.
    pub fn facts(mut self, facts: Vec<(String, String)>, notes: Vec<String>) -> Self {
        (self.facts, self.notes) = (facts, notes);
        self
    }

    /// One more bug.
    pub fn bug(mut self, bug: BugPage) -> Self {
        self.bugs.push(bug);
        self
    }

    /// The history of the search, and the origins of its executions.
    pub fn searched(mut self, history: &'a [S], origins: &'a [Origin]) -> Self {
        (self.history, self.origins) = (history, &origins[..origins.len().min(ORIGINS)]);
        self
    }

    /// The lines that no execution reached.
    pub fn unreached(mut self, places: Option<&'a [Place]>) -> Self {
        self.unreached = places;
        self
    }

    /// The rows of a comparison.
    pub fn compared(mut self, runs: Vec<RunFacts>) -> Self {
        self.runs = runs;
        self
    }

    /// A heading with text below.
    pub fn text(mut self, heading: String, text: String) -> Self {
        self.texts.push((heading, text));
        self
    }

    /// Shows lines of these files. `read` tells what is in a file, if it can be read.
    pub fn sources(
        mut self,
        files: impl IntoIterator<Item = String>,
        read: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Self {
        for file in files {
            let known = self.sources.contains_key(&file);
            let bytes = read(&file).filter(|bytes| !known && bytes.len() <= LARGEST_SOURCE);
            if let Some(bytes) = bytes {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.sources.insert(file, text);
            }
        }
        self
    }
}

impl<S: Serialize> Page<'_, S> {
    /// The page itself.
    pub fn html(&self) -> serde_json::Result<String> {
        html(&format!("{} – Selvedge", self.title), self)
    }
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
            text: what(described),
            location: step.op.location().map(|location| location.index() as u32),
            clock,
        }
    };
    described.iter().zip(steps).map(relation).collect()
}
