//! Lines that no execution reached, as the HTML report lists them.

use crate::common::{Sandbox, compilers};
use crate::pages::{data, report};
use crate::webdriver::Browser;

/// Nothing ever stores 7.
const DEAD_BRANCH: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static int never(int a) {
  return a + 1;
}
static void *f(void *unused) {
  int seen = x;
  if (seen == 7) {
    x = never(seen);
    assert(x == 8);
  }
  x = seen + 1;
  return unused;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  f(0);
  pthread_join(t, 0);
  while (x == 0) {}
  assert(x >= 1);
}
";

/// The lines that a report says were not reached; `None` if it does not know.
fn unreached(sandbox: &Sandbox, arguments: &[&str]) -> Option<Vec<u64>> {
    let page = data(&report(sandbox, arguments, 0));
    let places = page["unreached"].as_array()?;
    let line = |place: &serde_json::Value| place["line"].as_u64().unwrap();
    Some(places.iter().map(line).collect())
}

#[test]
fn a_branch_that_is_never_taken_is_listed_whatever_searches() {
    let sandbox = Sandbox::with("dead.c", DEAD_BRANCH);
    for compiler in compilers() {
        for search in [
            "",
            "--algorithm csdr --jobs 1 --model sc",
            "--algorithm source-dpor --model sc",
            "--equivalence reads-from --model sc",
            "--jobs 2",
            "--iterative",
        ] {
            let mut arguments = vec!["verify", "dead.c", "--cc", compiler];
            arguments.extend(search.split_whitespace());
            let lines = unreached(&sandbox, &arguments).unwrap();
            // Compilers differ in whether a closing brace has code.
            let lines: Vec<u64> = lines.into_iter().filter(|n| ![7, 13].contains(n)).collect();
            assert_eq!(lines, [5, 6, 11, 12], "{compiler} {search}");
        }
    }
}

#[test]
fn a_line_that_only_one_of_all_executions_reaches_is_not_listed() {
    let taken = DEAD_BRANCH.replace("seen == 7", "seen == 1");
    let sandbox = Sandbox::with("taken.c", &taken.replace("x == 8", "x > 0"));
    let lines = unreached(&sandbox, &["verify", "taken.c"]);
    assert_eq!(lines, Some(Vec::new()));
}

#[test]
fn nothing_is_claimed_where_code_runs_before_main_or_processes_share_states() {
    let early = DEAD_BRANCH.replace(
        "int main(void)",
        "__attribute__((constructor)) static void early(void) { never(1); }\nint main(void)",
    );
    let sandbox = Sandbox::with("early.c", &early);
    assert_eq!(unreached(&sandbox, &["verify", "early.c"]), None);
    sandbox.write("dead.c", DEAD_BRANCH);
    let search = "verify dead.c --algorithm csdr --jobs 2 --model sc";
    let search: Vec<&str> = search.split_whitespace().collect();
    assert_eq!(unreached(&sandbox, &search), None);
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_page_shows_the_lines_and_the_assertion_that_was_never_evaluated() {
    let sandbox = Sandbox::with("dead.c", DEAD_BRANCH);
    let browser = Browser::start();
    browser.resize(1280, 900);
    let path = report(&sandbox, &["verify", "dead.c"], 0);
    browser.open(&path);
    assert_eq!(
        browser.text(".unevaluated"),
        "One assertion was never evaluated: dead.c:12"
    );
    assert_eq!(browser.count(".unreached tbody tr"), 2);
    assert!(browser.text(".unreached").contains("x = never(seen);"));
    browser.picture("unreached");
    browser.is_clean(&path);
}
