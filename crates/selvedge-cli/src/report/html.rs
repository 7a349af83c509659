//! `--report FILE.html`: what a check found, as one page to look at.
//!
//! The page is made by the crate `selvedge-page`; here is what the command knows about its searches.

use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use selvedge_page::RunFacts;
use selvedge_page::{BugPage, Origin};

use super::request::Asked;
use super::{Place, Report, Verdict, facts, human};
use crate::explain;
use crate::input;
use crate::output;
use crate::problem::Problem;
use crate::worker::history::Sample;
use crate::worker::protocol::FoundBug;

/// A page of the command.
pub(crate) struct Page<'a>(selvedge_page::Page<'a, Sample>);

impl<'a> Page<'a> {
    /// A page with nothing but its heading.
    pub(crate) fn new(title: String, sentence: String) -> Page<'a> {
        let command = human::command(std::env::args_os(), &[]);
        Page(selvedge_page::Page::new(title, sentence, command))
    }

    /// The result of a check.
    pub(crate) fn of_check(report: &Report, asked: &Asked<'_>, bugs: &[FoundBug]) -> Page<'a> {
        let sentence = match report.all_bugs().first() {
            Some(bug) => human::heading(bug),
            None => {
                let verdict = human::plain_verdict(report);
                verdict.lines().next().unwrap_or_default().to_owned()
            }
        };
        let notes = report.notes.iter().chain(&report.warnings);
        let page = Page::new(asked.program(), sentence).0;
        let page = page
            .verdict(report.verdict)
            .facts(facts::all(report, asked.verify), notes.cloned().collect());
        let page = bugs.iter().fold(Page(page), Page::bug);
        page.sources(asked.files())
    }

    /// A failure that was replayed.
    pub(crate) fn of_replay(title: String, bug: &FoundBug) -> Page<'a> {
        let page = Page::new(title, human::heading(&bug.described)).0;
        Page(page.verdict(Verdict::Bug)).bug(bug)
    }

    fn bug(self, found: &FoundBug) -> Page<'a> {
        let bug = found.described.clone();
        let steps = &found.raw.witness.steps;
        let bug = BugPage::new(bug, steps, explain::page(found.described.kind));
        let files = bug.files();
        Page(self.0.bug(bug)).sources(files)
    }

    /// The history of the search, and the origins of its executions.
    pub(crate) fn searched(self, history: &'a [Sample], origins: &'a [Origin]) -> Page<'a> {
        let files = origins.iter().flat_map(Origin::files);
        let files: BTreeSet<String> = files.map(str::to_owned).collect();
        Page(self.0.searched(history, origins)).sources(files)
    }

    /// The lines that no execution reached.
    pub(crate) fn unreached(self, places: Option<&'a [Place]>) -> Page<'a> {
        let files = places.unwrap_or_default().iter();
        let files: BTreeSet<String> = files.filter_map(|place| place.file.clone()).collect();
        Page(self.0.unreached(places)).sources(files)
    }

    /// A verdict on a comparison, and its rows.
    pub(crate) fn compared(self, verdict: Verdict, runs: Vec<RunFacts>) -> Page<'a> {
        Page(self.0.verdict(verdict).compared(runs))
    }

    /// A heading with text below.
    pub(crate) fn text(self, heading: String, text: String) -> Page<'a> {
        Page(self.0.text(heading, text))
    }

    fn sources(self, files: impl IntoIterator<Item = String>) -> Page<'a> {
        Page(
            self.0
                .sources(files, |file| input::read(Path::new(file)).ok()),
        )
    }

    /// The page itself.
    pub(crate) fn html(&self) -> Result<String, Problem> {
        self.0
            .html()
            .map_err(|error| Problem::internal(format!("the report cannot be made: {error}")))
    }

    /// Writes it to `path`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Problem> {
        output::write(path, self.html()?).map_err(|error| {
            Problem::request(format!(
                "cannot write the report to {}: {error}",
                path.display()
            ))
        })
    }
}
