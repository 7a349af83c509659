//! Every execution starts from the same state, and threads have their own.

use selvedge_core::{Machine, Pending, ThreadId};
use selvedge_runtime::{LoadError, NativeMachine, Settings};

use crate::common::driver::{Driver, every_interleaving};
use crate::common::ends::{End, end};
use crate::common::{Build, CLANG, GCC, Program, isolated};

/// Runs the program three times under two schedules; it aborts if something is not as it was.
fn is_the_same_again(source: &str) {
    for build in Build::installed(&[GCC, CLANG]) {
        let program = Program::build(build, source);
        let mut machine = program.load(Settings::default());
        for _ in 0..3 {
            Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Complete, "{:?}", machine.failure());
            Driver::last(&mut machine);
            assert_eq!(end(&machine), End::Complete, "{:?}", machine.failure());
        }
    }
}

#[test]
fn globals_are_restored() {
    isolated("globals_are_restored", || {
        is_the_same_again(
            "#include <stdlib.h>
             int initialised = 7, zero;
             static int *pointer = &initialised;
             int main(void) {
                 static int local = 5;
                 if (initialised++ != 7 || zero++ || *pointer++ != 8 || local++ != 5) abort();
                 return 0;
             }",
        );
    });
}

/// Pages of a large array are write-protected until they are written for the first time.
#[test]
fn large_globals_are_restored_page_by_page() {
    isolated("large_globals_are_restored_page_by_page", || {
        is_the_same_again(
            "#include <stdlib.h>
             #include <string.h>
             #include <stdatomic.h>
             char zeros[1 << 20], filled[1 << 18] = { 1, 2, 3 };
             atomic_int atomics[1 << 16];
             int main(void) {
                 static int runs;
                 for (int i = 0; i < 1 << 20; i += 50001)
                     if (zeros[i]++) abort();
                 if (filled[1] != 2 || filled[1 << 17]) abort();
                 memset(filled, 0xff, sizeof filled);
                 for (int i = 0; i < 1 << 16; i += 9001)
                     if (atomic_fetch_add(&atomics[i], 1)) abort();
                 return runs++;
             }",
        );
    });
}

#[test]
fn constructors_run_once_and_their_work_is_kept() {
    isolated("constructors_run_once_and_their_work_is_kept", || {
        is_the_same_again(
            "#include <pthread.h>
             #include <stdatomic.h>
             #include <stdlib.h>
             #include <string.h>
             int *numbers, runs;
             char *large;
             atomic_int counter;
             pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
             __thread int local = 3;
             __attribute__((constructor)) static void prepare(void) {
                 numbers = malloc(10 * sizeof *numbers);
                 for (int i = 0; i < 10; i++) numbers[i] = i;
                 large = malloc(100000);
                 memset(large, 1, 100000);
                 atomic_fetch_add(&counter, 2);
                 pthread_mutex_lock(&mutex);
                 runs++;
                 pthread_mutex_unlock(&mutex);
                 local += 1;
             }
             static void *worker(void *p) {
                 if (local++ != 3) abort();
                 return 0;
             }
             int main(void) {
                 if (runs++ != 1 || atomic_fetch_add(&counter, 1) != 2 || local++ != 4) abort();
                 for (int i = 0; i < 10; i++)
                     if (numbers[i]++ != i) abort();
                 if (large[77777]++ != 1 || large[3]++ != 1) abort();
                 pthread_t a;
                 pthread_create(&a, 0, worker, 0);
                 pthread_mutex_lock(&mutex);
                 pthread_mutex_unlock(&mutex);
                 free(large);
                 free(numbers);
                 pthread_join(a, 0);
                 return 0;
             }",
        );
    });
}

#[test]
fn thread_locals_and_errno_belong_to_threads() {
    isolated("thread_locals_and_errno_belong_to_threads", || {
        is_the_same_again(
            "#include <errno.h>
             #include <pthread.h>
             #include <stdatomic.h>
             #include <stdlib.h>
             static int target;
             __thread int zero, five = 5;
             __thread int *pointer = &target;
             static __thread char large[3000] __attribute__((aligned(64)));
             atomic_int x;
             static void *worker(void *p) {
                 if (zero || five != 5 || pointer != &target || large[2999] || errno) abort();
                 if ((unsigned long)large % 64) abort();
                 zero = five = large[2999] = errno = (int)(long)p;
                 pointer = 0;
                 atomic_fetch_add(&x, 1);
                 atomic_fetch_add(&x, 1);
                 if (zero != (long)p || five != zero || errno != zero || pointer) abort();
                 return 0;
             }
             int main(void) {
                 pthread_t a, b;
                 pthread_create(&a, 0, worker, (void *)11);
                 pthread_create(&b, 0, worker, (void *)12);
                 worker((void *)13);
                 pthread_join(a, 0);
                 pthread_join(b, 0);
                 return 0;
             }",
        );
    });
}

