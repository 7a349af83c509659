//! `selvedge litmus`: prints the final states of litmus tests.

use selvedge_core::with_model;
use selvedge_litmus::{Test, parse};

use crate::args::{self, Model};
use crate::input;
use crate::output;
use crate::problem::{Problem, Status};
use crate::report::html::Page;

/// Runs each test and prints what herd would.
pub(crate) fn run(litmus: &args::Litmus) -> Result<Status, Problem> {
    let mut page = Page::new(
        "litmus tests".to_owned(),
        format!("final states under {}", litmus.model),
    );
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
        let outcome = outcome(&test, litmus.model).to_string();
        output::print(&outcome);
        page = page.text(name.to_string(), outcome);
    }
    if let Some(path) = &litmus.report {
        page.write(path)?;
    }
    Ok(Status::Verified)
}

fn outcome(test: &Test, model: Model) -> selvedge_litmus::Outcome {
    with_model!(model, C => selvedge_litmus::run::<C>(test))
}
