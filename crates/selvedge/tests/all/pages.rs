//! The HTML report of a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge::model::Builder;
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::thread;
use serde_json::Value;

fn updates(lost: bool) {
    let count = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || other.fetch_add(1, Relaxed));
    match lost {
        true => count.store(count.load(Relaxed) + 1, Relaxed),
        false => drop(count.fetch_add(1, Relaxed)),
    }
    thread.join().unwrap();
    assert_eq!(count.load(Relaxed), 2);
}

#[test]
#[ignore = "run by the tests below, with a report"]
fn two_models() {
    Builder::new().check(|| updates(false));
    Builder::new().check(|| updates(true));
}

fn publish(data: &AtomicUsize, ready: &AtomicUsize) {
    data.store(42, Relaxed);
    ready.store(1, Relaxed);
}

#[test]
#[ignore = "run by the tests below, with a report"]
fn weak_model() {
    Builder::new().check(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        thread::spawn(move || publish(&other.0, &other.1));
        if shared.1.load(Acquire) == 1 {
            assert_eq!(shared.0.load(Relaxed), 42);
        }
    });
}

#[test]
#[ignore = "run by the tests below, with a report"]
fn race_model() {
    Builder::new().check(|| {
        let shared = Arc::new((selvedge::cell::UnsafeCell::new(0), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        thread::spawn(move || {
            // SAFETY: the checker keeps the cell; that nothing orders the accesses is what it is to find.
            other.0.with_mut(|value| unsafe { *value = 42 });
            other.1.store(1, Relaxed);
        });
        if shared.1.load(Relaxed) == 1 {
            // SAFETY: as above.
            shared.0.with(|value| unsafe { *value });
        }
    });
}

/// Four threads with three updates each: 369,600 executions.
#[test]
#[ignore = "run by the tests below, with a report"]
fn large_model() {
    Builder::new().check(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let work = |count: &AtomicUsize| {
            (0..3).for_each(|_| {
                count.fetch_add(1, Relaxed);
            })
        };
        for _ in 0..3 {
            let count = Arc::clone(&count);
            thread::spawn(move || work(&count));
        }
        work(&count);
    });
}

/// Thousands of steps in a few different calls.
#[test]
#[ignore = "run by the tests below, with a report"]
fn long_model() {
    Builder::new().check(|| {
        let count = Arc::new(AtomicUsize::new(0));
        (0..4_000).for_each(|_| bump(&count));
        assert_eq!(count.load(Relaxed), 0);
    });
}

fn bump(count: &AtomicUsize) {
    count.fetch_add(1, Relaxed);
}

/// Runs a test above with a report, and tells where the report is.
pub(crate) fn reported(test: &str, confined: bool) -> PathBuf {
    run(test, confined, &[], 101)
}

/// The same with these variables, and with an exit status.
pub(crate) fn run(test: &str, confined: bool, variables: &[(&str, &str)], status: i32) -> PathBuf {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let name = format!("pages-{}", RUNS.fetch_add(1, Relaxed));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("pages::{test}"), "--ignored"]);
    command.env("SELVEDGE_REPORT", directory.join("page.html"));
    command.envs(variables.iter().copied());
    if confined {
        command.env("SELVEDGE_CONFINE", selvedge_confine::exported().unwrap());
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    directory
}