/// Uninitialised variables on the stack hold the same garbage in every execution.
#[test]
fn stacks_start_out_clean() {
    isolated("stacks_start_out_clean", || {
        let source = "
            #include <stdatomic.h>
            #include <string.h>
            atomic_long x;
            __attribute__((noinline)) long garbage(void) {
                volatile long a[400];
                long sum = 0;
                for (int i = 0; i < 400; i++) { sum += a[i]; a[i] = 7; }
                return sum;
            }
            int main(void) { atomic_store(&x, garbage()); return 0; }";
        for build in Build::installed(&[GCC, CLANG]) {
            let program = Program::build(build, source);
            let mut machine = program.load(Settings::default());
            let mut stored = std::collections::BTreeSet::new();
            for _ in 0..3 {
                let driver = Driver::first(&mut machine);
                stored.insert(format!("{:?}", driver.steps.last()));
            }
            assert_eq!(stored.len(), 1, "{stored:?}");
        }
    });
}

#[test]
fn threads_of_threads_keep_their_numbers() {
    isolated("threads_of_threads_keep_their_numbers", || {
        let source = "
            #include <pthread.h>
            #include <stdatomic.h>
            atomic_int x;
            static void *leaf(void *p) { atomic_fetch_add(&x, (int)(long)p); return 0; }
            static void *inner(void *p) {
                pthread_t a;
                pthread_create(&a, 0, leaf, p);
                pthread_join(a, 0);
                return 0;
            }
            int main(void) {
                pthread_t a, b;
                pthread_create(&a, 0, inner, (void *)10);
                pthread_create(&b, 0, inner, (void *)20);
                pthread_join(a, 0);
                pthread_join(b, 0);
                return 0;
            }";
        let program = Program::build(GCC, source);
        let mut machine = program.load(Settings::default());
        let mut operands = std::collections::BTreeSet::new();
        every_interleaving(&mut machine, |machine, driver| {
            assert_eq!(end(machine), End::Complete);
            for (thread, op, _) in &driver.steps {
                if let selvedge_core::Op::Update { function, .. } = op {
                    operands.insert((*thread, format!("{function:?}").contains("Add(10)")));
                }
            }
        });
        assert_eq!(operands.len(), 2, "{operands:?}");
    });
}

#[test]
fn the_number_of_threads_has_a_limit() {
    isolated("the_number_of_threads_has_a_limit", || {
        let source = "
            #include <pthread.h>
            static void *worker(void *p) { return 0; }
            int main(void) {
                for (int i = 0; i < 10000; i++) {
                    pthread_t a;
                    pthread_create(&a, 0, worker, 0);
                }
                return 0;
            }";
        let settings = Settings {
            max_threads: 50,
            ..Settings::default()
        };
        let refusal = crate::common::ends::refusal(GCC, source, settings);
        assert_eq!(
            refusal,
            "more than 50 threads (--max-threads raises the limit)"
        );
    });
}

/// Leftovers of older executions are forgotten when their numbers are used again.
#[test]
fn the_numbers_of_executions_may_run_out() {
    isolated("the_numbers_of_executions_may_run_out", || {
        let source = "
            #include <pthread.h>
            #include <stdatomic.h>
            #include <stdlib.h>
            atomic_int x;
            int y, *z;
            pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            static void *worker(void *p) {
                pthread_mutex_lock(&m);
                y++;
                pthread_mutex_unlock(&m);
                atomic_fetch_add(&x, 1);
                return 0;
            }
            int main(void) {
                pthread_t a;
                z = malloc(4);
                *z = 7;
                pthread_create(&a, 0, worker, 0);
                worker(0);
                pthread_join(a, 0);
                if (x != 2 || y != 2 || *z != 7) abort();
                free(z);
                return 0;
            }";
        let program = Program::build(GCC, source);
        let mut machine = program.load(Settings::default());
        let mut expected = None;
        for number in [u32::MAX - 2, u32::MAX - 1, u32::MAX] {
            machine.set_execution(number);
            for _ in 0..4 {
                let count = every_interleaving(&mut machine, |machine, _| {
                    assert_eq!(end(machine), End::Complete, "{:?}", machine.failure());
                });
                assert_eq!(*expected.get_or_insert(count), count);
            }
        }
    });
}

