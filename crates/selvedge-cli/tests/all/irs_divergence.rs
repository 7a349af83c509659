//! Executions that were never proven are noticed before they fail.
//!
//! `SELVEDGE_RUNS=10000` runs each program this often, instead of a hundred times.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::Sandbox;

/// The beginning of every program. `count()` is the input from outside; it is 2 in the proof.
const BEGINNING: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
    #include <fcntl.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/sysinfo.h>\n\
    #include <time.h>\n#include <unistd.h>\n\
    static int count(int argc, char **argv);\n\
    static atomic_int x, y; static int n; static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n";

/// The last digit of the name that the program was started by. Nothing else of what the environment says
/// reaches a program unnoticed.
const NAME: &str = "static int count(int argc, char **argv) {\n\
      int last = argv[0][strlen(argv[0]) - 1] - '0'; (void)argc;\n\
      return last >= 0 && last <= 9 ? last : 2;\n\
    }\n";

/// Two threads that add to a variable, which loses updates under schedules that are not proven.
const LOOP: &str = "static void *add(void *p) {\n\
      for (int i = 0; i < n; i++) { int v = x; x = v + 1; }\n\
      return p;\n\
    }\n\
    int main(int argc, char **argv) {\n\
      n = count(argc, argv); pthread_t a, b;\n\
      pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
      pthread_join(a, 0); pthread_join(b, 0);\n\
      assert(x == 2 * n); return 0;\n\
    }\n";

/// The results of the runs of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Runs {
    well: u32,
    noticed: u32,
    /// Failed without a word.
    failed: u32,
}

fn runs() -> u32 {
    let asked = std::env::var("SELVEDGE_RUNS");
    asked.map_or(100, |runs| runs.parse().expect("a number"))
}

/// Proves and builds a program.
fn build(text: &str, options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with("prog.c", text);
    let mut verify = vec!["irs", "verify", "prog.c", "-o", "prog.irs"];
    verify.extend(options);
    let verified = sandbox.run(&verify);
    assert!(sandbox.path("prog.irs").exists(), "{}", verified.stderr);
    let mut build = vec!["irs", "build", "prog.c", "-o", "prog"];
    let flags = options.iter().position(|&option| option == "--");
    build.extend(flags.map_or(&[][..], |at| &options[at..]));
    sandbox.run(&build).ends_with(0);
    sandbox
}

/// Runs a program again and again; `prepare` gives it an input.
fn repeat(sandbox: &Sandbox, prepare: impl Fn(u32, &mut Command)) -> Runs {
    let mut result = Runs::default();
    for number in 0..runs() {
        let mut command = Command::new(sandbox.path("prog"));
        prepare(number, &mut command);
        let command = command.env("SELVEDGE_IRS", sandbox.path("prog.irs"));
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        let words = String::from_utf8_lossy(&output.stderr);
        let noticed = words.starts_with("selvedge: ") && words.contains("; it is stopped");
        let failed = !output.status.success() && !noticed || words.contains("Assertion");
        result.failed += u32::from(failed);
        result.noticed += u32::from(noticed && !failed);
        result.well += u32::from(output.status.success());
    }
    println!("{result:?}");
    result
}

/// Proves a program that gets its input from its name, and runs it by names with these digits, in turns.
fn by_name(text: &str, options: &[&str], digits: &[u32]) -> Runs {
    let sandbox = build(text, options);
    for digit in digits {
        symlink("prog", sandbox.path(&format!("prog{digit}"))).expect("a link");
    }
    repeat(&sandbox, |number, command| {
        let digit = digits[number as usize % digits.len()];
        *command = Command::new(sandbox.path(&format!("prog{digit}")));
    })
}

fn all_noticed() -> Runs {
    Runs {
        noticed: runs(),
        ..Runs::default()
    }
}

fn all_well() -> Runs {
    Runs {
        well: runs(),
        ..Runs::default()
    }
}

#[test]
fn what_was_proven_is_not_taken_for_something_else() {
    let text = [BEGINNING, NAME, LOOP].concat();
    assert_eq!(by_name(&text, &[], &[2]), all_well());
    assert_eq!(by_name(&text, &["--plain", "sc"], &[2]), all_well());
}

#[test]
fn more_iterations_and_fewer_are_noticed() {
    let text = [BEGINNING, NAME, LOOP].concat();
    let others = [0, 1, 3, 4, 9];
    assert_eq!(by_name(&text, &[], &others), all_noticed());
    // Also where not everything is proven.
    let limited = ["--max-executions", "1"];
    assert_eq!(by_name(&text, &limited, &others), all_noticed());
}

