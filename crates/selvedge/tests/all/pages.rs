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

/// Runs a test above with a report, and tells where the report is.
fn reported(test: &str, confined: bool) -> PathBuf {
    let name = format!("pages-{test}-{confined}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("pages::{test}"), "--ignored"]);
    command.env("SELVEDGE_REPORT", directory.join("page.html"));
    if confined {
        command.env("SELVEDGE_CONFINE", selvedge_confine::exported().unwrap());
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    directory
}

/// The data of a page.
fn data(page: &Path) -> Value {
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