#[test]
fn a_program_that_is_loaded_again_starts_afresh() {
    isolated("a_program_that_is_loaded_again_starts_afresh", || {
        let source = "#include <stdlib.h>
            int x = 1, large[9999];
            int main(void) { if (x++ != 1 || large[5000]++) abort(); return 0; }";
        let program = Program::build(GCC, source);
        for _ in 0..3 {
            let mut machine = program.load(Settings::default());
            Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Complete, "{:?}", machine.failure());
        }
    });
}

#[test]
fn one_program_at_a_time() {
    isolated("one_program_at_a_time", || {
        let program = Program::build(GCC, "int x; int main(void) { return x; }");
        let machine = program.load(Settings::default());
        let second = NativeMachine::load(&program.library(), Settings::default());
        assert!(matches!(second, Err(LoadError::Busy)));
        drop(machine);
        let machine = program.load(Settings::default());
        assert!(matches!(
            machine.pending(ThreadId::MAIN),
            Pending::Stopped(_) | Pending::Op(_)
        ));
    });
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    isolated("what_cannot_be_loaded_is_refused", || {
        let load = |path: &std::path::Path| {
            let error = NativeMachine::load(path, Settings::default()).err();
            error.expect("an error").to_string()
        };
        let program = Program::build(GCC, "int not_main(void) { return 0; }");
        assert_eq!(
            load(&program.library()),
            "the program has no function `main`"
        );
        assert!(load(&program.path().join("nothing.so")).starts_with("cannot load the program"));
        std::fs::write(program.path().join("text.so"), "hello").expect("written");
        assert!(load(&program.path().join("text.so")).starts_with("not a program"));
    });
}

/// Why a program whose constructor does `body` cannot be loaded.
fn constructor_error(body: &str) -> String {
    let source = format!(
        "#include <stdlib.h>
         #include <pthread.h>
         static void *worker(void *p) {{ return p; }}
         __attribute__((constructor)) static void early(void) {{ {body}; }}
         int main(void) {{ worker(0); return 0; }}"
    );
    let program = Program::build(GCC, &source);
    let error = NativeMachine::load(&program.library(), Settings::default()).err();
    error.expect("an error").to_string()
}

#[test]
fn a_constructor_that_aborts_is_reported() {
    isolated("a_constructor_that_aborts_is_reported", || {
        let error = constructor_error("abort()");
        crate::common::leave_if_equal(
            &error,
            "the program fails before `main`: abort() was called",
        );
    });
}

#[test]
fn a_constructor_that_crashes_is_reported() {
    isolated("a_constructor_that_crashes_is_reported", || {
        let error = constructor_error("*(volatile int *)8 = 1");
        let expected = "the program fails before `main`: write to address 0x8, a null pointer";
        crate::common::leave_if_equal(&error, expected);
    });
}

#[test]
fn a_constructor_that_starts_threads_is_refused() {
    isolated("a_constructor_that_starts_threads_is_refused", || {
        let error = constructor_error("pthread_t a; pthread_create(&a, 0, worker, 0)");
        let expected = "not supported before `main`: a thread that is created in a constructor";
        crate::common::leave_if_equal(&error, expected);
    });
}

#[test]
fn call_stacks_are_known() {
    isolated("call_stacks_are_known", || {
        let source = "
            #include <stdatomic.h>
            #include <setjmp.h>
            atomic_int x;
            jmp_buf away;
            void jump(int depth) { if (depth) jump(depth - 1); else longjmp(away, 1); }
            void inner(void) { atomic_store(&x, 1); }
            void middle(void) { inner(); }
            int main(void) {
                if (!setjmp(away)) jump(5);
                middle();
                return 0;
            }";
        for build in Build::installed(&[GCC, CLANG]) {
            let program = Program::build(build, source);
            let machine = program.load(Settings::default());
            let trace = machine.backtrace(ThreadId::MAIN);
            let base = machine.load_base();
            let addresses: Vec<_> = trace
                .iter()
                .map(|at| format!("{:#x}", at - base - 1))
                .collect();
            let output = std::process::Command::new("addr2line")
                .args(["-f", "-e"])
                .arg(program.library())
                .args(&addresses)
                .output()
                .expect("addr2line runs");
            let text = String::from_utf8_lossy(&output.stdout);
            let functions: Vec<_> = text.lines().step_by(2).collect();
            assert_eq!(functions, ["inner", "middle", "main"]);
        }
    });
}
