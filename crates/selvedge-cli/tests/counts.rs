//! Tiny programs whose number of executions is known from theory or from the literature. Each file
//! under `tests/counts` says in its first lines how many it has.
#![allow(missing_docs)]

mod fleet;

use std::fs;
use std::path::Path;

use fleet::{Case, Compiler};

fn case(path: &Path, compiler: Compiler) -> Case {
    let source = fs::read_to_string(path).expect("the source");
    let header = |key: &str| {
        let prefix = format!("// {key}: ");
        source
            .lines()
            .find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
    };
    let number = |text: String| text.parse().expect("a number");
    let cc = compiler.command(path);
    let mut arguments = vec!["--cc".to_owned(), cc.to_owned()];
    let options = header("options").unwrap_or_default();
    arguments.extend(options.split_whitespace().map(str::to_owned));
    arguments.push(path.to_str().expect("a path in UTF-8").to_owned());
    let file = path.file_name().expect("a name").to_string_lossy();
    Case {
        name: format!("{file} ({cc})"),
        arguments,
        verdict: "verified".to_owned(),
        bug: None,
        executions: Some(number(
            header("executions").expect("a number of executions"),
        )),
        blocked: header("blocked").map(number),
    }
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
    let runs = |compiler| paths.iter().map(move |path| case(path, compiler));
    fleet::check(Compiler::installed().into_iter().flat_map(runs).collect());
}
