//! The messages between a test and its workers: JSON behind its length.

use std::io::{self, Read, Write};

use selvedge_core::Fact;
use selvedge_core::trust::{Budget, Unit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::slice::Sliced;
use crate::model::Report;

/// The variable that tells a worker what it is for.
pub(super) const VARIABLE: &str = "SELVEDGE_WORKER";

/// The purpose of a worker: the value of [`VARIABLE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// The test, by name.
    pub(super) test: String,
    /// The number of the model in the test, from zero.
    pub(super) model: usize,
}

impl Task {
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.model, self.test)
    }

    pub(super) fn parse(text: &str) -> Option<Task> {
        let (model, test) = text.split_once(' ')?;
        Some(Task {
            test: test.to_owned(),
            model: model.parse().ok()?,
        })
    }
}

/// The first message to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The results of the models before, as far as they are known.
    pub(super) before: Vec<Option<Report>>,
}

/// Facts about the program. A worker answers with its steps in the first execution.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) learned: Vec<(Fact, Fact)>,
    /// Whether to tell where executions come from.
    pub(super) origins: bool,
}

/// A unit to be explored, nothing for the whole search.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) unit: Option<Unit>,
    /// When to stop.
    pub(super) budget: Budget,
    /// Into how many units the rest is to be divided then, at most.
    pub(super) pieces: u64,
}

/// The answer of a worker to an [`Order`].
pub(super) type Answer = Sliced;

/// The first answer of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// A fingerprint of the first execution.
    pub(super) first: u64,
}

/// Messages are not larger than that.
const LARGEST: usize = 1 << 30;

pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    to.write_all(&(text.len() as u64).to_le_bytes())?;
    to.write_all(&text)
}

pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_it_was_written() {
        let task = Task {
            test: "a::b c".to_owned(),
            model: 3,
        };
        assert_eq!(Task::parse(&task.text()), Some(task));
        assert_eq!(Task::parse("x"), None);
    }

    #[test]
    fn a_message_is_read_as_it_was_sent() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Ready { first: u64::MAX }).unwrap();
        let ready: Ready = receive(&mut &bytes[..]).unwrap();
        assert_eq!(ready.first, u64::MAX);
        assert!(receive::<Ready>(&mut &bytes[..bytes.len() - 1]).is_err());
    }
}
