//! `selvedge explain`: the example of each kind of bug has that bug.

use crate::common::Sandbox;

const BUGS: &str = include_str!("../../../selvedge-page/src/explained/bugs.md");

struct Example {
    file: String,
    program: &'static str,
    options: &'static str,
}

/// The kinds with their examples.
fn examples() -> Vec<(&'static str, Option<Example>)> {
    let sections = BUGS.split("\n## ").skip(1);
    let section = |section: &'static str| {
        let (kind, text) = section.split_once('\n').expect("a heading");
        let options = text.split_once("Options: `").map_or("", |(_, rest)| {
            rest.split_once('`').expect("the options end").0
        });
        let program = text.split_once("```c").map(|(_, rest)| {
            let (suffix, rest) = rest.split_once('\n').expect("a program");
            let (program, _) = rest.split_once("```").expect("the program ends");
            Example {
                file: format!("example.c{suffix}"),
                program,
                options,
            }
        });
        (kind, program)
    };
    sections.map(section).collect()
}

fn check(kinds: impl Fn(usize) -> bool) {
    for (n, (kind, example)) in examples().into_iter().enumerate() {
        let Some(example) = example.filter(|_| kinds(n)) else {
            continue;
        };
        let Example {
            file,
            program,
            options,
        } = example;
        let sandbox = Sandbox::with(&file, program);
        let options: Vec<&str> = match options.split_once('\'') {
            Some((option, rest)) => vec![option.trim(), rest.trim_end_matches('\'')],
            None => options.split_whitespace().collect(),
        };
        let leaks: &[&str] = if kind == "leak" { &["--leaks"] } else { &[] };
        let command = ["verify", &file, "--format", "json", "--no-advice"];
        let outcome = sandbox.run(&[&command, &options[..], leaks].concat());
        if kind == "stack-overflow" {
            let reason = outcome.ends_with(3).json()["reason"].to_string();
            assert!(
                reason.contains("256 KiB of a thread is used up"),
                "{reason}"
            );
            continue;
        }
        let report = outcome.ends_with(1).json();
        assert_eq!(report["bug"]["kind"], kind, "{outcome:?}");
    }
}

#[test]
fn the_first_examples_have_the_bugs_that_they_explain() {
    check(|n| n < 10);
}

#[test]
fn the_other_examples_have_the_bugs_that_they_explain() {
    check(|n| n >= 10);
}

#[test]
fn every_kind_is_explained() {
    let sandbox = Sandbox::new();
    let all = sandbox.run(&["explain"]);
    let names: Vec<&str> = all
        .ends_with(0)
        .stdout
        .lines()
        .map(|line| line.split_whitespace().next().expect("a name"))
        .collect();
    assert_eq!(names.len(), 21);
    for name in names {
        let outcome = sandbox.run(&["explain", name]);
        outcome.ends_with(0).prints("The usual fix:").prints("```");
    }
    sandbox
        .run(&["explain", "gremlin"])
        .ends_with(2)
        .says("there is no kind of bug called gremlin");
}
