//! Pages other than that of an ordinary bug in a real browser, on a wide screen and on a telephone.
//!
//! The tests need Debian's `chromium` and `chromium-driver`, so they are ignored; `.ci/run` installs both and runs
//! them.

use std::path::Path;

use crate::common::Sandbox;
use crate::pages::{STORE_BUFFER, report};
use crate::webdriver::Browser;

/// Five threads with three updates each: 168,168,000 executions.
const MANY: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *f(void *unused) { for (int i = 0; i < 3; i++) x++; return unused; }
int main(void) {
  pthread_t threads[5];
  for (int i = 0; i < 5; i++) pthread_create(&threads[i], 0, f, 0);
  for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
}
";

/// Opens a page that has a single view, `look`s at it, and checks that it is as legible on a telephone.
fn single(browser: &Browser, path: &Path, name: &str, look: impl FnOnce(&Browser)) {
    browser.resize(1280, 900);
    browser.open(path);
    look(browser);
    browser.picture(name);
    for _theme in ["dark", "light"] {
        assert_eq!(browser.run(include_str!("contrast.js")), "", "{name}");
        browser.press(&["t"]);
    }
    browser.fits_a_telephone(path, name);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn every_page_without_a_bug_is_legible_on_a_telephone() {
    let browser = Browser::start();
    let sandbox = Sandbox::with("fixed.c", &STORE_BUFFER.replace("relaxed", "seq_cst"));
    let path = report(&sandbox, &["verify", "fixed.c", "--jobs", "2"], 0);
    single(&browser, &path, "searched", |browser| {
        assert_eq!(browser.text(".verdict"), "verified");
        assert!(browser.count(".pairs tbody tr") >= 2);
        assert!(
            browser
                .text("#view-search")
                .contains("Every line of the program was reached.")
        );
    });

    let algorithms = ["compare", "fixed.c", "--algorithms", "trust,source-dpor"];
    let path = report(&sandbox, &algorithms, 0);
    single(&browser, &path, "compared", |browser| {
        assert_eq!(browser.count(".runs tbody tr"), 2);
        assert_eq!(browser.count(".bars .fill"), 6);
        assert!(browser.text(".runs").contains("source-dpor"));
    });

    sandbox.write("many.c", MANY);
    let limited = ["verify", "many.c", "--timeout", "1.5", "--jobs", "1"];
    let path = report(&sandbox, &limited, 3);
    single(&browser, &path, "incomplete", |browser| {
        assert_eq!(browser.text(".verdict"), "incomplete");
        let facts = browser.text(".facts");
        assert!(facts.contains("estimated executions"), "{facts}");
        assert!(facts.contains("not explored"), "{facts}");
        assert!(browser.text(".origins").contains("many.c:4"));
        assert_eq!(browser.count(".chart .curve"), 2);
        assert_eq!(browser.count(".chart .curve.c0 title"), 1);
        // The number of executions never falls: no point of the curve is lower than the one before.
        let falls = browser.run(
            "const points = [...document.querySelector('.curve.c0').points];
             return points.length < 3 || points.some((point, n) => n && point.y > points[n - 1].y + 0.01);",
        );
        assert_eq!(falls, false);
    });

    let test = "C SB\n{}\nP0 (atomic_int* x) { atomic_store(x, 1); }\nexists (x=1)\n";
    sandbox.write("sb.litmus", test);
    let path = report(&sandbox, &["litmus", "sb.litmus"], 0);
    single(&browser, &path, "litmus", |browser| {
        assert_eq!(browser.text("h1"), "litmus tests");
        assert!(browser.text("#view-search pre").contains("States 1"));
    });

    let verify = ["irs", "verify", "many.c", "-o", "p.irs"];
    sandbox
        .run(&[&verify[..], &["--max-executions", "2"]].concat())
        .ends_with(3);
    let path = report(&sandbox, &["irs", "stat", "p.irs"], 0);
    single(&browser, &path, "irs-stat", |browser| {
        assert_eq!(browser.text("h1"), "p.irs");
        let text = browser.text("#view-search pre");
        assert!(text.contains("constraints"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_replay_has_the_page_of_its_bug() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let verify = ["verify", "sb.c", "--trace-out", "t.json", "--no-advice"];
    sandbox.run(&verify).ends_with(1);
    let path = report(&sandbox, &["replay", "t.json"], 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    assert_eq!(browser.text(".verdict"), "bug");
    assert!(browser.text(".sentence").contains("assertion failed"));
    assert_eq!(browser.count("[role=tab]"), 3, "nothing was searched");
    browser.press(&["2"]);
    assert_eq!(browser.count(".row.step"), 8);
    assert!(browser.text(".details h3").starts_with("Step 8 of 8"));
    browser.press(&["3"]);
    assert_eq!(browser.count(".node"), 8);
    browser.fits_a_telephone(&path, "replay");
}

/// A thread that never gets the lock, because the other one always does.
const LASSO: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int done, tries;
static void *worker(void *unused) {
  while (!done) tries = !tries;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, worker, 0);
  done = 1;
  pthread_join(thread, 0);
}
";

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_cycle_of_a_lasso_is_marked_in_every_view() {
    let program = LASSO.replace("static atomic_int done", "atomic_int done");
    let sandbox = Sandbox::with("lasso.c", &program);
    let path = report(
        &sandbox,
        &["verify", "lasso.c", "--ltl", "F {done == 1}"],
        1,
    );
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    let cycle = "return JSON.parse(document.getElementById('data').textContent).bugs[0].cycle";
    let cycle = browser.run(cycle).as_u64().expect("a cycle");
    let ends = browser.text(".story .ends");
    assert!(
        ends.contains(&format!("the steps from {cycle} on repeat for ever")),
        "{ends}"
    );
    browser.press(&["2"]);
    let steps = browser.count(".row.step");
    assert!(cycle > 1 && cycle < steps, "{cycle} of {steps}");
    assert_eq!(browser.count(".row.cycle"), steps - cycle + 1);
    assert_eq!(browser.count(&format!("#step-{cycle}.cycle")), 1);
    assert_eq!(browser.count(&format!("#step-{}.cycle", cycle - 1)), 0);
    assert_eq!(browser.count(".row.remark"), 2, "both ends of the cycle");
    browser.press(&["3"]);
    assert_eq!(browser.count(".node.cycle"), steps - cycle + 1);
    let back = format!("[data-edge='cycle {steps} {cycle}'][marker-end]");
    assert_eq!(browser.count(&back), 1);
    assert!(browser.text(".relation.cycle").contains("repeats for ever"));
    // The frame is around the steps of the cycle and no others.
    let around = browser.run(
        "const frame = document.querySelector('.edge.cycle').getBoundingClientRect();
         const inside = (node) => { const box = node.getBoundingClientRect();
           return box.top >= frame.top && box.bottom <= frame.bottom && box.left >= frame.left && box.right <= frame.right; };
         return [...document.querySelectorAll('.node')].filter(inside).length;",
    );
    assert_eq!(around, steps - cycle + 1);
    browser.picture("lasso-graph");
    browser.fits_a_telephone(&path, "lasso");
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_graph_is_zoomed_with_the_wheel_and_moved_by_dragging() {
    let sandbox = Sandbox::with("sb.c", STORE_BUFFER);
    let path = report(&sandbox, &["verify", "sb.c", "--no-advice"], 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    browser.press(&["3"]);
    // Left, top, width and height of what is shown.
    let view = || -> Vec<f64> {
        let view = browser.run("return document.querySelector('.graph').getAttribute('viewBox')");
        let numbers = view.as_str().expect("a view").split(' ');
        numbers.map(|number| number.parse().unwrap()).collect()
    };
    let near = |one: f64, other: f64| (one - other).abs() < 0.5;
    // Where the middle of the picture is in the drawing: it stays there when the wheel is turned over it.
    let middle = |view: &[f64]| (view[0] + view[2] / 2.0, view[1] + view[3] / 2.0);
    let before = view();
    browser.wheel(".graph", -120);
    let nearer = view();
    assert!(near(nearer[2], before[2] * 0.9), "{before:?} {nearer:?}");
    let (one, other) = (middle(&before), middle(&nearer));
    assert!(
        (one.0 - other.0).abs() < 2.0 && (one.1 - other.1).abs() < 2.0,
        "{one:?} {other:?}"
    );
    browser.wheel(".graph", 120);
    assert!(near(view()[2], nearer[2] * 1.1), "{nearer:?} {:?}", view());

    browser.press(&["0"]);
    let before = view();
    let scale = browser.run(
        "const picture = document.querySelector('.graph'); return picture.viewBox.baseVal.width / picture.clientWidth",
    );
    let scale = scale.as_f64().expect("a number");
    let chosen = browser.text(".details h3");
    browser.drag(".graph", (80, -40));
    let moved = view();
    assert!(
        near(moved[0], before[0] - 80.0 * scale),
        "{before:?} {moved:?}"
    );
    assert!(
        near(moved[1], before[1] + 40.0 * scale),
        "{before:?} {moved:?}"
    );
    assert_eq!(moved[2..], before[2..]);
    // To drag is not to select.
    assert_eq!(browser.text(".details h3"), chosen);
    browser.is_clean(&path);
}
