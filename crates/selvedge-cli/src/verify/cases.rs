//! Test cases of a unit-test framework, each checked as a program of its own.
//!
//! The executable lists its cases, as it does for other tools. Each of them is then a run of the
//! program with the arguments that select it. A case that fails makes the program end with a status
//! other than zero, which counts as a bug.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::args::{self, Format};
use crate::compile::{self, Build};
use crate::explorer::Explorer;
use crate::input;
use crate::output;
use crate::problem::{Problem, Status, note};
use crate::project;
use crate::report::{Report, Verdict, human};

use super::{Search, tell_unsupported};

/// How the name of the file ends that lists the tests of a Rust program.
const RUST_TESTS: &str = "tests";

/// A test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: String,
    /// The arguments that select it.
    pub(crate) arguments: Vec<String>,
    /// The option of `verify` that selects it.
    option: String,
}

/// A framework, by what it is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framework {
    GoogleTest,
    Catch2,
    Doctest,
    /// The test harness of Rust. `cargo selvedge check` lists the tests in a file beside the program, which is
    /// not an executable.
    Rust,
}

/// The cases of `executable` that the user selects, by the options of GoogleTest or of the others.
pub(crate) fn list(
    executable: &Path,
    gtest_filter: Option<&str>,
    test_case: Option<&str>,
) -> Result<Vec<Case>, Problem> {
    let name = executable.display();
    let failed = |why: String| {
        Problem::request(format!("{name} does not list its test cases: {why}"))
            .help("build it with a main function of GoogleTest, Catch2 or doctest")
    };
    let framework = match gtest_filter {
        Some(_) => Framework::GoogleTest,
        None => framework(executable).ok_or_else(|| failed("no known framework".to_owned()))?,
    };
    let pattern = gtest_filter.or(test_case).unwrap_or("*");
    let path = executable
        .canonicalize()
        .map_err(|error| failed(error.to_string()))?;
    if framework == Framework::Rust {
        let text = input::read_text(&path.with_extension(RUST_TESTS));
        let text = text.map_err(|error| failed(error.to_string()))?;
        let wanted = |name: &&str| matches(pattern, name);
        let names: Vec<&str> = text.lines().filter(wanted).collect();
        if names.is_empty() {
            return Err(failed(format!("nothing matches {pattern}")));
        }
        let cases = names
            .into_iter()
            .map(|name| case(framework, name.to_owned()));
        return Ok(cases.collect());
    }
    let mut command = Command::new(path);
    match framework {
        Framework::GoogleTest => {
            command.arg("--gtest_list_tests");
            command.arg(format!("--gtest_filter={pattern}"))
        }
        Framework::Catch2 => command.args(["--list-test-names-only", pattern]),
        Framework::Doctest => {
            command.arg("--list-test-cases");
            command.arg(format!("--test-case={pattern}"))
        }
        Framework::Rust => &mut command,
    };
    let listed = command.stdin(Stdio::null()).output();
    let listed = listed.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let mut names = names(framework, &text);
    if framework == Framework::GoogleTest {
        let all = names.len();
        names.retain(|name| !is_disabled(name));
        if all > names.len() {
            note(&format!(
                "disabled test cases are left out: {}",
                all - names.len()
            ));
        }
    }
    if names.is_empty() {
        return Err(failed(format!("nothing matches {pattern}")));
    }
    Ok(names
        .into_iter()
        .map(|name| case(framework, name))
        .collect())
}

/// Whether `name` is what `pattern` says, in which stars stand for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(first) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| matches(rest, &name[at..]))
}

/// Whether GoogleTest runs this case on demand only.
fn is_disabled(name: &str) -> bool {
    name.split(['/', '.'])
        .any(|part| part.starts_with("DISABLED_"))
}

/// The option that selects all cases of `executable`, if it is known to have some.
pub(crate) fn option_for_all(executable: &Path) -> Option<&'static str> {
    match framework(executable)? {
        Framework::GoogleTest => Some("--gtest_filter='*'"),
        Framework::Catch2 | Framework::Doctest => Some("--test-case='*'"),
        Framework::Rust => None,
    }
}

/// The framework that an executable is built with.
fn framework(executable: &Path) -> Option<Framework> {
    if project::is_rust(executable) {
        return Some(Framework::Rust);
    }
    let bytes = fs::read(executable).ok()?;
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    if has(b"doctest_listener") || has(b"[doctest]") {
        return Some(Framework::Doctest);
    }
    if has(b"list-test-names-only") || has(b"Catch::Session") {
        return Some(Framework::Catch2);
    }
    has(b"gtest_list_tests").then_some(Framework::GoogleTest)
}

/// The names in what an executable of `framework` prints.
fn names(framework: Framework, text: &str) -> Vec<String> {
    let lines = text.lines();
    match framework {
        Framework::GoogleTest => {
            let mut suite = "";
            let mut names = Vec::new();
            for line in lines {
                let plain = line.split("  #").next().unwrap_or(line);
                match plain.strip_prefix("  ") {
                    Some(name) => names.push(format!("{suite}{}", name.trim())),
                    None if plain.trim_end().ends_with('.') => suite = plain.trim(),
                    None => {}
                }
            }
            names
        }
        Framework::Catch2 => lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
        Framework::Rust => Vec::new(),
        Framework::Doctest => lines
            .filter(|line| !line.starts_with("[doctest]") && !line.starts_with("==="))
            .map(str::to_owned)
            .collect(),
    }
}

