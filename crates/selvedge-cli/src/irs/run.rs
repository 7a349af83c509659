//! `selvedge irs run`: runs the program under the schedules proven so far, while the proof continues.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use selvedge_enforce::Chosen;
use selvedge_irs_format::View;

use super::build;
use crate::args::IrsRun;
use crate::compile;
use crate::interrupt;
use crate::problem::{Problem, Status};
use crate::scratch::Scratch;

/// How often it is looked whether there is a prefix.
const PATIENCE: Duration = Duration::from_millis(5);

/// Runs what is asked for; the program's exit status.
pub(crate) fn run(request: &IrsRun) -> Result<ExitCode, Problem> {
    if !request.arguments.is_empty() {
        return Err(
            Problem::request("a program under enforcement is started without arguments")
                .note("schedules are proven for a run without any")
                .help(
                    "make them inputs: int n = selvedge_range(LOW, HIGH) in main; see docs/irs.md",
                ),
        );
    }
    let first = || request.files[0].with_extension("irs");
    let prefix = request.prefix.clone().unwrap_or_else(first);
    let mut verifier = Verifier::start(request, &prefix)?;
    let compiled = compile::compile(&request.sources().program()?)?;
    let contents = verifier.first(&prefix, compiled.fingerprint()?)?;
    let executable = compiled.scratch().join("executable");
    let policy = request.on_divergence.into();
    build::executable(&compiled, &contents, policy, &executable)?;
    let prefix = fs::canonicalize(&prefix)
        .map_err(|error| Problem::request(format!("{}: {error}", prefix.display())))?;
    let mut program = Command::new(&executable)
        .env("SELVEDGE_IRS", prefix)
        .spawn()
        .map_err(|error| Problem::internal(format!("the program does not start: {error}")))?;
    let ended = program
        .wait()
        .map_err(|error| Problem::internal(format!("the program cannot be waited for: {error}")))?;
    // As a shell tells of a program that a signal has ended.
    let code = ended
        .code()
        .or_else(|| ended.signal().map(|signal| 128 + signal));
    Ok(ExitCode::from(code.unwrap_or(Status::Internal as i32) as u8))
}

/// The verifier in the background. It is asked to stop when this value goes.
struct Verifier {
    child: Child,
    words: PathBuf,
    _directory: Scratch,
}

impl Verifier {
    fn start(request: &IrsRun, prefix: &Path) -> Result<Verifier, Problem> {
        let failed = |error: std::io::Error| {
            Problem::internal(format!("the verifier does not start: {error}"))
        };
        let directory = Scratch::new().map_err(failed)?;
        let words = directory.path().join("words");
        let said = fs::File::create(&words).map_err(failed)?;
        let mut command = Command::new(env::current_exe().map_err(failed)?);
        command.args(["irs", "verify", "-o"]).arg(prefix);
        command.args(request.machine.options());
        command.args(request.sources().arguments());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said);
        Ok(Verifier {
            child: command.spawn().map_err(failed)?,
            words,
            _directory: directory,
        })
    }

    /// Waits for the first prefix of the program with this fingerprint.
    fn first(&mut self, prefix: &Path, fingerprint: [u8; 16]) -> Result<Chosen, Problem> {
        loop {
            // The file may be the last thing that it does.
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if let Ok(found) = build::read(prefix)
                && View::new(&found.bytes).is_ok_and(|view| view.fingerprint() == fingerprint)
            {
                return Ok(found);
            }
            if interrupt::requests() > 0 {
                return Err(Problem::interrupted(
                    "interrupted before anything was proven",
                ));
            }
            if ended {
                let words = fs::read_to_string(&self.words).unwrap_or_default();
                return Err(Problem::request("nothing about this program is proven").words(words));
            }
            thread::sleep(PATIENCE);
        }
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        // It leaves nothing behind if it is asked politely. What it has proven is in the file.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}
