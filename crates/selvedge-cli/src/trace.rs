//! A failing schedule in a file: everything `selvedge replay` needs to get the same failure.

use std::path::{Path, PathBuf};

use selvedge_core::report::Bug as RawBug;
use serde::{Deserialize, Serialize};

use crate::args::{self, Model};
use crate::compile::Program;
use crate::explorer::Explorer;
use crate::input;
use crate::output;
use crate::paths;
use crate::problem::Problem;
use crate::report;
use crate::temporal::Asked;
use crate::worker::protocol::FoundBug;

/// The version of the file's format.
const SCHEMA: u32 = 1;

/// The contents of a trace file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trace {
    schema: u32,
    /// The version of Selvedge that wrote it.
    selvedge: String,
    /// How to build the program.
    pub(crate) program: Program,
    /// The contents of its files.
    contents: Vec<Contents>,
    /// How the program behaves.
    pub(crate) machine: args::ProgramOptions,
    /// The memory model.
    pub(crate) model: Model,
    /// Whether the program was run as one whose states are kept: its steps are others then.
    #[serde(default)]
    pub(crate) stateful: bool,
    /// Further questions about the program.
    #[serde(default)]
    pub(crate) asked: Asked,
    /// The bug as it was reported.
    pub(crate) bug: report::Bug,
    /// The decisions that lead to it.
    pub(crate) decisions: RawBug,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Contents {
    #[serde(with = "paths")]
    file: PathBuf,
    fingerprint: String,
}

impl Trace {
    /// The trace of a bug.
    pub(crate) fn new(
        program: &Program,
        machine: &args::ProgramOptions,
        explorer: &Explorer,
        bug: &FoundBug,
    ) -> Result<Trace, Problem> {
        let directory = std::env::current_dir().map_err(|error| {
            Problem::internal(format!("the current directory is gone: {error}"))
        })?;
        let program = Program {
            directory: Some(directory),
            ..program.clone()
        };
        let contents = program
            .files
            .iter()
            .map(|file| Contents {
                file: file.clone(),
                fingerprint: fingerprint(&program, file),
            })
            .collect();
        Ok(Trace {
            schema: SCHEMA,
            selvedge: env!("CARGO_PKG_VERSION").to_owned(),
            program,
            contents,
            machine: machine.clone(),
            model: explorer.model(),
            stateful: explorer.keeps_states(),
            asked: explorer.asked(),
            bug: bug.described.clone(),
            decisions: bug.raw.clone(),
        })
    }

    /// Writes it to `path`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Problem> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Problem::internal(format!("the trace cannot be written: {error}")))?;
        output::write(path, text + "\n").map_err(|error| {
            Problem::request(format!(
                "cannot write the trace to {}: {error}",
                path.display()
            ))
        })
    }

    /// Reads it from `path`.
    pub(crate) fn read(path: &Path) -> Result<Trace, Problem> {
        let name = path.display();
        let text = input::read_text(path)
            .map_err(|error| Problem::request(format!("cannot read the trace {name}: {error}")))?;
        Trace::parse(path, &text)
    }

    /// Reads it from the text of `path`.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Trace, Problem> {
        let name = path.display();
        let how = "traces are written by selvedge verify --trace-out FILE";
        let trace: Trace = serde_json::from_str(text).map_err(|error| {
            Problem::request(format!("{name} is not a trace: {error}")).help(how)
        })?;
        if trace.schema != SCHEMA {
            return Err(Problem::request(format!(
                "{name} was written by another version of Selvedge ({})",
                trace.selvedge
            ))
            .help("write it again with selvedge verify --trace-out FILE"));
        }
        Ok(trace)
    }

    /// The files that are no longer what they were.
    pub(crate) fn changed(&self) -> Vec<&Path> {
        let changed = |contents: &&Contents| {
            fingerprint(&self.program, &contents.file) != contents.fingerprint
        };
        self.contents
            .iter()
            .filter(changed)
            .map(|contents| contents.file.as_path())
            .collect()
    }
}

/// FNV-1a of a file's bytes: enough to notice a change, and the same in every version.
fn fingerprint(program: &Program, file: &Path) -> String {
    let bytes = input::read(&program.path(file)).unwrap_or_default();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
