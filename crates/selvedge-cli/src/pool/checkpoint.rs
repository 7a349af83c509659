//! A search in a file, so that it can be continued.
//!
//! The file is replaced as a whole: whatever happens, it holds the newest or the previous state of the
//! search. It holds units, which only a search of the same program by the same executable can continue; so it says
//! which they are.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::estimate::Slices;
use super::{State, Work};
use crate::args::{self, Format, Sources, Verify};
use crate::compile::Program;
use crate::input;
use crate::problem::Problem;
use crate::worker::libraries::hexadecimal;

const MAGIC: &[u8; 20] = b"selvedge checkpoint\n";
/// The version of the format: it changes with that of units.
const FORMAT: u32 = 1;
/// How often the file is written.
const EVERY: Duration = Duration::from_secs(1);

/// The subject of the search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) program: Program,
    pub(crate) search: args::SearchOptions,
    pub(crate) machine: args::ProgramOptions,
}

impl Subject {
    /// The command that asks for the same, with `program` in the place of the program.
    pub(crate) fn verify(&self, program: &Program) -> Verify {
        Verify {
            sources: Sources {
                stub: Vec::new(),
                build_dir: None,
                target: None,
                files: program.files.clone(),
                flags: program.flags.clone(),
                cc: program.compiler.clone(),
            },
            search: self.search.clone(),
            machine: self.machine.clone(),
            format: Format::Human,
            trace_out: None,
            checkpoint: None,
            #[cfg(feature = "cluster")]
            cluster: args::Cluster::default(),
            report: None,
            witness: None,
            gtest_filter: None,
            test_case: None,
            cases: Vec::new(),
            explain: false,
            strict: program.strict,
            list_unsupported: false,
        }
    }
}

/// How far a search has come.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) subject: Subject,
    /// The identity of the compiled program.
    pub(crate) fingerprint: [u8; 16],
    pub(crate) state: State,
    /// The executable that wrote it.
    build: String,
}

/// This executable: its version, and a hash. Two builds of a version may differ in what units mean to them.
static BUILD: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match hash_of_this_executable() {
        Ok(hash) => format!("{version} {hash}"),
        Err(_) => format!("{version} unknown"),
    }
});

fn hash_of_this_executable() -> io::Result<String> {
    let mut file = BufReader::with_capacity(1 << 20, File::open("/proc/self/exe")?);
    let mut hash = Sha256::new();
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(hexadecimal(&hash.finalize()[..8]));
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}

/// The contents of the file after its header. What is shown to people is kept as JSON.
#[derive(Serialize, Deserialize)]
struct Body<W> {
    selvedge: String,
    subject: String,
    fingerprint: [u8; 16],
    work: W,
    elapsed: Duration,
    noticed: String,
    slices: Slices,
}

impl Saved {
    /// Reads it from `path`.
    pub(crate) fn read(path: &Path) -> Result<Saved, Problem> {
        let name = path.display();
        let bytes = input::read(path).map_err(|error| {
            Problem::request(format!("cannot read the checkpoint {name}: {error}"))
        })?;
        let saved = Saved::decode(&name.to_string(), &bytes)?;
        if saved.build != *BUILD {
            return Err(Problem::request(format!(
                "{name} was written by another build of Selvedge"
            ))
            .help("the executable that wrote it can continue the search"));
        }
        Ok(saved)
    }

    /// Takes it out of the bytes that are kept under some name. Another build of the same version may have written them.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Saved, Problem> {
        let refuse = |why: &str| {
            Problem::request(format!("{name} {why}"))
                .help("checkpoints are written by selvedge verify --checkpoint FILE")
        };
        let rest = bytes.strip_prefix(MAGIC);
        let rest = rest.ok_or_else(|| refuse("is not a checkpoint"))?;
        let format = rest.first_chunk::<4>().copied().map(u32::from_le_bytes);
        if format.is_some_and(|format| format != FORMAT) {
            return Err(refuse("was written by another version of Selvedge"));
        }
        let damaged = || refuse("is damaged");
        let (sum, body) = rest[4.min(rest.len())..]
            .split_at_checked(32)
            .ok_or_else(damaged)?;
        if Sha256::digest(body)[..] != *sum {
            return Err(damaged());
        }
        let body: Body<Work> = postcard::from_bytes(body).map_err(|_| damaged())?;
        let version = body.selvedge.split(' ').next().unwrap_or_default();
        if version != env!("CARGO_PKG_VERSION") {
            return Err(refuse(&format!(
                "was written by another version of Selvedge ({version})"
            )));
        }
        Ok(Saved {
            subject: serde_json::from_str(&body.subject).map_err(|_| damaged())?,
            fingerprint: body.fingerprint,
            build: body.selvedge,
            state: State {
                work: body.work,
                elapsed: body.elapsed,
                noticed: serde_json::from_str(&body.noticed).map_err(|_| damaged())?,
                slices: body.slices,
                forecast: None,
                origins: Vec::new(),
            },
        })
    }
}

/// Writes a search to its file from time to time.
pub(crate) struct Checkpoint {
    path: PathBuf,
    subject: String,
    fingerprint: [u8; 16],
    written: Instant,
}

impl Checkpoint {
    /// For a search of this program, into the file `path`.
    pub(crate) fn new(
        path: &Path,
        subject: &Subject,
        fingerprint: [u8; 16],
    ) -> Result<Checkpoint, Problem> {
        let subject = serde_json::to_string(subject)
            .map_err(|error| Problem::internal(format!("a search cannot be saved: {error}")))?;
        Ok(Checkpoint {
            path: path.to_owned(),
            subject,
            fingerprint,
            written: Instant::now(),
        })
    }

    /// Whether it is time to write it again.
    pub(super) fn is_due(&self) -> bool {
        self.written.elapsed() >= EVERY
    }

    /// Replaces the file.
    pub(super) fn write(&mut self, state: &State, elapsed: Duration) -> Result<(), Problem> {
        self.written = Instant::now();
        let write = || -> io::Result<()> {
            let bytes = encode(&self.subject, self.fingerprint, state, elapsed)?;
            let directory = self.path.parent().filter(|path| *path != Path::new(""));
            let directory = directory.unwrap_or(Path::new("."));
            let mut file = NamedTempFile::new_in(directory)?;
            file.write_all(&bytes)?;
            file.as_file().sync_data()?;
            file.persist(&self.path)?;
            // The name is safe only now.
            File::open(directory)?.sync_all()
        };
        write().map_err(|error| {
            let name = self.path.display();
            Problem::request(format!("cannot write the checkpoint {name}: {error}"))
        })
    }

    /// Removes the file: the search is done.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The contents of a file for a search of `subject`, which is written as JSON.
pub(crate) fn encode(
    subject: &str,
    fingerprint: [u8; 16],
    state: &State,
    elapsed: Duration,
) -> io::Result<Vec<u8>> {
    let body = Body {
        selvedge: BUILD.clone(),
        subject: subject.to_owned(),
        fingerprint,
        work: &state.work,
        elapsed,
        noticed: serde_json::to_string(&state.noticed)?,
        slices: state.slices,
    };
    let body = postcard::to_stdvec(&body).map_err(io::Error::other)?;
    Ok(sealed(&body))
}

/// A body with its header.
pub(crate) fn sealed(body: &[u8]) -> Vec<u8> {
    let sum = Sha256::digest(body);
    [&MAGIC[..], &FORMAT.to_le_bytes(), &sum, body].concat()
}
