//! Iterations of spin loops change nothing, and still take part in races.

use crate::common::{Sandbox, compilers};

const HEAD: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int lock, flag;
static _Atomic(int *) where;
static int x;
static int is_seven(int value) { return value == 7; }
static int try_lock(void) {
  int expected = 0;
  return atomic_compare_exchange_strong(&lock, &expected, 1);
}
";

/// The accesses of the spinning thread, `two`, in a round without effect, and threads that race with them.
const RACES: [(&str, &str); 4] = [
    (
        "what a failed attempt reads races with what comes after the unlock",
        "\
static void *one(void *unused) {
  if (!try_lock())
    return unused;
  int later = atomic_load(&flag);
  atomic_store(&lock, 0);
  if (later)
    x = 1;
  return unused;
}
static void *two(void *unused) {
  atomic_store(&flag, 1);
  while (!try_lock())
    if (is_seven(x))
      return unused;
  return unused;
}
",
    ),
    (
        "what a round reads races with what comes after a join",
        "\
static void *three(void *unused) {
  atomic_store(&lock, 1);
  return unused;
}
static void *one(void *unused) {
  pthread_t thread;
  pthread_create(&thread, 0, three, 0);
  atomic_store(&flag, 1);
  pthread_join(thread, 0);
  x = 1;
  return unused;
}
static void *two(void *unused) {
  while (!atomic_load(&flag))
    if (is_seven(x))
      return unused;
  return unused;
}
",
    ),
    (
        "what a round writes to its stack races if others know the stack",
        "\
static void *one(void *unused) {
  if (!try_lock())
    return unused;
  int later = atomic_load(&flag);
  atomic_store(&lock, 0);
  int *local = atomic_load(&where);
  if (later && local)
    *local = 1;
  return unused;
}
static void *two(void *unused) {
  int local = 0;
  atomic_store(&where, &local);
  atomic_store(&flag, 1);
  while (!try_lock())
    local = 2;
  return unused;
}
",
    ),
    (
        "what a round reads atomically races with a later plain write",
        "\
static void *three(void *unused) {
  atomic_store(&lock, 1);
  return unused;
}
static void *one(void *unused) {
  pthread_t thread;
  pthread_create(&thread, 0, three, 0);
  atomic_store(&flag, 1);
  pthread_join(thread, 0);
  *(int *)&lock = 2;
  return unused;
}
static void *two(void *unused) {
  while (!atomic_load(&flag))
    if (atomic_load_explicit(&lock, memory_order_relaxed) == 7)
      return unused;
  return unused;
}
",
    ),
];

/// The race is there under each model and with each algorithm.
#[test]
fn what_a_round_touches_takes_part_in_races() {
    let main = "\
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
";
    for (what, threads) in RACES {
        let sandbox = Sandbox::with("spin.c", &format!("{HEAD}{threads}{main}"));
        for options in [
            "--model sc",
            "--model tso",
            "--model rc11",
            "--model sc --preemptions 3",
            "--model sc --algorithm optimal-dpor",
            "--model sc --equivalence reads-from",
            "--model ra --equivalence reads-from",
        ] {
            println!("{what}, {options}");
            let options: Vec<&str> = options.split_whitespace().collect();
            let outcome = sandbox.run(&[&["verify", "spin.c"], &options[..]].concat());
            outcome.ends_with(1);
            // The function that the race is in may also return too early for the other thread.
            let returns = "whose variables, the stack of T2, are in use";
            if !(what.contains("writes to its stack") && outcome.stdout.contains(returns)) {
                outcome.prints("bug: data race");
            }
        }
    }
}

/// Rounds over several globals that are only accessed atomically are given up early.
#[test]
fn a_round_over_several_atomics_is_recognised_in_optimised_code() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/c/seqlock.c");
    for level in ["-O0", "-O2"] {
        Sandbox::new()
            .run(&["verify", program, "--model", "sc", "--", level])
            .ends_with(0)
            .prints("(9 executions under sc)");
    }
}

/// The instruction that clang makes of an atomic load is no plain read, although a call follows
/// that could take its register for an argument if it took more of them.
#[test]
fn what_clang_leaves_of_a_load_in_a_loop_is_no_race() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/c/rcu_tree.c");
    if compilers().contains(&"clang") {
        Sandbox::new()
            .run(&["verify", program, "--cc", "clang", "--", "-O2"])
            .ends_with(0)
            .prints("verified");
    }
}

/// A queue with many producers, and one consumer that puts a stub back when the queue runs empty.
const QUEUE: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
typedef struct node { _Atomic(struct node *) next; int value; } node;
static node stub, nodes[2];
static _Atomic(node *) head = &stub;
static node *tail = &stub;
static void push(node *n) {
  atomic_store_explicit(&n->next, NULL, memory_order_relaxed);
  node *previous = atomic_exchange_explicit(&head, n, memory_order_acq_rel);
  atomic_store_explicit(&previous->next, n, memory_order_release);
}
static node *pop(void) {
  node *t = tail, *next = atomic_load_explicit(&t->next, memory_order_acquire);
  if (t == &stub) {
    if (!next) return NULL;
    tail = t = next;
    next = atomic_load_explicit(&t->next, memory_order_acquire);
  }
  if (next) { tail = next; return t; }
  if (t != atomic_load_explicit(&head, memory_order_acquire)) return NULL;
  push(&stub);
  next = atomic_load_explicit(&t->next, memory_order_acquire);
  if (next) { tail = next; return t; }
  return NULL;
}
static void *produce(void *n) { ((node *)n)->value = 1; push(n); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, produce, &nodes[0]);
  pthread_create(&b, 0, produce, &nodes[1]);
  int sum = 0, count = 0;
  while (count < 2) { node *n = pop(); if (n) { sum += n->value; count++; } }
  assert(sum == 2);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
";

/// Nor is it where announcements that were put in save the register.
#[test]
fn what_clang_leaves_of_a_load_before_an_announcement_is_no_race() {
    let sandbox = Sandbox::with("queue.c", QUEUE);
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            sandbox
                .run(&["verify", "queue.c", "--cc", compiler, "--", level])
                .ends_with(0)
                .prints("verified");
        }
    }
}