fn case(framework: Framework, name: String) -> Case {
    let (arguments, option) = match framework {
        Framework::GoogleTest => {
            let filter = format!("--gtest_filter={name}");
            (vec![filter.clone()], filter)
        }
        Framework::Catch2 => {
            let escaped = name
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('[', "\\[");
            (vec![escaped.clone()], format!("--test-case={escaped}"))
        }
        Framework::Rust => (vec![name.clone()], format!("--test-case={name}")),
        Framework::Doctest => {
            let filter = format!("--test-case={}", name.replace(',', "\\,"));
            (vec![filter.clone()], filter)
        }
    };
    Case {
        name,
        arguments,
        option,
    }
}

/// Checks every case, and prints a line for each.
pub(super) fn check(verify: &args::Verify) -> Result<Status, Problem> {
    if verify.format != Format::Human {
        return Err(
            Problem::request("several test cases are printed in words only")
                .help("select one case, or leave out --format"),
        );
    }
    let (explorer, _) = Explorer::choose(&verify.search, &verify.machine)?;
    let build = compile::build(&verify.program()?)?;
    tell_unsupported(build.compiled.unsupported.len());
    let mut counts = [0; 3];
    for case in &verify.cases {
        let (report, alone) = one(verify, case, &build, &explorer)?;
        output::print(&line(&report, alone, case, verify));
        counts[report.verdict as usize] += 1;
    }
    let [verified, failed, incomplete] = counts;
    let all = verify.cases.len();
    output::print(&format!(
        "{all} test cases: {verified} verified, {failed} with a bug, {incomplete} incomplete\n"
    ));
    Ok(match counts {
        [_, 0, 0] => Status::Verified,
        [_, 0, _] => Status::Incomplete,
        _ => Status::Bug,
    })
}

fn one(
    verify: &args::Verify,
    case: &Case,
    build: &Build,
    explorer: &Explorer,
) -> Result<(Report, bool), Problem> {
    let image = build.image();
    let mut search = Search::new(verify, &image, explorer);
    search.machine.select(case);
    let found = search.run()?;
    let report = found.report(explorer, &verify.search, &search.machine);
    Ok((report, found.starts_no_thread()))
}

fn line(report: &Report, alone: bool, case: &Case, verify: &args::Verify) -> String {
    let name = &case.name;
    match (report.verdict, &report.bug) {
        (Verdict::Bug, Some(bug)) => {
            let files = verify.sources.files.iter().map(human::quoted);
            let file: Vec<String> = files.collect();
            let option = human::quoted(&case.option);
            let message = &bug.message;
            format!(
                "bug         {name}: {message}\n            selvedge verify {} {option}\n",
                file.join(" ")
            )
        }
        (Verdict::Incomplete, _) => {
            let reason = report.reason.as_deref().unwrap_or("a limit was reached");
            format!("incomplete  {name}: {reason}\n")
        }
        _ => {
            let executions = match report.executions {
                1 => "1 execution".to_owned(),
                count => format!("{count} executions"),
            };
            // Cases that skip themselves are among these.
            let alone = if alone { ", no thread was started" } else { "" };
            format!("verified    {name}: {executions}{alone}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_test_cases_are_read() {
        let text = "Running main() from x.cc\nQueue.\n  Pushes\n  Pops  # GetParam() = 3\nAll/Set/0.\n  Adds\n";
        assert_eq!(
            names(Framework::GoogleTest, text),
            ["Queue.Pushes", "Queue.Pops", "All/Set/0.Adds"]
        );
        let text = "[doctest] listing all test case names\n======\na, b\nc\n======\n\
                    [doctest] unskipped test cases passing the current filters: 2\n";
        assert_eq!(names(Framework::Doctest, text), ["a, b", "c"]);
        assert_eq!(names(Framework::Catch2, "one\ntwo\n"), ["one", "two"]);
    }

    #[test]
    fn disabled_cases_are_known_by_their_names() {
        for name in ["DISABLED_A.B", "A.DISABLED_B", "All/DISABLED_A/0.B"] {
            assert!(is_disabled(name), "{name}");
        }
        assert!(!is_disabled("A.NotDISABLED_B"));
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("*", "queue::pops") && matches("*", ""));
        assert!(matches("queue::*s", "queue::pops") && matches("*::p*p*", "queue::pops"));
        assert!(!matches("queue::*x", "queue::pops") && !matches("pops", "queue::pops"));
    }

    #[test]
    fn names_are_escaped_as_the_framework_wants_it() {
        let case = |framework| case(framework, "a, [b]".to_owned()).arguments;
        assert_eq!(case(Framework::Catch2), ["a\\, \\[b]"]);
        assert_eq!(case(Framework::Doctest), ["--test-case=a\\, [b]"]);
        assert_eq!(case(Framework::GoogleTest), ["--gtest_filter=a, [b]"]);
    }
}
