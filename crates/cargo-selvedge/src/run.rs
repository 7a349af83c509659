//! Running one test in a process of its own.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::args::{Replay, Test};
use crate::build::Executable;
use crate::pages;

/// After so long a test is said to take long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The signal of a forbidden system call that the library could not name, because signals were blocked.
const SIGSYS: i32 = 31;

/// The warning that tests are not confined is printed once.
static UNCONFINED: Once = Once::new();

/// The result of a test.
#[derive(Debug)]
pub(crate) struct Result {
    /// The program it is in.
    pub(crate) suite: String,
    pub(crate) name: String,
    /// Its message, if it failed.
    pub(crate) failure: Option<String>,
    /// The counts of its models; `None` if it has no model.
    pub(crate) counts: Option<Counts>,
    /// The schedule of the execution that failed.
    pub(crate) token: Option<String>,
    /// Whether a limit left some of them out.
    pub(crate) partial: bool,
    /// Whether some freed memory that was not protected.
    pub(crate) unprotected: bool,
    pub(crate) time: Duration,
}

/// Executions of the models of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) executions: u64,
    /// Executions that ended blocked. They are not counted in `executions`.
    pub(crate) blocked: u64,
}

impl Result {
    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// The names of the tests in `executable` that are asked for.
pub(crate) fn list(
    executable: &Executable,
    test: &Test,
) -> std::result::Result<Vec<String>, String> {
    let ignored = [
        (test.ignored, "--ignored"),
        (test.include_ignored, "--include-ignored"),
    ];
    let ignored = ignored.iter().filter(|(said, _)| *said);
    let all = listed(executable, ignored.map(|(_, flag)| *flag))?;
    let matches = |name: &str, filter: &String| match test.exact {
        true => name == filter,
        false => name.contains(filter),
    };
    let wanted = |name: &String| {
        let skipped = test.skip.iter().any(|filter| matches(name, filter));
        let asked = test.filters.iter().any(|filter| matches(name, filter));
        !skipped && (asked || test.filters.is_empty())
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// Whether `executable` has a test of this name.
pub(crate) fn has(executable: &Executable, name: &str) -> std::result::Result<bool, String> {
    let all = listed(executable, ["--include-ignored"].into_iter())?;
    Ok(all.iter().any(|known| known == name))
}

/// The tests that the program lists. Without a flag, tests that are ignored are left out.
pub(crate) fn listed<'a>(
    executable: &Executable,
    flags: impl Iterator<Item = &'a str>,
) -> std::result::Result<Vec<String>, String> {
    let list = |flags: &[&str]| {
        let output = Command::new(&executable.path)
            .args(["--list", "--format", "terse"])
            .args(flags)
            .current_dir(&executable.directory)
            .output()
            .map_err(|e| format!("{} cannot be run: {e}", executable.path.display()))?;
        Ok::<_, String>(names(&String::from_utf8_lossy(&output.stdout)))
    };
    let flags: Vec<&str> = flags.collect();
    let mut all = list(&flags)?;
    if flags.is_empty() {
        // A list contains ignored tests unless only they are asked for.
        let ignored = list(&["--ignored"])?;
        all.retain(|name| !ignored.contains(name));
    }
    Ok(all)
}

fn names(listing: &str) -> Vec<String> {
    let lines = listing.lines();
    lines
        .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
        .collect()
}

/// The command that runs one test.
fn command(executable: &Executable, name: &str, test: &Test) -> Command {
    let mut command = Command::new(&executable.path);
    command.args([
        "--exact",
        name,
        "--nocapture",
        "--test-threads=1",
        "--include-ignored",
    ]);
    command.current_dir(&executable.directory);
    command.envs([("SELVEDGE_LOG", "1"), ("SELVEDGE_PROGRESS", "1")]);
    command.envs(test.model.as_ref().map(|model| ("SELVEDGE_MODEL", model)));
    let bound = test.preemptions.map(|bound| bound.to_string());
    command.envs(bound.map(|bound| ("SELVEDGE_MAX_PREEMPTIONS", bound)));
    let seconds = test.max_duration.map(|seconds| seconds.to_string());
    command.envs(seconds.map(|seconds| ("SELVEDGE_MAX_DURATION", seconds)));
    if test.allow_incomplete {
        command.env("SELVEDGE_ALLOW_INCOMPLETE", "1");
    }
    if let Some(directory) = &test.report {
        // The test runs in another directory.
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
        let file = pages::file(&directory, &executable.name, name);
        pages::clear(&file);
        command.env("SELVEDGE_REPORT", file);
    }
    confine(&mut command, test.no_confinement);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// How many files a test may have open.
pub(crate) const FILES: u64 = 1024;

/// Has the library confine the thread that runs the test.
fn confine(command: &mut Command, refused: bool) {
    command.env_remove("SELVEDGE_CONFINE");
    if !refused {
        // A text that is no filter has the library say that it cannot be done.
        let filter = selvedge_confine::exported().unwrap_or_else(|why| why);
        command.env("SELVEDGE_CONFINE", filter);
    }
}

/// Runs one execution of a test again, and lets it say what it says.
pub(crate) fn repeat(
    executable: &Executable,
    replay: &Replay,
) -> std::result::Result<bool, String> {
    if !replay.no_confinement {
        selvedge_confine::give_up(FILES);
    }
    let mut command = Command::new(&executable.path);
    confine(&mut command, replay.no_confinement);
    let status = command
        .args([
            "--exact",
            &replay.test,
            "--nocapture",
            "--test-threads=1",
            "--include-ignored",
        ])
        .current_dir(&executable.directory)
        .env("SELVEDGE_REPLAY", &replay.token)
        .status()
        .map_err(|e| format!("{} cannot be run: {e}", executable.path.display()))?;
    Ok(status.success())
}

/// Runs one test, with this many `processes`, and shows how far it is, if it runs alone.
pub(crate) fn run(
    executable: &Executable,
    name: &str,
    test: &Test,
    (alone, processes): (bool, usize),
) -> std::result::Result<Result, String> {
    if alone {
        print!("{} {name} ... ", executable.name);
        let _ = std::io::stdout().flush();
    }
    let begin = Instant::now();
    let mut command = command(executable, name, test);
    if processes > 1 {
        command.env("SELVEDGE_JOBS", processes.to_string());
    }
    let mut child = command
        .spawn()
        .map_err(|e| format!("{} cannot be run: {e}", executable.path.display()))?;
    let (mut said, mut advised) = (Said::default(), false);
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr)
            .split(b'\n')
            .map_while(|line| line.ok())
        {
            if let Some(so_far) = said.hear(&String::from_utf8_lossy(&line)) {
                if !advised && begin.elapsed() > PATIENCE {
                    advised = true;
                    eprintln!(
                        "\n{name} takes long: --preemptions 2, --model sc or --max-duration SECONDS leave some executions out"
                    );
                }
                if alone {
                    show(&format!(
                        "{} {name} ... {so_far} executions",
                        executable.name
                    ));
                }
            }
        }
    }
    let status = child.wait().map_err(|e| format!("{name} was lost: {e}"))?;
    let time = begin.elapsed();
    let counts = said.models.then_some(said.counts);
    let failure = (!status.success()).then(|| match said.text.is_empty() {
        true if status.signal() == Some(SIGSYS) => {
            "forbidden system call: it tried to start a process or a program (--no-confinement allows it)"
                .to_owned()
        }
        true => format!("it ended with {status}"),
        false => said.text.clone(),
    });
    let verdict = match (&failure, said.partial) {
        (Some(_), _) => "FAILED",
        (None, true) => "ok so far, a limit left out the rest",
        (None, false) => "ok",
    };
    let mut line = format!("{} {name} ... {verdict}", executable.name);
    match counts {
        Some(Counts {
            executions,
            blocked,
        }) => {
            line.push_str(&format!(" ({executions} executions, {blocked} blocked, "));
            line.push_str(&format!("{:.2} s)", time.as_secs_f64()));
        }
        None => line.push_str(" (no model)"),
    }
    if let Some(failure) = &failure {
        line.push_str(&format!("\n\n{failure}\n"));
    }
    match (alone, std::io::stdout().is_terminal()) {
        (true, true) => {
            show(&line);
            println!();
        }
        (true, false) => {
            let begun = format!("{} {name} ... ", executable.name);
            println!("{}", line.strip_prefix(&begun).unwrap_or(&line));
        }
        (false, _) => println!("{line}"),
    }
    Ok(Result {
        suite: executable.name.clone(),
        name: name.to_owned(),
        token: failure.as_deref().and_then(token),
        failure,
        counts,
        partial: said.partial,
        unprotected: said.unprotected,
        time,
    })
}

/// The schedule that a failed test printed.
fn token(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("selvedge::replay(\"")?;
    rest.split_once('"').map(|(token, _)| token.to_owned())
}

/// Replaces the line on a terminal.
fn show(line: &str) {
    let mut out = std::io::stdout();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[2K{line}");
        let _ = out.flush();
    }
}

/// The output of a test on standard error.
#[derive(Default)]
struct Said {
    counts: Counts,
    models: bool,
    /// A model was not explored completely.
    partial: bool,
    /// Memory was freed that was not protected.
    unprotected: bool,
    text: String,
}

impl Said {
    /// Takes a line in. Tells how many executions there were so far if it says so.
    fn hear(&mut self, line: &str) -> Option<u64> {
        let number = |text: &str| {
            text.split(' ')
                .next()
                .and_then(|word| word.parse::<u64>().ok())
        };
        if let Some(rest) = line.strip_prefix("selvedge progress: ") {
            return number(rest).map(|so_far| self.counts.executions + so_far);
        }
        if let Some(why) = line.strip_prefix("selvedge unconfined: ") {
            UNCONFINED.call_once(|| {
                eprintln!(
                    "warning: this system cannot confine the tests ({why}): run only tests that you trust"
                );
            });
        } else if line.starts_with("selvedge unprotected: ") {
            self.unprotected = true;
        } else if let Some(found) = line.strip_prefix("selvedge: ").and_then(number) {
            self.models = true;
            self.partial |= line.ends_with(": Stopped");
            self.counts.executions += found;
            let blocked = line
                .split_once(" executions, ")
                .and_then(|(_, rest)| number(rest));
            self.counts.blocked += blocked.unwrap_or(0);
        } else {
            self.text.push_str(line);
            self.text.push('\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_benchmarks() {
        let listing = "spsc: test\nfast: bench\nmodule::two: test\n\n2 tests, 1 benchmark\n";
        assert_eq!(names(listing), ["spsc", "module::two"]);
    }

    #[test]
    fn a_failed_test_tells_its_schedule() {
        let text = "…\nto run this execution again: selvedge::replay(\"rc11 0 1<i\", || …)";
        assert_eq!(token(text).as_deref(), Some("rc11 0 1<i"));
        assert_eq!(token("it failed"), None);
    }

    #[test]
    fn executions_of_several_models_add_up() {
        let mut said = Said::default();
        assert_eq!(said.hear("selvedge progress: 12 executions"), Some(12));
        assert_eq!(
            said.hear("selvedge: 40 executions, 3 blocked: Verified"),
            None
        );
        assert_eq!(said.hear("selvedge progress: 2 executions"), Some(42));
        assert_eq!(
            said.hear("selvedge: 2 executions, 0 blocked: Verified"),
            None
        );
        assert!(!said.partial);
        said.hear("selvedge: 0 executions, 0 blocked: Stopped");
        assert!(said.partial);
        assert!(!said.unprotected);
        said.hear("selvedge unprotected: after the first 256 executions");
        assert!(said.unprotected);
        assert_eq!(said.hear("something else"), None);
        let counts = Counts {
            executions: 42,
            blocked: 3,
        };
        assert_eq!(
            (said.counts, said.text.as_str()),
            (counts, "something else\n")
        );
    }
}
