//! `pthread_cancel`: where threads are cancelled, where they are not, and what is refused.

use crate::common::{Sandbox, compilers};

/// Checks a program whose thread runs `body`; main cancels it, joins it and checks `end`, in which `r` is the
/// thread's result. Expects that many executions and no bug with every compiler.
#[track_caller]
fn verified(body: &str, before: &str, end: &str, executions: u32) {
    let text = program(body, before, end);
    for cc in compilers() {
        let sandbox = Sandbox::with("cancel.c", &text);
        let outcome = sandbox.run(&["verify", "cancel.c", "--cc", cc, "--timeout", "60"]);
        let expected = format!("verified: no execution fails ({executions} execution");
        outcome.ends_with(0).prints(&expected);
    }
}

/// Expects that the program ends with `status` and that its result begins with `words`.
#[track_caller]
fn ends(body: &str, before: &str, end: &str, status: i32, words: &str) {
    let text = program(body, before, end);
    for cc in compilers() {
        let sandbox = Sandbox::with("cancel.c", &text);
        let outcome = sandbox.run(&["verify", "cancel.c", "--cc", cc, "--timeout", "60"]);
        outcome.ends_with(status).prints(words);
    }
}

/// Expects that `end` fails.
#[track_caller]
fn fails(body: &str, before: &str, end: &str) {
    ends(body, before, end, 1, "bug: assertion failed");
}

fn program(body: &str, before: &str, end: &str) -> String {
    format!(
        "#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static atomic_int x;
static sem_t s;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready;
static pthread_t first;
static void note(void *by) {{ x += (int)(long)by; }}
static void unlock(void *lock) {{ pthread_mutex_unlock(lock); x++; }}
static void *nothing(void *unused) {{ return unused; }}
static void *work(void *unused) {{ {body} return unused; }}
int main(void) {{
  pthread_t t; void *r;
  sem_init(&s, 0, 0);
  pthread_create(&first, 0, nothing, 0);
  pthread_create(&t, 0, work, 0);
  {before}
  pthread_cancel(t);
  pthread_join(t, &r);
  {end}
  return 0;
}}
"
    )
}

const CANCELED: &str = "assert(r == PTHREAD_CANCELED);";
const NOT_CANCELED: &str = "assert(r != PTHREAD_CANCELED);";

/// With n cancellation points the request comes before one of them, or after all.
#[test]
fn a_request_is_acted_on_at_the_next_cancellation_point() {
    let points = "pthread_testcancel(); x = 1; pthread_testcancel(); x = 2;";
    let end = "assert(r == PTHREAD_CANCELED ? x < 2 : x == 2);";
    verified("x = 1;", "", NOT_CANCELED, 1);
    verified("pthread_testcancel();", "", "", 2);
    verified(points, "", end, 3);
    fails(points, "", CANCELED);
    fails(points, "", NOT_CANCELED);
    for seen in 0..3 {
        fails(points, "", &format!("assert(x != {seen});"));
    }
    verified("for (;;) pthread_testcancel();", "", CANCELED, 1);
    verified("pthread_exit((void *)5);", "", "assert(r == (void *)5);", 1);
}

#[test]
fn sleeping_is_a_cancellation_point() {
    let body = "sleep(1); x = 1; usleep(2); x = 2; \
                struct timespec t = {0, 1}; nanosleep(&t, 0); x = 3; \
                clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0); x = 4;";
    verified(body, "", "assert((r == PTHREAD_CANCELED) == (x < 4));", 5);
    for seen in 0..5 {
        fails(body, "", &format!("assert(x != {seen});"));
    }
}

