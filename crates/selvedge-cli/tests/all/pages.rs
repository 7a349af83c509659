//! The HTML report: what is in it, and, in a real browser, what it shows.
//!
//! The tests with a browser need Debian's `chromium` and `chromium-driver`, so they are ignored;
//! `.ci/run` installs both and runs them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::Sandbox;
use crate::confinement;
use crate::webdriver::{Browser, DOWN, END, HOME, UP};

pub(crate) const STORE_BUFFER: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static int saw_x, saw_y;
static void *first(void *unused) {
  atomic_store_explicit(&x, 1, memory_order_relaxed);
  saw_y = atomic_load_explicit(&y, memory_order_relaxed);
  return unused;
}
static void *second(void *unused) {
  atomic_store_explicit(&y, 1, memory_order_relaxed);
  saw_x = atomic_load_explicit(&x, memory_order_relaxed);
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, first, 0);
  pthread_create(&two, 0, second, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  assert(saw_x || saw_y);
}
";

/// Runs the command, which must end with `status`, with a report.
pub(crate) fn report(sandbox: &Sandbox, arguments: &[&str], status: i32) -> PathBuf {
    let path = sandbox.path("report.html");
    let command = [arguments, &["--report", "report.html"]].concat();
    sandbox.run(&command).ends_with(status);
    path
}

/// The data of a report.
pub(crate) fn data(path: &PathBuf) -> Value {
    let page = fs::read_to_string(path).expect("a report");
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (data, _) = rest.split_once("</script>").expect("the end of the data");
    serde_json::from_str(data).expect("JSON")
}

#[test]
fn an_ordinary_report_is_small_and_tells_where_executions_come_from() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let path = report(&sandbox, &["verify", "sb.c"], 1);
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    let page = data(&path);
    assert_eq!(page["verdict"], "bug");
    assert_eq!(page["bugs"][0]["trace"].as_array().unwrap().len(), 8);
    assert!(page["sources"]["sb.c"].as_str().unwrap().contains("saw_y"));

    let fixed = STORE_BUFFER.replace("relaxed", "seq_cst");
    sandbox.write("fixed.c", &fixed);
    let path = report(&sandbox, &["verify", "fixed.c"], 0);
    let page = data(&path);
    assert_eq!(page["verdict"], "verified");
    let origins = page["origins"].as_array().unwrap();
    let sum: u64 = origins
        .iter()
        .map(|o| o["executions"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, 2, "one less than the three executions: {origins:?}");
    for origin in origins {
        let line = origin["place"]["line"].as_u64().unwrap();
        assert!([8, 13].contains(&line), "{origin}");
    }
}

/// Stores, loads, updates and an exchange, which have 61 executions.
const MIXED: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static void *first(void *unused) {
  x = 1;
  y++;
  return unused;
}
static void *second(void *unused) {
  y = 2;
  if (x) atomic_store_explicit(&x, 3, memory_order_relaxed);
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, first, 0);
  pthread_create(&two, 0, second, 0);
  x = 4;
  int zero = 0;
  atomic_compare_exchange_strong(&y, &zero, x);
  pthread_join(one, 0);
  pthread_join(two, 0);
}
";

#[test]
fn origins_do_not_depend_on_how_the_search_is_divided() {
    let sandbox = Sandbox::with("mixed.c", MIXED);
    let origins = |jobs: &str, slice: &str| {
        let mut command = sandbox.command(&["verify", "mixed.c", "--jobs", jobs]);
        command.args(["--report", "report.html"]);
        command.env("SELVEDGE_SLICE", slice);
        let outcome = sandbox.finish(command.spawn().expect("the command starts"));
        outcome.ends_with(0);
        let page = data(&sandbox.path("report.html"));
        assert_eq!(page["unreached"], serde_json::json!([]), "{jobs} {slice}");
        page["origins"].clone()
    };
    let whole = origins("1", "");
    let all = whole.as_array().unwrap();
    assert!(all.len() > 10, "{all:?}");
    let counts = all.iter().map(|origin| origin["executions"].as_u64());
    assert_eq!(
        counts.sum::<Option<u64>>(),
        Some(60),
        "one less than the executions"
    );
    for (jobs, slice) in [("1", "7"), ("2", "1"), ("3", "10")] {
        let divided = origins(jobs, slice);
        assert_eq!(divided, whole, "--jobs {jobs}, slices of {slice}");
    }
}

