//! The request, as reports describe it.

use std::path::{Path, PathBuf};

use super::{Place, human};
use crate::args;
use crate::problem::Problem;

/// A request to check a program.
pub(crate) struct Asked<'a> {
    /// Its options.
    pub(crate) verify: &'a args::Verify,
    /// The command that was run, for the shell.
    pub(crate) command: String,
    /// Where it was run.
    pub(crate) directory: PathBuf,
    /// Whether the trace was written, if one was asked for.
    pub(crate) traced: bool,
}

impl<'a> Asked<'a> {
    /// The request of this process.
    pub(crate) fn new(verify: &'a args::Verify) -> Asked<'a> {
        Asked {
            verify,
            command: human::command(std::env::args_os(), &[]),
            directory: std::env::current_dir().unwrap_or_default(),
            traced: true,
        }
    }

    /// The program's files, as the user named them.
    pub(crate) fn files(&self) -> Vec<String> {
        self.verify.sources.names()
    }

    /// A short name of the program.
    pub(crate) fn program(&self) -> String {
        self.files().join(" ")
    }

    /// Where a report says that a bug is which has no place of its own.
    pub(crate) fn home(&self) -> Place {
        home(&self.files())
    }

    /// `place`, or the program's first file if nothing is known about the file.
    pub(crate) fn locate(&self, place: &Place) -> Place {
        match place.file {
            Some(_) => place.clone(),
            None => self.home(),
        }
    }
}

/// A request that ended without a result.
pub(crate) struct Failed<'a> {
    /// The files that the user named.
    pub(crate) files: &'a [String],
    /// The reason.
    pub(crate) problem: &'a Problem,
}

impl Failed<'_> {
    /// The reason as it is shown on a terminal, without colours.
    pub(super) fn text(&self) -> String {
        let text = self.problem.to_string();
        anstream::adapter::strip_str(&text).to_string()
    }

    /// The first file.
    pub(super) fn home(&self) -> Place {
        home(self.files)
    }
}

fn home(files: &[String]) -> Place {
    Place {
        file: files.first().cloned(),
        line: Some(1),
        function: None,
        library: None,
    }
}

/// A path as a URI reference: percent-encoded, absolute ones with their scheme.
pub(super) fn uri(path: &str) -> String {
    let mut uri = match Path::new(path).is_absolute() {
        true => "file://".to_owned(),
        false => String::new(),
    };
    for &byte in path.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_are_encoded() {
        assert_eq!(uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(uri("/tmp/ü\"<.c"), "file:///tmp/%C3%BC%22%3C.c");
    }
}
