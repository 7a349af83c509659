//! `cargo selvedge test`: builds a crate's tests with `--cfg loom`, runs each of them in a process
//! of its own, and tells how many executions there were.

mod args;
mod build;
mod junit;
mod run;

use std::process::ExitCode;

use clap::Parser;

use args::{Command, Selvedge};

fn main() -> ExitCode {
    let Selvedge { command } = args::Cargo::parse().command();
    let Command::Test(test) = command;
    match check(&test) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Builds, runs, reports. False if a test failed.
fn check(test: &args::Test) -> Result<bool, String> {
    let executables = build::build(test)?;
    let mut results = Vec::new();
    for executable in &executables {
        for name in run::list(executable, test)? {
            results.push(run::run(executable, &name, test)?);
        }
    }
    let failed = results.iter().filter(|result| result.failed()).count();
    let executions: u64 = results.iter().filter_map(|result| result.executions).sum();
    let partial = results.iter().filter(|result| result.partial).count();
    println!(
        "\n{} passed, {failed} failed; {executions} executions",
        results.len() - failed
    );
    if partial > 0 {
        println!("{partial} not explored completely: a limit left out the rest");
    }
    if results.is_empty() {
        println!(
            "no test was found: are they behind another cfg than `{}`? (--cfg NAME)",
            test.cfg
        );
    }
    if let Some(path) = &test.junit {
        let text = junit::render(&results);
        std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(failed == 0)
}