#[test]
fn more_iterations_over_plain_variables_are_noticed() {
    let text = [BEGINNING, NAME, LOOP].concat();
    let text = text.replace("static atomic_int x", "static int x");
    let others = [0, 1, 3, 4, 9];
    assert_eq!(by_name(&text, &["--plain", "sc"], &others), all_noticed());
}

#[test]
fn another_branch_is_noticed() {
    // With another count than 2, the update is not made while the lock is held.
    let branch = LOOP.replace(
        "int v = x; x = v + 1;",
        "if (n == 2) pthread_mutex_lock(&lock); else y = 1;\n\
         int v = x; x = v + 1;\n\
         if (n == 2) pthread_mutex_unlock(&lock); else y = 1;",
    );
    let text = [BEGINNING, NAME, &branch].concat();
    assert_eq!(by_name(&text, &[], &[0, 1, 3, 4, 9]), all_noticed());
}

/// A branch that only leaves something out: both places are known.
#[test]
fn events_in_another_order_are_noticed() {
    let order = LOOP.replace(
        "int v = x; x = v + 1;",
        "for (int j = 0; j < 2; j++) {\n\
           if ((j + n) % 2) { int v = x; x = v + 1; } else { y = 1; }\n\
         }",
    );
    let order = order.replace("i < n", "i < 2").replace("2 * n", "4");
    let text = [BEGINNING, NAME, &order].concat();
    assert_eq!(by_name(&text, &[], &[1, 3, 5]), all_noticed());
}

#[test]
fn more_threads_and_fewer_are_noticed() {
    let threads = "static void *add(void *p) { int v = x; x = v + 1; return p; }\n\
        int main(int argc, char **argv) {\n\
          n = count(argc, argv); pthread_t t[10];\n\
          for (int i = 0; i < n; i++) pthread_create(&t[i], 0, add, 0);\n\
          for (int i = 0; i < n; i++) pthread_join(t[i], 0);\n\
          assert(x == n); return 0;\n\
        }\n";
    let text = [BEGINNING, NAME, threads].concat();
    assert_eq!(by_name(&text, &[], &[0, 1, 3, 4, 9]), all_noticed());
}

/// The events are the same, and only the values differ: it is noticed where the assertion fails.
#[test]
fn other_values_are_noticed_when_they_fail() {
    let values = LOOP.replace("i < n", "i < 2");
    let values = values.replace("assert(x == 2 * n)", "assert(x + n == 6)");
    let text = [BEGINNING, NAME, &values].concat();
    assert_eq!(by_name(&text, &[], &[0, 1, 3]), all_noticed());
    assert_eq!(by_name(&text, &[], &[2]), all_well());
}

/// How often a thread spins differs from run to run, and is no divergence.
#[test]
fn spinning_is_not_taken_for_more_iterations() {
    let spin = "static void *waits(void *p) {\n\
          while (!x) { if (y == 7) return p; }\n\
          while (atomic_exchange(&n2, 1)) ;\n\
          n2 = 0; y++; return p;\n\
        }\n\
        int main(int argc, char **argv) {\n\
          pthread_t a, b; n = count(argc, argv);\n\
          pthread_create(&a, 0, waits, 0); pthread_create(&b, 0, waits, 0);\n\
          for (volatile int i = 0; i < 3000; i++) ;\n\
          x = 1; pthread_join(a, 0); pthread_join(b, 0); assert(y == 2); return 0;\n\
        }\n";
    let spin = format!("static atomic_int n2;\n{spin}").replace("volatile int i", "int i");
    let text = [BEGINNING, NAME, &spin].concat();
    assert_eq!(by_name(&text, &[], &[2]), all_well());
}

