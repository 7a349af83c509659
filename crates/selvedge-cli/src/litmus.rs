//! `selvedge litmus`: which final states a litmus test has.

use selvedge_core::model::{Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
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
    match model {
        Model::Sc => selvedge_litmus::run::<SequentialConsistency>(test),
        Model::Tso => selvedge_litmus::run::<TotalStoreOrder>(test),
        Model::Ra => selvedge_litmus::run::<ReleaseAcquire>(test),
        Model::Rc11 => selvedge_litmus::run::<Rc11>(test),
    }
}
