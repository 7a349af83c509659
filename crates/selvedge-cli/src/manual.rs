//! Shell completions and man pages, made from the definition of the command line.

use std::fs;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;
use crate::problem::{Problem, Status};

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<Status, Problem> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "selvedge", &mut text);
    output::print(&String::from_utf8_lossy(&text));
    Ok(Status::Verified)
}

/// Writes a page for the command and one for each subcommand to `directory`.
pub(crate) fn pages(directory: &Path) -> Result<Status, Problem> {
    let failed = |error: std::io::Error| {
        let name = directory.display();
        Problem::request(format!("cannot write man pages to {name}: {error}"))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    output::print(&format!(
        "man pages are in {0}; man -l {0}/selvedge.1 shows the first one\n",
        directory.display()
    ));
    Ok(Status::Verified)
}