/// With `--on-divergence serial` threads run one after the other, so that updates are not lost.
#[test]
fn a_program_that_is_not_stopped_runs_one_thread_at_a_time() {
    let argument =
        "static int count(int argc, char **argv) { return argc > 1 ? atoi(argv[1]) : 2; }\n";
    let slow = LOOP.replace("int v = x;", "int v = x; usleep(100);");
    // The last round needs the other thread, which is behind: it gets a turn.
    let waits = slow.replace("return p;", "if (n > 2) { y++; while (y < 2) ; } return p;");
    for body in [slow, waits] {
        let sandbox = build(&[BEGINNING, argument, &body].concat(), &[]);
        let serial = [
            "irs",
            "build",
            "prog.c",
            "-o",
            "prog",
            "--on-divergence",
            "serial",
        ];
        sandbox.run(&serial).ends_with(0);
        for _ in 0..20 {
            let output = Command::new(sandbox.path("prog"))
                .arg("3")
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{words}");
            assert!(
                words.contains("it runs on with one thread at a time"),
                "{words}"
            );
        }
    }
    // Also when it is noticed in the middle, but then another thread may be in the middle of something as well.
    let sandbox = build(&[BEGINNING, NAME, LOOP].concat(), &[]);
    let serial = [
        "irs",
        "build",
        "prog.c",
        "-o",
        "prog",
        "--on-divergence",
        "serial",
    ];
    sandbox.run(&serial).ends_with(0);
    symlink("prog", sandbox.path("prog5")).expect("a link");
    for _ in 0..20 {
        let output = Command::new(sandbox.path("prog5")).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            words.contains("it runs on with one thread at a time"),
            "{words}"
        );
    }
}

/// A program that goes on after it was noticed has the order of threads that the proven schedule has.
#[test]
fn a_program_that_is_not_stopped_keeps_the_order_of_the_proven_schedule() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdio.h>\n\
        static atomic_int turn; static int order[3];\n\
        static void *take(void *p) {\n\
          for (int i = 0; i < 3; i++) { int t = turn; if (i == 0) order[t] = (int)(long)p; turn = t + 1; }\n\
          return p;\n\
        }\n\
        int main(int argc, char **argv) {\n\
          pthread_t t[3]; (void)argc; (void)argv;\n\
          for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, take, (void *)(i + 1));\n\
          for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n\
          printf(\"%d%d%d\\n\", order[0], order[1], order[2]); return 0;\n\
        }\n";
    let text = text
        .replace("order[3]", "order[16]")
        .replace("order[1], order[2]", "order[3], order[6]");
    for (order, expected) in [("ascending", "123\n"), ("descending", "321\n")] {
        let options = ["--order", order, "--max-executions", "1"];
        let sandbox = build(&text, &options);
        let serial = ["irs", "build", "prog.c", "-o", "prog"];
        let serial = [&serial[..], &["--on-divergence", "serial"]].concat();
        sandbox.run(&serial).ends_with(0);
        for argument in [&[][..], &["other"]] {
            for _ in 0..10 {
                let mut command = Command::new(sandbox.path("prog"));
                let output = command.args(argument).output().unwrap();
                let words = String::from_utf8_lossy(&output.stderr);
                let noticed = words.contains("it runs on with one thread at a time");
                assert_eq!(noticed, !argument.is_empty(), "{words}");
                assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{order}");
            }
        }
    }
}

/// The inputs of a program, with their expressions in C and the way they are given to a run. The proof has 2.
#[test]
fn arguments_are_noticed() {
    let argument =
        "static int count(int argc, char **argv) { return argc > 1 ? atoi(argv[1]) : 2; }\n";
    let branch = LOOP.replace("i < n", "i < 2 && (n == 2 || i == 0)");
    for body in [LOOP, &branch] {
        let sandbox = build(&[BEGINNING, argument, body].concat(), &[]);
        let given = repeat(&sandbox, |number, command| {
            command.arg((3 + number % 7).to_string());
        });
        assert_eq!(given, all_noticed());
    }
}

#[test]
fn the_environment_is_noticed() {
    let variable = "static int count(int argc, char **argv) {\n\
          (void)argc; (void)argv; const char *count = getenv(\"COUNT\"); return count ? atoi(count) : 2;\n\
        }\n";
    let sandbox = build(&[BEGINNING, variable, LOOP].concat(), &[]);
    let given = repeat(&sandbox, |number, command| {
        command.env("COUNT", (3 + number % 7).to_string());
    });
    assert_eq!(given, all_noticed());
    assert_eq!(repeat(&sandbox, |_, _| {}), all_well());
}