#[test]
fn the_report_of_a_search_that_a_limit_ends_has_the_estimate() {
    let program = MANY.replace("63", "5").replace("64", "6");
    let program = program.replace("assert(sum != 5)", "assert(sum == 5)");
    let sandbox = Sandbox::with("many.c", &program);
    let path = report(&sandbox, &["verify", "many.c", "--max-executions", "20"], 3);
    let page = data(&path);
    let fact = |name: &str| {
        let facts = page["facts"].as_array().unwrap();
        let fact = facts.iter().find(|fact| fact[0] == name);
        fact.map(|fact| fact[1].as_str().unwrap().to_owned())
    };
    assert!(fact("search tree").unwrap().contains("16.7% is done"));
    let estimate = fact("estimated executions").unwrap();
    assert!(
        estimate.starts_with("120 (95% confidence: 120 to 120)"),
        "{estimate}"
    );
}

#[test]
fn other_commands_write_reports_too() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let compare = [
        "compare",
        "sb.c",
        "--algorithms",
        "trust,source-dpor",
        "--keep-going",
    ];
    let page = data(&report(&sandbox, &compare, 0));
    assert_eq!(page["runs"][1]["name"], "source-dpor");
    sandbox
        .run(&["verify", "sb.c", "--trace-out", "t.json"])
        .ends_with(1);
    let page = data(&report(&sandbox, &["replay", "t.json"], 1));
    assert_eq!(page["bugs"][0]["name"], "assertion");
    let test = "C SB\n{}\nP0 (atomic_int* x) { atomic_store(x, 1); }\nexists (x=1)\n";
    sandbox.write("sb.litmus", test);
    let page = data(&report(&sandbox, &["litmus", "sb.litmus"], 0));
    assert!(page["texts"][0][1].as_str().unwrap().contains("States 1"));
}

#[test]
fn a_report_that_cannot_be_written_does_not_change_the_result() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let outcome = sandbox.run(&["verify", "sb.c", "--report", "no/such/directory.html"]);
    outcome.ends_with(1).says("cannot write the report");
    outcome.prints("assertion failed");
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_bug_can_be_stepped_through() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let path = report(&sandbox, &["verify", "sb.c"], 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    assert_eq!(browser.text("h1"), "sb.c");
    assert!(browser.text("#view-summary").contains("Advice"));
    assert!(browser.text(".diff .added").contains("memory_order_"));
    assert_eq!(browser.count(".story li"), 9, "eight steps and the failure");
    assert!(browser.text(".story .ends").contains("assertion failed"));
    browser.picture("summary");

    // The keyboard.
    browser.press(&["2"]);
    assert_eq!(browser.count(".row.step"), 8);
    assert!(browser.text(".details h3").starts_with("Step 8 of 8"));
    browser.press(&[HOME]);
    assert!(
        browser
            .text(".details h3")
            .starts_with("Step 1 of 8: create T1")
    );
    browser.press(&[DOWN, "j", DOWN]);
    assert!(browser.text(".details h3").starts_with("Step 4 of 8"));
    assert_eq!(browser.text(".row.selected .gutter").trim(), "4");
    browser.press(&[UP, "k"]);
    assert!(browser.text(".details h3").starts_with("Step 2 of 8"));
    browser.press(&["p"]);
    assert!(browser.text(".details h3").starts_with("Step 1 of 8"));
    browser.press(&["n", "n"]);
    assert!(browser.text(".details h3").starts_with("Step 7 of 8: join"));
    browser.press(&[END]);
    assert!(browser.text(".details h3").starts_with("Step 8 of 8"));

    // The mouse; what happens before; values of variables.
    browser.click("#step-6 .cell");
    assert!(browser.text(".details h3").starts_with("Step 6 of 8: load"));
    assert!(browser.text(".details").contains("misses"));
    assert_eq!(browser.count(".row.past"), 2);
    assert_eq!(browser.count(".row.future"), 2);
    assert_eq!(browser.count(".row.concurrent"), 3);
    assert_eq!(browser.count(".arrow.missed.chosen"), 1);
    assert!(
        browser
            .text(".details .source .here")
            .contains("atomic_load_explicit")
    );
    assert!(browser.text(".details .stack").contains("sb.c"));
    let written = browser.text(".variables tbody");
    assert!(
        written.contains("x\t1") && written.contains("y\t1"),
        "{written}"
    );
    browser.picture("schedule");
    browser.click("[aria-label='step forward']");
    assert!(browser.text(".details h3").starts_with("Step 7 of 8"));
    browser.click("[aria-label='step back']");
    browser.click(".details .link");
    assert!(browser.text(".details h3").starts_with("Step 3 of 8"));

    // The graph.
    browser.press(&["3"]);
    assert_eq!(browser.count(".node"), 8);
    assert_eq!(browser.count(".edge.fr"), 2);
    assert_eq!(browser.count(".edge.po"), 5);
    assert_eq!(browser.count(".edge.hb"), 0);
    browser.click("[data-relation=hb]");
    assert_eq!(browser.count(".edge.hb"), 4);
    browser.click(".node[data-step='5']");
    assert_eq!(browser.count(".node.selected[data-step='5']"), 1);
    let view = || browser.run("return document.querySelector('.graph').getAttribute('viewBox')");
    let before = view();
    browser.click("[aria-label='zoom in']");
    assert_ne!(view(), before);
    browser.click("[aria-label='show everything']");
    browser.picture("graph");

    browser.press(&["4"]);
    assert!(browser.text("#view-search").contains("memory model"));
    browser.press(&["t"]);
    assert_eq!(
        browser.run("return document.documentElement.dataset.theme"),
        "dark"
    );
    browser.press(&["2"]);
    browser.picture("schedule-dark");
    browser.press(&["?"]);
    assert!(browser.text("dialog").contains("Keys"));
    browser.is_clean(&path);
    browser.resize(390, 844);
    browser.open(&path);
    for (key, name) in [
        ("1", "summary"),
        ("2", "schedule"),
        ("3", "graph"),
        ("4", "search"),
    ] {
        browser.press(&[key]);
        browser.picture(&format!("{name}-390"));
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(390), "{name} is {wide} pixels wide");
    }
}

