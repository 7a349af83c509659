//! `selvedge irs`: programs that keep to verified schedules.

mod build;
mod calls;
mod patch;
mod picture;
mod stat;
mod thunks;
mod verify;

use crate::args::Irs;
use crate::problem::{Problem, Status};

/// Does what is asked for.
pub(crate) fn run(irs: &Irs) -> Result<Status, Problem> {
    match irs {
        Irs::Verify(request) => verify::run(request),
        Irs::Stat(request) => stat::run(request),
        Irs::Build(request) => build::run(request),
    }
}
