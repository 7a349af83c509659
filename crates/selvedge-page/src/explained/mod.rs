//! A description of each kind of bug, with a small example and the usual fix.

use selvedge_core::FailureKind;

use crate::kind_name;

/// One section for each kind, under its name. The book includes it as it is.
const BUGS: &str = include_str!("bugs.md");
/// The same for the kinds that Rust tests can have.
const RUST: &str = include_str!("rust.md");

/// The language that an explanation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C and C++.
    C,
    /// Rust.
    Rust,
}

/// The section about a kind of bug.
pub fn explained(kind: FailureKind, language: Language) -> &'static str {
    let kind = kind_name(kind);
    let in_rust = Some(RUST).filter(|_| language == Language::Rust);
    let texts = in_rust.into_iter().chain([BUGS]);
    let mut all = texts.flat_map(sections);
    let found = all.find(|(name, _)| *name == kind);
    found.map_or("", |(_, text)| text.trim())
}

/// All kinds, each with its name and its section.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    sections(BUGS)
}

fn sections(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_has_explanations_of_its_own() {
        let kinds: Vec<&str> = kinds().map(|(name, _)| name).collect();
        for (name, text) in sections(RUST) {
            assert!(kinds.contains(&name), "{name} is no kind of bug");
            assert!(text.contains("The usual fix:"), "{name}");
        }
        let race = |language| explained(FailureKind::DataRace, language);
        assert!(race(Language::Rust).contains("UnsafeCell"));
        assert!(race(Language::C).contains("pthread_create"));
        let free = FailureKind::BadFree;
        assert_eq!(
            explained(free, Language::Rust),
            explained(free, Language::C)
        );
    }
}
