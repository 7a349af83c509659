//! The findings of a scan, and their wording.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::problem::Problem;

/// How many findings a refusal shows; one is enough to refuse a program.
const SHOWN: usize = 10;

/// A place in the program that cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    /// `file:line: function`; empty for the program as a whole.
    pub(crate) place: String,
    /// The code there, as a verb and its object.
    pub(crate) what: String,
    /// The remedy; may be empty.
    pub(crate) help: String,
    /// The trap that ends an execution that comes there.
    pub(crate) trap: Trap,
}

/// The trap that ends an execution before it does something that cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trap {
    /// Nothing can: the program is refused before it runs.
    Nothing,
    /// The called function: a stub takes its place.
    Callee,
    /// A call in the place of this block of inline assembly.
    Block(usize),
    /// A call at the beginning of the function with these symbols.
    Entry(Vec<String>),
}

impl Finding {
    /// The finding in one line.
    pub(crate) fn line(&self) -> String {
        match self.place.as_str() {
            "" => format!("the program {}", self.what),
            place => format!("{place} {}", self.what),
        }
    }
}

/// Findings without repetitions, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    known: HashSet<Finding>,
}

impl Findings {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Adds one.
    pub(crate) fn add(&mut self, finding: Finding) {
        if self.known.insert(finding.clone()) {
            self.list.push(finding);
        }
    }

    /// The findings, as a list.
    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}

/// Refuses the program if there is anything in `findings`.
pub(crate) fn refuse<'a>(findings: impl Iterator<Item = &'a Finding>) -> Result<(), Problem> {
    let findings: Vec<&Finding> = findings.collect();
    let mut problem = match findings.as_slice() {
        [] => return Ok(()),
        [only] => Problem::request(format!("cannot check this program: {}", only.line())),
        several => several.iter().take(SHOWN).fold(
            Problem::request(format!(
                "cannot check this program, for {} reasons",
                several.len()
            )),
            |problem, finding| problem.note(finding.line()),
        ),
    };
    if findings.len() > SHOWN {
        problem = problem.note("--list-unsupported prints all of them");
    }
    let helps: BTreeSet<&str> = findings.iter().map(|finding| &*finding.help).collect();
    for help in helps.into_iter().filter(|help| !help.is_empty()) {
        problem = problem.help(help);
    }
    Err(problem)
}

/// All findings, grouped by what they are, the most frequent first.
pub(crate) fn listed(findings: &[Finding]) -> String {
    let mut groups: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        groups.entry(&finding.what).or_default().push(finding);
    }
    let mut groups: Vec<(&str, Vec<&Finding>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    let mut text = match findings.len() {
        0 => "nothing in this program is unsupported\n".to_owned(),
        1 => "1 place is not supported\n".to_owned(),
        count => format!("{count} places are not supported\n"),
    };
    for (what, places) in groups {
        text += &format!("\n{} × {what}\n", places.len());
        for finding in &places {
            let before = finding.trap == Trap::Nothing;
            let when = if before { " (refused up front)" } else { "" };
            text += &format!("    {}{when}\n", finding.place);
        }
        if let Some(help) = places
            .iter()
            .map(|place| &place.help)
            .find(|h| !h.is_empty())
        {
            text += &format!("    help: {help}\n");
        }
    }
    text
}