/// A program with a bug.
struct Example {
    kind: &'static str,
    file: String,
    program: String,
    options: Vec<&'static str>,
}

/// A program for each kind of bug. A stack overflow is none: it makes the check of such a program incomplete.
fn examples() -> Vec<Example> {
    let sections = include_str!("../../../selvedge-page/src/explained/bugs.md")
        .split("\n## ")
        .skip(1);
    let section = |section: &'static str| {
        let (kind, text) = section.split_once('\n')?;
        let (_, program) = text.split_once("```c")?;
        let (suffix, program) = program.split_once('\n')?;
        let (program, _) = program.split_once("```")?;
        let options = match kind {
            "stack-overflow" => return None,
            "leak" => vec!["--leaks"],
            "ltl-violation" => vec!["--ltl", "F {done == 1}"],
            "non-progress" => vec!["--property", "non-progress", "--fair"],
            "starvation" => vec!["--property", "starvation", "--fair"],
            _ => vec![],
        };
        Some(Example {
            kind,
            file: format!("example.c{suffix}"),
            program: program.to_owned(),
            options,
        })
    };
    let distance = confinement::distance(&Sandbox::new(), "unlink");
    let forbidden = Example {
        kind: "forbidden-call",
        file: "example.c".to_owned(),
        program: confinement::attack(&format!("find({distance}L)(\"victim\");")),
        options: vec![],
    };
    sections.filter_map(section).chain([forbidden]).collect()
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn every_kind_of_bug_has_its_page() {
    let browser = Browser::start();
    browser.resize(1280, 800);
    let examples = examples();
    assert_eq!(examples.len(), 20);
    for Example {
        kind,
        file,
        program,
        options,
    } in examples
    {
        let sandbox = Sandbox::with(&file, &program);
        let path = report(&sandbox, &[&["verify", &file], &options[..]].concat(), 1);
        browser.open(&path);
        let about = browser.text("#view-summary");
        assert!(
            about.contains(&format!("About this kind of bug: {kind}")),
            "{about}"
        );
        browser.press(&["2"]);
        let rows = browser.count(".row.step");
        let endless = ["ltl-violation", "non-progress", "starvation"].contains(&kind);
        assert_eq!(browser.count(".row.remark") > 0, endless, "{kind}");
        match kind {
            "deadlock" => {
                assert_eq!(browser.count(".row.end"), 2);
                assert_eq!(browser.count(".arrow.waits"), 2);
                assert!(about.contains("Who waits for whom"));
            }
            "data-race" => assert!(about.contains("Why nothing orders them")),
            "assertion" => assert_eq!(browser.count(".story .preempted"), 1),
            _ => {}
        }
        if rows > 0 {
            browser.press(&["3"]);
            assert_eq!(browser.count(".node"), rows, "{kind}");
            browser.press(&["2"]);
        }
        browser.picture(&format!("kind-{kind}"));
        for view in ["1", "2", "3", "4"] {
            browser.press(&[view]);
            for _theme in ["dark", "light"] {
                let faint = browser.run(include_str!("contrast.js"));
                assert_eq!(faint, "", "{kind}, view {view}");
                browser.press(&["t"]);
            }
        }
        browser.fits_a_telephone(&path, &format!("kind-{kind}"));
        browser.resize(1280, 800);
    }
}