/// The data of a page.
pub(crate) fn data(page: &Path) -> Value {
    let page = fs::read_to_string(page).unwrap();
    let start = page.find("id=\"data\">").unwrap() + 10;
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

#[test]
fn every_model_has_a_page() {
    let directory = reported("two_models", false);
    let verified = data(&directory.join("page.html"));
    assert_eq!(verified["title"], "pages::two_models");
    assert_eq!(verified["verdict"], "verified");
    assert_eq!(verified["sentence"], "verified: none of 2 executions fails");
    assert_eq!(
        verified["facts"][0],
        serde_json::json!(["memory model", "rc11"])
    );
    let failed = data(&directory.join("page-2.html"));
    assert_eq!(failed["verdict"], "bug");
    let bug = &failed["bugs"][0];
    assert_eq!(bug["name"], "assertion");
    let file = bug["file"].as_str().unwrap();
    assert!(file.ends_with("tests/all/pages.rs"), "{file}");
    let sources = failed["sources"].as_object().unwrap();
    assert!(sources[file].as_str().unwrap().contains("fn two_models()"));
    let trace = bug["trace"].as_array().unwrap();
    assert_eq!(bug["relations"].as_array().unwrap().len(), trace.len());
    let load = &trace[1];
    assert_eq!(load["operation"], "load");
    assert_eq!(
        (&load["read"], &load["reads_from"]),
        (&0.into(), &"initial".into())
    );
    let update = trace
        .iter()
        .find(|step| step["operation"] == "fetch-add")
        .unwrap();
    assert_eq!((&update["read"], &update["wrote"]), (&0.into(), &1.into()));
}

/// The value of a fact on a page.
fn fact(page: &Value, name: &str) -> Option<String> {
    let facts = page["facts"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact[0] == name)?;
    Some(fact[1].as_str().unwrap().to_owned())
}

/// The lines that executions come from, with how many do.
fn origins(page: &Value) -> Vec<(u64, Option<u64>, u64)> {
    let origins = page["origins"].as_array().unwrap().iter();
    let line = |place: &Value| place["line"].as_u64();
    let origins = origins.map(|origin| {
        let executions = origin["executions"].as_u64().unwrap();
        (
            line(&origin["place"]).unwrap(),
            line(&origin["other"]),
            executions,
        )
    });
    origins.collect()
}

#[test]
fn a_page_explains_the_bug_and_tells_where_executions_come_from() {
    let directory = reported("two_models", false);
    let page = data(&directory.join("page.html"));
    let updates = line_of("other.fetch_add(1, Relaxed)");
    let other = line_of("drop(count.fetch_add(1, Relaxed))");
    let found = origins(&page);
    assert_eq!(found.len(), 1, "{found:?}");
    let (line, from, executions) = found[0];
    assert_eq!(executions, 1, "one less than the two executions");
    assert!([updates, other].contains(&line), "{found:?}");
    assert!(from.is_none_or(|from| [updates, other].contains(&from)));
    assert!(fact(&page, "memory").unwrap().starts_with("at most "));
    let sources = page["sources"].as_object().unwrap();
    assert_eq!(sources.len(), 1);
    let bug = data(&directory.join("page-2.html"))["bugs"][0].clone();
    let explanation = bug["explanation"].as_str().unwrap();
    assert!(explanation.contains("fetch_add"), "{explanation}");
    let race = data(&reported("race_model", false).join("page.html"));
    let explanation = race["bugs"][0]["explanation"].as_str().unwrap();
    assert!(explanation.contains("UnsafeCell"), "{explanation}");
}

/// The line of this file that contains a text, which is its first.
fn line_of(text: &str) -> u64 {
    let lines = include_str!("pages.rs").lines();
    1 + lines.take_while(|line| !line.contains(text)).count() as u64
}

#[test]
fn origins_are_those_of_all_processes() {
    let limit = [("SELVEDGE_MAX_EXECUTIONS", "200")];
    let page = |variables: &[(&str, &str)], status| {
        data(&run("large_model", false, variables, status).join("page.html"))
    };
    let whole = page(&limit, 101);
    assert_eq!(whole["verdict"], "incomplete");
    let sum = |page: &Value| origins(page).iter().map(|origin| origin.2).sum::<u64>();
    let executions = fact(&whole, "complete executions").unwrap();
    assert_eq!(sum(&whole), executions.parse::<u64>().unwrap() - 1);
    // Descents tell how many there are.
    let estimate = fact(&whole, "estimated executions").unwrap();
    assert!(estimate.contains("95% confidence"), "{estimate}");
    assert!(fact(&whole, "search tree").unwrap().ends_with("% is done"));

    let preemptions = ("SELVEDGE_MAX_PREEMPTIONS", "1");
    let alone = page(&[preemptions], 0);
    let shared = page(
        &[
            preemptions,
            ("SELVEDGE_JOBS", "2"),
            ("SELVEDGE_SLICE", "20"),
        ],
        0,
    );
    assert_eq!(origins(&shared), origins(&alone));
    let executions = fact(&alone, "complete executions").unwrap();
    assert_eq!(sum(&alone), executions.parse::<u64>().unwrap() - 1);
}

#[test]
fn thousands_of_steps_have_their_calls() {
    let page = data(&reported("long_model", false).join("page.html"));
    let bug = &page["bugs"][0];
    let steps = bug["trace"].as_array().unwrap().len();
    assert!(steps > 4_000, "{steps} steps");
    for step in [0, 2_500, 3_999] {
        assert_eq!(calls(bug, step).0, "bump");
    }
    assert!(bug["call_stacks"].as_array().unwrap().len() < 10);
}

#[test]
fn confined_tests_have_reports_as_well() {
    let directory = reported("two_models", true);
    let page = data(&directory.join("page-2.html"));
    assert_eq!(page["verdict"], "bug");
    let (function, lines) = calls(&page["bugs"][0], 1);
    assert_eq!((function, lines[0]), ("updates", 18));
}

/// The innermost function of a step, and the lines of its calls.
fn calls(bug: &Value, step: usize) -> (&str, Vec<u64>) {
    let stack = bug["trace"][step]["stack"].as_u64().unwrap() as usize;
    let calls = bug["call_stacks"][stack].as_array().unwrap();
    let function = calls[0]["function"].as_str().unwrap();
    let lines = calls.iter().map(|call| call["line"].as_u64().unwrap());
    (function.rsplit("::").next().unwrap(), lines.collect())
}

#[test]
fn the_steps_of_a_bug_have_their_calls_and_weak_bugs_have_advice() {
    let directory = reported("weak_model", false);
    let page = data(&directory.join("page.html"));
    let bug = &page["bugs"][0];
    let trace = bug["trace"].as_array().unwrap();
    let publishes = |step: &Value| step["operation"] == "store" && step["wrote"] == 42;
    let store = trace.iter().position(publishes).unwrap();
    assert_eq!(calls(bug, store), ("publish", vec![33, 43]));
    let file = bug["file"].as_str().unwrap();
    assert_eq!(bug["call_stacks"][0][0]["file"], file);
    assert_eq!(bug["stacks"][0]["frames"][0]["file"], file);
    assert_eq!(bug["stacks"][0]["frames"][0]["line"], bug["line"]);

    let advice = &bug["advice"];
    assert_eq!(advice["outcome"], "removes");
    let changes = advice["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (&changes[0]["from"], &changes[0]["to"]),
        (&"relaxed".into(), &"release".into())
    );
    assert_eq!(changes[0]["file"], file);
}
