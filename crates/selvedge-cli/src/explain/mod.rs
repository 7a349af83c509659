//! Explains each kind of bug, for `selvedge explain KIND` and the rules of SARIF.

mod verdict;

use selvedge_core::FailureKind;
use selvedge_page::{Language, explained, kinds};

use crate::output;
use crate::problem::{Problem, Status};

pub(crate) use self::verdict::verdict;

/// Prints the section about `kind`, or the names of all kinds.
pub(crate) fn run(kind: Option<&str>) -> Result<Status, Problem> {
    let Some(kind) = kind else {
        for (name, text) in kinds() {
            output::print(&format!("{name:<20} {}\n", first_sentence(text)));
        }
        return Ok(Status::Verified);
    };
    let found = kinds().find(|(name, _)| *name == kind);
    let Some((name, text)) = found else {
        let names: Vec<&str> = kinds().map(|(name, _)| name).collect();
        return Err(
            Problem::request(format!("there is no kind of bug called {kind}"))
                .help(format!("the kinds are {}", names.join(", "))),
        );
    };
    output::print(&format!("{name}\n\n{}\n", text.trim()));
    Ok(Status::Verified)
}

/// The section about a kind of bug.
pub(crate) fn page(kind: FailureKind) -> &'static str {
    explained(kind, Language::C)
}

/// Its first sentence.
pub(crate) fn summary(kind: FailureKind) -> String {
    first_sentence(page(kind))
}

fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let joined: Vec<&str> = paragraph.split_whitespace().collect();
    let joined = joined.join(" ");
    match joined.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => joined,
    }
}
