//! What an inspection found, and how it is told.

use std::collections::BTreeSet;

use crate::problem::Problem;

/// How many findings are shown; one is enough to refuse a program.
const SHOWN: usize = 10;

/// What is wrong with the program.
#[derive(Default)]
pub(super) struct Findings {
    /// (where, what, help), without repetitions.
    list: Vec<(String, String, String)>,
}

impl Findings {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Adds one: where, what, and what to do about it.
    pub(super) fn add(&mut self, place: String, what: String, help: &str) {
        let finding = (place, what, help.to_owned());
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    /// Refuses the program if there is anything.
    pub(super) fn into_result(self) -> Result<(), Problem> {
        if self.list.is_empty() {
            return Ok(());
        }
        let line = |(place, what, _): &(String, String, String)| match place.as_str() {
            "" => format!("the program {what}"),
            place => format!("{place} {what}"),
        };
        let mut problem = match self.list.as_slice() {
            [only] => Problem::request(format!("cannot check this program: {}", line(only))),
            several => several.iter().take(SHOWN).fold(
                Problem::request(format!(
                    "cannot check this program, for {} reasons",
                    several.len()
                )),
                |problem, finding| problem.note(line(finding)),
            ),
        };
        let helps: BTreeSet<&str> = self.list.iter().map(|(_, _, help)| help.as_str()).collect();
        for help in helps.into_iter().filter(|help| !help.is_empty()) {
            problem = problem.help(help);
        }
        Err(problem)
    }
}
