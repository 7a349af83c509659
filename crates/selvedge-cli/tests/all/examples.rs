//! Every program under `examples/c`, with each installed compiler, gets the verdict and the number
//! of executions that `examples/c/manifest.json` gives it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fleet::{self, Case, Compiler};

/// Where the programs are.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c")
}

/// The programs of the manifest.
pub(crate) fn manifest() -> Vec<Value> {
    let text = fs::read_to_string(directory().join("manifest.json")).expect("the manifest");
    serde_json::from_str(&text).expect("a list of programs")
}

/// The result of a check that the manifest expects.
fn expectation(program: &Value, model: &str) -> Option<Value> {
    let plain = program["options"].to_string().contains("--plain");
    match (model, &program["rc11"]) {
        ("rc11", _) if plain => None,
        ("rc11", own @ Value::Object(_)) => Some(own.clone()),
        _ => Some(program.clone()),
    }
}

/// The runs that a line of the manifest asks for under a model. A program with a bug is searched to
/// its end, for the number of executions, and, if it is the `first` time, also as users do, up to
/// the first bug.
fn cases(program: &Value, compiler: Compiler, model: &'static str, first: bool) -> Vec<Case> {
    let Some(expected) = expectation(program, model) else {
        return Vec::new();
    };
    let text = |key: &str| expected[key].as_str().map(str::to_owned);
    let file = program["file"].as_str().expect("a file name");
    let path = directory().join(file);
    let cc = compiler.command(&path);
    let list = |key: &str| {
        let list = program[key].as_array().expect("a list");
        list.iter().map(|word| word.as_str().expect("text"))
    };
    let arguments: Vec<String> = ["--cc", cc]
        .into_iter()
        .chain(list("options"))
        .chain([path.to_str().expect("a path in UTF-8"), "--"])
        .chain(list("flags"))
        .map(str::to_owned)
        .collect();
    let first_bug = Case {
        name: format!("{file} ({cc}, {model})"),
        model,
        arguments,
        verdict: text("verdict").expect("a verdict"),
        bug: text("bug"),
        executions: expected["executions"].as_u64(),
        blocked: None,
    };
    if first_bug.verdict == "verified" {
        return vec![first_bug];
    }
    let mut everything = first_bug.arguments.clone();
    everything.insert(0, "--keep-going".to_owned());
    let to_the_end = Case {
        name: format!("{file} ({cc}, {model}, --keep-going)"),
        arguments: everything,
        verdict: first_bug.verdict.clone(),
        bug: first_bug.bug.clone(),
        ..first_bug
    };
    let first_bug = Case {
        executions: None,
        ..first_bug
    };
    if first {
        vec![first_bug, to_the_end]
    } else {
        vec![to_the_end]
    }
}

#[test]
fn examples_get_their_verdicts_and_counts() {
    let programs = manifest();
    let mut all = Vec::new();
    for (n, compiler) in Compiler::installed().into_iter().enumerate() {
        let runs = programs
            .iter()
            .flat_map(|program| cases(program, compiler, "sc", n == 0));
        all.extend(runs);
    }
    fleet::check(all);
}

#[test]
fn examples_get_their_verdicts_and_counts_under_rc11() {
    let compiler = Compiler::installed()[0];
    let programs = manifest();
    let runs = programs
        .iter()
        .flat_map(|program| cases(program, compiler, "rc11", false));
    fleet::check(runs.collect());
}

#[test]
fn every_example_is_in_the_manifest() {
    let is_program = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("c" | "cpp"))
    };
    let entries = fs::read_dir(directory()).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<String> = paths
        .filter(is_program)
        .map(|path| path.file_name().expect("a name").to_string_lossy().into())
        .collect();
    found.sort();
    let mut listed: Vec<String> = manifest()
        .iter()
        .map(|program| program["file"].as_str().expect("a file name").to_owned())
        .collect();
    // A program may be listed several times, with other flags.
    listed.dedup();
    assert_eq!(found, listed);
}
