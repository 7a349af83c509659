//! A program with ever fewer constraints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A prefix on the way, and the program built for it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) prefix: PathBuf,
    pub(super) program: PathBuf,
    pub(super) constraints: u64,
    pub(super) traces: u64,
}

/// Budgets of executions after which a prefix is looked at.
const BUDGETS: [u64; 16] = [
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536, 262_144, 1_000_000,
];

/// How the programs are verified: they share plain variables.
const PLAIN: [&str; 2] = ["--plain", "sc"];

/// Runs a command to its end; what it said otherwise.
pub(super) fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0 | 1 | 3) => Ok(output.stdout),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The command that verifies a program.
pub(super) fn verify(source: &Path, prefix: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["irs", "verify"]).arg(source);
    command.arg("-o").arg(prefix);
    command
}

/// The command that builds a program that keeps to the prefix beside it.
pub(super) fn build(source: &Path, program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["irs", "build"]).arg(source);
    command.arg("-o").arg(program);
    command
}

/// The program as it is, compiled like the others but without instrumentation.
pub(super) fn compile(source: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let program = scratch.join("plain");
    let mut command = Command::new("cc");
    command
        .args(["-g", "-O0", "-pthread", "-o"])
        .arg(&program)
        .arg(source);
    run(&mut command)?;
    Ok(program)
}

/// The prefixes that a verification passes through, each time the number of constraints has changed.
pub(super) fn find(source: &Path, options: &[&str], scratch: &Path) -> Result<Vec<Step>, String> {
    let growing = scratch.join("growing.irs");
    let mut steps: Vec<Step> = Vec::new();
    for (number, budget) in BUDGETS.into_iter().enumerate() {
        let mut verify = verify(source, &growing);
        verify
            .args(PLAIN)
            .args(options)
            .args(["--format", "json", "--timeout", "60"]);
        verify.arg("--max-executions").arg(budget.to_string());
        if number == 0 {
            verify.arg("--anew");
        }
        let said = run(&mut verify)?;
        let said: Value = serde_json::from_slice(&said).map_err(|error| error.to_string())?;
        let constraints = said["constraints"].as_array().map_or(0, Vec::len) as u64;
        let traces = said["traces"].as_u64().unwrap_or(0);
        if steps
            .last()
            .is_none_or(|step| step.constraints != constraints)
        {
            let prefix = scratch.join(format!("step{number}.irs"));
            let program = scratch.join(format!("step{number}"));
            fs::copy(&growing, &prefix).map_err(|error| error.to_string())?;
            run(build(source, &program).arg("--prefix").arg(&prefix))?;
            steps.push(Step {
                prefix,
                program,
                constraints,
                traces,
            });
        }
        if said["verdict"] != "incomplete" {
            break;
        }
    }
    Ok(steps)
}
