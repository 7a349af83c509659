//! The values of options.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
pub(crate) use selvedge_core::model::MemoryModel as Model;
use serde::{Deserialize, Serialize};

use crate::explorer::Descriptor;

/// Reads the name of a memory model.
pub(super) fn memory_model() -> impl TypedValueParser<Value = Model> {
    let values = Model::ALL.map(|model| {
        PossibleValue::new(model.name()).help(match model {
            Model::Sc => "Sequential consistency",
            Model::Tso => "Total store order",
            Model::Ra => "Release-acquire",
            Model::Rc11 => "The repaired C/C++11 model",
        })
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Model>())
}

/// Reads the name of an explorer, or `other`.
pub(super) fn algorithm(other: Option<&'static str>) -> PossibleValuesParser {
    let named = Descriptor::all_named().map(Descriptor::value);
    let other = other.into_iter().map(PossibleValue::new);
    PossibleValuesParser::new(named.chain(other))
}

/// Reads how many preemptions, delays or switches an execution may have. No program that can be explored comes close
/// to the limit.
pub(super) fn bound() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=100_000)
}

/// The equivalence of executions: one of each class is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Equivalence {
    /// Same program order, reads-from and coherence
    Mazurkiewicz,
    /// Same program order and reads-from
    ReadsFrom,
}

/// The treatment of plain accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Plain {
    /// No step of its own; two that conflict and are not ordered are a data race, which is a bug
    Race,
    /// A step like an atomic access; no data races
    Sc,
}

/// The treatment of lines in installed headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SystemHeaders {
    /// Show them below the program's own line
    #[default]
    Show,
    /// Show only the program's own lines
    Hide,
}

/// A property that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadyMade {
    /// Threads pass progress marks again and again (selvedge_progress)
    NonProgress,
    /// Every thread that wants to go on goes on again and again
    Starvation,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// One JSON object on standard output
    Json,
    /// One JSON object a line: progress while the search runs, then the result
    Jsonl,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// Annotations of GitHub Actions
    Github,
}

/// How results are printed by commands that only people and scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// For people
    Human,
    /// One JSON object on standard output
    Json,
}

/// Arguments of the program, on the command line as one word for the shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Words(pub(crate) Vec<String>);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = shlex::try_join(self.0.iter().map(String::as_str));
        f.write_str(&joined.unwrap_or_default())
    }
}

pub(super) fn words(text: &str) -> Result<Words, String> {
    shlex::split(text)
        .map(Words)
        .ok_or_else(|| "a quotation mark is not closed".to_owned())
}

pub(super) fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The name of an option's value as the user writes it.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|v| v.get_name().to_owned())
        .unwrap_or_default()
}

/// How often loops go round before they are cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unroll {
    /// The function whose loops are meant, all loops if there is none.
    pub(crate) function: Option<String>,
    /// The number of rounds.
    pub(crate) rounds: u32,
}

impl fmt::Display for Unroll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{function}={}", self.rounds),
            None => write!(f, "{}", self.rounds),
        }
    }
}

/// More rounds would never be explored.
const MOST_ROUNDS: u32 = 1_000_000;

pub(super) fn unroll(text: &str) -> Result<Unroll, String> {
    let (function, rounds) = match text.rsplit_once('=') {
        Some((function, rounds)) => (Some(function.to_owned()), rounds),
        None => (None, text),
    };
    let rounds: u32 = rounds
        .parse()
        .map_err(|_| "neither a number nor FUNCTION=NUMBER".to_owned())?;
    match (rounds, function.as_deref()) {
        (0, _) => Err("must be more than zero".to_owned()),
        (more, _) if more > MOST_ROUNDS => {
            Err(format!("{rounds} rounds are more than {MOST_ROUNDS}"))
        }
        (_, Some("")) => Err("names no function".to_owned()),
        _ => Ok(Unroll { function, rounds }),
    }
}

/// Thirty years.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
        _ => Err("must be more than zero and at most 1000000000".to_owned()),
    }
}

pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "not a number of bytes".to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("must be more than zero".to_owned()),
        Some(bytes) if bytes <= 1 << 46 => Ok(bytes),
        _ => Err("more than a process can have".to_owned()),
    }
}

/// The size of a stack.
pub(super) fn stack_bytes(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        ..4096 => Err("less than a page (4K)".to_owned()),
        bytes if bytes > 1 << 30 => Err("more than 1G".to_owned()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_a_suffix() {
        assert_eq!(bytes("256K"), Ok(256 << 10));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "K", "0", "-1", "99999999999999G", "1T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stacks_have_a_sensible_size() {
        assert_eq!(stack_bytes("1G"), Ok(1 << 30));
        for wrong in ["1", "4095", "2G", "1000G"] {
            assert!(stack_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounds_are_those_of_a_function_or_of_all() {
        for right in ["1", "f=7", "ns::f=2"] {
            assert_eq!(unroll(right).unwrap().to_string(), right);
        }
        for wrong in [
            "0",
            "",
            "f",
            "f=",
            "f=0",
            "=3",
            "-1",
            "f=x",
            "1000001",
            "f=4294967295",
        ] {
            assert!(unroll(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_positive() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "1e10", "1e300", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
