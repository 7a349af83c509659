//! Bounds on preemptions of C programs whose threads wait: what is explored within them, and what is pruned.

use crate::common::Sandbox;

/// A queue with one place, two producers and two consumers.
const QUEUE: &str = "\
#include <assert.h>
#include <pthread.h>
static int place, full, sum;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static void *produce(void *items)
{
    for (long i = 0; i < (long)items; i++) {
        pthread_mutex_lock(&m);
        while (full)
            pthread_cond_wait(&emptied, &m);
        place = 1;
        full = 1;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&m);
    }
    return 0;
}
static void *consume(void *items)
{
    for (long i = 0; i < (long)items; i++) {
        pthread_mutex_lock(&m);
        while (!full)
            pthread_cond_wait(&filled, &m);
        sum += place;
        full = 0;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&m);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[4];
    pthread_create(&threads[0], 0, produce, (void *)2);
    pthread_create(&threads[1], 0, produce, (void *)1);
    pthread_create(&threads[2], 0, consume, (void *)2);
    pthread_create(&threads[3], 0, consume, (void *)1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    assert(sum == 3);
}
";

const COUNTS: [&str; 3] = ["executions", "over_bound", "bound_blocked"];

fn counts(sandbox: &Sandbox, arguments: &str) -> [u64; 3] {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let report = sandbox
        .run(&[&["verify", "--format", "json"], &arguments[..]].concat())
        .ends_with(0)
        .json();
    COUNTS.map(|key| report[key].as_u64().expect("a number"))
}

#[test]
fn a_queue_of_threads_that_wait_for_each_other_is_pruned() {
    let sandbox = Sandbox::with("queue.c", QUEUE);
    let pruned = counts(&sandbox, "queue.c --model sc --preemptions 0");
    assert_eq!(pruned, [240, 120, 1168]);
    // It looks at all executions, and counts the preemptions of each.
    let all = counts(
        &sandbox,
        "queue.c --model sc --preemptions 0 --algorithm lazy-bpor",
    );
    assert_eq!(all, [240, 2136, 0]);
}

#[test]
fn a_kernels_rcu_is_pruned() {
    let sandbox = Sandbox::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/c/rcu_tree.c");
    for (bound, expected) in [(0, [4, 3, 45]), (1, [11, 6, 51])] {
        let found = counts(&sandbox, &format!("{example} --preemptions {bound}"));
        assert_eq!(found, expected, "{bound}");
    }
    assert_eq!(counts(&sandbox, example), [62, 0, 0]);
}
