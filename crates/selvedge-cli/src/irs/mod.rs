//! `selvedge irs`: programs that keep to verified schedules.

mod build;
mod calls;
mod checks;
mod inputs;
mod pairs;
mod patch;
mod picture;
mod run;
mod stat;
mod thunks;
mod tune;
mod verify;

use std::process::ExitCode;

use crate::args::Irs;
use crate::problem::{Problem, Status};

/// Does what is asked for.
pub(crate) fn run(irs: &Irs) -> Result<ExitCode, Problem> {
    let status: Status = match irs {
        Irs::Verify(request) => verify::run(request)?,
        Irs::Stat(request) => stat::run(request)?,
        Irs::Build(request) => build::run(request)?,
        Irs::Run(request) => return run::run(request),
    };
    Ok(status.into())
}