/// Two threads of 5,000 steps each.
const LONG: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int one, two;
static void *work(void *counter) {
  for (int i = 0; i < 5000; i++) atomic_fetch_add((atomic_int *)counter, 1);
  return 0;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, &two);
  work(&one);
  pthread_join(thread, 0);
  assert(one + two != 10000);
}
";

const MANY: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int sum;
static void *work(void *unused) { sum++; return unused; }
int main(void) {
  pthread_t threads[63];
  for (int i = 0; i < 63; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 63; i++) pthread_join(threads[i], 0);
  assert(sum != 63);
}
";

#[test]
#[ignore = "needs chromium and chromedriver"]
fn ten_thousand_steps_and_sixty_four_threads_can_be_looked_at() {
    let browser = Browser::start();
    browser.resize(1280, 800);
    let sandbox = Sandbox::with("long.c", LONG);
    let path = report(&sandbox, &["verify", "long.c", "--no-advice"], 1);
    let size = fs::metadata(&path).unwrap().len();
    browser.open(&path);
    let loaded = "return performance.getEntriesByType('navigation')[0].loadEventEnd";
    let milliseconds = browser.run(loaded).as_f64().expect("a time");
    eprintln!("10,000 steps: {size} bytes, opened in {milliseconds} ms");
    assert!(milliseconds < 2000.0, "{milliseconds} ms");
    browser.press(&["2"]);
    assert!(
        browser.text(".details h3").contains("of 10,00")
            || browser.text(".details h3").contains("of 100")
    );
    assert!(browser.count(".row") < 100);
    browser.press(&[HOME]);
    assert_eq!(browser.count("#step-1"), 1);
    browser.scroll(".schedule", 150_000);
    assert_eq!(browser.count("#step-1"), 0);
    assert_eq!(browser.count("#step-5005"), 1);
    browser.press(&["3"]);
    assert_eq!(browser.count(".node"), 240);
    browser.picture("long-graph");
    browser.is_clean(&path);

    let sandbox = Sandbox::with("many.c", MANY);
    let path = report(&sandbox, &["verify", "many.c", "--no-advice"], 1);
    browser.open(&path);
    browser.press(&["2"]);
    assert_eq!(browser.count(".columns .thread"), 64);
    browser.click("[aria-label='first step']");
    browser.picture("many");
    browser.press(&["3"]);
    browser.picture("many-graph");
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_verified_program_and_a_comparison_show_their_figures() {
    let sandbox = Sandbox::with("fixed.c", &STORE_BUFFER.replace("relaxed", "seq_cst"));
    let browser = Browser::start();
    browser.resize(1280, 900);
    let path = report(&sandbox, &["verify", "fixed.c"], 0);
    browser.open(&path);
    assert_eq!(browser.text(".verdict"), "verified");
    assert!(browser.text(".facts").contains("rc11"));
    assert!(browser.text(".origins").contains("fixed.c:"));
    assert!(browser.count(".pairs tbody tr") >= 2);
    browser.picture("verified");
    browser.is_clean(&path);
    let path = report(
        &sandbox,
        &["compare", "fixed.c", "--algorithms", "trust,source-dpor"],
        0,
    );
    browser.open(&path);
    assert_eq!(browser.count(".runs tbody tr"), 2);
    assert_eq!(browser.count(".bars"), 3);
    browser.picture("compare");
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn program_text_cannot_become_markup() {
    let name = "<img src=x onerror=alert(1)>\"'&.c";
    let program = STORE_BUFFER.replace(
        "assert(saw_x || saw_y)",
        "__assert_fail(\"</script><script>alert(2)</script><b>&amp;\", \"<i>\", 1, \"<u>\")",
    );
    let sandbox = Sandbox::with(name, &format!("#include <assert.h>\n{program}"));
    let path = report(&sandbox, &["verify", name], 1);
    let browser = Browser::start();
    browser.open(&path);
    assert_eq!(browser.text("h1"), name);
    assert!(
        browser
            .text(".sentence")
            .contains("</script><script>alert(2)")
    );
    for key in ["1", "2", "3", "4"] {
        browser.press(&[key]);
        assert_eq!(
            browser.count("img, iframe, object, a, u, script:not([id])"),
            1
        );
    }
    browser.is_clean(&path);
}
