//! Whole programs under weak memory models: what is found, how it is told, and that it can be replayed.

mod common;

use common::Sandbox;

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
        .prints("the initial value, not step ");
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
        .prints("data race");
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
        ("memory_order_seq_cst", "(void)0", [0, 1, 1, 0]),
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
        .says("--plain sc does not go with --model rc11");
    sandbox
        .run(&["verify", "publish.c", "--model", "ra", "--preemptions", "1"])
        .ends_with(2)
        .says("a bound on preemptions under --model ra is not available yet");
}
