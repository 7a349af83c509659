//! Whole programs under weak memory models: what is found, how it is told, and that it can be replayed.

use crate::common::Sandbox;

/// Publishes a value with a flag; `RELEASE` and `ACQUIRE` are the orders.
const PUBLISH: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static DATA data;
static atomic_int ready;
static void *writer(void *unused) {
  STORE;
  atomic_store_explicit(&ready, 1, RELEASE);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, writer, 0);
  if (atomic_load_explicit(&ready, ACQUIRE)) {
    int seen = LOAD;
    assert(seen == 42);
  }
  pthread_join(thread, 0);
  return 0;
}
";

fn publish(data: &str, release: &str, acquire: &str) -> Sandbox {
    let (store, load) = match data {
        "int" => ("data = 42", "data"),
        _ => (
            "atomic_store_explicit(&data, 42, memory_order_relaxed)",
            "atomic_load_explicit(&data, memory_order_relaxed)",
        ),
    };
    let text = PUBLISH
        .replace("DATA", data)
        .replace("STORE", store)
        .replace("LOAD", load)
        .replace("RELEASE", release)
        .replace("ACQUIRE", acquire);
    Sandbox::with("publish.c", &text)
}

const RELAXED: &str = "memory_order_relaxed";
const RELEASE: &str = "memory_order_release";
const ACQUIRE: &str = "memory_order_acquire";

#[test]
fn a_relaxed_flag_publishes_nothing_under_rc11_only() {
    let sandbox = publish("atomic_int", RELAXED, RELAXED);
    for model in ["sc", "tso", "ra"] {
        sandbox
            .run(&["verify", "publish.c", "--model", model])
            .ends_with(0);
    }
    sandbox
        .run(&["verify", "publish.c", "--model", "rc11"])
        .ends_with(1)
        .prints("assertion failed")
        .prints("the initial value, not step ")
        .prints(" T0 does not see what T1 had written at step ")
        .prints(": it still reads the initial 0 of ");
}

#[test]
fn release_and_acquire_publish_under_every_model() {
    let sandbox = publish("atomic_int", RELEASE, ACQUIRE);
    for model in ["sc", "tso", "ra", "rc11"] {
        let outcome = sandbox.run(&["verify", "publish.c", "--model", model, "--format", "json"]);
        let report = outcome.ends_with(0).json();
        assert_eq!(
            (&report["model"], &report["executions"]),
            (&model.into(), &2.into())
        );
    }
}

#[test]
fn races_are_judged_by_the_happens_before_of_the_model() {
    let relaxed = publish("int", RELAXED, RELAXED);
    relaxed
        .run(&["verify", "publish.c", "--model", "sc"])
        .ends_with(0);
    relaxed
        .run(&["verify", "publish.c", "--model", "rc11"])
        .ends_with(1)
        .prints("data race");
    let ordered = publish("int", RELEASE, ACQUIRE);
    ordered
        .run(&["verify", "publish.c", "--model", "rc11"])
        .ends_with(0);
    let half = publish("int", RELEASE, RELAXED);
    half.run(&["verify", "publish.c", "--model", "rc11"])
        .ends_with(1)
        .prints("data race")
        .prints(" T0 reads what T1 wrote at step ")
        .prints("does not order what came before: the load is relaxed and does not acquire it.");
}

/// A plain read of what another thread writes atomically. Reading it orders nothing, although every event
/// that reads is ordered after what it reads under all models but `rc11`.
const READ_PLAINLY: &str = "\
#include <pthread.h>
static volatile int flag;
static int shared;
static void *reader(void *unused) {
  flag = 1;
  return shared ? unused : 0;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, reader, 0);
  __atomic_store_n(&shared, 1, __ATOMIC_SEQ_CST);
  (void)flag;
  return pthread_join(thread, 0);
}
";

#[test]
fn a_plain_read_races_with_an_atomic_write_under_every_model() {
    let sandbox = Sandbox::with("plainly.c", READ_PLAINLY);
    for model in ["sc", "tso", "ra", "rc11"] {
        sandbox
            .run(&["verify", "plainly.c", "--model", model])
            .ends_with(1)
            .prints("data race: read of 4 bytes and atomic write of 4 bytes of `shared`");
    }
}

/// Where an execution is cut short by undefined behaviour depends on the search; which ones are
/// complete does not, for these programs.
#[test]
fn both_equivalences_have_the_complete_executions_of_a_program_with_undefined_behaviour() {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/c/hazard_pointer.c"
    );
    let sandbox = Sandbox::new();
    for equivalence in ["mazurkiewicz", "reads-from"] {
        let options = ["--model", "ra", "--keep-going", "--format", "json"];
        let search = ["verify", program, "--equivalence", equivalence];
        let report = sandbox.run(&[&search[..], &options].concat());
        assert_eq!(report.ends_with(1).json()["executions"], 71);
    }
}

