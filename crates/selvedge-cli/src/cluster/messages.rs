//! The messages between coordinators and workers.

use selvedge_core::{Fact, Failure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;
use crate::worker::orders::{Budget, Packed, Piece, Sliced};
use crate::worker::protocol::{Library, Unloadable};
use crate::worker::supervise::Cause;

/// The version of these messages.
const FORMAT: u32 = 1;

/// A unit by its contents: it means the same to every coordinator of a run.
pub(super) type Key = [u8; 16];

/// The key of a unit in the given epoch of its search.
pub(super) fn key(epoch: u32, unit: &Packed) -> Key {
    let mut hash = Sha256::new_with_prefix(epoch.to_le_bytes());
    hash.update(unit.as_deref().unwrap_or_default());
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize()[..16]);
    key
}

/// A unit in the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) unit: Packed,
    pub(super) known: Vec<Failure>,
    pub(super) learned: Vec<(Fact, Fact)>,
    pub(super) budget: Budget,
    pub(super) pieces: u64,
}

/// The result. Units travel as bytes, and what is shown to people as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) key: Key,
    pub(super) rest: Vec<Piece>,
    outcome: String,
}

/// Why a worker could not explore a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Trouble {
    /// The program cannot be loaded.
    Unloadable(Unloadable),
    /// The unit takes too much memory, or does not get on.
    Stopped(Cause),
    /// Anything else.
    Failed(String),
}

impl Answer {
    pub(super) fn new(key: Key, outcome: Result<Sliced, Trouble>) -> Answer {
        let mut outcome = outcome;
        let rest = outcome
            .as_mut()
            .map(|sliced| std::mem::take(&mut sliced.rest));
        Answer {
            key,
            rest: rest.unwrap_or_default(),
            outcome: serde_json::to_string(&outcome).unwrap_or_default(),
        }
    }

    /// The worker's answer, with its rest.
    pub(super) fn outcome(self) -> Result<Result<Sliced, Trouble>, serde_json::Error> {
        let outcome: Result<Sliced, Trouble> = serde_json::from_str(&self.outcome)?;
        Ok(outcome.map(|sliced| Sliced {
            rest: self.rest,
            ..sliced
        }))
    }
}

/// The state that the coordinator saves: the last answer that it has taken up, and the search as a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) answer: u64,
    pub(super) checkpoint: Vec<u8>,
}

/// The message that a serving machine sends every second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Alive {
    pub(super) machine: String,
    pub(super) jobs: u32,
    /// Why it does not take part.
    pub(super) refuses: Option<String>,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunState {
    /// Workers explore it.
    Searching,
    /// It was stopped, and can be continued.
    Stopped,
    /// Nothing is left to explore.
    Done,
}

/// The record of a run, as everybody can see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) selvedge: String,
    pub(super) architecture: String,
    pub(super) state: RunState,
    /// The source files.
    pub(super) files: String,
    /// The hash of the linked program.
    pub(super) program: String,
    pub(super) libraries: Vec<Library>,
    /// The coordinator. The record changes every second while there is one.
    pub(super) coordinator: String,
    pub(super) beat: u64,
    pub(super) executions: u64,
    pub(super) bugs: u64,
    pub(super) per_second: f64,
    pub(super) progress: f64,
    pub(super) seconds: f64,
    pub(super) machines: u64,
    pub(super) jobs: u64,
    pub(super) units: u64,
}

impl Record {
    pub(super) fn new() -> Record {
        Record {
            format: FORMAT,
            selvedge: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            state: RunState::Searching,
            files: String::new(),
            program: String::new(),
            libraries: Vec::new(),
            coordinator: String::new(),
            beat: 0,
            executions: 0,
            bugs: 0,
            per_second: 0.0,
            progress: 0.0,
            seconds: 0.0,
            machines: 0,
            jobs: 0,
            units: 0,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Record, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|error| Problem::request(format!("a run of another version: {error}")))
    }

    /// Why this process cannot take part, if it cannot.
    pub(super) fn mismatch(&self) -> Option<String> {
        let (version, architecture) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
        if self.format != FORMAT || self.selvedge != version {
            return Some(format!(
                "the run is of Selvedge {}, this is {version}",
                self.selvedge
            ));
        }
        (self.architecture != architecture).then(|| {
            format!(
                "the run is for {}, this machine is {architecture}",
                self.architecture
            )
        })
    }

    /// Why the program would not be the same here, where these libraries are.
    pub(super) fn differs(&self, libraries: &[Library]) -> Option<String> {
        let other = self
            .libraries
            .iter()
            .find(|library| !libraries.contains(library))?;
        Some(format!("{} is another version here", other.0))
    }
}
