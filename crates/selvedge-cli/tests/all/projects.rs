//! Programs that a build system builds, their arguments and their environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Outcome, Sandbox};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies the example project to `to`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    copy(&root().join("examples/project"), &sandbox.path("project"));
    sandbox
}

fn run(sandbox: &Sandbox, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    sandbox.run(&words)
}

fn succeeds(sandbox: &Sandbox, line: &str) -> Outcome {
    let outcome = run(sandbox, line);
    assert_eq!(
        outcome.status,
        Some(0),
        "{line}\n{}\n{}",
        outcome.stdout,
        outcome.stderr
    );
    outcome
}

fn tool(sandbox: &Sandbox, line: &str) {
    let mut words = line.split_whitespace();
    let status = Command::new(words.next().unwrap())
        .args(words)
        .current_dir(sandbox.path(""))
        .status();
    assert!(status.unwrap().success(), "{line}");
}

#[test]
fn an_executable_tells_what_it_was_linked_from() {
    for (order, status) in [("release", 0), ("relaxed", 1)] {
        let sandbox = project();
        let flags = format!("-O1 -Iproject/ring -DRING_PUBLISH=memory_order_{order}");
        succeeds(
            &sandbox,
            &format!("cc {flags} -MD -MF ring.d -c project/ring/ring.c -o ring.o"),
        );
        assert!(
            sandbox.path("ring.d").exists(),
            "what the build asks for is written"
        );
        tool(&sandbox, "ar rcs libring.a ring.o");
        succeeds(
            &sandbox,
            "cc -g -Iproject/ring project/tests/test_ring.c libring.a -o test -pthread -Wl,-O1",
        );
        // It is an ordinary executable.
        tool(&sandbox, "./test 2");
        let outcome = run(&sandbox, "verify test -- 2");
        assert_eq!(
            outcome.status,
            Some(status),
            "{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
        assert_eq!(
            outcome.stdout.contains("ring.c:14"),
            status == 1,
            "{}",
            outcome.stdout
        );
    }
}

#[test]
fn sources_may_be_compiled_and_linked_at_once() {
    let sandbox = project();
    sandbox.write("two.cc", "int two() { return 2; }");
    sandbox.write(
        "main.cc",
        "#include <cassert>\nint two();\nint main(int n, char **) { assert(two() == n); }",
    );
    succeeds(&sandbox, "c++ main.cc two.cc -o both");
    succeeds(&sandbox, "verify both -- x");
    assert_eq!(run(&sandbox, "verify both").status, Some(1));
}

#[test]
fn arguments_and_variables_are_given_by_the_user_and_kept_in_traces() {
    let sandbox = Sandbox::with(
        "main.c",
        "#include <assert.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int main(int n, char **words, char **variables) {\n\
           assert(n == 3 && !strcmp(words[1], \"a b\") && !strcmp(words[2], \"c\") && !words[3]);\n\
           assert(!strcmp(getenv(\"NAME\"), \"x=y\") && !getenv(\"NAM\") && !getenv(\"HOME\"));\n\
           assert(!strcmp(variables[0], \"NAME=x=y\") && !variables[1]);\n\
           assert(!getenv(\"FAIL\"));\n\
           return 0;\n\
         }\n",
    );
    let given = ["verify", "main.c", "--args", "'a b' c", "--env", "NAME=x=y"];
    let outcome = sandbox.run(&given);
    assert_eq!(outcome.status, Some(0), "{}", outcome.stdout);
    assert_eq!(run(&sandbox, "verify main.c").status, Some(1));
    let failing = [&given[..], &["--trace-out", "t.json", "--plain", "sc"]].concat();
    sandbox.write(
        "main.c",
        &fs::read_to_string(sandbox.path("main.c"))
            .unwrap()
            .replace("!getenv(\"FAIL\")", "n != 3"),
    );
    assert_eq!(sandbox.run(&failing).status, Some(1));
    let replayed = run(&sandbox, "replay t.json");
    assert!(replayed.stdout.contains("n != 3"), "{}", replayed.stdout);
}

#[test]
fn wrong_arguments_are_refused() {
    let sandbox = Sandbox::with("main.c", "int main(void) { return 0; }");
    for (arguments, message) in [
        (["--args", "'a"], "a quotation mark is not closed"),
        (["--env", "NAME"], "write NAME=VALUE"),
    ] {
        let outcome = sandbox.run(&[&["verify", "main.c"], &arguments[..]].concat());
        assert_eq!(outcome.status, Some(2));
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    let long = "x".repeat(100_000);
    let outcome = sandbox.run(&["verify", "main.c", "--args", &long]);
    assert_eq!(outcome.status, Some(2));
    assert!(
        outcome.stderr.contains("a quarter of the stack"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_build_directory_is_checked_as_it_is() {
    let sandbox = project();
    for (library, include) in [("spin", ""), ("counter", "-Iproject/spin")] {
        let file = format!("project/{library}/{library}.c");
        tool(
            &sandbox,
            &format!("cc -g {include} -c {file} -o {library}.o"),
        );
    }
    let includes = "-Iproject/spin -Iproject/counter";
    let test = "project/tests/test_counter.c";
    tool(
        &sandbox,
        &format!("cc -g {includes} {test} counter.o spin.o -o test_counter -pthread"),
    );
    let directory = sandbox.path("").display().to_string();
    let directory = directory.trim_end_matches('/');
    let entry = |file: &str, output: &str| {
        format!(
            "{{\"directory\": \"{directory}\", \"file\": \"{file}\", \
             \"command\": \"cc -g {includes} -o {output} -c {file}\"}}"
        )
    };
    let entries = [
        entry(test, "CMakeFiles/test_counter.dir/test_counter.c.o"),
        entry(
            "project/counter/counter.c",
            "CMakeFiles/counter.dir/counter.c.o",
        ),
        entry("project/spin/spin.c", "CMakeFiles/spin.dir/spin.c.o"),
        entry("project/ring/ring.c", "CMakeFiles/ring.dir/ring.c.o"),
    ];
    sandbox.write("compile_commands.json", &format!("[{}]", entries.join(",")));
    succeeds(&sandbox, "verify --build-dir . --target test_counter");
    // Without debug information, the libraries' files are not known.
    tool(&sandbox, "strip test_counter");
    let outcome = run(&sandbox, "verify --build-dir . --target test_counter");
    assert_eq!(outcome.status, Some(3), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("counter_add"), "{}", outcome.stdout);
}

#[test]
fn bad_builds_are_told_apart() {
    let sandbox = Sandbox::with("main.c", "int main(void) { return 0; }");
    tool(&sandbox, "cc main.c -o foreign");
    sandbox.write("damaged", "\x7fELF and nothing else");
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::create_dir(sandbox.path("broken")).unwrap();
    sandbox.write("broken/compile_commands.json", "[{\"directory\": ");
    fs::create_dir(sandbox.path("odd")).unwrap();
    sandbox.write(
        "odd/compile_commands.json",
        "[{\"directory\": \"/\", \"file\": \"a.c\", \"output\": \"known.dir/a.o\"}]",
    );
    fs::create_dir(sandbox.path("unbuilt")).unwrap();
    sandbox.write("unbuilt/libcounter.a", "");
    let entry = |file: &str, target: &str, compiler: &str| {
        let directory = sandbox.path("").display().to_string();
        format!(
            "{{\"directory\": \"{directory}\", \"file\": \"{file}\", \"output\": \"{target}.dir/x.o\", \
             \"command\": \"{compiler} -c {file}\"}}"
        )
    };
    let entries = [
        entry("test.c", "test", "ccache cc"),
        entry("counter.c", "counter", "cc"),
        entry("main.c", "other", "armcc"),
    ];
    sandbox.write(
        "unbuilt/compile_commands.json",
        &format!("[{}]", entries.join(",")),
    );
    for (line, message) in [
        ("verify foreign", "was not built with selvedge cc"),
        ("verify foreign", "make CC='selvedge cc'"),
        ("verify nowhere", "build it first, with CC='selvedge cc'"),
        ("verify damaged", "is not an executable of this system"),
        (
            "verify --build-dir empty --target x",
            "CMAKE_EXPORT_COMPILE_COMMANDS",
        ),
        ("verify --build-dir broken --target x", "is damaged"),
        (
            "verify --build-dir broken --target x",
            "write it again: cmake -S . -B DIR",
        ),
        (
            "verify --build-dir odd --target x",
            "the targets there: known\nhelp: name one of them: selvedge verify --build-dir",
        ),
        (
            "verify --build-dir odd --target known",
            "no command that can be read",
        ),
        ("verify --build-dir odd", "--build-dir needs --target NAME"),
        (
            "verify main.c --build-dir odd --target x",
            "cannot be used with",
        ),
    ] {
        let outcome = run(&sandbox, line);
        assert_eq!(outcome.status, Some(2), "{line}");
        assert!(
            outcome.stderr.contains(message),
            "{line}: {}",
            outcome.stderr
        );
    }
}

const LIBRARY: &str = "\
#include <stdatomic.h>
static int data[2];
static const char *const names[] = {\"none\", \"some\"};
atomic_int ready;
int spare;
void put(int value) {
  data[value & 1] = value;
  atomic_store_explicit(&ready, 1, ORDER);
}
int get(int at) {
  if (!atomic_load_explicit(&ready, memory_order_acquire)) return names[0][0];
  return data[at & 1] + names[1][0];
}
__attribute__((no_sanitize(\"thread\"))) void quietly(void) { spare = 1; }
";

const USER: &str = "\
#include <assert.h>
#include <pthread.h>
void put(int), quietly(void);
int get(int);
static void *putting(void *unused) { put(1); return unused; }
int main(int count, char **words) {
  pthread_t other;
  pthread_create(&other, 0, putting, 0);
  int got = get(1);
  assert(got == 'n' || got == 's' + 1 || got == 'r' + 1);
  pthread_join(other, 0);
  if (count > 1 && words) quietly();
}
";

#[test]
fn instrumented_objects_of_other_compilers_are_checked() {
    let sandbox = Sandbox::with("user.c", USER);
    sandbox.write("library.c", LIBRARY);
    let clang = Command::new("clang").arg("--version").output().is_ok();
    let compilers = if clang {
        &["gcc", "clang"][..]
    } else {
        &["gcc"]
    };
    for compiler in compilers {
        for level in ["-O0", "-O1", "-O2"] {
            let level = format!("{level} -fno-omit-frame-pointer -fno-optimize-sibling-calls");
            let instrumented =
                format!("{compiler} {level} -g -fPIC -fsanitize=thread -c library.c");
            tool(
                &sandbox,
                &format!("{instrumented} -DORDER=memory_order_release"),
            );
            let outcome = run(&sandbox, "verify user.c library.o");
            assert_eq!(outcome.status, Some(0), "{level}: {}", outcome.stderr);
            assert!(
                outcome.stdout.contains("(2 executions"),
                "{}",
                outcome.stdout
            );
            // Code that is not instrumented is refused where an execution reaches it.
            let outcome = run(&sandbox, "verify user.c library.o --args x");
            assert_eq!(outcome.status, Some(3), "{level}: {}", outcome.stdout);
            assert!(
                outcome.stdout.contains("`quietly` touches memory"),
                "{}",
                outcome.stdout
            );

            tool(
                &sandbox,
                &format!("{instrumented} -DORDER=memory_order_relaxed"),
            );
            let outcome = run(&sandbox, "verify user.c library.o --no-advice");
            assert_eq!(outcome.status, Some(1), "{level}: {}", outcome.stderr);
            let race = "are not ordered\n  --> library.c:12";
            assert!(outcome.stdout.contains(race), "{}", outcome.stdout);
            assert!(
                outcome
                    .stdout
                    .contains("    get (library.c:12)\n    main (user.c:9)"),
                "{}",
                outcome.stdout
            );
        }
    }
    // The last of them, in an executable.
    tool(&sandbox, "mkdir sub");
    assert_eq!(
        run(&sandbox, "cc -g user.c library.o -o sub/user").status,
        Some(0)
    );
    let outcome = run(&sandbox, "verify sub/user --no-advice");
    assert!(
        outcome.stdout.contains("--> library.c:12"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn archives_of_instrumented_objects_are_checked() {
    let sandbox = Sandbox::with("user.c", USER);
    sandbox.write("library.c", LIBRARY);
    // Nothing needs these members: one could not be linked, one could not be checked.
    sandbox.write("main.c", "int unused; int main(void) { return unused; }");
    sandbox.write("plain.c", "int plain; int plainly(void) { return plain; }");
    tool(&sandbox, "mkdir sub");
    let flags = "-g -fPIC -fsanitize=thread -fno-omit-frame-pointer -fno-optimize-sibling-calls";
    tool(&sandbox, &format!("gcc {flags} -c main.c -o unused.o"));
    tool(&sandbox, "gcc -c plain.c");
    for (kind, order, status) in [("rcs", "release", 0), ("rcsT", "relaxed", 1)] {
        tool(
            &sandbox,
            &format!("gcc {flags} -c library.c -DORDER=memory_order_{order}"),
        );
        tool(&sandbox, "rm -f sub/libqueue.a");
        tool(
            &sandbox,
            &format!("ar {kind} sub/libqueue.a unused.o library.o plain.o"),
        );
        let check = |line: &str| {
            let outcome = run(&sandbox, line);
            assert_eq!(outcome.status, Some(status), "{line}: {outcome:?}");
            let race = outcome.stdout.contains("--> library.c:12");
            assert_eq!(race, status == 1, "{line}: {}", outcome.stdout);
            assert!(!outcome.stderr.contains("left out"), "{}", outcome.stderr);
        };
        check("verify user.c sub/libqueue.a --no-advice");
        succeeds(&sandbox, "cc -g user.c sub/libqueue.a -o named");
        check("verify named --no-advice");
        succeeds(&sandbox, "cc -g user.c -Lsub -lqueue -o found");
        check("verify found --no-advice");
    }
    sandbox.write(
        "asks.c",
        "int plainly(void); int main(void) { return plainly(); }",
    );
    let outcome = run(&sandbox, "verify asks.c sub/libqueue.a");
    assert_eq!(outcome.status, Some(3), "{outcome:?}");
    outcome.says("plain.o) carries no instrumentation and is left out");
    outcome.prints("incomplete: asks.c:1: plainly: it is not part of the program");
}

#[test]
fn objects_and_libraries_of_selvedge_cc_stand_for_their_sources() {
    let sandbox = project();
    let flags = "-O1 -Iproject/ring -fPIC";
    succeeds(
        &sandbox,
        &format!("cc {flags} -DRING_PUBLISH=memory_order_relaxed -c project/ring/ring.c -o ring.o"),
    );
    tool(&sandbox, "ar rcs libring.a ring.o");
    succeeds(&sandbox, "cc -shared ring.o -o libring.so");
    let test = "project/tests/test_ring.c";
    for library in ["ring.o", "libring.a", "libring.so"] {
        let line = format!("verify {test} {library} --no-advice --args 2 -- -Iproject/ring");
        let outcome = run(&sandbox, &line);
        assert_eq!(outcome.status, Some(1), "{line}: {outcome:?}");
        outcome.prints("ring.c:22");
    }
    let link = format!("cc -Iproject/ring {test} libring.so -o test -pthread");
    succeeds(&sandbox, &format!("{link} -Wl,-rpath,$ORIGIN"));
    run(&sandbox, "verify test --no-advice -- 2").prints("ring.c:22");
    // Where the library is cannot be told.
    succeeds(&sandbox, &link);
    let outcome = run(&sandbox, "verify test -- 2");
    outcome.says("did not compile, which are left out: libring.so;");
    assert_eq!(outcome.status, Some(3), "{outcome:?}");
}

#[test]
fn parts_that_selvedge_cc_did_not_compile_are_named() {
    let sandbox = Sandbox::with("main.c", "int f(void); int main(void) { return f(); }");
    sandbox.write("f.c", "int f(void) { return 0; }");
    tool(&sandbox, "cc -c main.c");
    succeeds(&sandbox, "cc main.o f.c -o without_main");
    let outcome = run(&sandbox, "verify without_main");
    assert_eq!(outcome.status, Some(2), "{outcome:?}");
    outcome.says("parts that selvedge cc did not compile, which are left out: main.c; build");
    outcome.says("error: the program has no main function");
    outcome.says("help: build everything again: make clean && make CC='selvedge cc'");

    tool(&sandbox, "cc -c f.c");
    succeeds(&sandbox, "cc main.c f.o -o without_f");
    let outcome = run(&sandbox, "verify without_f");
    assert_eq!(outcome.status, Some(3), "{outcome:?}");
    outcome.says("which are left out: f.c; build everything again");
    run(&sandbox, "verify without_f --stub f.c").ends_with(0);

    succeeds(&sandbox, "cc main.c f.c -o all");
    let outcome = run(&sandbox, "verify all");
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""));
    sandbox.write("f.c", "int f(void) { return 0 * 1; }");
    let outcome = run(&sandbox, "verify all");
    outcome.ends_with(0);
    outcome.says("warning: changed since the program was built: f.c; what is checked is");
    fs::remove_file(sandbox.path("f.c")).unwrap();
    let outcome = run(&sandbox, "verify all");
    assert_eq!(outcome.status, Some(2), "{outcome:?}");
    outcome.says("f.c: no such file");
    outcome.says("help: build again, and keep generated files until the check is done");
}

#[test]
fn stubs_stand_for_what_is_not_modelled() {
    let programs = [
        (
            "gettext",
            "#include <libintl.h>",
            "!strcmp(gettext(\"x\"), \"x\") && !strcmp(ngettext(\"a\", \"b\", 2), \"b\")",
        ),
        (
            "machine",
            "#include <sys/utsname.h>\nstruct utsname name;",
            "!uname(&name) && !strcmp(name.sysname, \"Linux\")",
        ),
        (
            "offline",
            "#include <sys/socket.h>",
            "socket(AF_INET, SOCK_STREAM, 0) == -1",
        ),
        (
            "any_random",
            "#include <stdlib.h>",
            "rand() + random() != 4",
        ),
    ];
    for (stub, before, what) in programs {
        let text = format!(
            "#include <assert.h>\n#include <string.h>\n{before}\nint main(void) {{ assert({what}); return 0; }}\n"
        );
        let sandbox = Sandbox::with("main.c", &text);
        let file = root().join(format!("examples/stubs/{stub}.c"));
        let outcome = sandbox.run(&["verify", "main.c", "--stub", &file.to_string_lossy()]);
        let status = if stub == "any_random" { 1 } else { 0 };
        assert_eq!(outcome.status, Some(status), "{stub}: {outcome:?}");
    }
}

/// The calls of a compiler by `./configure` and by other builds.
#[test]
fn compilers_are_called_in_many_ways() {
    let sandbox = Sandbox::with("main.c", "int f(void); int main(void) { return f(); }");
    sandbox.write("f.c", "int f(void) { return VALUE; }");
    sandbox.write("broken.c", "int main(void) { return nothing; }");
    for fine in [
        "cc --version",
        "cc -v",
        "cc -dumpmachine",
        "cc -print-search-dirs",
        "cc -E main.c -o -",
        "cc -c f.c -DVALUE=1 -o /dev/null",
        "cc -c f.c -DVALUE=0",
        "cc -S f.c -DVALUE=0 -o f.s",
        "cc -M f.c",
    ] {
        succeeds(&sandbox, fine);
    }
    assert!(!Path::new("/dev/null").is_file());
    for failing in [
        "cc -V",
        "cc -qversion",
        "cc -c broken.c",
        "cc -c none.c",
        "cc",
    ] {
        assert_ne!(run(&sandbox, failing).status, Some(0), "{failing}");
    }
    sandbox.write("words", "-DVALUE='(0 + 1)' -g main.c\n\"f.c\"\n");
    succeeds(&sandbox, "cc @words -o answered");
    assert_eq!(
        run(&sandbox, "verify answered --check-status").status,
        Some(1)
    );
    succeeds(&sandbox, "cc -flto=auto -O2 -DVALUE=0 -c f.c -o f.o");
    succeeds(&sandbox, "cc -flto=auto -O2 main.c f.o -o optimized");
    assert_eq!(succeeds(&sandbox, "verify optimized").stderr, "");
    // Flags that a build adds for other tools do not become part of the check.
    for added in [
        "-fsanitize=thread",
        "-fsanitize=address,undefined",
        "--coverage",
    ] {
        succeeds(
            &sandbox,
            &format!("cc {added} -DVALUE=0 main.c f.c -o added"),
        );
        succeeds(&sandbox, "verify added --strict");
    }
    let outcome = run(
        &sandbox,
        "verify main.c f.c -- -DVALUE=0 -fsanitize=thread --coverage",
    );
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
}

#[test]
fn objects_that_cannot_be_taken_apart_are_refused() {
    let sandbox = Sandbox::with("main.c", "void f(int); int main(void) { f(1); }");
    let programs = [
        (
            "int x; void f(int n) { x = n; }",
            "",
            "is compiled code and cannot be checked",
        ),
        (
            "_Thread_local int x; void f(int n) { x = n; }",
            "-fsanitize=thread",
            "thread-local variables, which are known from source only",
        ),
        (
            "int x; void f(int n) { switch (n) { case 0: x = 7; break; case 1: x = 1; break; case 2: x = 9; break; \
             case 3: x = 2; break; case 4: x += 3; break; case 5: x = 4; } }",
            "-fsanitize=thread",
            "tables of jumps",
        ),
        (
            "int x; void f(int n) { x = n; }",
            "-fsanitize=thread -O1 -fomit-frame-pointer",
            "without a frame pointer (-fno-omit-frame-pointer)",
        ),
        (
            "int x; void g(char *); void f(int n) { char big[9000]; x = n; g(big); }",
            "-fsanitize=thread -fno-stack-clash-protection",
            "allocates much of the stack at once (-fstack-clash-protection)",
        ),
        (
            "int x; void f(int n) { x = n; }",
            "-fsanitize=thread -O2 -fno-omit-frame-pointer -foptimize-sibling-calls",
            "leaves its function with a jump (-fno-optimize-sibling-calls)",
        ),
    ];
    for (text, flags, why) in programs {
        sandbox.write("f.c", text);
        tool(&sandbox, &format!("gcc -fPIC -c f.c {flags}"));
        let outcome = run(&sandbox, "verify main.c f.o");
        assert_eq!(outcome.status, Some(2), "{}", outcome.stdout);
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("selvedge verify FILE"),
            "{}",
            outcome.stderr
        );
    }
    tool(
        &sandbox,
        "gcc -fPIC -fsanitize=thread -fno-jump-tables -c f.c",
    );
    assert_eq!(run(&sandbox, "verify main.c f.o").status, Some(0));
    for option in ["--spurious-failures", "--plain sc"] {
        let outcome = run(&sandbox, &format!("verify main.c f.o {option}"));
        assert_eq!(outcome.status, Some(2), "{}", outcome.stdout);
        let said = format!("{option} needs the source of f.o");
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    }
}

#[test]
#[ignore = "needs the flags of rustc 1.95"]
fn an_instrumented_object_of_rust_is_checked() {
    let version = Command::new("rustc").arg("--version").output().unwrap();
    if !version.stdout.starts_with(b"rustc 1.95.") {
        return;
    }
    let library = "\
#![no_std]
use core::sync::atomic::{AtomicU32, Ordering};
#[panic_handler]
fn never(_: &core::panic::PanicInfo) -> ! { loop {} }
static mut DATA: i32 = 0;
static READY: AtomicU32 = AtomicU32::new(0);
#[no_mangle]
pub extern \"C\" fn put(value: i32) {
    unsafe { DATA = value + 'r' as i32 };
    READY.store(1, Ordering::ORDER);
}
#[no_mangle]
pub extern \"C\" fn get(_at: i32) -> i32 {
    if READY.load(Ordering::Acquire) == 0 { return 'n' as i32; }
    unsafe { DATA }
}
#[no_mangle]
pub extern \"C\" fn quietly() {}
";
    let sandbox = Sandbox::with("user.c", USER);
    for (order, status) in [("Release", 0), ("Relaxed", 1)] {
        sandbox.write("library.rs", &library.replace("ORDER", order));
        let done = Command::new("rustc")
            .args(
                "-O -g -Zsanitizer=thread -Cjump-tables=no -Cforce-frame-pointers=yes -Cno-redzone=yes -Cpanic=abort -Cunsafe-allow-abi-mismatch=sanitizer"
                    .split(' '),
            )
            .args("--edition 2021 --crate-type=lib --emit=obj library.rs -o library.o".split(' '))
            .env("RUSTC_BOOTSTRAP", "1")
            .current_dir(sandbox.path("."))
            .status();
        assert!(done.unwrap().success());
        let outcome = run(&sandbox, "verify user.c library.o --no-advice");
        assert_eq!(
            outcome.status,
            Some(status),
            "{}{}",
            outcome.stdout,
            outcome.stderr
        );
    }
}

/// Runs the commands of docs/projects.md in copies of the example project.
#[test]
#[ignore = "needs make, CMake and Meson"]
fn the_commands_for_build_systems_work() {
    let page = fs::read_to_string(root().join("docs/projects.md")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).collect();
    assert!(blocks.len() >= 5);
    for block in blocks {
        let script = block.split("```").next().unwrap();
        let sandbox = project();
        let output = Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(sandbox.path("project"))
            .env("PATH", &path)
            .env_remove("CC")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{text}\n{errors}");
        let checks = script.matches("selvedge verify").count();
        assert_eq!(
            text.matches("verified: ").count(),
            checks,
            "{script}\n{text}"
        );
    }
}
