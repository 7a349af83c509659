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
        (
            &["--algorithm", "bfs"][..],
            "estimate cannot be combined with bfs",
        ),
        (
            &["--iterative"],
            "estimate cannot be combined with --iterative",
        ),
        (
            &["--equivalence", "reads-from", "--model", "sc"],
            "estimate cannot be combined with tracer",
        ),
    ] {
        let outcome = sandbox.run(&[&["estimate", "counters.c"], options].concat());
        outcome.ends_with(2).says(why);
    }
}

#[test]
fn an_execution_without_an_end_stops_an_estimate() {
    let counting = "#include <stdatomic.h>\nstatic atomic_int x;\nint main(void) { for (;;) atomic_fetch_add(&x, 1); }\n";
    let sandbox = Sandbox::with("endless.c", counting);
    let outcome = sandbox.run(&["estimate", "endless.c", "--timeout", "0.2"]);
    outcome
        .ends_with(3)
        .says("no random descent came to its end in time")
        .says("--unroll");
}

#[test]
fn loops_that_look_under_a_mutex_are_estimated() {
    let looking = "#include <pthread.h>
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        static int ready;
        static void *look(void *p) {
            for (;;) {
                pthread_mutex_lock(&m);
                int seen = ready;
                pthread_mutex_unlock(&m);
                if (seen) return 0;
            }
        }
        int main(void) {
            pthread_t t;
            pthread_create(&t, 0, look, 0);
            pthread_mutex_lock(&m);
            ready = 1;
            pthread_mutex_unlock(&m);
            pthread_join(t, 0);
        }\n";
    let sandbox = Sandbox::with("look.c", looking);
    let outcome = sandbox.run(&["estimate", "look.c", "--format", "json"]);
    let result = outcome.ends_with(0).json();
    assert_eq!(result["executions"], 1, "{result}");
}
