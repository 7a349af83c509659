//! The evidence in a bug's report beyond its schedule: who waits for whom, which locks are held, the values of plain
//! variables.

use serde_json::{Value, json};

use crate::common::Sandbox;

fn bug(name: &str, program: &str) -> (Value, String) {
    let sandbox = Sandbox::with(name, program);
    let verify = ["verify", name, "--no-advice"];
    let text = sandbox.run(&verify).ends_with(1).stdout.clone();
    let json = sandbox.run(&[&verify[..], &["--format", "json"]].concat());
    (json.ends_with(1).json()["bug"].clone(), text)
}

/// For each waiting thread, the thread that it waits for.
fn waits(bug: &Value) -> Vec<(u64, Option<u64>)> {
    let waiting = bug["waiting"].as_array().expect("waiting threads");
    let pair = |wait: &Value| (wait["thread"].as_u64().unwrap(), wait["on"].as_u64());
    waiting.iter().map(pair).collect()
}

#[test]
fn nobody_owns_a_condition_variable_a_semaphore_or_a_barrier() {
    let program = include_str!("../../../../examples/c/lost_wakeup.c");
    let (bug, text) = bug("wait.c", program);
    assert_eq!(waits(&bug), [(0, Some(1)), (1, None)], "{text}");
    assert!(!text.contains("has had"), "{text}");

    let program = "\
#include <pthread.h>
#include <semaphore.h>
static sem_t s;
static pthread_barrier_t b;
static void *f(void *u) { sem_wait(&s); return u; }
static void *g(void *u) { pthread_barrier_wait(&b); return u; }
int main(void) {
  sem_init(&s, 0, 1);
  pthread_barrier_init(&b, 0, 3);
  pthread_t t[4];
  pthread_create(t, 0, f, 0);
  pthread_create(t + 1, 0, g, 0);
  pthread_create(t + 2, 0, f, 0);
  pthread_create(t + 3, 0, g, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
}
";
    let (bug, text) = self::bug("sem.c", program);
    let on = waits(&bug);
    assert!(on.len() >= 4 && on[0].1.is_some(), "{text}");
    assert!(on[1..].iter().all(|(_, on)| on.is_none()), "{text}");
}

#[test]
fn who_waits_for_a_lock_waits_for_its_owner() {
    let program = "\
#include <pthread.h>
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *u) {
  pthread_mutex_lock(&m);
  pthread_rwlock_wrlock(&l);
  return u;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  pthread_rwlock_rdlock(&l);
  pthread_mutex_lock(&m);
}
";
    let (bug, text) = bug("rw.c", program);
    assert_eq!(waits(&bug), [(0, Some(1)), (1, Some(0))], "{text}");
    for wait in bug["waiting"].as_array().unwrap() {
        let since = wait["since"].as_u64().expect("a step") as usize;
        assert_eq!(bug["trace"][since - 1]["thread"], wait["on"], "{text}");
    }
}

#[test]
fn a_race_tells_which_locks_its_threads_hold() {
    let program = "\
#include <pthread.h>
static int x;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *u) {
  pthread_mutex_lock(&a);
  x = 1;
  pthread_mutex_unlock(&a);
  return u;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  LOCK
  x = 2;
  UNLOCK
}
";
    let none = program.replace("UNLOCK", "").replace("LOCK", "");
    let (_, text) = bug("race.c", &none);
    let one_way = text.contains("At these accesses T0 holds no lock and T1 holds a.\n");
    let other_way = text.contains("At these accesses T1 holds a and T0 holds no lock.\n");
    assert!(one_way || other_way, "{text}");
    let other = program
        .replace("UNLOCK", "pthread_mutex_unlock(&b);")
        .replace("LOCK", "pthread_mutex_lock(&b);");
    let (_, text) = bug("race.c", &other);
    assert!(
        text.contains("T0 holds b") && text.contains("T1 holds a"),
        "{text}"
    );
    assert!(
        text.contains("; different locks do not exclude each other.\n"),
        "{text}"
    );
}

#[test]
fn the_values_of_plain_variables_are_in_the_schedule() {
    let program = include_str!("../../../../examples/c/account_lost_update.c");
    let (bug, text) = bug("account.c", program);
    assert_eq!(
        bug["plain"],
        json!([{ "variable": "balance", "value": 0 }]),
        "{text}"
    );
    let steps = bug["trace"].as_array().expect("steps").iter();
    let changes: Vec<(&Value, &Value)> = steps
        .flat_map(|step| step["plain"].as_array().into_iter().flatten())
        .map(|change| (&change["variable"], &change["value"]))
        .collect();
    // Both threads add to what they saw: one of the two updates is lost.
    assert_eq!(changes, [(&json!("balance"), &json!(10))], "{text}");
}

#[test]
fn members_and_elements_of_plain_variables_are_named_and_steps_are_not_repeated() {
    let program = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
enum state { OFF, ON };
static struct { int len; atomic_int n; signed char slots[3]; enum state state; bool done; } q;
static void *f(void *u) {
  q.len = 5;
  q.slots[2] = -1;
  q.n = 1;
  q.state = ON;
  q.done = true;
  return u;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  pthread_join(t, 0);
  assert(q.n == 0);
}
";
    let (bug, text) = bug("members.c", program);
    let change = |variable: &str, value: Value| json!({ "variable": variable, "value": value });
    let steps = bug["trace"].as_array().expect("steps");
    assert_eq!(steps[0]["operation"], "create", "{text}");
    let first = json!([change("q.len", json!(5)), change("q.slots[2]", json!(-1))]);
    assert_eq!(steps[0]["plain"], first, "{text}");
    assert_eq!(steps[1]["operation"], "store", "{text}");
    let then = json!([
        change("q.state", json!("ON")),
        change("q.done", json!("true"))
    ]);
    assert_eq!(steps[1]["plain"], then, "{text}");
    assert_eq!(bug["plain"].as_array().unwrap().len(), 4, "{text}");
}
