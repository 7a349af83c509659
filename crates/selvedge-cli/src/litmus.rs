//! `selvedge litmus`: which final states a litmus test has.

use selvedge_core::with_model;
use selvedge_litmus::{Test, parse};

use crate::args::{self, Model};
use crate::input;
use crate::output;
use crate::problem::{Problem, Status};

/// Runs each test and prints what herd would.
pub(crate) fn run(litmus: &args::Litmus) -> Result<Status, Problem> {
    for (n, file) in litmus.files.iter().enumerate() {
        let name = file.display();
        let text = input::read_text(file)
            .map_err(|error| Problem::request(format!("cannot read {name}: {error}")))?;
        let test = parse(&text).map_err(|error| {
            Problem::request(format!("{name}:{}: {}", error.line, error.message))
                .help("litmus tests are read in herd's C syntax")
        })?;
        if n > 0 {
            output::print("\n");
        }
        output::print(&outcome(&test, litmus.model).to_string());
    }
    Ok(Status::Verified)
}

fn outcome(test: &Test, model: Model) -> selvedge_litmus::Outcome {
    with_model!(model, C => selvedge_litmus::run::<C>(test))
}
