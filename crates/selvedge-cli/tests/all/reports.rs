//! The report of each kind of bug, and of none.

use crate::common::{Outcome, Sandbox};

#[track_caller]
fn check(name: &str, text: &str, options: &[&str]) -> Outcome {
    let sandbox = Sandbox::with(name, text);
    sandbox.run(&[&["verify", name], options].concat())
}

const LOST_UPDATE: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int counter;
static void *bump(void *unused) {
  int seen = counter;
  counter = seen + 1;
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, bump, 0);
  pthread_create(&two, 0, bump, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  assert(counter == 2);
}
";

#[test]
fn an_assertion_that_fails() {
    let outcome = check("lost.c", LOST_UPDATE, &[]);
    assert_eq!(outcome.ends_with(1).stderr, "");
    insta::assert_snapshot!(outcome.timeless());
}

const OPPOSITE_LOCKS: &str = "\
#include <pthread.h>
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static void take(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}
static void *other(void *unused) {
  take(&right, &left);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  take(&left, &right);
  pthread_join(thread, 0);
}
";

#[test]
fn a_deadlock_with_who_waits_for_whom() {
    let outcome = check("locks.c", OPPOSITE_LOCKS, &[]);
    insta::assert_snapshot!(outcome.ends_with(1).timeless());
}

const RACE: &str = "\
#include <pthread.h>
struct queue { int length; int head; };
static struct queue queue;
static void *consume(void *unused) {
  queue.head++;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, consume, 0);
  queue.head = 3;
  pthread_join(thread, 0);
}
";

#[test]
fn a_race_with_both_sides() {
    let outcome = check("race.c", RACE, &[]);
    insta::assert_snapshot!(outcome.ends_with(1).timeless());
}

const USE_AFTER_FREE: &str = "\
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct node { int value; struct node *next; };
static _Atomic(struct node *) top;
static void *reader(void *unused) {
  struct node *node = top;
  if (node)
    node->value = 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  struct node *node = malloc(sizeof *node);
  node->value = 0;
  top = node;
  pthread_create(&thread, 0, reader, 0);
  top = NULL;
  free(node);
  pthread_join(thread, 0);
}
";

#[test]
fn a_use_after_free_with_the_free() {
    let outcome = check("free.c", USE_AFTER_FREE, &[]);
    insta::assert_snapshot!(outcome.ends_with(1).timeless());
}

const SPIN: &str = "\
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
static atomic_bool ready;
static void *wait(void *unused) {
  while (!ready)
    ;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, wait, 0);
  pthread_join(thread, 0);
}
";

#[test]
fn a_spin_that_nothing_can_end() {
    let outcome = check("spin.c", SPIN, &[]);
    insta::assert_snapshot!(outcome.ends_with(1).timeless());
}

#[test]
fn a_cxx_program_is_told_in_its_own_lines() {
    let text = "\
#include <mutex>
#include <thread>
std::mutex first, second;
void both(std::mutex &a, std::mutex &b) {
  std::lock_guard<std::mutex> one(a);
  std::lock_guard<std::mutex> two(b);
}
int main() {
  std::thread thread([] { both(second, first); });
  both(first, second);
  thread.join();
}
";
    let outcome = check("locks.cpp", text, &[]);
    outcome
        .ends_with(1)
        .prints("bug: deadlock: no thread can go on (T0, T1)\n --> locks.cpp:6:3\n")
        .prints("T0 waits to lock second, which T1 has had since step ")
        .prints("    both (locks.cpp:6)\n    main (locks.cpp:10)\n")
        .prints("T1 waits to lock first, which T0 has had since step ");
    for line in outcome
        .stdout
        .lines()
        .skip_while(|line| !line.contains("step  thread"))
        .skip(1)
    {
        if line.is_empty() {
            break;
        }
        assert!(line.contains("locks.cpp:"), "{line}");
    }
}

/// The kind and the line of the first bug.
#[track_caller]
fn found(text: &str, options: &[&str]) -> (String, u64) {
    let outcome = check(
        "program.c",
        text,
        &[options, &["--format", "json"]].concat(),
    );
    let json = outcome.ends_with(1).json();
    let bug = &json["bug"];
    (
        bug["kind"].as_str().unwrap().to_owned(),
        bug["line"].as_u64().unwrap(),
    )
}

#[test]
fn every_kind_has_its_name_and_its_line() {
    let main = |body: &str| {
        format!(
            "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n\
             static int zero; static void *volatile sink;\n\
             int main(void) {{\n{body}\nreturn 0; }}\n"
        )
    };
    for (kind, body) in [
        ("abort", "abort();"),
        (
            "double-free",
            "sink = malloc(4); free(sink); \n free(sink);",
        ),
        ("bad-free", "free(&zero);"),
        ("heap-overflow", "char *p = malloc(4); p[4] = 1;"),
        ("use-after-free", "char *p = malloc(4); free(p); p[0] = 1;"),
        ("null-dereference", "int *p = 0; *p = 1;"),
        ("wild-access", "int *p = (int *)0x6f0000001000; *p = 1;"),
        (
            "object-misuse",
            "static pthread_mutex_t m; pthread_mutex_unlock(&m);",
        ),
        ("signal", "raise(SIGTERM);"),
        ("signal", "zero = 7 / zero;"),
    ] {
        let line = match kind {
            "double-free" => 7,
            _ => 6,
        };
        assert_eq!(found(&main(body), &[]), (kind.to_owned(), line), "{body}");
    }
    let forever = main("for (;;) zero ^= 1;");
    assert_eq!(
        found(&forever, &["--watchdog", "0.2"]),
        ("endless-loop".to_owned(), 6)
    );
}

