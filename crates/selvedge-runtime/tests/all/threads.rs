//! Creating, joining and ending threads; thread-specific data; C11 threads.

use selvedge_core::FailureKind::{Deadlock, NullDereference, ObjectMisuse};

use crate::common::isolated;
use crate::common::programs::{alone, program, two_threads};
use crate::common::search::{check, check_all};

const WORKER: &str = "static void *worker(void *argument) { return (char *)argument + 1; }";

#[test]
fn results_come_back_from_joins() {
    isolated("results_come_back_from_joins", || {
        check_all(
            &program(
                "static void *worker(void *argument) {
                     if (argument == 0) pthread_exit((void *)7);
                     return (char *)argument + 1; }",
                "pthread_t a, b; void *x, *y;
                 assert(!pthread_create(&a, 0, worker, (void *)1));
                 assert(!pthread_create(&b, 0, worker, 0));
                 assert(!pthread_join(a, &x) && !pthread_join(b, &y));
                 assert(x == (void *)2 && y == (void *)7);
                 assert(!pthread_equal(a, b) && pthread_equal(a, a));
                 assert(!pthread_equal(pthread_self(), a));",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn the_new_thread_may_read_its_own_handle() {
    isolated("the_new_thread_may_read_its_own_handle", || {
        check_all(
            &program(
                "pthread_t handle;
                 static void *worker(void *argument) {
                     assert(pthread_equal(handle, pthread_self())); return argument; }",
                "pthread_create(&handle, 0, worker, 0); pthread_join(handle, 0);",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn threads_are_joined_once_or_detached_once() {
    isolated("threads_are_joined_once_or_detached_once", || {
        let with = |body: &str| {
            let create = "pthread_t a; pthread_create(&a, 0, worker, 0);";
            check(&program(WORKER, &format!("{create} {body}")))
        };
        with("assert(!pthread_detach(a));").is_fine_in(1);
        with("pthread_join(a, 0); pthread_join(a, 0);").has_bug(ObjectMisuse, "was joined by");
        with("pthread_detach(a); pthread_join(a, 0);").has_bug(ObjectMisuse, "was detached by");
        with("pthread_detach(a); pthread_detach(a);").has_bug(ObjectMisuse, "was detached by");
        with("pthread_join(a, 0); pthread_detach(a);").has_bug(ObjectMisuse, "was joined by");
        with("pthread_join(a + 5, 0);").has_bug(ObjectMisuse, "no thread");
        with("assert(pthread_join(pthread_self(), 0) == EDEADLK); pthread_join(a, 0);").is_fine();
        check(&two_threads(
            "pthread_t target; static void *nothing(void *p) { return p; }",
            "pthread_join(target, 0);",
            "pthread_create(&target, 0, nothing, 0);",
            "",
        ))
        .has_bug(ObjectMisuse, "T1 was joined by T2 and joined by T3");
    });
}

#[test]
fn attributes_are_accepted() {
    isolated("attributes_are_accepted", || {
        check(&program(
            WORKER,
            "pthread_attr_t t; size_t size; int state; pthread_t a;
             assert(!pthread_attr_init(&t) && !pthread_attr_setstacksize(&t, 1 << 20));
             assert(!pthread_attr_getstacksize(&t, &size) && size == 1 << 20);
             assert(pthread_attr_setstacksize(&t, 1) == EINVAL);
             assert(!pthread_attr_setdetachstate(&t, PTHREAD_CREATE_DETACHED));
             assert(!pthread_attr_getdetachstate(&t, &state) && state == PTHREAD_CREATE_DETACHED);
             struct sched_param p = {1};
             assert(pthread_attr_setschedparam(&t, &p) == EINVAL);
             assert(pthread_attr_setschedpolicy(&t, 7) == EINVAL);
             assert(!pthread_attr_setschedpolicy(&t, SCHED_FIFO));
             assert(!pthread_attr_setschedparam(&t, &p));
             assert(!pthread_attr_setinheritsched(&t, PTHREAD_EXPLICIT_SCHED));
             assert(pthread_attr_setinheritsched(&t, 2) == EINVAL);
             assert(!pthread_attr_setscope(&t, PTHREAD_SCOPE_SYSTEM));
             assert(pthread_attr_setscope(&t, PTHREAD_SCOPE_PROCESS) == ENOTSUP);
             assert(!pthread_attr_setaffinity_np(&t, 0, 0));
             pthread_create(&a, &t, worker, 0); pthread_attr_destroy(&t);
             pthread_setname_np(pthread_self(), \"main\"); sched_yield();
             cpu_set_t set; assert(!pthread_getaffinity_np(pthread_self(), sizeof set, &set));
             assert(CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN));
             pthread_join(a, 0);",
        ))
        .has_bug(ObjectMisuse, "was detached by");
    });
}

#[test]
fn main_may_leave_before_the_others() {
    isolated("main_may_leave_before_the_others", || {
        let globals = "atomic_int x; static void *worker(void *p) { x = 1; x = 2; return p; }";
        let create = "pthread_t a; pthread_create(&a, 0, worker, 0);";
        check(&program(globals, create)).is_fine_in(1);
        check(&program(globals, &format!("{create} pthread_exit(0);"))).is_fine_in(1);
    });
}

#[test]
fn joining_in_a_circle_deadlocks() {
    isolated("joining_in_a_circle_deadlocks", || {
        check(&program(
            "pthread_t main_thread;
             static void *worker(void *p) { pthread_join(main_thread, 0); return p; }",
            "main_thread = pthread_self(); pthread_t a; pthread_create(&a, 0, worker, 0);
             pthread_join(a, 0);",
        ))
        .has_bug(Deadlock, "");
    });
}

#[test]
fn a_null_start_routine_is_a_null_dereference() {
    isolated("a_null_start_routine_is_a_null_dereference", || {
        check(&alone(
            "pthread_t a; void *(*f)(void *) = 0; pthread_create(&a, 0, f, 0);",
        ))
        .has_bug(NullDereference, "null");
        check(&alone("pthread_mutex_t *m = 0; pthread_mutex_lock(m);"))
            .has_bug(NullDereference, "mutex");
    });
}

#[test]
fn keys_have_a_value_per_thread_and_destructors() {
    isolated("keys_have_a_value_per_thread_and_destructors", || {
        check_all(
            &two_threads(
                "pthread_key_t key, other; atomic_int destroyed;
                 static void destroy(void *p) { destroyed += (int)(long)p; }
                 static void again(void *p) {
                     if ((long)p > 1) pthread_setspecific(other, (char *)p - 1); destroyed += 100; }",
                "assert(pthread_getspecific(key) == 0);
                 assert(!pthread_setspecific(key, (void *)(long)me));
                 if (me == 2) pthread_setspecific(other, (void *)3);
                 assert(pthread_getspecific(key) == (void *)(long)me);",
                "assert(!pthread_key_create(&key, destroy) && !pthread_key_create(&other, again));
                 assert(key != other);",
                "assert(destroyed == 303); assert(pthread_getspecific(key) == 0);
                 assert(!pthread_key_delete(key) && pthread_setspecific(key, &key) == EINVAL);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn cleanup_handlers_run_when_a_thread_exits() {
    isolated("cleanup_handlers_run_when_a_thread_exits", || {
        check_all(
            &program(
                "static int order[4], n;
                 static void note(void *p) { order[n++] = (int)(long)p; }
                 static void deep(int depth) { if (depth) deep(depth - 1); else pthread_exit(&n); }
                 static void *worker(void *p) {
                     pthread_cleanup_push(note, (void *)1);
                     pthread_cleanup_push(note, (void *)2);
                     pthread_cleanup_push(note, (void *)3); pthread_cleanup_pop(1);
                     deep(3);
                     pthread_cleanup_pop(0); pthread_cleanup_pop(0); return p; }",
                "pthread_t a; void *r; pthread_create(&a, 0, worker, 0); pthread_join(a, &r);
                 assert(r == &n && n == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1);",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn thread_local_variables_and_errno_are_per_thread() {
    isolated("thread_local_variables_and_errno_are_per_thread", || {
        check_all(
            &two_threads(
                "static _Thread_local int mine = 5; _Thread_local char zeroes[100];",
                "assert(mine == 5 && zeroes[99] == 0); mine += me; zeroes[99] = 1;
                 errno = me; shared_step(); assert(errno == me && mine == 5 + me);",
                "mine = 100; errno = 50;",
                "assert(mine == 100 && errno == 50);",
            )
            .replace(
                "static void *worker",
                "static atomic_int step; static void shared_step(void) { step++; }
                 static void *worker",
            ),
            |checked| checked.is_fine_in(2),
        );
    });
}

#[test]
fn c11_threads_work() {
    isolated("c11_threads_work", || {
        let source = r#"
            #include <assert.h>
            #include <threads.h>
            static mtx_t m; static cnd_t c; static once_flag once = ONCE_FLAG_INIT; static tss_t key;
            static int ready, shared;
            static void routine(void) { shared = 10; }
            static int worker(void *argument) {
                call_once(&once, routine);
                assert(tss_get(key) == 0 && tss_set(key, argument) == thrd_success);
                mtx_lock(&m); ready++; shared++; cnd_signal(&c); mtx_unlock(&m);
                if (argument == &ready) thrd_exit(-3);
                return 4;
            }
            int main(void) {
                thrd_t a, b; int x, y; struct timespec at = {1, 0};
                assert(mtx_init(&m, mtx_plain) == thrd_success && cnd_init(&c) == thrd_success);
                assert(tss_create(&key, 0) == thrd_success);
                assert(thrd_create(&a, worker, &ready) == thrd_success);
                assert(thrd_create(&b, worker, &shared) == thrd_success);
                mtx_lock(&m); while (ready < 1) cnd_wait(&c, &m); mtx_unlock(&m);
                assert(thrd_join(a, &x) == thrd_success && thrd_join(b, &y) == thrd_success);
                assert(x == -3 && y == 4 && shared == 12);
                assert(mtx_trylock(&m) == thrd_success && mtx_trylock(&m) == thrd_busy);
                assert(mtx_timedlock(&m, &at) == thrd_timedout);
                assert(cnd_timedwait(&c, &m, &at) == thrd_timedout);
                mtx_unlock(&m); mtx_destroy(&m); cnd_destroy(&c); tss_delete(key);
                mtx_t r; mtx_init(&r, mtx_recursive); mtx_lock(&r); mtx_lock(&r); mtx_unlock(&r);
                mtx_unlock(&r); assert(thrd_equal(thrd_current(), thrd_current())); thrd_yield();
                return thrd_sleep(&at, 0);
            }"#;
        check_all(source, |checked| {
            checked.is_fine();
        });
    });
}

#[test]
fn cancelling_is_refused() {
    isolated("cancelling_is_refused", || {
        check(&program(
            WORKER,
            "pthread_t a; pthread_create(&a, 0, worker, 0); pthread_cancel(a);",
        ))
        .is_refused("pthread_cancel: cancels threads");
    });
}
