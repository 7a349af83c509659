//! Explains each kind of bug, for `selvedge explain KIND` and the rules of SARIF.

mod verdict;

use selvedge_core::FailureKind;

use crate::output;
use crate::problem::{Problem, Status};
use crate::report::kind_name;

pub(crate) use self::verdict::verdict;

/// One section for each kind, under its name. The book includes it as it is.
const BUGS: &str = include_str!("bugs.md");

/// Prints the section about `kind`, or the names of all kinds.
pub(crate) fn run(kind: Option<&str>) -> Result<Status, Problem> {
    let Some(kind) = kind else {
        for (name, text) in sections() {
            output::print(&format!("{name:<20} {}\n", first_sentence(text)));
        }
        return Ok(Status::Verified);
    };
    let found = sections().find(|(name, _)| *name == kind);
    let Some((name, text)) = found else {
        let names: Vec<&str> = sections().map(|(name, _)| name).collect();
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
    let kind = kind_name(kind);
    let mut sections = sections();
    let found = sections.find(|(name, _)| *name == kind);
    found.map_or("", |(_, text)| text.trim())
}

/// Its first sentence.
pub(crate) fn summary(kind: FailureKind) -> String {
    first_sentence(page(kind))
}

fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUGS.split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
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
