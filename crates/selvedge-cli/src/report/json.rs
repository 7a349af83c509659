//! `--format json`: one object on standard output.

use std::io::{self, Write};

use serde::Serialize;

use crate::problem::Problem;

/// Prints `value` as the one object of this run.
pub(crate) fn print(value: &impl Serialize) -> Result<(), Problem> {
    write(serde_json::to_string_pretty(value))
}

/// The same on one line.
pub(crate) fn print_line(value: &impl Serialize) -> Result<(), Problem> {
    write(serde_json::to_string(value))
}

fn write(text: serde_json::Result<String>) -> Result<(), Problem> {
    let mut text =
        text.map_err(|error| Problem::internal(format!("the result cannot be written: {error}")))?;
    text.push('\n');
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Problem::internal(format!("cannot write to standard output: {error}")))
}
