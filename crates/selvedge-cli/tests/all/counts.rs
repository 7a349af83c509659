//! Tiny programs whose number of executions is known from theory or from the literature. Each file
//! under `tests/counts` says in its first lines how many it has.

use std::fs;
use std::path::Path;

use crate::fleet::{self, Case, Compiler};

/// A program's own run, and one for each bound on preemptions that it gives a number for.
fn cases(path: &Path, compiler: Compiler) -> Vec<Case> {
    let source = fs::read_to_string(path).expect("the source");
    let header = |key: &str| {
        let prefix = format!("// {key}: ");
        let mut values = source.lines().map(|line| line.strip_prefix(&prefix));
        values.find_map(|value| value).unwrap_or_default()
    };
    let numbers = |key: &str| {
        let words = header(key).split_whitespace();
        words.map(|word| word.parse::<u64>().expect("a number"))
    };
    let cc = compiler.command(path);
    let file = path.file_name().expect("a name").to_string_lossy();
    let case = |bound: &str, executions: u64| {
        let words = format!("--cc {cc} {bound} {}", header("options"));
        let mut arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        arguments.push(path.to_str().expect("a path in UTF-8").to_owned());
        Case {
            name: format!("{file} ({cc} {bound})"),
            model: "sc",
            arguments,
            verdict: "verified".to_owned(),
            bug: None,
            executions: Some(executions),
            blocked: numbers("blocked").next(),
        }
    };
    let all = numbers("executions")
        .next()
        .expect("a number of executions");
    let bounded = numbers("with at most 0, 1, 2, … preemptions");
    let bounded = bounded
        .enumerate()
        .map(|(k, n)| case(&format!("--preemptions {k}"), n));
    [case("", all)].into_iter().chain(bounded).collect()
}

#[test]
fn known_numbers_of_executions() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counts");
    let entries = fs::read_dir(directory).expect("the programs");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    paths.sort();
    let runs = |compiler| paths.iter().flat_map(move |path| cases(path, compiler));
    fleet::check(Compiler::installed().into_iter().flat_map(runs).collect());
}
