//! The `selvedge` command: a model checker for concurrent C and C++ programs.
//!
//! It is a library only because the fuzz targets call its parsers. It has no interface for other
//! programs.
#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "cluster")]
mod cluster;
mod compare;
mod compile;
mod consent;
mod debug;
mod describe;
mod estimate;
mod explain;
mod explorer;
#[doc(hidden)]
pub mod fuzz;
mod init;
mod interrupt;
mod irs;
mod litmus;
mod manual;
mod measure;
mod output;
mod paths;
mod place;
mod pool;
mod problem;
mod project;
mod replay;
mod report;
mod resume;
mod scan;
mod scratch;
mod temporal;
mod trace;
mod verify;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;
pub(crate) use selvedge_page::input;

use crate::args::{Cli, Command};
use crate::compile::Language;

/// Does what the command line asks for.
#[doc(hidden)]
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(Cli { command }) => command,
        Err(error) if error.use_stderr() => error.exit(),
        // The help or the version, which were asked for.
        Err(help) => {
            output::print(&help.render().ansi().to_string());
            return end(Ok(ExitCode::SUCCESS));
        }
    };
    let result = match command {
        Command::Worker(worker) => return worker::child::run(&worker),
        Command::Verify(mut verify) => {
            interrupt::install();
            let result = verify
                .settle_arguments()
                .and_then(|()| verify::run(&verify));
            result.inspect_err(|problem| {
                report::print_failed(verify.format, &verify.sources.names(), problem);
            })
        }
        Command::Compare(mut compare) => {
            interrupt::install();
            let settled = compare.verify.settle_arguments();
            settled.and_then(|()| compare::run(&compare))
        }
        Command::Cc(compiler) => {
            return end(project::run_compiler(Language::C, &compiler.arguments));
        }
        Command::Cxx(compiler) => {
            return end(project::run_compiler(Language::Cxx, &compiler.arguments));
        }
        Command::LinkRust(linker) => return end(project::link_rust(&linker.arguments)),
        Command::Irs(irs) => {
            interrupt::install();
            return end(irs::run(&irs));
        }
        Command::Estimate(estimate) => {
            interrupt::install();
            estimate::run(&estimate)
        }
        Command::Measure(verify) => measure::run(&verify),
        Command::Litmus(litmus) => litmus::run(&litmus),
        Command::Explain(explain) => explain::run(explain.kind.as_deref()),
        Command::Debug(debug) => debug::run(&debug),
        Command::Init(init) => init::run(&init),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
        Command::Resume(resume) => {
            interrupt::install();
            resume::run(&resume).inspect_err(|problem| {
                let file = resume.checkpoint.display().to_string();
                report::print_failed(resume.format, &[file], problem);
            })
        }
        #[cfg(feature = "cluster")]
        Command::Serve(serve) => {
            interrupt::install();
            cluster::serve(&serve)
        }
        #[cfg(feature = "cluster")]
        Command::Runs(runs) => cluster::runs(&runs),
        #[cfg(feature = "cluster")]
        Command::Attach(attach) => {
            interrupt::install();
            cluster::attach(&attach)
        }
        Command::Replay(replay) => {
            interrupt::install();
            replay::run(&replay)
        }
    };
    end(result.map(ExitCode::from))
}

fn end(result: Result<ExitCode, problem::Problem>) -> ExitCode {
    let result = result.and_then(|status| output::check().map(|()| status));
    match result {
        Ok(status) => status,
        Err(problem) => {
            problem.print();
            problem.status.into()
        }
    }
}
