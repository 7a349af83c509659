//! Output, time, random numbers, the process, exits, assertions and refusals.

use selvedge_core::FailureKind::{Abort, Assertion, Signal, WildAccess};
use selvedge_runtime::Settings;

use crate::common::programs::{alone, program, two_threads};
use crate::common::search::{check, check_all, check_with};
use crate::common::{full_name, isolated};

#[test]
fn output_returns_what_it_should() {
    isolated("output_returns_what_it_should", || {
        check_all(
            &alone(
                r#"assert(printf("%d %s\n", 5, "x") == 4 && puts("hello") >= 0);
                 assert(putchar('a') == 'a' && fputc('b', stderr) == 'b' && fputs("c", stdout) >= 0);
                 assert(fprintf(stderr, "%5d", 1) == 5 && fwrite("abc", 1, 3, stdout) == 3);
                 assert(write(1, "xyz", 3) == 3 && dprintf(2, "%c", 'q') == 1);
                 assert(fflush(stdout) == 0 && fflush(0) == 0 && fileno(stderr) == 2);
                 errno = ENOENT; perror("gone"); setvbuf(stdout, 0, _IONBF, 0);"#,
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn output_is_muted_unless_shown() {
    // Not isolated: the output of the process is what the test looks at.
    use std::process::Command;
    const VARIABLE: &str = "SELVEDGE_SHOW_OUTPUT";
    let test = "output_is_muted_unless_shown";
    let source = alone(
        r#"printf("%s-%d\n", "printed", 1); puts("put"); fputs("error\n", stderr);
           fwrite("written\n", 1, 8, stdout); errno = ENOENT; perror("gone");"#,
    );
    match std::env::var(VARIABLE) {
        Ok(shown) => {
            let show_output = shown == "yes";
            check_with(
                Settings {
                    show_output,
                    ..Settings::default()
                },
                &source,
            )
            .is_fine();
        }
        Err(_) => {
            for shown in ["yes", "no"] {
                let output = Command::new(std::env::current_exe().expect("the test binary"))
                    .args([&full_name(test), "--exact", "--nocapture"])
                    .env(VARIABLE, shown)
                    .output()
                    .expect("the test binary runs");
                assert!(output.status.success(), "{output:?}");
                let (out, err) = (&output.stdout, &output.stderr);
                let out = String::from_utf8_lossy(out);
                let err = String::from_utf8_lossy(err);
                let all = out.contains("printed-1\nput\nwritten\n")
                    && err.contains("error\ngone: No such file or directory\n");
                let some = ["printed", "put\n", "written", "error\n", "gone"]
                    .iter()
                    .any(|word| out.contains(word) || err.contains(word));
                assert_eq!((all, some), (shown == "yes", shown == "yes"), "{out}{err}");
            }
        }
    }
}

#[test]
fn time_is_virtual() {
    isolated("time_is_virtual", || {
        check_all(
            &program(
                "#include <sys/time.h>",
                "struct timespec a, b; struct timeval v;
                 clock_gettime(CLOCK_MONOTONIC, &a); sleep(3600); clock_gettime(CLOCK_MONOTONIC, &b);
                 assert(b.tv_sec - a.tv_sec == 3600 && b.tv_nsec > a.tv_nsec);
                 time_t t = time(0), u; usleep(2000000); assert(time(&u) == t + 2 && u == t + 2);
                 gettimeofday(&v, 0); assert(v.tv_sec == u && clock() > 0);
                 struct timespec d = {1, 500}, bad = {0, 1000000000};
                 assert(nanosleep(&d, 0) == 0 && time(0) == t + 3);
                 errno = 0; assert(nanosleep(&bad, 0) == -1 && errno == EINVAL);
                 a.tv_sec += 10000; assert(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &a, 0));
                 clock_gettime(CLOCK_MONOTONIC, &b); assert(b.tv_sec == a.tv_sec);",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn the_system_gives_fixed_answers() {
    isolated("the_system_gives_fixed_answers", || {
        check_all(
            &program(
                "#include <dlfcn.h>\n#include <sched.h>\n#include <sys/auxv.h>",
                r#"assert(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_HWCAP2) == 0);
                   errno = 0; assert(getauxval(12345) == 0 && errno == ENOENT);
                   assert(sysconf(_SC_PAGESIZE) == 4096 && sysconf(_SC_IOV_MAX) == 1024);
                   errno = 0; assert(sysconf(-1) == -1 && errno == EINVAL);
                   struct sched_param p = {5};
                   assert(sched_getscheduler(0) == SCHED_OTHER && !sched_setscheduler(0, 0, &p));
                   assert(!sched_getparam(0, &p) && p.sched_priority == 0);
                   struct timespec t; assert(!sched_rr_get_interval(0, &t) && t.tv_nsec > 0);
                   void *(*allocate)(size_t) = dlsym(RTLD_DEFAULT, "malloc");
                   char *block = allocate(3); block[2] = 1; free(block);
                   assert(dlsym(RTLD_DEFAULT, "no_such_function") == 0);"#,
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn answers_that_are_not_modelled_are_refused() {
    isolated("answers_that_are_not_modelled_are_refused", || {
        let includes = "#include <dlfcn.h>\n#include <sys/auxv.h>";
        for (body, text) in [
            ("return !dlsym(RTLD_NEXT, \"malloc\");", "RTLD_DEFAULT"),
            (
                "return !dlsym(RTLD_DEFAULT, \"getaddrinfo_a\");",
                "getaddrinfo_a",
            ),
            ("return getauxval(AT_RANDOM) == 0;", "getauxval(25)"),
            ("return sysconf(_SC_XOPEN_VERSION) == 0;", "sysconf(89)"),
        ] {
            check(&program(includes, body)).is_refused(text);
        }
    });
}

#[test]
fn random_numbers_repeat_per_thread() {
    isolated("random_numbers_repeat_per_thread", || {
        check_all(
            &two_threads(
                "int numbers[3];",
                "numbers[me] = rand(); srand(7); int x = rand(); srand(7); assert(x == rand());
                 unsigned seed = 3, again = 3; assert(rand_r(&seed) == rand_r(&again));
                 assert(random() >= 0 && drand48() < 1.0 && lrand48() >= 0);",
                "",
                "assert(numbers[1] == numbers[2] && numbers[1] >= 0);",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn atomic_floating_point_numbers_are_updated() {
    isolated("atomic_floating_point_numbers_are_updated", || {
        check_all(
            &two_threads("_Atomic double sum;", "sum += me;", "", "assert(sum == 3);"),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn the_process_is_always_the_same() {
    isolated("the_process_is_always_the_same", || {
        check(&alone(
            "assert(getpid() > 1 && gettid() == getpid() && getenv(\"PATH\") == 0);
             assert(sysconf(_SC_NPROCESSORS_ONLN) == sysconf(_SC_NPROCESSORS_CONF));
             assert(sysconf(_SC_PAGESIZE) == 4096); sched_yield();",
        ))
        .is_fine_in(1);
    });
}

#[test]
fn assertions_and_aborts_are_bugs() {
    isolated("assertions_and_aborts_are_bugs", || {
        check_all(&alone("int x = 1; assert(x == 2);"), |checked| {
            checked.has_bug(Assertion, "x == 2");
        });
        check(&program("void reach_error(void);", "reach_error();"))
            .has_bug(Assertion, "reach_error");
        check(&program(
            "void __VERIFIER_error(void);",
            "__VERIFIER_error();",
        ))
        .has_bug(Assertion, "__VERIFIER_error");
        check(&program(
            "void reach_error(void) { assert(0); }",
            "reach_error();",
        ))
        .has_bug(Assertion, "0");
        check(&alone("abort();")).has_bug(Abort, "abort");
        check(&program("#include <signal.h>", "raise(SIGSEGV);")).has_bug(Signal, "SIGSEGV");
        check(&program("#include <signal.h>", "kill(getpid(), SIGKILL);"))
            .has_bug(Signal, "SIGKILL");
        check(&program("#include <signal.h>", "raise(0); raise(SIGCHLD);")).is_fine();
        let smash = "static void smash(char *p) { for (int i = 0; i < 64; i++) p[i] = 1; }
                     static int victim(void) { char p[8]; smash(p); return p[0]; }";
        use crate::common::search::Checked;
        use crate::common::{GCC, Program};
        let program = Program::build_from(
            GCC,
            "program.c",
            &program(smash, "return victim();"),
            &["-fstack-protector-all"],
        );
        Checked::search(&mut program.load(Settings::default()))
            .has_bug(WildAccess, "overwrote its own stack");
    });
}

#[test]
fn choices_and_assumptions_are_explored() {
    isolated("choices_and_assumptions_are_explored", || {
        let header = "#include \"selvedge.h\"";
        check_all(&program(header, "selvedge_choose(5);"), |checked| {
            checked.is_fine_in(5)
        });
        check(&program(
            header,
            "int x = selvedge_range(-2, 2); assert(x >= -2 && x <= 2);",
        ))
        .is_fine_in(5);
        check(&program(header, "assert(selvedge_range(-2, 2) != -1);")).has_bug(Assertion, "");
        let checked = check(&program(
            header,
            "selvedge_assume(selvedge_choose(4) == 1);",
        ));
        checked.is_fine_in(1);
        assert_eq!(checked.blocked, 3);
        check(&program(header, "selvedge_assert(selvedge_choose(2) < 1);"))
            .has_bug(Assertion, "selvedge_choose(2) < 1");
        check(&program(
            "_Bool __VERIFIER_nondet_bool(void); void __VERIFIER_assume(int);",
            "int a = __VERIFIER_nondet_bool(), b = __VERIFIER_nondet_bool();
             __VERIFIER_assume(a || b);",
        ))
        .is_fine_in(3);
    });
}

#[test]
fn exit_ends_the_process_and_runs_handlers() {
    isolated("exit_ends_the_process_and_runs_handlers", || {
        let handlers = "static int order[3], n;
            static void one(void) { order[n++] = 1; assert(n == 2 && order[0] == 2); }
            static void two(void) { order[n++] = 2; assert(n == 1); }";
        for end in ["return 0;", "exit(3);", "pthread_exit(0);"] {
            check_all(
                &program(handlers, &format!("atexit(one); atexit(two); {end}")),
                |checked| checked.is_fine_in(1),
            );
        }
        let failing = "static void handler(void) { assert(0); }";
        check(&program(failing, "atexit(handler);")).has_bug(Assertion, "");
        check(&program(failing, "atexit(handler); exit(0);")).has_bug(Assertion, "");
        check(&program(failing, "atexit(handler); _exit(0);")).is_fine_in(1);
        check(&program(failing, "atexit(handler); quick_exit(0);")).is_fine_in(1);
        check(&program(failing, "at_quick_exit(handler); quick_exit(0);")).has_bug(Assertion, "");
        // The thread that ends the process runs the handlers, once, whatever the others do.
        let once =
            "static atomic_int runs; static void handler(void) { runs++; assert(runs == 1); }";
        check(&two_threads(once, "exit(me);", "atexit(handler);", "")).is_fine();
        check(&two_threads(
            once,
            "if (me == 1) exit(me);",
            "atexit(handler);",
            "",
        ))
        .is_fine();
        // No thread gets past a join of the thread that ended it, and that is no deadlock.
        check(&two_threads("", "if (me == 1) exit(3);", "", "abort();")).is_fine_in(1);
        // Handlers see what the other threads have done.
        check(&two_threads(
            "static void last(void) { assert(shared == 1); }",
            "if (me == 1) shared = 1;",
            "atexit(last);",
            "",
        ))
        .is_fine_in(1);
    });
}

#[test]
fn constructors_and_destructors_are_part_of_the_program() {
    isolated(
        "constructors_and_destructors_are_part_of_the_program",
        || {
            let globals = "
            __attribute__((constructor)) static void first(void) { shared = 1; }
            __attribute__((destructor)) static void last(void) { assert(shared == 3); shared = 4; }
            __attribute__((destructor(200))) static void very_last(void) { assert(shared == EXPECTED); }
            static void handler(void) { assert(shared == 2); shared = 3; }";
            let body = "assert(shared == 1); shared = 2; atexit(handler);";
            let with = |expected: &str| {
                let define = format!("#define EXPECTED {expected}\n{globals}");
                program(&define, body)
            };
            check_all(&with("4"), |checked| checked.is_fine_in(1));
            check(&with("5")).has_bug(Assertion, "shared == EXPECTED");
        },
    );
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    isolated("what_is_not_modelled_is_refused_by_name", || {
        for (body, name) in [
            ("fork();", "fork: starts another process"),
            (
                "execl(\"/bin/true\", \"true\", (char *)0);",
                "execl: starts another process",
            ),
            ("return system(\"true\");", "system: starts another process"),
            ("return getchar();", "getchar: reads input"),
            ("int x; return scanf(\"%d\", &x);", "scanf: reads input"),
            ("char b[4]; return read(0, b, 4) == 0;", "read: reads input"),
            ("return fopen(\"x\", \"r\") != 0;", "fopen: uses files"),
            ("return socket(1, 1, 0);", "socket: uses the network"),
            ("signal(SIGINT, SIG_IGN);", "signal: handles signals"),
            ("mmap(0, 4096, 3, 0x22, -1, 0);", "mmap: maps memory"),
            ("return dlopen(\"x\", 1) != 0;", "dlopen: loads code"),
            ("swapcontext(0, 0);", "swapcontext: switches stacks"),
            ("return syscall(57);", "raw system call number 57"),
            ("return __VERIFIER_nondet_int();", "selvedge_range"),
            (
                "__VERIFIER_atomic_begin();",
                "__VERIFIER_atomic_begin: atomic sections",
            ),
        ] {
            let headers = "#include <dlfcn.h>\n#include <signal.h>\n#include <sys/mman.h>\n
                #include <sys/socket.h>\n#include <ucontext.h>\n
                int __VERIFIER_nondet_int(void); void __VERIFIER_atomic_begin(void);";
            check(&program(headers, body)).is_refused(name);
        }
    });
}

#[test]
fn jumps_stay_on_their_stack() {
    isolated("jumps_stay_on_their_stack", || {
        let globals = "#include <setjmp.h>\n
            static jmp_buf back;
            static void deep(int depth) { if (depth) deep(depth - 1); else longjmp(back, 5); }";
        check_all(
            &program(
                globals,
                "volatile int x = 1; int r = setjmp(back);
                 if (r == 0) { x = 2; deep(4); } assert(r == 5 && x == 2);",
            ),
            |checked| checked.is_fine_in(1),
        );
        check(&program(
            &format!("{globals} static void *worker(void *p) {{ longjmp(back, 1); return p; }}"),
            "pthread_t a; if (setjmp(back) == 0) {
                 pthread_create(&a, 0, worker, 0); pthread_join(a, 0); }",
        ))
        .has_bug(WildAccess, "longjmp");
    });
}
