//! `selvedge debug`: gdb on the failing schedule of a trace, with commands to walk through it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::args;
use crate::problem::{Problem, Status};
use crate::report::human;
use crate::trace::Trace;
use crate::worker::HOOK;

/// The commands, which gdb's Python runs.
const EXTENSION: &str = include_str!("selvedge_gdb.py");

/// Starts gdb, or a server for one, and waits until it ends.
pub(crate) fn run(debug: &args::Debug) -> Result<Status, Problem> {
    let trace = fs::canonicalize(&debug.trace).map_err(|error| {
        let name = debug.trace.display();
        Problem::request(format!("cannot read the trace {name}: {error}"))
    })?;
    Trace::read(&trace)?;
    let replay = replay(debug, &trace)?;
    let directory = tempfile::tempdir()
        .map_err(|error| Problem::internal(format!("cannot create a directory: {error}")))?;
    let extension = match &debug.extension {
        Some(path) => path.clone(),
        None => directory.path().join("selvedge_gdb.py"),
    };
    fs::write(&extension, commands(&trace, &replay[1..])).map_err(|error| {
        Problem::request(format!("cannot write {}: {error}", extension.display()))
    })?;
    let mut command = match &debug.server {
        Some(address) => {
            let mut server = Command::new("gdbserver");
            server.arg(address).args(&replay);
            server
        }
        None => {
            let mut gdb = Command::new("gdb");
            // The executable names scripts for values of Rust, which gdb does not find.
            gdb.args(["-q", "-iex", "set auto-load python-scripts off"]);
            gdb.arg("-x").arg(&extension);
            gdb.args(["-ex", "selvedge goto 1"]).args(&debug.gdb);
            gdb.arg("--args").args(&replay);
            gdb
        }
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let ended = command.status().map_err(|error| {
        Problem::request(format!("cannot run {program}: {error}")).help(format!(
            "install {program}, or use another debugger: selvedge replay --help"
        ))
    })?;
    match ended.success() {
        true => Ok(Status::Verified),
        false => Err(Problem::request(format!("{program} ended with {ended}"))),
    }
}

/// The commands for gdb on this trace. `arguments` are those of the process that runs the schedule.
fn commands(trace: &Path, arguments: &[OsString]) -> String {
    let quoted: Vec<String> = arguments.iter().map(human::quoted).collect();
    let (file, line) = HOOK;
    let constants = [
        ("TRACE", trace.to_string_lossy().into_owned()),
        ("HOOK", format!("{file}:{line}")),
        ("ARGUMENTS", quoted.join(" ")),
    ];
    // A string in JSON is one in Python.
    let define = |(name, value): (&str, String)| format!("{name} = {}\n", Value::from(value));
    let constants: String = constants.into_iter().map(define).collect();
    EXTENSION.replace("# CONSTANTS\n", &constants)
}

/// The command that runs the schedule in its own process.
fn replay(debug: &args::Debug, trace: &PathBuf) -> Result<Vec<OsString>, Problem> {
    let ourselves = std::env::current_exe()
        .map_err(|error| Problem::internal(format!("cannot find this program: {error}")))?;
    let mut words = vec![ourselves.into_os_string()];
    words.extend(["replay", "--in-process", "--no-confinement"].map(OsString::from));
    words.push(trace.into());
    words.extend(debug.compiler.options().map(OsString::from));
    Ok(words)
}
