//! Writing to the terminal, or to wherever standard output and standard error go.
//!
//! A reader that goes away (`selvedge verify … | head`) is no reason to fail: the exit status still
//! tells the result. Any other failure to write is reported by [`check`] when the command ends.

use std::io::{ErrorKind, Write as _};
use std::sync::OnceLock;

pub(crate) use selvedge_page::output::{replaceable, write};

use crate::problem::Problem;

/// Why something could not be written to standard output.
static FAILED: OnceLock<String> = OnceLock::new();

/// Writes to standard output, without colours where it is not a terminal.
pub(crate) fn print(text: &str) {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = FAILED.set(error.to_string());
        }
        _ => {}
    }
}

/// Whether everything could be written to standard output, if its reader was still there.
pub(crate) fn check() -> Result<(), Problem> {
    match FAILED.get() {
        None => Ok(()),
        Some(why) => Err(Problem::internal(format!(
            "cannot write to standard output: {why}"
        ))),
    }
}

/// Writes to standard error, without colours where it is not a terminal.
pub(crate) fn complain(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Writes the output of another program to standard error unchanged.
pub(crate) fn pass_on(words: &str) {
    let _ = std::io::stderr().write_all(words.as_bytes());
}