/// The thread is cancelled before it waits, or while it waits; or it takes what was posted.
#[test]
fn a_thread_that_waits_for_a_semaphore_is_cancelled() {
    verified("sem_wait(&s);", "", CANCELED, 2);
    let end = "int left; sem_getvalue(&s, &left); assert(left == (r == PTHREAD_CANCELED));";
    verified("sem_wait(&s);", "sem_post(&s);", end, 3);
    fails("sem_wait(&s);", "sem_post(&s);", CANCELED);
    fails("sem_wait(&s);", "sem_post(&s);", NOT_CANCELED);
    // Before the wait, after it has timed out, or not at all.
    let timed = "struct timespec t = {0, 0}; sem_timedwait(&s, &t); x = 1;";
    verified(timed, "", "assert((r == PTHREAD_CANCELED) == (x == 0));", 3);
}

/// A thread that is cancelled in a wait holds the mutex when its cleanup handlers run.
#[test]
fn a_thread_that_waits_for_a_condition_is_cancelled() {
    let wait = "pthread_mutex_lock(&m); pthread_cleanup_push(unlock, &m); \
                while (!ready) pthread_cond_wait(&c, &m); pthread_cleanup_pop(1);";
    let end = "assert(x == 1 && pthread_mutex_trylock(&m) == 0);";
    verified(wait, "", &format!("{end} {CANCELED}"), 2);
    let signal = "pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); \
                  pthread_mutex_unlock(&m);";
    // Main is first; the thread is woken; it is cancelled although there was a signal.
    verified(wait, signal, end, 3);
    fails(wait, signal, CANCELED);
    fails(wait, signal, NOT_CANCELED);
    let held = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m);";
    let end = "assert(pthread_mutex_trylock(&m) == EBUSY);";
    verified(held, "", end, 2);
    let timed = "struct timespec t = {0, 0}; pthread_mutex_lock(&m); \
                 pthread_cleanup_push(unlock, &m); \
                 while (!ready && pthread_cond_timedwait(&c, &m, &t) != ETIMEDOUT) ; \
                 pthread_cleanup_pop(1);";
    verified(timed, "", "assert(x == 1);", 3);
}

/// A signal that a cancelled thread took is not lost: another waiter gets it.
#[test]
fn a_cancelled_thread_passes_a_signal_on() {
    let text = r"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting;
static void unlock(void *lock) { pthread_mutex_unlock(lock); }
static void *work(void *unused) {
  pthread_mutex_lock(&m);
  pthread_cleanup_push(unlock, &m);
  waiting++;
  pthread_cond_wait(&c, &m);
  pthread_cleanup_pop(1);
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, work, 0);
  pthread_create(&two, 0, work, 0);
  pthread_mutex_lock(&m);
  int both = waiting == 2;
  if (both) pthread_cond_signal(&c);
  pthread_mutex_unlock(&m);
  if (!both) return 0;
  pthread_cancel(one);
  pthread_join(one, 0);
  pthread_join(two, 0);
}
";
    // The signal may also wake the first thread alone: then the second one waits for ever.
    let sandbox = Sandbox::with("signal.c", text);
    sandbox.run(&["verify", "signal.c"]).ends_with(1);
    let cancelled = text
        .replace("pthread_join(one, 0);", "void *r; pthread_join(one, &r);")
        .replace(
            "pthread_join(two, 0);",
            "if (r == PTHREAD_CANCELED) pthread_join(two, 0);",
        );
    let sandbox = Sandbox::with("signal.c", &cancelled);
    sandbox
        .run(&["verify", "signal.c"])
        .ends_with(0)
        .prints("verified");
}

#[test]
fn cleanup_handlers_run_from_the_latest_to_the_first() {
    let body = "pthread_cleanup_push(note, (void *)1); pthread_cleanup_push(note, (void *)10); \
                pthread_testcancel(); pthread_cleanup_pop(0); pthread_testcancel(); \
                pthread_cleanup_pop(0);";
    let end = "assert(r == PTHREAD_CANCELED ? x == 11 || x == 1 : x == 0);";
    verified(body, "", end, 3);
    for seen in [0, 1, 11] {
        fails(body, "", &format!("assert(x != {seen});"));
    }
}