#[test]
fn an_exception_that_nobody_catches() {
    let text = "#include <stdexcept>\nint main() {\n  throw std::runtime_error(\"gone\");\n}\n";
    let outcome = check("throw.cpp", text, &[]);
    outcome
        .ends_with(1)
        .prints("bug: uncaught exception")
        .prints("throw.cpp:3");
}

#[test]
fn nothing_is_wrong() {
    let fixed = LOST_UPDATE
        .replace("int seen = counter;", "")
        .replace("counter = seen + 1", "counter++");
    let outcome = check("fixed.c", &fixed, &[]);
    assert_eq!(
        outcome.ends_with(0).timeless(),
        "verified: no execution fails (2 executions under rc11)"
    );
    assert_eq!(outcome.stderr, "");
}

#[test]
fn loops_that_were_cut_are_named_in_the_verdict() {
    let text = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *toggle(void *unused) {
  for (int i = 0; x < 2 && i < 1000000; i++) x ^= 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, toggle, 0);
  x = 2;
  return 0;
}
";
    let outcome = check("loop.c", text, &["--unroll", "3"]);
    outcome
        .ends_with(0)
        .prints("verified with loops cut after 3 rounds (--unroll): no execution");
    let json = check("loop.c", text, &["--unroll", "3", "--format", "json"]).json();
    assert_eq!(json["unroll"], 3);
    let short = text.replace("1000000", "2");
    let outcome = check("loop.c", &short, &["--unroll", "3"]);
    outcome.ends_with(0).prints("verified: no execution fails");
}

#[test]
fn json_has_the_promised_shape() {
    let outcome = check("lost.c", LOST_UPDATE, &["--format", "json"]);
    let json = outcome.ends_with(1).json();
    let keys: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "algorithm",
            "blocked",
            "bound",
            "bound_blocked",
            "bug",
            "executions",
            "model",
            "over_bound",
            "schema",
            "seconds",
            "verdict"
        ]
    );
    assert_eq!(json["schema"], 1);
    assert_eq!(json["verdict"], "bug");
    assert_eq!(
        (&json["model"], &json["algorithm"]),
        (&"rc11".into(), &"trust".into())
    );
    let bug = &json["bug"];
    assert_eq!(bug["kind"], "assertion");
    assert_eq!(bug["message"], "assertion failed: counter == 2");
    assert_eq!(bug["preemptions"], 1);
    let trace = bug["trace"].as_array().unwrap();
    let last = trace.last().unwrap();
    assert_eq!(last["operation"], "load");
    assert_eq!(
        (&last["file"], &last["line"]),
        (&"lost.c".into(), &16.into())
    );
    assert_eq!(
        (&last["object"], &last["read"]),
        (&"counter".into(), &1.into())
    );
    let writer = last["reads_from"].as_u64().unwrap() as usize;
    assert_eq!(trace[writer - 1]["operation"], "store");
    let first = trace
        .iter()
        .find(|step| step["operation"] == "load")
        .unwrap();
    assert_eq!(first["reads_from"], "initial");
}

#[test]
fn json_is_the_same_twice_but_for_the_time() {
    let run = || {
        let mut json = check("lost.c", LOST_UPDATE, &["--format", "json"]).json();
        json["seconds"] = 0.into();
        json
    };
    assert_eq!(run(), run());
}

#[test]
fn every_distinct_bug_is_reported_once_when_going_on() {
    let text = LOST_UPDATE.replace(
        "assert(counter == 2);",
        "if (counter == 2) {\nassert(0); }\nassert(counter == 2);",
    );
    let json = check("lost.c", &text, &["--keep-going", "--format", "json"])
        .ends_with(1)
        .json();
    let mut lines: Vec<u64> = json["bugs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bug| bug["line"].as_u64().unwrap())
        .collect();
    lines.sort();
    assert_eq!(lines, [17, 18]);
    assert_eq!(json["bug"], json["bugs"][0]);
    assert!(json["executions"].as_u64().unwrap() >= 4);
    let outcome = check("lost.c", &text, &["--keep-going"]);
    outcome.ends_with(1).prints("2 distinct bugs\n");
}

#[test]
fn colours_are_for_terminals_only() {
    let outcome = check("lost.c", LOST_UPDATE, &[]);
    assert!(!outcome.stdout.contains('\x1b'));
}

const DEEP_RACE: &str = "\
#include <pthread.h>
static int head;
static void bump(void) {
  head++;
}
static void *consume(void *unused) {
  bump();
  return unused;
}
static void put(int value) {
  head = value;
}
static void fill(void) {
  put(3);
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, consume, 0);
  fill();
  pthread_join(thread, 0);
}
";

#[test]
fn a_race_shows_the_calls_of_both_threads() {
    let outcome = check("deep.c", DEEP_RACE, &[]);
    outcome
        .ends_with(1)
        .prints("T0 at its write of 4 bytes\n    put (deep.c:11)\n    fill (deep.c:14)\n    main (deep.c:19)\n")
        .prints("T1 fails\n    bump (deep.c:4)\n    consume (deep.c:7)\n");
}

const LEAK: &str = "\
#include <stdlib.h>
int main(void) {
  malloc(24);
  return 0;
}
";

#[test]
fn leaks_are_reported_if_asked_for() {
    check("leak.c", LEAK, &[]).ends_with(0);
    check("leak.c", LEAK, &["--leaks"])
        .ends_with(1)
        .prints("leak.c:3");
}

#[test]
fn an_algorithm_that_may_lose_executions_verifies_nothing() {
    let correct = LOST_UPDATE.replace("counter == 2", "counter <= 2");
    let options = [
        "--model",
        "sc",
        "--algorithm",
        "naive-bpor",
        "--preemptions",
        "2",
    ];
    check("found.c", &correct, &options)
        .ends_with(3)
        .prints("incomplete");
}
