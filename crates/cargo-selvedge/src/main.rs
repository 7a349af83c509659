//! `cargo selvedge test`: builds a crate's tests with `--cfg loom` and Selvedge in the place of
//! loom, runs each of them in a process of its own, and tells how many executions there were.
//! `cargo selvedge replay` runs one execution of a test again. `cargo selvedge check` builds a program
//! that is written against `std` and has the `selvedge` command check it.

mod args;
mod build;
mod check;
mod junit;
mod loom;
mod pages;
mod run;

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use clap::Parser;

use args::{Command, Replay, Selvedge, Test};
use build::Executable;

fn main() -> ExitCode {
    let Selvedge { command } = match args::Cargo::try_parse() {
        Ok(arguments) => arguments.command(),
        // The help or the version were asked for, and may fail to be written.
        Err(help) if !help.use_stderr() => {
            return match help.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("error: cannot write to standard output: {error}");
                    ExitCode::from(2)
                }
            };
        }
        Err(error) => error.exit(),
    };
    let result = match command {
        Command::Test(test) => check(&test),
        Command::Replay(replay) => repeat(&replay),
        Command::Check(check) => {
            return check::run(&check).unwrap_or_else(|why| {
                eprintln!("error: {why}");
                ExitCode::from(2)
            });
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Builds, runs, reports. False if a test failed.
fn check(test: &Test) -> Result<bool, String> {
    let executables = build::build(&test.build)?;
    if let Some(directory) = &test.report {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    }
    if !test.no_confinement {
        selvedge_confine::give_up(run::FILES);
    }
    let begin = Instant::now();
    let mut wanted = Vec::new();
    for executable in &executables {
        let names = run::list(executable, test)?;
        wanted.extend(names.into_iter().map(|name| (executable, name)));
    }
    let results = run_all(&wanted, test)?;
    let failed: Vec<_> = results.iter().filter(|result| result.failed()).collect();
    let sum = |count: fn(&run::Counts) -> u64| {
        let counts = results.iter().filter_map(|result| result.counts.as_ref());
        counts.map(count).sum::<u64>()
    };
    let summary = format!(
        "{} passed, {} failed; {} executions, {} blocked, {:.2} s",
        results.len() - failed.len(),
        failed.len(),
        sum(|counts| counts.executions),
        sum(|counts| counts.blocked),
        begin.elapsed().as_secs_f64()
    );
    println!("\n{summary}");
    let partial = results.iter().filter(|result| result.partial).count();
    if partial > 0 {
        println!("{partial} not explored completely: a limit left out the rest");
    }
    let unprotected = results.iter().filter(|result| result.unprotected).count();
    if unprotected > 0 {
        println!(
            "{unprotected} with more executions than those in which all freed memory is protected: a later read of it \
             through a raw pointer would not have been noticed (SELVEDGE_PROTECT_MEMORY=1 protects it in all)"
        );
    }
    for result in &failed {
        println!("failed: {} {}", result.suite, result.name);
        if let Some(token) = &result.token {
            println!(
                "  to run that execution again: cargo selvedge replay {} {token:?} …",
                result.name
            );
        }
    }
    if results.is_empty() {
        println!(
            "no test was found: are they behind another cfg than `{}`? (--cfg NAME)",
            test.build.cfg
        );
    }
    if let Some(directory) = &test.report {
        let index = pages::write_index(directory, &results, &summary);
        let index = index.map_err(|e| format!("cannot write to {}: {e}", directory.display()))?;
        println!("report: {}", index.display());
    }
    if let Some(path) = &test.junit {
        let text = junit::render(&results);
        selvedge_page::output::write(path, text)
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(failed.is_empty())
}

/// Runs tests, several at a time, and returns their results in the order of the tests.
fn run_all(wanted: &[(&Executable, String)], test: &Test) -> Result<Vec<run::Result>, String> {
    let jobs = match test.jobs {
        Some(jobs) => jobs.max(1),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    // Processes that were asked for and that no test needs for itself explore parts of the others' models.
    let each = test.jobs.unwrap_or(1) / wanted.len().max(1);
    let jobs = jobs.min(wanted.len());
    let next = Mutex::new(wanted.iter().enumerate());
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let task = next.lock().ok().and_then(|mut next| next.next());
            let Some((index, (executable, name))) = task else {
                return;
            };
            let result = run::run(executable, name, test, (jobs == 1, each));
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Builds, and runs one execution of one test. False, as that test fails.
fn repeat(replay: &Replay) -> Result<bool, String> {
    let executables = build::build(&replay.build)?;
    for executable in &executables {
        if run::has(executable, &replay.test)? {
            return run::repeat(executable, replay);
        }
    }
    Err(format!("there is no test {}", replay.test))
}
