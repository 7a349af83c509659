//! A search in a file, so that a later run of the test can continue it.
//!
//! The file is replaced as a whole: whatever happens, it holds the newest or the previous state of the
//! search. It holds work units, which only a search of the same model can continue; so it says which
//! model that is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use selvedge_core::fingerprint::Fingerprint;
use selvedge_page::input;
use serde::{Deserialize, Serialize};

use crate::clerk;
use crate::jobs::{self, Division};

/// How every file begins; the number changes with the format of units.
const MAGIC: &str = "selvedge checkpoint of a Rust model 1\n";
/// How often the file is written.
const EVERY: Duration = Duration::from_secs(2);

/// The search that a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// The version of the library.
    selvedge: String,
    /// The contents of the program's file.
    program: (u64, u64),
    /// The test and the number of its model.
    test: Option<String>,
    model: usize,
    /// The settings of the search.
    settings: String,
}

/// The contents of the file after its header.
#[derive(Deserialize)]
struct Body {
    subject: Subject,
    first: Option<u64>,
    division: Division,
}

/// The same to be written.
#[derive(Serialize)]
struct Saved<'a> {
    subject: &'a Subject,
    first: Option<u64>,
    division: &'a Division,
}

/// Writes a search to its file from time to time.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    path: PathBuf,
    subject: Subject,
    /// A fingerprint of the program's first execution.
    pub(crate) first: Option<u64>,
    written: Instant,
    every: Duration,
}

impl Checkpoint {
    /// The file `path` for the search of a model, and what is left of the search if the file is there. An
    /// error tells why the search cannot be continued.
    pub(crate) fn open(
        path: &Path,
        (test, model): (Option<String>, usize),
        settings: String,
    ) -> Result<(Checkpoint, Option<Division>), String> {
        let program = fs::read("/proc/self/exe")
            .map_err(|error| format!("the program cannot be read for its checkpoint: {error}"))?;
        let subject = Subject {
            selvedge: env!("CARGO_PKG_VERSION").to_owned(),
            program: fingerprint(&program),
            test,
            model,
            settings,
        };
        let saved = match input::read(path) {
            Ok(bytes) => Some(read(&bytes, &subject).map_err(|why| {
                format!(
                    "the checkpoint {} {why} (remove the file to begin anew)",
                    path.display()
                )
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let name = path.display();
                return Err(format!("cannot read the checkpoint {name}: {error}"));
            }
        };
        let checkpoint = Checkpoint {
            path: path.to_owned(),
            subject,
            first: saved.as_ref().and_then(|saved| saved.first),
            written: Instant::now(),
            // Tests of slices look at every one of them.
            every: jobs::forced_budget().map_or(EVERY, |_| Duration::ZERO),
        };
        Ok((checkpoint, saved.map(|saved| saved.division)))
    }

    /// Whether it is time to write it again.
    pub(crate) fn is_due(&self) -> bool {
        self.written.elapsed() >= self.every
    }

    /// Replaces the file.
    pub(crate) fn write(&mut self, division: &Division) -> Result<(), String> {
        self.written = Instant::now();
        let saved = Saved {
            subject: &self.subject,
            first: self.first,
            division,
        };
        let path = self.path.clone();
        let written = match serde_json::to_vec(&saved) {
            Ok(body) => clerk::have(move || replace(&path, &body)),
            Err(error) => Err(error.into()),
        };
        written.map_err(|error| {
            let name = self.path.display();
            format!("cannot write the checkpoint {name}: {error}")
        })
    }

    /// Removes the file: the search is done.
    pub(crate) fn remove(&self) {
        let path = self.path.clone();
        let _ = clerk::have(move || fs::remove_file(path));
    }
}

fn fingerprint(bytes: &[u8]) -> (u64, u64) {
    let mut hash = Fingerprint::new();
    hash.bytes(bytes);
    hash.finish()
}

/// The checksum as it stands behind the header.
fn checksum(body: &[u8]) -> String {
    let (a, b) = fingerprint(body);
    format!("{a:016x}{b:016x}\n")
}

/// Writes `body` with its header to `path`, by way of a file beside it.
fn replace(path: &Path, body: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(MAGIC.as_bytes())?;
        file.write_all(checksum(body).as_bytes())?;
        file.write_all(body)?;
        file.sync_data()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// The contents of the file, if it is about `subject`.
fn read(bytes: &[u8], subject: &Subject) -> Result<Body, String> {
    let start = MAGIC.rfind(' ').unwrap_or_default();
    if !bytes.starts_with(&MAGIC.as_bytes()[..start]) {
        return Err("is not a checkpoint of a Rust model".to_owned());
    }
    let other = || "was written by another version of Selvedge".to_owned();
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or_else(other)?;
    let damaged = || "is damaged".to_owned();
    let (sum, body) = rest.split_at_checked(33).ok_or_else(damaged)?;
    if checksum(body).as_bytes() != sum {
        return Err(damaged());
    }
    let body: Body = serde_json::from_slice(body).map_err(|_| damaged())?;
    let saved = &body.subject;
    let differs = [
        (
            saved.selvedge != subject.selvedge,
            "was written by another version of Selvedge",
        ),
        (
            saved.program != subject.program,
            "is of another program, or of this one before it was changed",
        ),
        (
            (&saved.test, saved.model) != (&subject.test, subject.model),
            "is of another model of this program",
        ),
        (
            saved.settings != subject.settings,
            "is of a search with other settings",
        ),
    ];
    match differs.iter().find(|(differs, _)| *differs) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject {
            selvedge: "1".to_owned(),
            program: (1, 2),
            test: Some("a".to_owned()),
            model: 0,
            settings: String::new(),
        }
    }

    fn file(subject: &Subject) -> Vec<u8> {
        let saved = Saved {
            subject,
            first: Some(7),
            division: &Division::new(&[]),
        };
        let body = serde_json::to_vec(&saved).unwrap();
        [MAGIC.as_bytes(), checksum(&body).as_bytes(), &body].concat()
    }

    #[test]
    fn only_a_file_of_the_same_model_is_read() {
        let bytes = file(&subject());
        assert_eq!(read(&bytes, &subject()).unwrap().first, Some(7));
        type Change = fn(&mut Subject);
        let changes: [(Change, &str); 4] = [
            (|subject| subject.selvedge.push('2'), "another version"),
            (|subject| subject.program.0 += 1, "another program"),
            (|subject| subject.model += 1, "another model"),
            (|subject| subject.settings.push('x'), "other settings"),
        ];
        for (change, expected) in changes {
            let mut other = subject();
            change(&mut other);
            let why = read(&bytes, &other).err().unwrap();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_damaged_file_is_not_read() {
        let bytes = file(&subject());
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(read(&damaged, &subject()).is_err(), "byte {at}");
            assert!(read(&bytes[..at], &subject()).is_err(), "{at} bytes");
        }
        let other = String::from_utf8(bytes)
            .unwrap()
            .replace("model 1\n", "model 2\n");
        let why = read(other.as_bytes(), &subject()).err().unwrap();
        assert_eq!(why, "was written by another version of Selvedge");
    }
}
