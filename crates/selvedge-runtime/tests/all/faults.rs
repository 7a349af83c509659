//! Programs that crash or never come back cost one thread, never the process.

use std::time::Duration;

use selvedge_core::FailureKind::{EndlessLoop, Signal};
use selvedge_core::{FailureKind, Machine, ThreadId};
use selvedge_runtime::{NativeMachine, Settings};

use crate::common::driver::Driver;
use crate::common::ends::{End, end, refusal};
use crate::common::{Build, CLANG, GCC, GCC_O2, Program, isolated};

/// A program in which a worker thread does `body` if `x` is 1, which is so in one of two schedules.
fn program(body: &str) -> String {
    format!(
        "#include <pthread.h>
         #include <stdatomic.h>
         atomic_int x;
         int zero;
         long deep(long n) {{ volatile long a[64]; a[0] = n; return n ? deep(n + 1) + a[0] : 0; }}
         void huge(void) {{ volatile char huge[400000]; huge[0] = 1; }}
         static void *worker(void *p) {{
             if (atomic_load(&x) == 1) {{ {body}; }}
             return 0;
         }}
         int main(void) {{
             pthread_t a;
             pthread_create(&a, 0, worker, 0);
             atomic_store(&x, 1);
             pthread_join(a, 0);
             return 0;
         }}"
    )
}

/// The failing schedule fails in the same way again and again; the other one is not disturbed.
fn fails(build: Build, body: &str, settings: Settings) -> (FailureKind, String, u64) {
    let program = Program::build(build, &program(body));
    let mut machine = program.load(settings);
    let fail = |machine: &mut NativeMachine| {
        Driver::first(machine);
        let failure = machine.failure().expect("a failure");
        assert_eq!(failure.thread, ThreadId(1));
        (
            failure.kind,
            failure.message,
            failure.site.0 - machine.load_base(),
        )
    };
    let first = fail(&mut machine);
    Driver::last(&mut machine);
    assert_eq!(end(&machine), End::Complete);
    assert_eq!(fail(&mut machine), first);
    first
}

#[test]
fn an_endless_recursion_uses_up_its_stack() {
    isolated("an_endless_recursion_uses_up_its_stack", || {
        for build in Build::installed(&[GCC, CLANG, GCC_O2]) {
            let settings = Settings {
                stack_size: 128 << 10,
                ..Settings::default()
            };
            let refusal = refusal(build, &program("deep(1)"), settings);
            let expected = "the stack of 128 KiB of a thread is used up (--stack-size)";
            assert_eq!(refusal, expected);
        }
    });
}

#[test]
fn a_large_frame_cannot_jump_over_the_guard() {
    isolated("a_large_frame_cannot_jump_over_the_guard", || {
        for build in Build::installed(&[GCC, CLANG]) {
            let refusal = refusal(build, &program("huge()"), Settings::default());
            assert!(refusal.contains("--stack-size"), "{refusal}");
        }
    });
}

#[test]
fn a_division_by_zero_is_a_signal() {
    isolated("a_division_by_zero_is_a_signal", || {
        for build in Build::installed(&[GCC, CLANG]) {
            let (kind, message, _) = fails(build, "zero = 7 / zero", Settings::default());
            let expected = "division by zero or overflow (SIGFPE)";
            assert_eq!((kind, &*message), (Signal, expected));
        }
    });
}

#[test]
fn a_trap_is_a_signal() {
    isolated("a_trap_is_a_signal", || {
        let (kind, message, _) = fails(GCC, "__builtin_trap()", Settings::default());
        assert_eq!((kind, &*message), (Signal, "illegal instruction (SIGILL)"));
    });
}

#[test]
fn a_loop_without_visible_operations_is_stopped() {
    isolated("a_loop_without_visible_operations_is_stopped", || {
        // Without any entry into the runtime, with entries, and inside of the runtime.
        for body in [
            "for (;;) __asm__ volatile(\"\")",
            "for (;;) zero++",
            "static char a[1 << 20]; for (;;) __builtin_memset(a, 0, sizeof a)",
        ] {
            for build in Build::installed(&[GCC, CLANG]) {
                let watchdog = Duration::from_millis(40);
                let settings = Settings {
                    watchdog,
                    ..Settings::default()
                };
                let program = Program::build(build, &program(body));
                let mut machine = program.load(settings);
                for _ in 0..3 {
                    Driver::first(&mut machine);
                    let failure = machine.failure().expect("a failure");
                    assert_eq!(failure.kind, EndlessLoop, "{body}");
                    let image = machine.load_base()..machine.load_base() + (8 << 20);
                    assert!(image.contains(&failure.site.0), "{failure:?}");
                    Driver::last(&mut machine);
                    assert_eq!(end(&machine), End::Complete);
                }
            }
        }
    });
}

/// It is recognised, without waiting for the watchdog; a loop that only takes long is not.
#[test]
fn a_loop_that_only_reads_is_endless() {
    isolated("a_loop_that_only_reads_is_endless", || {
        let sum = "static int all[100]; int sum = 0;";
        let again = format!("{sum} while (!sum) for (int i = 0; i < 100; i++) sum += all[i]");
        let long = format!("{sum} for (int i = 0; i < 300000; i++) sum += all[0]");
        for (body, expected) in [
            ("static int never; while (!never)", Some(EndlessLoop)),
            (&again, Some(EndlessLoop)),
            (&long, None),
            ("static int n, none; while (n < 100000) n += none + 1", None),
        ] {
            for build in Build::installed(&[GCC, CLANG]) {
                let program = Program::build(build, &program(body));
                let mut machine = program.load(Settings::default());
                Driver::first(&mut machine);
                let kind = machine.failure().map(|failure| failure.kind);
                assert_eq!(kind, expected, "{body}");
            }
        }
    });
}

#[test]
fn many_steps_are_not_an_endless_loop() {
    isolated("many_steps_are_not_an_endless_loop", || {
        let settings = Settings {
            watchdog: Duration::from_millis(20),
            ..Settings::default()
        };
        let source = program("for (int i = 0; i < 200000; i++) atomic_fetch_add(&x, 1)");
        let program = Program::build(GCC, &source);
        let mut machine = program.load(settings);
        Driver::first(&mut machine);
        assert_eq!(end(&machine), End::Complete, "{:?}", machine.failure());
    });
}