/// The verifier has one locale. Another one that the environment asks for is noticed, one that the program names is
/// not there, as in the proof.
#[test]
fn locales_are_noticed() {
    let count = |locale: &str| {
        format!(
            "#include <locale.h>\n\
             static int count(int argc, char **argv) {{\n\
               (void)argc; (void)argv; {locale}\n\
             }}\n"
        )
    };
    let from_environment =
        "char *l = setlocale(LC_ALL, \"\"); return l && !strcmp(l, \"C\") ? 2 : 3;";
    let object = "return newlocale(LC_ALL_MASK, \"\", 0) ? 2 : 3;";
    for locale in [from_environment, object] {
        let sandbox = build(
            &[BEGINNING, &count(locale), LOOP].concat(),
            &["--", "-D_GNU_SOURCE"],
        );
        for variable in ["LC_ALL", "LC_CTYPE", "LANG"] {
            let given = repeat(&sandbox, |_, command| {
                command.env_remove("LC_ALL").env(variable, "C.UTF-8");
            });
            assert_eq!(given, all_noticed(), "{variable}");
        }
        let given = repeat(&sandbox, |_, command| {
            command.env("LC_ALL", "C").env("LANG", "C.UTF-8");
        });
        assert_eq!(given, all_well());
    }
    let named =
        "return setlocale(LC_ALL, \"C.UTF-8\") || newlocale(LC_ALL_MASK, \"C.UTF-8\", 0) ? 3 : 2;";
    let sandbox = build(
        &[BEGINNING, &count(named), LOOP].concat(),
        &["--", "-D_GNU_SOURCE"],
    );
    assert_eq!(repeat(&sandbox, |_, _| {}), all_well());
}

/// The contents of a file, the time and the number of processors as declared inputs, for which some numbers are proven.
#[test]
fn declared_inputs_are_noticed_where_they_were_not_proven() {
    const PROVEN: u32 = 2;
    let declared = "int selvedge_range(int, int);\n\
        static int count(int argc, char **argv) {\n\
          (void)argc; (void)argv; return selvedge_range(1, 2);\n\
        }\n";
    let sandbox = build(&[BEGINNING, declared, LOOP].concat(), &[]);
    let file = |number: u32| {
        fs::write(sandbox.path("count"), (number % 5).to_string()).expect("a file");
        let text = fs::read_to_string(sandbox.path("count")).expect("the same");
        text.parse::<u32>().expect("a number")
    };
    let time = |_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.expect("it is later").subsec_micros() % 5
    };
    let processors = |number| {
        let all = std::thread::available_parallelism().expect("some").get();
        (number + all as u32) % 5
    };
    for count in [&file as &dyn Fn(u32) -> u32, &time, &processors] {
        let well = Cell::new(0);
        let given = repeat(&sandbox, |number, command| {
            let count = count(number);
            well.set(well.get() + u32::from(count < PROVEN));
            command.env("SELVEDGE_INPUT", count.to_string());
        });
        let expected = Runs {
            well: well.get(),
            noticed: runs() - well.get(),
            failed: 0,
        };
        assert_eq!(given, expected);
    }
}

/// The system puts the stack elsewhere in each run.
#[test]
fn what_depends_on_addresses_is_noticed() {
    let address = "static int count(int argc, char **argv) {\n\
          (void)argv; return ((unsigned long)&argc >> 12) % 3 + 1;\n\
        }\n";
    let sandbox = build(&[BEGINNING, address, LOOP].concat(), &[]);
    let given = repeat(&sandbox, |_, _| {});
    assert_eq!((given.failed, given.well + given.noticed), (0, runs()));
    assert!(given.well > 0 && given.noticed > given.well, "{given:?}");
}

/// Inputs that no run could notice are refused, and no executable is made.
#[test]
fn files_the_time_and_processors_are_refused() {
    let file = "char c = '2'; int f = open(\"count\", O_RDONLY); if (f >= 0) read(f, &c, 1); return c - '0';";
    let time = "return time(0) % 7 + 2;";
    let processors = "return get_nprocs();";
    for (from, what) in [
        (file, "`open`: uses files, which are not modelled"),
        (time, "the program asks for the time"),
        (processors, "the program asks for the number of processors"),
        (
            "return isatty(0) ? 2 : 3;",
            "the program asks for whether a descriptor is a terminal (isatty)",
        ),
        (
            "int sched_getcpu(void); return sched_getcpu() ? 2 : 3;",
            "the program asks for the number of processors (sched_getcpu)",
        ),
        (
            "unsigned long malloc_usable_size(void *); return malloc_usable_size(malloc(10)) > 16;",
            "the program asks for the size that the allocator made of a block (malloc_usable_size)",
        ),
    ] {
        let count = format!(
            "static int count(int argc, char **argv) {{ (void)argc; (void)argv; {from} }}\n"
        );
        let sandbox = Sandbox::with("prog.c", &[BEGINNING, &count, LOOP].concat());
        sandbox
            .run(&["irs", "verify", "prog.c", "-o", "prog.irs"])
            .ends_with(2)
            .says(what);
        assert!(!sandbox.path("prog.irs").exists());
        assert!(fs::metadata(sandbox.path("prog")).is_err());
    }
}
