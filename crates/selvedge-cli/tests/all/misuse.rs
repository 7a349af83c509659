//! Rules of the C library and of the instrumentation that programs may break.

use crate::common::Sandbox;
use crate::library::verdict;

/// An object that is in use cannot begin a new life; one that was destroyed, or is free, can.
#[test]
fn objects_are_not_initialised_while_they_are_in_use() {
    let mutex = "
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *lock(void *unused) { pthread_mutex_lock(&mutex); UNLOCK return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, lock, 0);
    pthread_join(thread, 0);
    pthread_mutex_init(&mutex, 0);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
";
    let barrier = "
#include <pthread.h>
static pthread_barrier_t barrier;
int main(void) {
    pthread_barrier_init(&barrier, 0, 1);
    pthread_barrier_wait(&barrier);
    UNLOCK
    pthread_barrier_init(&barrier, 0, 1);
    pthread_barrier_destroy(&barrier);
}
";
    let local = "
#include <pthread.h>
static void meet(void) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, 0, 1);
    pthread_barrier_wait(&barrier);
}
int main(void) { meet(); meet(); }
";
    for algorithm in ["trust", "dfs"] {
        for (text, unlock) in [
            (mutex, "pthread_mutex_unlock(&mutex);"),
            (barrier, "pthread_barrier_destroy(&barrier);"),
        ] {
            let options = |flag| ["--algorithm", algorithm, "--", flag];
            assert_eq!(verdict(text, &options("-DUNLOCK=")), "object-misuse");
            let unlocked = format!("-DUNLOCK={unlock}");
            assert_eq!(verdict(text, &options(&unlocked)), "verified");
        }
        assert_eq!(verdict(local, &["--algorithm", algorithm]), "verified");
    }
}

#[test]
fn an_alignment_is_a_power_of_two() {
    let text = "#include <stdlib.h>\nint main(void) { free(aligned_alloc(SIZE, 48)); }\n";
    assert_eq!(verdict(text, &["--", "-DSIZE=24"]), "object-misuse");
    assert_eq!(verdict(text, &["--", "-DSIZE=16"]), "verified");
}

/// Programs may define functions of the C library, but none of the instrumentation.
#[test]
fn names_of_the_runtime_are_refused() {
    let program = |definition: &str| {
        format!(
            "
#include <pthread.h>
#include <stddef.h>
static int x;
{definition}
static void *set(void *unused) {{ x = 1; return unused; }}
int main(void) {{
    pthread_t thread;
    pthread_create(&thread, 0, set, 0);
    x = 2;
    pthread_join(thread, 0);
}}
"
        )
    };
    for name in ["__tsan_write4", "selvedge_choose", "__selvedge_x"] {
        let sandbox = Sandbox::with("p.c", &program(&format!("void {name}(void *p) {{}}")));
        let defines = format!("p.c: defines `{name}`, a name of Selvedge's own");
        sandbox.run(&["verify", "p.c"]).ends_with(2).says(&defines);
    }
    let own = "size_t strlen(const char *s) { size_t n = 0; while (s[n]) n++; return n; }";
    assert_eq!(verdict(&program(own), &[]), "data-race");
}
