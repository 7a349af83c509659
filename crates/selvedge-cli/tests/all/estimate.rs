//! `selvedge estimate`: random descents instead of a search.

use std::path::Path;

use crate::common::Sandbox;
use crate::scale::{COUNTERS, EXECUTIONS, NESTED};

/// The number of executions of `micro.c` with `--plain sc`.
const MICRO: u64 = 51_318;

#[test]
fn a_large_number_of_executions_is_estimated() {
    let micro = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/micro.c");
    let micro = micro.to_str().expect("a path in UTF-8");
    let sandbox = Sandbox::new();
    let options = ["--plain", "sc", "--timeout", "0.6", "--format", "json"];
    let outcome = sandbox.run(&[&["estimate", micro], &options[..]].concat());
    let result = outcome.ends_with(0).json();
    let number = |name: &str| result[name].as_u64().expect("a number");
    assert_eq!(result["exact"], false, "{result}");
    assert!(number("descents") > 1, "{result}");
    let estimate = number("executions");
    assert!(
        (MICRO / 2..=2 * MICRO).contains(&estimate),
        "{estimate} is not near {MICRO}"
    );
    assert!(number("low") <= estimate && estimate <= number("high"));
    let lines = result["lines"].as_array().expect("a list");
    let file = lines[0]["place"]["file"].as_str().expect("a file");
    assert!(file.ends_with("micro.c"), "{result}");
    let shares = lines.iter().map(|line| line["share"].as_f64());
    let all: f64 = shares.map(|share| share.expect("a number")).sum();
    assert!((0.5..=1.0 + 1e-9).contains(&all), "{result}");
}

#[test]
fn a_small_number_of_executions_is_counted() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let outcome = sandbox.run(&["estimate", "counters.c", "--timeout", "20"]);
    outcome
        .ends_with(0)
        .prints("34,650 executions: all were explored\n")
        .prints("  100.0%  counters.c:5\n");
    assert_eq!(EXECUTIONS, 34_650);
}

#[test]
fn a_bug_on_the_way_is_mentioned() {
    let sandbox = Sandbox::with("nested.c", NESTED);
    let outcome = sandbox.run(&["estimate", "nested.c", "--timeout", "0.5"]);
    outcome
        .ends_with(0)
        .prints("a bug was met: selvedge verify reports it\n");
}

#[test]
fn other_searches_are_refused_by_name() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    for (options, why) in [
        (&["--algorithm", "bfs"][..], "estimate does not go with bfs"),
        (&["--iterative"], "estimate does not go with --iterative"),
        (
            &["--equivalence", "reads-from", "--model", "sc"],
            "estimate does not go with tracer",
        ),
    ] {
        let outcome = sandbox.run(&[&["estimate", "counters.c"], options].concat());
        outcome.ends_with(2).says(why);
    }
}