const STORE_BUFFERING: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static int a, b;
static void *first(void *unused) {
  atomic_store_explicit(&x, 1, ORDER);
  FENCE;
  a = atomic_load_explicit(&y, ORDER);
  return unused;
}
static void *second(void *unused) {
  atomic_store_explicit(&y, 1, ORDER);
  FENCE;
  b = atomic_load_explicit(&x, ORDER);
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, first, 0);
  pthread_create(&two, 0, second, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  assert(a || b);
  return 0;
}
";

#[test]
fn store_buffering_is_forbidden_by_seq_cst_or_by_fences() {
    let variants = [
        (RELAXED, "(void)0", [0, 1, 1, 1]),
        ("memory_order_seq_cst", "(void)0", [0, 0, 1, 0]),
        (
            RELAXED,
            "atomic_thread_fence(memory_order_seq_cst)",
            [0, 0, 1, 0],
        ),
        (
            RELAXED,
            "atomic_thread_fence(memory_order_acq_rel)",
            [0, 1, 1, 1],
        ),
    ];
    for (order, fence, expected) in variants {
        let text = STORE_BUFFERING
            .replace("ORDER", order)
            .replace("FENCE", fence);
        let sandbox = Sandbox::with("buffer.c", &text);
        for (model, status) in ["sc", "tso", "ra", "rc11"].into_iter().zip(expected) {
            sandbox
                .run(&["verify", "buffer.c", "--model", model])
                .ends_with(status);
        }
    }
}

#[test]
fn a_weak_counterexample_can_be_replayed() {
    let sandbox = publish("atomic_int", RELAXED, RELAXED);
    let trace = ["--trace-out", "trace.json"];
    let verify = ["verify", "publish.c", "--model", "rc11"];
    sandbox
        .run(&[&verify[..], &trace[..]].concat())
        .ends_with(1);
    sandbox
        .run(&["replay", "trace.json"])
        .ends_with(1)
        .prints("assertion failed")
        .prints(", not step ");
}

#[test]
fn what_does_not_go_with_a_weak_model_is_refused() {
    let sandbox = publish("atomic_int", RELAXED, RELAXED);
    sandbox
        .run(&["verify", "publish.c", "--model", "rc11", "--plain", "sc"])
        .ends_with(2)
        .says("--plain sc cannot be combined with --model rc11");
}

const BUFFERS: &str = r"
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static void *one(void *arg) {
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    return (void *)(long)atomic_load_explicit(&y, memory_order_relaxed);
}
static void *two(void *arg) {
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    return (void *)(long)atomic_load_explicit(&x, memory_order_relaxed);
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, two, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}
";

/// The outcome in which both read 1 needs a preemption. The one in which both read 0, which only
/// weak models have, does not.
#[test]
fn bounds_hold_under_every_model() {
    let sandbox = Sandbox::with("buffers.c", BUFFERS);
    for (model, within, all) in [("sc", 2, 3), ("tso", 3, 4), ("ra", 3, 4), ("rc11", 3, 4)] {
        let count = |more: &[&str]| {
            let options = ["verify", "buffers.c", "--format", "json", "--model", model];
            let report = sandbox.run(&[&options, more].concat()).json();
            (report["executions"].as_u64(), report["bound"].as_u64())
        };
        assert_eq!(count(&[]), (Some(all), None), "{model}");
        let bounded = count(&["--preemptions", "0"]);
        assert_eq!(bounded, (Some(within), Some(0)), "{model}");
        assert_eq!(count(&["--iterative"]), (Some(all), None), "{model}");
    }
}

/// Where and to what orders are to be raised, or `fence` for a new one.
fn advised(report: &serde_json::Value) -> Vec<(u64, String, String)> {
    let changes = report["bug"]["advice"]["changes"].as_array();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("fence").to_owned();
    let change = |change: &serde_json::Value| {
        let line = change["line"].as_u64().expect("a line");
        (line, text(&change["from"]), text(&change["to"]))
    };
    changes.into_iter().flatten().map(change).collect()
}

fn with_json(sandbox: &Sandbox, file: &str, model: &str) -> serde_json::Value {
    let arguments = ["verify", file, "--model", model, "--format", "json"];
    sandbox.run(&arguments).ends_with(1).json()
}

#[test]
fn advice_names_the_orders_that_would_have_forbidden_a_stale_read_or_a_race() {
    let release = (8, "relaxed".to_owned(), "release".to_owned());
    let acquire = (14, "relaxed".to_owned(), "acquire".to_owned());
    for data in ["int", "atomic_int"] {
        let cases = [
            (RELAXED, RELAXED, vec![release.clone(), acquire.clone()]),
            (RELEASE, RELAXED, vec![acquire.clone()]),
            (RELAXED, ACQUIRE, vec![release.clone()]),
        ];
        for (write, read, expected) in cases {
            let sandbox = publish(data, write, read);
            let report = with_json(&sandbox, "publish.c", "rc11");
            assert_eq!(advised(&report), expected);
            let advice = &report["bug"]["advice"];
            assert_eq!(
                (&advice["outcome"], &advice["executions"]),
                (&"removes".into(), &2.into())
            );
        }
    }
    publish("int", RELAXED, RELAXED)
        .run(&["verify", "publish.c", "--model", "rc11"])
        .prints("publish.c:8: make the store to ready memory_order_release (it is relaxed)")
        .prints("publish.c:14: make the load of ready memory_order_acquire (it is relaxed)")
        .prints("these changes would remove the bug (checked: all 2 executions)");
}

