//! `selvedge compare`: one table of what several algorithms make of one program.

use serde_json::Value;

use crate::common::Sandbox;

/// Four executions: each reader before or after the writer.
const READERS: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
atomic_int x;
static void *reader(void *unused) { return (void *)(long)atomic_load(&x); }
int main(void) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], 0, reader, 0);
    atomic_store(&x, 1);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], 0);
}
"#;

/// Fails if the increments overlap: with one preemption and with no fewer.
const LOST_UPDATE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int x;
static void *add(void *unused) { atomic_store(&x, atomic_load(&x) + 1); return unused; }
int main(void) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], 0);
    assert(x == 2);
}
"#;

fn compare(program: &str, status: i32, options: &[&str]) -> Value {
    let sandbox = Sandbox::with("a.c", program);
    let mut arguments = vec!["compare", "a.c", "--format", "json"];
    arguments.extend(options);
    let outcome = sandbox.run(&arguments);
    outcome.ends_with(status);
    serde_json::from_str(&outcome.stdout).expect("one object of JSON")
}

/// Algorithm, executions, verdict.
fn rows(comparison: &Value) -> Vec<(String, u64, String)> {
    let runs = comparison["runs"].as_array().expect("an array of runs");
    let row = |run: &Value| {
        (
            run["algorithm"].as_str().unwrap_or_default().to_owned(),
            run["executions"].as_u64().unwrap_or_default(),
            run["verdict"].as_str().unwrap_or_default().to_owned(),
        )
    };
    runs.iter().map(row).collect()
}

fn row(name: &str, executions: u64, verdict: &str) -> (String, u64, String) {
    (name.to_owned(), executions, verdict.to_owned())
}

#[test]
fn all_that_leave_nothing_out_are_compared() {
    let comparison = compare(READERS, 0, &[]);
    let names = [
        "trust",
        "tracer",
        "source-dpor",
        "classic-dpor",
        "nidhugg-dpor",
        "optimal-dpor",
    ];
    // The one that may visit an execution twice does.
    let visits = |name| if name == "classic-dpor" { 5 } else { 4 };
    let wanted = names.map(|name| row(name, visits(name), "verified"));
    assert_eq!(rows(&comparison), wanted);
    assert_eq!(comparison["verdict"], "verified");
    assert_eq!(comparison["agree"], true);
    for run in comparison["runs"].as_array().expect("an array of runs") {
        assert!(run["memory"].as_u64() > Some(1 << 20), "{run}");
        assert_eq!(run["first_bug_after"], Value::Null);
    }
}

#[test]
fn a_bound_holds_for_those_that_take_one() {
    let comparison = compare(LOST_UPDATE, 1, &["--preemptions", "0"]);
    let found = rows(&comparison);
    let verdict_of = |name: &str| {
        let row = found.iter().find(|(found, ..)| found == name);
        row.unwrap_or_else(|| panic!("no {name}")).2.clone()
    };
    // The others pass through executions beyond the bound, and tell of a bug there.
    assert_eq!(verdict_of("bpor"), "verified");
    for name in ["tracer", "source-dpor", "classic-dpor", "optimal-dpor"] {
        assert_eq!(verdict_of(name), "bug", "{name}");
    }
    assert!(!found.iter().any(|(name, ..)| name == "source-bpor"));
    assert_eq!(comparison["verdict"], "bug");
    assert_eq!(comparison["agree"], true);
}

#[test]
fn the_first_bug_is_counted_whether_or_not_the_search_goes_on() {
    let first = |comparison: &Value| {
        let runs = comparison["runs"].as_array().cloned().unwrap_or_default();
        let firsts = runs.iter().map(|run| run["first_bug_after"].as_u64());
        firsts.collect::<Vec<_>>()
    };
    let options = ["--algorithms", "trust,source-dpor"];
    let short = compare(LOST_UPDATE, 1, &options);
    let long = compare(LOST_UPDATE, 1, &[&options[..], &["--keep-going"]].concat());
    assert!(first(&short).iter().all(|number| *number > Some(0)));
    assert_eq!(first(&short), first(&long));
    let all = rows(&long);
    assert_eq!(all, [row("trust", 4, "bug"), row("source-dpor", 4, "bug")]);
}

#[test]
fn those_that_lose_executions_run_when_named_and_prove_nothing() {
    let options = ["--algorithms", "naive-bpor", "--preemptions", "0"];
    let comparison = compare(READERS, 3, &options);
    assert_eq!(comparison["verdict"], "incomplete");
    let all = compare(READERS, 0, &["--algorithms", "all", "--preemptions", "1"]);
    assert_eq!(rows(&all).len(), 13);
    assert_eq!(all["verdict"], "verified");
}

#[test]
fn under_a_weak_model_those_run_that_know_it() {
    let names = |model| {
        let all = rows(&compare(READERS, 0, &["--model", model]));
        all.into_iter().map(|row| row.0).collect::<Vec<_>>()
    };
    assert_eq!(names("ra"), ["trust", "tracer"]);
    assert_eq!(names("rc11"), ["trust"]);
}

#[test]
fn each_algorithm_has_its_own_limit() {
    let options = ["--algorithms", "trust,bpor,optimal-dpor"];
    let limits = ["--preemptions", "9", "--max-executions", "2"];
    let comparison = compare(READERS, 3, &[&options[..], &limits].concat());
    let wanted = ["trust", "bpor", "optimal-dpor"].map(|name| row(name, 2, "incomplete"));
    assert_eq!(rows(&comparison), wanted);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let sandbox = Sandbox::with("a.c", READERS);
    let refused = |options: &[&str], why: &str| {
        let arguments = [&["compare", "a.c"][..], options].concat();
        sandbox.run(&arguments).ends_with(2).says(why);
    };
    refused(&["--algorithm", "trust"], "add --algorithms trust");
    refused(
        &["--algorithms", "fastest"],
        "invalid value 'fastest' for '--algorithms <NAMES>'",
    );
    refused(&["--algorithms", "bpor"], "needs a bound");
    refused(
        &["--equivalence", "reads-from"],
        "--algorithms trust,tracer",
    );
    refused(&["--trace-out", "t.json"], "--trace-out");
    refused(&["--delays", "1"], "one algorithm for each of them");
    refused(
        &["--algorithms", "source-dpor", "--model", "tso"],
        "source-dpor is not available under --model tso",
    );
    sandbox.write("a.c", "int main(void) { return x; }");
    refused(&[], "undeclared");
}

/// `--jobs` is for the algorithms that take it.
#[test]
fn several_processes_go_with_the_algorithms_that_take_them() {
    let names = ["--algorithms", "trust,source-dpor,bfs"];
    let one = compare(READERS, 0, &names);
    let several = compare(READERS, 0, &[&names[..], &["--jobs", "3"]].concat());
    assert_eq!(rows(&several), rows(&one));
    let processes = |comparison: &Value| -> Vec<usize> {
        let runs = comparison["runs"].as_array().expect("an array of runs");
        let times = runs.iter().map(|run| run["processor_seconds"].as_array());
        times.map(|times| times.map_or(1, Vec::len)).collect()
    };
    assert_eq!((processes(&one)[2], processes(&several)[2]), (1, 3));
    assert_eq!(processes(&several)[1], 1);
}
