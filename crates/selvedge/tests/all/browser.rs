//! The pages of Rust tests in a real browser, which needs Debian's `chromium` and `chromium-driver`: `.ci/run`
//! installs both and runs these tests.

use std::fs;

use selvedge_page::{Row, Verdict, index};

use crate::pages::{reported, run};
use crate::webdriver::Browser;

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_pages_of_rust_tests_can_be_looked_at() {
    let browser = Browser::start();
    browser.resize(1280, 900);
    let directory = reported("two_models", false);
    let verified = directory.join("page.html");
    browser.open(&verified);
    assert_eq!(browser.text("h1"), "pages::two_models");
    assert_eq!(browser.text(".verdict"), "verified");
    assert!(browser.text(".facts").contains("MiB"));
    assert_eq!(browser.count(".origins tbody tr"), 1);
    assert!(browser.text(".pairs").contains("fetch_add(1, Relaxed)"));
    browser.picture("rust-verified");
    browser.fits_a_telephone(&verified, "rust-verified");

    let bug = directory.join("page-2.html");
    browser.open(&bug);
    assert_eq!(browser.text(".verdict"), "bug");
    let about = browser.text("#view-summary");
    assert!(
        about.contains("About this kind of bug: assertion"),
        "{about}"
    );
    assert_eq!(browser.count("#view-summary details pre"), 1, "an example");
    browser.picture("rust-summary");
    browser.press(&["2"]);
    browser.click("#step-2 .cell");
    assert!(browser.text(".details .stack").contains("pages.rs"));
    assert!(browser.text(".details .source .here").contains("count"));
    browser.picture("rust-schedule");
    browser.press(&["4"]);
    assert!(browser.text("#view-search").contains("memory model"));
    browser.fits_a_telephone(&bug, "rust-bug");

    let race = reported("race_model", false).join("page.html");
    browser.open(&race);
    let about = browser.text("#view-summary");
    assert!(about.contains("UnsafeCell"), "{about}");
    browser.fits_a_telephone(&race, "rust-race");

    let limit = [("SELVEDGE_MAX_EXECUTIONS", "1000")];
    let incomplete = run("large_model", false, &limit, 101).join("page.html");
    browser.open(&incomplete);
    assert_eq!(browser.text(".verdict"), "incomplete");
    assert!(browser.text(".facts").contains("95% confidence"));
    browser.fits_a_telephone(&incomplete, "rust-incomplete");
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn an_index_leads_to_the_pages() {
    let directory = reported("race_model", true);
    let row = |name: &str, verdict, pages: &[&str]| Row {
        name: name.to_owned(),
        verdict,
        sentence: "what was found, in a sentence that is long enough to be broken".to_owned(),
        pages: pages.iter().map(|page| (*page).to_owned()).collect(),
    };
    let rows = [
        row("queue::a_verified_test", Verdict::Verified, &[]),
        row("<b>race</b>", Verdict::Bug, &["page.html", "page-2.html"]),
    ];
    let path = directory.join("index.html");
    fs::write(&path, index("tests of a crate", "2 tests, 1 bug", &rows)).unwrap();
    let browser = Browser::start();
    browser.resize(1280, 900);
    browser.open(&path);
    assert_eq!(browser.text("h1"), "tests of a crate");
    assert_eq!(browser.count(".index tr"), 2);
    assert_eq!(
        browser.text(".index tr a"),
        "<b>race</b>",
        "bugs come first"
    );
    browser.picture("index");
    browser.fits_a_telephone(&path, "index");
    browser.open(&path);
    browser.click(".index tr a");
    assert_eq!(browser.text(".verdict"), "bug");
    assert_eq!(browser.text("h1"), "pages::race_model");
}
