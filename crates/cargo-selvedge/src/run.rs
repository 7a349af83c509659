//! Running one test in a process of its own.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::args::Test;
use crate::build::Executable;

/// After so long a test is said to take long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of a test.
#[derive(Debug)]
pub(crate) struct Result {
    /// The program it is in.
    pub(crate) suite: String,
    pub(crate) name: String,
    /// What it said, if it failed.
    pub(crate) failure: Option<String>,
    /// How many executions its models had; `None` if it has no model.
    pub(crate) executions: Option<u64>,
    /// Whether a limit left some of them out.
    pub(crate) partial: bool,
    pub(crate) time: Duration,
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
    let output = Command::new(&executable.path)
        .args(["--list", "--format", "terse"])
        .current_dir(&executable.directory)
        .output()
        .map_err(|e| format!("{} cannot be run: {e}", executable.path.display()))?;
    let names = names(&String::from_utf8_lossy(&output.stdout));
    let wanted = |name: &String| {
        test.filter
            .as_ref()
            .is_none_or(|filter| name.contains(filter))
    };
    Ok(names.into_iter().filter(wanted).collect())
}

fn names(listing: &str) -> Vec<String> {
    let lines = listing.lines();
    lines
        .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
        .collect()
}

/// What runs one test.
fn command(executable: &Executable, name: &str, test: &Test) -> Command {
    let mut command = Command::new(&executable.path);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.current_dir(&executable.directory);
    command.envs([("SELVEDGE_LOG", "1"), ("SELVEDGE_PROGRESS", "1")]);
    command.envs(test.model.as_ref().map(|model| ("SELVEDGE_MODEL", model)));
    let bound = test.preemptions.map(|bound| bound.to_string());
    command.envs(bound.map(|bound| ("SELVEDGE_MAX_PREEMPTIONS", bound)));
    let seconds = test.max_duration.map(|seconds| seconds.to_string());
    command.envs(seconds.map(|seconds| ("SELVEDGE_MAX_DURATION", seconds)));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Runs one test and shows how far it is.
pub(crate) fn run(
    executable: &Executable,
    name: &str,
    test: &Test,
) -> std::result::Result<Result, String> {
    print!("{} {name} ... ", executable.name);
    let _ = std::io::stdout().flush();
    let begin = Instant::now();
    let mut child = command(executable, name, test)
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
                show(&format!(
                    "{} {name} ... {so_far} executions",
                    executable.name
                ));
            }
        }
    }
    let status = child.wait().map_err(|e| format!("{name} was lost: {e}"))?;
    let time = begin.elapsed();
    let executions = said.models.then_some(said.executions);
    let failure = (!status.success()).then(|| match said.text.is_empty() {
        true => format!("it ended with {status}"),
        false => said.text.clone(),
    });
    if std::io::stdout().is_terminal() {
        show(&format!("{} {name} ...", executable.name));
        print!(" ");
    }
    let verdict = match (&failure, said.partial) {
        (Some(_), _) => "FAILED",
        (None, true) => "ok so far, a limit left out the rest",
        (None, false) => "ok",
    };
    match executions {
        Some(executions) => {
            println!(
                "{verdict} ({executions} executions, {:.2} s)",
                time.as_secs_f64()
            );
        }
        None => println!("{verdict} (no model)"),
    }
    if let Some(failure) = &failure {
        println!("\n{failure}\n");
    }
    Ok(Result {
        suite: executable.name.clone(),
        name: name.to_owned(),
        failure,
        executions,
        partial: said.partial,
        time,
    })
}

/// Replaces the line on a terminal.
fn show(line: &str) {
    let mut out = std::io::stdout();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[2K{line}");
        let _ = out.flush();
    }
}

/// What a test writes to standard error.
#[derive(Default)]
struct Said {
    executions: u64,
    models: bool,
    /// A model was not explored completely.
    partial: bool,
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
            return number(rest).map(|so_far| self.executions + so_far);
        }
        if let Some(found) = line.strip_prefix("selvedge: ").and_then(number) {
            self.models = true;
            self.partial |= line.ends_with(": Stopped");
            self.executions += found;
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
        assert_eq!(said.hear("something else"), None);
        assert_eq!(
            (said.executions, said.text.as_str()),
            (42, "something else\n")
        );
    }
}