#[test]
fn advice_puts_fences_where_orders_do_not_suffice() {
    let text = STORE_BUFFERING
        .replace("ORDER", RELAXED)
        .replace("FENCE", "(void)0");
    let sandbox = Sandbox::with("buffer.c", &text);
    let fence = |line| (line, "fence".to_owned(), "seq_cst".to_owned());
    let report = with_json(&sandbox, "buffer.c", "rc11");
    assert_eq!(advised(&report), [fence(9), fence(15)]);
    // On x86 a sequentially consistent store is an exchange, and that is a fence.
    let store = |line| (line, "relaxed".to_owned(), "seq_cst".to_owned());
    let report = with_json(&sandbox, "buffer.c", "tso");
    assert_eq!(advised(&report), [store(7), store(13)]);
    sandbox
        .run(&["verify", "buffer.c", "--model", "ra"])
        .ends_with(1)
        .prints("under ra the orders and fences in the source do not count");
}

#[test]
fn a_fence_that_is_there_is_raised() {
    let text = STORE_BUFFERING
        .replace("ORDER", RELAXED)
        .replace("FENCE", "atomic_thread_fence(memory_order_acq_rel)");
    let report = with_json(&Sandbox::with("buffer.c", &text), "buffer.c", "rc11");
    let raised = |line| (line, "acq_rel".to_owned(), "seq_cst".to_owned());
    assert_eq!(advised(&report), [raised(8), raised(14)]);
}

#[test]
fn no_order_helps_against_a_bug_of_sequential_consistency() {
    let text = STORE_BUFFERING
        .replace("ORDER", RELAXED)
        .replace("FENCE", "(void)0")
        .replace("a || b", "!a || !b");
    let sandbox = Sandbox::with("buffer.c", &text);
    let report = with_json(&sandbox, "buffer.c", "rc11");
    assert_eq!(report["bug"]["advice"]["outcome"], "sequential");
    let arguments = ["verify", "buffer.c", "--model", "sc", "--format", "json"];
    let report = sandbox.run(&arguments).ends_with(1).json();
    assert!(report["bug"]["advice"].is_null());
}

#[test]
fn advice_can_be_left_out() {
    let sandbox = publish("int", RELAXED, RELAXED);
    let arguments = ["verify", "publish.c", "--model", "rc11", "--no-advice"];
    let outcome = sandbox.run(&arguments);
    outcome.ends_with(1).prints("data race");
    assert!(!outcome.stdout.contains("advice:"));
}

#[test]
fn in_cxx_advice_is_for_the_callers_of_std_atomic() {
    let text = "\
#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
std::atomic<int> value;
std::atomic<bool> other, ready;
int main() {
  auto shared = std::make_shared<int>(0);
  std::thread thread([shared] {
    value.store(42, std::memory_order_relaxed);
    other.store(true, std::memory_order_relaxed);
    ready.store(true, std::memory_order_relaxed);
  });
  if (ready.load(std::memory_order_relaxed))
    assert(value.load(std::memory_order_relaxed) == 42);
  thread.join();
}
";
    let report = with_json(&Sandbox::with("publish.cpp", text), "publish.cpp", "rc11");
    let release = (12, "relaxed".to_owned(), "release".to_owned());
    let acquire = (14, "relaxed".to_owned(), "acquire".to_owned());
    assert_eq!(advised(&report), [release, acquire]);
}

#[test]
fn waiting_atomics_are_refused_under_a_model_without_fences() {
    let text = "\
#include <atomic>
#include <thread>
std::atomic<int> flag;
int data;
int main() {
  std::thread thread([] { data = 5; flag = 1; flag.notify_one(); });
  flag.wait(0);
  int seen = data;
  thread.join();
  return seen != 5;
}
";
    let sandbox = Sandbox::with("wait.cpp", text);
    sandbox
        .run(&["verify", "wait.cpp", "--model", "ra", "--", "-std=c++20"])
        .ends_with(3);
}

#[test]
fn the_default_is_rc11_and_sc_where_that_is_all_there_is() {
    let sandbox = publish("atomic_int", RELEASE, ACQUIRE);
    let under = |options: &[&str]| {
        let arguments = [&["verify", "publish.c", "--format", "json"], options].concat();
        sandbox.run(&arguments).ends_with(0).json()
    };
    let report = under(&[]);
    assert_eq!(
        (&report["model"], &report["warnings"]),
        (&"rc11".into(), &().into())
    );
    for option in [
        ["--equivalence", "reads-from"],
        ["--algorithm", "optimal-dpor"],
    ] {
        let report = under(&option);
        assert_eq!(report["model"], "sc");
        let warning = report["warnings"][0].as_str().unwrap_or_default();
        assert!(warning.ends_with("; this check is under sc"), "{warning}");
    }
    let report = under(&["--plain", "sc"]);
    assert_eq!(
        (&report["model"], &report["warnings"]),
        (&"sc".into(), &().into())
    );
}