#[test]
fn a_thread_can_disable_cancellation() {
    let body = "int old = 7; \
        assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0); \
        assert(old == PTHREAD_CANCEL_ENABLE); pthread_testcancel(); x = 1; \
        assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0); \
        assert(old == PTHREAD_CANCEL_DISABLE && pthread_setcancelstate(5, 0) == EINVAL); \
        assert(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old) == 0); \
        assert(old == PTHREAD_CANCEL_DEFERRED); pthread_testcancel(); x = 2;";
    let end = "assert(x == (r == PTHREAD_CANCELED ? 1 : 2));";
    verified(body, "", end, 2);
    fails(body, "", "assert(x != 1);");
    fails(body, "", "assert(x != 2);");
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let refused = |body: &str, before: &str, words: &str| ends(body, before, "", 3, words);
    refused(
        "pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);",
        "",
        "asynchronous cancellation (pthread_setcanceltype), which is not modelled",
    );
    refused(
        "",
        "pthread_cancel(pthread_self());",
        "pthread_cancel of the main thread, which is not modelled",
    );
    refused(
        "write(1, \"a\", 1);",
        "",
        "write, a cancellation point in a thread that may be cancelled",
    );
    refused(
        "pthread_join(first, 0);",
        "",
        "pthread_cancel of a thread that waits in pthread_join",
    );
    ends(
        "",
        "pthread_cancel((pthread_t)77);",
        "",
        1,
        "bug: misuse: pthread_cancel of something that is no thread",
    );
    // With cancellation disabled, and in main, they are functions like any other.
    let disabled = "pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0); write(1, \"\", 0);";
    verified(disabled, "", "write(1, \"\", 0);", 1);
    let sandbox = Sandbox::with("cancel.c", &program("sem_wait(&s);", "", ""));
    sandbox
        .run(&["verify", "cancel.c", "--model", "sc", "--algorithm", "csdr"])
        .ends_with(3)
        .prints("cancellation of threads, which searches over states do not model");
}

#[test]
fn a_wait_that_nothing_ends_is_a_bug() {
    let cancels = "if (ready) ";
    for body in [
        "sem_wait(&s);",
        "pthread_mutex_lock(&m); pthread_cond_wait(&c, &m);",
    ] {
        ends(body, cancels, "", 1, "bug: endless spinning");
    }
}

/// The algorithms differ in how they search, not in what they find.
#[test]
fn all_algorithms_agree_about_cancelled_threads() {
    let wait = "pthread_mutex_lock(&m); pthread_cleanup_push(unlock, &m); \
                while (!ready) pthread_cond_wait(&c, &m); pthread_cleanup_pop(1);";
    let signal = "pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); \
                  pthread_mutex_unlock(&m);";
    let sandbox = Sandbox::with("cancel.c", &program(wait, signal, ""));
    let outcome = sandbox.run(&["compare", "cancel.c", "--timeout", "60"]);
    outcome.ends_with(0).prints("all that was found agrees");
}

#[test]
fn destructors_run_when_a_thread_is_cancelled() {
    let text = r"
#include <atomic>
#include <cassert>
#include <pthread.h>
static std::atomic<int> alive;
struct Guard { Guard() { alive++; } ~Guard() { alive--; } };
static void *work(void *unused) {
  Guard guard;
  for (;;) pthread_testcancel();
  return unused;
}
int main() {
  pthread_t thread; void *result;
  pthread_create(&thread, nullptr, work, nullptr);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  assert(result == PTHREAD_CANCELED && alive == 0);
}
";
    let sandbox = Sandbox::with("guard.cc", text);
    for cc in compilers() {
        let cc = if cc == "clang" { "clang++" } else { "g++" };
        sandbox
            .run(&["verify", "guard.cc", "--cc", cc])
            .ends_with(0)
            .prints("verified: no execution fails (1 execution");
    }
}
