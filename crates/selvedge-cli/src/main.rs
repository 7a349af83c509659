//! The `selvedge` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge_cli::main()
}
