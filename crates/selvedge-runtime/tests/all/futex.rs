//! The futex system call, and what C++20 builds on it.

use selvedge_core::FailureKind::{Assertion, Deadlock};
use selvedge_runtime::Settings;

use crate::common::programs::two_threads;
use crate::common::search::{Checked, check, check_all};
use crate::common::{Build, CLANG, GCC, Program, isolated};

/// Drepper's mutex of three states: free, locked, locked and somebody waits.
fn mutex(wake: &str) -> String {
    two_threads(
        &format!(
            "#include <linux/futex.h>\n#include <sys/syscall.h>\n
             static atomic_int word;
             static void wait_for_change(int old) {{
                 syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, old, 0); }}
             static void lock(void) {{
                 int c = 0; if (atomic_compare_exchange_strong(&word, &c, 1)) return;
                 if (c != 2) c = atomic_exchange(&word, 2);
                 while (c != 0) {{ wait_for_change(2); c = atomic_exchange(&word, 2); }} }}
             static void unlock(void) {{
                 if (atomic_fetch_sub(&word, 1) != 1) {{ atomic_store(&word, 0); {wake} }} }}"
        ),
        "lock(); shared++; unlock();",
        "",
        "assert(shared == 2);",
    )
}

#[test]
fn a_mutex_can_be_built_on_futexes() {
    isolated("a_mutex_can_be_built_on_futexes", || {
        let wake = "syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);";
        check_all(&mutex(wake), |checked| {
            checked.is_fine();
        });
        check(&mutex("")).has_bug(Deadlock, "");
    });
}

#[test]
fn a_timed_wait_ends() {
    isolated("a_timed_wait_ends", || {
        let source = |after: &str| {
            two_threads(
                "#include <linux/futex.h>\n#include <sys/syscall.h>\n
                 static atomic_int word, woken, late;",
                "if (me == 1) {
                     struct timespec t = {1, 0}, now, then; clock_gettime(CLOCK_MONOTONIC, &now);
                     long r = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t);
                     clock_gettime(CLOCK_MONOTONIC, &then);
                     if (r == 0) woken = 1;
                     else if (errno == ETIMEDOUT) { late = 1; assert(then.tv_sec > now.tv_sec); }
                     else assert(errno == EAGAIN);
                 } else { word = 1; syscall(SYS_futex, &word, FUTEX_WAKE, 1); }",
                "",
                after,
            )
        };
        check(&source("")).is_fine();
        check(&source("assert(!woken);")).has_bug(Assertion, "woken");
        check(&source("assert(!late);")).has_bug(Assertion, "late");
        check(&source("assert(woken || late);")).has_bug(Assertion, "woken");
    });
}

#[test]
fn waiting_atomics_and_semaphores_wait() {
    isolated("waiting_atomics_and_semaphores_wait", || {
        let check = |build: Build, body: &str| {
            let source = format!(
                "#include <atomic>\n#include <cassert>\n#include <latch>\n#include <semaphore>\n
                 #include <thread>\n
                 std::atomic<int> x{{0}}; std::binary_semaphore s{{0}}; int data;
                 int main() {{ {body} }}"
            );
            let program = Program::build_from(build, "program.cc", &source, &["-std=c++20"]);
            Checked::search(&mut program.load(Settings::default()))
        };
        let gcc = Build {
            compiler: "g++",
            ..GCC
        };
        let clang = Build {
            compiler: "clang++",
            ..CLANG
        };
        for build in Build::installed(&[gcc, clang]) {
            check(
                build,
                "std::thread t([] { data = 5; x = 1; x.notify_one(); });
                 x.wait(0); assert(data == 5); t.join();",
            )
            .is_fine();
        }
        check(gcc, "std::thread t([] { x = 1; }); x.wait(0); t.join();").has_bug(Deadlock, "");
        check(
            gcc,
            "std::thread t([] { data = 5; s.release(); }); s.acquire(); assert(data == 5); t.join();",
        )
        .is_fine();
    });
}
