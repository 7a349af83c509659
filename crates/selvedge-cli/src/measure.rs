//! `selvedge measure`: prints the cost of a search of a program as one object of JSON. The benchmarks
//! use it.

use crate::args;
use crate::compile;
use crate::explorer::Explorer;
use crate::problem::{Problem, Status};
use crate::report::json;
use crate::worker::progress::Limits;
use crate::worker::protocol::{Reply, Request, Task};
use crate::worker::supervise::{self, Output};

/// Measures a program and prints what came of it.
pub(crate) fn run(verify: &args::Verify) -> Result<Status, Problem> {
    let (explorer, _) = Explorer::choose(&verify.search, &verify.machine)?;
    let build = compile::build(&verify.program()?)?;
    let request = Request {
        stateful: explorer.keeps_states(),
        asked: explorer.asked(),
        ..Request::new(&build.image(), &verify.machine, Task::Measure(explorer))
    };
    let mut measured = None;
    supervise::run(&request, Limits::default(), Output::Diverted, |reply| {
        if let Reply::Measured(result) = reply {
            measured = Some(result);
        }
    })?;
    let measured =
        measured.ok_or_else(|| Problem::internal("the worker ended without a result"))?;
    json::print_line(&measured)?;
    Ok(Status::Verified)
}
