//! Keys, addresses and the choice between several bugs on a page, in a real browser.
//!
//! The tests need Debian's `chromium` and `chromium-driver`, so they are ignored; `.ci/run` installs both and runs
//! them.

use crate::common::Sandbox;
use crate::pages::{STORE_BUFFER, report};
use crate::webdriver::{Browser, ESCAPE, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT};

/// The number of the selected step.
fn selected(browser: &Browser) -> String {
    let heading = browser.text(".details h3");
    let number = heading.split(' ').nth(1).unwrap_or_default();
    number.to_owned()
}

fn tab(browser: &Browser) -> String {
    browser.text("[role=tab][aria-selected=true]")
}

fn address(browser: &Browser) -> String {
    let hash = browser.run("return location.hash");
    hash.as_str().expect("an address").to_owned()
}

/// Three writes by one thread, and one read of the last.
const CHAIN: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *f(void *u) { for (int i = 1; i <= 12; i++) x = i; return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  pthread_join(t, 0);
  assert(x != 12);
}
";

#[test]
#[ignore = "needs chromium and chromedriver"]
fn every_key_does_what_the_help_says() {
    let sandbox = Sandbox::with("chain.c", CHAIN);
    let path = report(&sandbox, &["verify", "chain.c", "--no-advice"], 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    assert_eq!(tab(&browser), "Summary");
    browser.press(&["2"]);
    assert_eq!(tab(&browser), "Schedule");
    // Step 15 reads what step 13 wrote.
    assert_eq!(selected(&browser), "15");
    browser.press(&["f"]);
    assert_eq!(selected(&browser), "13");
    // A store reads nothing.
    browser.press(&["f"]);
    assert_eq!(selected(&browser), "13");
    browser.press(&[PAGE_UP]);
    assert_eq!(selected(&browser), "3");
    browser.press(&[PAGE_UP]);
    assert_eq!(selected(&browser), "1");
    browser.press(&[PAGE_DOWN]);
    assert_eq!(selected(&browser), "11");
    browser.press(&[PAGE_DOWN]);
    assert_eq!(selected(&browser), "15");

    browser.press(&["3"]);
    let width = || {
        let view = browser.run("return document.querySelector('.graph').viewBox.baseVal.width");
        view.as_f64().expect("a number")
    };
    let before = width();
    browser.press(&["+"]);
    assert!((width() - before * 0.8).abs() < 1.0, "{before} {}", width());
    browser.press(&["-", "-"]);
    assert!(
        (width() - before * 1.25).abs() < 1.0,
        "{before} {}",
        width()
    );
    // Keys work after a click on a box.
    browser.click("[data-relation=hb]");
    browser.press(&[HOME]);
    assert_eq!(browser.count(".node.selected[data-step='1']"), 1);
    browser.press(&["j", "2"]);
    assert_eq!(
        (tab(&browser), selected(&browser)),
        ("Schedule".into(), "2".into())
    );

    // The arrows go from tab to tab, around both ends.
    browser.click("#tab-summary");
    browser.press(&[RIGHT]);
    assert_eq!(tab(&browser), "Schedule");
    browser.click("#tab-summary");
    browser.press(&[LEFT]);
    assert_eq!(tab(&browser), "Search");

    browser.press(&["?"]);
    assert_eq!(browser.count("dialog[open]"), 1);
    // Keys do nothing behind the help.
    browser.press(&["2"]);
    assert_eq!(tab(&browser), "Search");
    browser.press(&[ESCAPE]);
    assert_eq!(browser.count("dialog[open]"), 0);
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn an_address_names_bug_tab_and_step() {
    let program = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static void *f(void *u) { x = 1; y = 1; return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  assert(x == 0);
  assert(y == 0);
  pthread_join(t, 0);
}
";
    let sandbox = Sandbox::with("two.c", program);
    let verify = ["verify", "two.c", "--no-advice", "--keep-going"];
    let path = report(&sandbox, &verify, 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    assert_eq!(browser.count(".bugs option"), 2);
    let first = browser.text(".sentence");
    let second = browser.text(".bugs option[value='1']");
    let second = second.trim_start_matches("2: ");
    assert_ne!(first, second);
    assert!(second.contains("assertion failed"), "{second}");

    // Another bug changes the heading; the choice keeps the focus.
    browser.run(
        "const choice = document.querySelector('.bugs select');
         choice.value = '1'; choice.dispatchEvent(new Event('change'))",
    );
    assert_eq!(browser.text(".sentence"), second);
    assert_eq!(browser.run("return document.activeElement.value"), "1");
    assert!(
        address(&browser).starts_with("#2/summary/"),
        "{}",
        address(&browser)
    );

    // An address that is typed in takes the page there.
    browser.run("location.hash = '#1/schedule/2'");
    assert_eq!(browser.text(".sentence"), first);
    assert_eq!(
        (tab(&browser), selected(&browser)),
        ("Schedule".into(), "2".into())
    );
    browser.run("location.hash = '#2/graph/1'");
    assert_eq!(browser.text(".sentence"), second);
    assert_eq!(tab(&browser), "Graph");
    assert_eq!(browser.count(".node.selected[data-step='1']"), 1);

    // And so does one that the page is opened with; what it does not have is passed over.
    browser.open_at(&path, "#2/schedule/3");
    assert_eq!(browser.text(".sentence"), second);
    assert_eq!(
        (tab(&browser), selected(&browser)),
        ("Schedule".into(), "3".into())
    );
    browser.open_at(&path, "#7/nothing/99");
    assert_eq!(browser.text(".sentence"), first);
    assert_eq!(tab(&browser), "Summary");
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn who_waits_for_whom_and_races_have_arrows_in_both_views() {
    let browser = Browser::start();
    browser.resize(1280, 800);
    let deadlock = include_str!("../../../../examples/c/philosophers.c");
    let sandbox = Sandbox::with("philosophers.c", deadlock);
    let path = report(&sandbox, &["verify", "philosophers.c"], 1);
    browser.open(&path);
    browser.press(&["2"]);
    // Main waits for the first of those that wait for each other.
    let ends = browser.count(".row.end");
    assert_eq!(browser.count(".arrow.waits"), ends);
    assert!(browser.text(".legend").contains("waits for"));
    browser.press(&["3"]);
    assert_eq!(browser.count(".ending.waits"), ends);
    assert_eq!(browser.count(".edge.waits"), ends);
    assert!(browser.text(".relation.waits").contains("waits for"));
    browser.picture("waits-graph");
    // All of it is in view.
    let outside = browser.run(
        "const view = document.querySelector('.graph').getBoundingClientRect();
         return [...document.querySelectorAll('.node, .ending')].filter((node) => {
           const box = node.getBoundingClientRect();
           return box.left < view.left || box.right > view.right || box.bottom > view.bottom; }).length",
    );
    assert_eq!(outside, 0);

    let lost = include_str!("../../../../examples/c/lost_wakeup.c");
    sandbox.write("lost.c", lost);
    let path = report(&sandbox, &["verify", "lost.c"], 1);
    browser.open(&path);
    let waiting = browser.text("#view-summary");
    assert!(!waiting.contains("could help"), "{waiting}");
    browser.press(&["2"]);
    assert_eq!(browser.count(".row.end"), 2);
    assert_eq!(
        browser.count(".arrow.waits"),
        1,
        "nobody owns the condition"
    );

    let race = include_str!("../../../../examples/c/publish_relaxed.c");
    sandbox.write("race.c", race);
    let path = report(&sandbox, &["verify", "race.c", "--no-advice"], 1);
    browser.open(&path);
    browser.press(&["2"]);
    assert_eq!(browser.count(".arrow.races"), 1);
    browser.press(&["3"]);
    assert_eq!(
        (browser.count(".ending.races"), browser.count(".edge.races")),
        (2, 1)
    );
    browser.resize(390, 844);
    browser.press(&["2"]);
    // No letter of the last rows is outside of the schedule.
    let cut = browser.run(
        "const view = document.querySelector('.schedule').getBoundingClientRect();
         return [...document.querySelectorAll('.cell.failed')].filter((cell) => cell.getBoundingClientRect().left < view.left + 52).length",
    );
    assert_eq!(cut, 0);
    assert!(browser.text(".legend").contains("races with"));
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_values_of_plain_variables_follow_the_steps() {
    let program = include_str!("../../../../examples/c/account_lost_update.c");
    let sandbox = Sandbox::with("account.c", program);
    let path = report(&sandbox, &["verify", "account.c", "--no-advice"], 1);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&path);
    browser.press(&["2", HOME]);
    let balance = || {
        let rows = browser.text(".variables tbody");
        let row = rows.lines().find(|row| row.starts_with("balance\t"));
        row.map(|row| row.trim_end().to_owned())
    };
    assert_eq!(balance().as_deref(), Some("balance\t0\tinitial"));
    let mut seen = vec![];
    for _step in 1..20 {
        seen.extend(balance().filter(|row| !seen.contains(row)));
        if browser.text(".details dl").contains("then writes") {
            let facts = browser.text(".details dl");
            assert!(facts.contains("balance = 10 over 0"), "{facts}");
        }
        browser.press(&["j"]);
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[1].starts_with("balance\t10\tafter step "), "{seen:?}");
    browser.is_clean(&path);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_search_says_what_counts_as_the_same_and_its_limits() {
    let fixed = STORE_BUFFER.replace("relaxed", "seq_cst");
    let sandbox = Sandbox::with("fixed.c", &fixed);
    let path = report(&sandbox, &["verify", "fixed.c"], 0);
    let browser = Browser::start();
    browser.open(&path);
    let facts = browser.text(".facts");
    for expected in [
        "mazurkiewicz",
        "--memory-limit",
        "--max-threads",
        "--stack-size",
        "--heap-limit",
        "--watchdog",
    ] {
        assert!(facts.contains(expected), "{expected}: {facts}");
    }
}
