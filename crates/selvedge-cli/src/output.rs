//! Writing to the terminal, or to wherever standard output and standard error go.
//!
//! A reader that goes away (`selvedge verify … | head`) is no reason to fail: the exit status still
//! tells the result.

use std::io::Write as _;

/// Writes to standard output, without colours where it is not a terminal.
pub(crate) fn print(text: &str) {
    let _ = anstream::stdout().write_all(text.as_bytes());
}

/// Writes to standard error, without colours where it is not a terminal.
pub(crate) fn complain(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Writes somebody else's words to standard error as they are.
pub(crate) fn pass_on(words: &str) {
    let _ = std::io::stderr().write_all(words.as_bytes());
}
