//! Whatever the user hands in, the command ends with a clear message and the right status, leaves
//! nothing behind, and never dies itself.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use crate::common::{Sandbox, compilers};

/// The message about a program that the command refuses.
#[track_caller]
fn refusal(name: &str, text: &str) -> String {
    let sandbox = Sandbox::with(name, text);
    let outcome = sandbox.run(&["verify", name, "--strict"]);
    outcome.ends_with(2);
    assert_eq!(outcome.stdout, "");
    outcome.stderr
}

/// The first line of the report on a program with a bug.
#[track_caller]
fn bug(text: &str, options: &[&str]) -> String {
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&[&["verify", "program.c"], options].concat());
    outcome.ends_with(1);
    outcome.stdout.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn no_such_file() {
    let outcome = Sandbox::new().run(&["verify", "nowhere.c"]);
    assert_eq!(
        outcome.ends_with(2).stderr,
        "error: nowhere.c: no such file\n"
    );
}

#[test]
fn a_directory() {
    let outcome = Sandbox::new().run(&["verify", "tmp"]);
    assert_eq!(
        outcome.ends_with(2).stderr,
        "error: tmp is a directory\nhelp: name the source files of one program\n"
    );
}

#[test]
fn files_that_are_not_regular() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe.c");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", sandbox.path("zero.c")).unwrap();
    for name in ["pipe.c", "zero.c"] {
        for command in ["verify", "replay", "litmus"] {
            let outcome = sandbox.run(&[command, name]);
            outcome.ends_with(2).says("not a regular file");
        }
        let outcome = sandbox.run(&["irs", "stat", name]);
        outcome.ends_with(2).says("not a regular file");
    }
}

#[test]
fn a_path_that_is_not_text() {
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"p\xfe'.c");
    std::fs::write(
        sandbox.path(".").join(name),
        "#include <assert.h>\nint main(void) { assert(0); }",
    )
    .unwrap();
    let mut command = sandbox.command(&["verify"]);
    let outcome = sandbox.finish(command.arg(name).spawn().unwrap());
    outcome
        .ends_with(1)
        .prints("next: selvedge verify $'p\\xfe\\'.c' --trace-out trace.json\n");
}

#[test]
fn assembly_with_bytes_that_are_no_text() {
    let text = b"#include <assert.h>\nint main(void) {\n\
        __asm__ volatile(\"# \xff\xfe\" ::: \"memory\"); const char *s = \"\xff\"; assert(!s[0]);\n}\n";
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let sandbox = Sandbox::new();
            fs::write(sandbox.path("bytes.c"), text).unwrap();
            let outcome = sandbox.run(&["verify", "bytes.c", "--cc", compiler, "--", level]);
            outcome.ends_with(1).prints("bug: assertion failed: !s[0]");
        }
    }
}

#[test]
fn output_that_cannot_be_written() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    for format in ["human", "json"] {
        let mut command = sandbox.command(&["verify", "program.c", "--format", format]);
        command.stdout(full().unwrap());
        let outcome = sandbox.finish(command.spawn().unwrap());
        outcome
            .ends_with(4)
            .says("error: cannot write to standard output: No space left on device");
    }
}

/// Help and version are what was asked for, too.
#[test]
fn help_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["irs", "verify", "--help"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = sandbox.command(arguments);
        command.stdout(full.unwrap());
        let outcome = sandbox.finish(command.spawn().unwrap());
        outcome
            .ends_with(4)
            .says("error: cannot write to standard output: No space left on device");
        assert!(!sandbox.run(arguments).ends_with(0).stdout.is_empty());
    }
}

/// A result that was asked for is not there: that is no success.
#[test]
fn files_that_cannot_be_written() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let pipe = sandbox.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (file, why) in [
        ("/dev/full", "No space left on device"),
        ("/nowhere/r.html", "No such file or directory"),
        ("pipe", "it is a pipe that nobody reads"),
    ] {
        let outcome = sandbox.run(&["verify", "program.c", "--report", file]);
        outcome
            .ends_with(2)
            .prints("verified: ")
            .says(&format!("error: cannot write the report to {file}: {why}"));
    }
    let outcome = sandbox.run(&["verify", "program.c", "--report", "/dev/stdout"]);
    outcome
        .ends_with(0)
        .prints("<!DOCTYPE html>")
        .prints("verified: ");
    sandbox.write(
        "bug.c",
        "#include <assert.h>\nint main(void) { assert(0); }",
    );
    for option in ["--trace-out", "--witness", "--report"] {
        let outcome = sandbox.run(&["verify", "bug.c", option, "pipe"]);
        outcome
            .ends_with(1)
            .says("pipe: it is a pipe that nobody reads");
    }
    // A file that is made beside its place and moved there would replace a device.
    let irs = |arguments: &[&str]| sandbox.run(&[&["irs"], arguments].concat());
    let refused = "pipe: it is not a regular file";
    irs(&["verify", "program.c", "-o", "pipe"])
        .ends_with(2)
        .says(refused);
    irs(&["verify", "program.c", "-o", "p.irs"]).ends_with(0);
    irs(&["build", "program.c", "--prefix", "p.irs", "-o", "pipe"])
        .ends_with(2)
        .says(refused);
    irs(&["build", "program.c", "--prefix", "pipe", "-o", "p"])
        .ends_with(2)
        .says(refused);
    irs(&["stat", "p.irs", "--svg", "pipe"])
        .ends_with(2)
        .says("pipe: it is a pipe that nobody reads");
    irs(&["stat", "p.irs", "--report", "pipe"])
        .ends_with(2)
        .says("pipe: it is a pipe that nobody reads");
}

/// The temporary directory, and every file that is named.
#[test]
fn places_whose_names_are_not_text() {
    let sandbox = Sandbox::with("ok.c", "int main(void) { return 0; }");
    let odd = |name: &[u8]| sandbox.path(".").join(std::ffi::OsStr::from_bytes(name));
    fs::create_dir(odd(b"t\xfe")).unwrap();
    let text = "#include <assert.h>\nint main(void) { assert(0); }";
    fs::write(odd(b"p\xfe.c"), text).unwrap();
    let run = |arguments: &[&std::path::Path]| {
        let mut command = sandbox.command(&[]);
        command.env("TMPDIR", odd(b"t\xfe")).args(arguments);
        sandbox.finish(command.spawn().unwrap())
    };
    let (verify, replay, resume) = ("verify".as_ref(), "replay".as_ref(), "resume".as_ref());
    run(&[verify, "ok.c".as_ref()]).ends_with(0);
    let (program, trace) = (odd(b"p\xfe.c"), odd(b"t\xfe.json"));
    run(&[verify, &program, "--trace-out".as_ref(), &trace]).ends_with(1);
    run(&[replay, &trace])
        .ends_with(1)
        .prints("bug: assertion failed: 0");
    sandbox.write("program.c", crate::scale::COUNTERS);
    fs::copy(sandbox.path("program.c"), odd(b"q\xfe.c")).unwrap();
    let (program, checkpoint) = (odd(b"q\xfe.c"), odd(b"c\xfe"));
    let limit =
        ["--model", "sc", "--max-executions", "3", "--checkpoint"].map(std::path::Path::new);
    run(&[&[verify, &*program], &limit[..], &[&*checkpoint]].concat()).ends_with(3);
    run(&[resume, &checkpoint])
        .ends_with(0)
        .prints("verified: ");
    // The trace of a program that is named by its bytes is still one of this program only.
    fs::write(odd(b"p\xfe.c"), text.replace("0", "!1")).unwrap();
    run(&[replay, &trace]).says("has changed since the trace was written");
}

/// A file whose name begins as that of a file with flags does for a compiler.
#[test]
fn a_name_that_begins_with_an_at_sign() {
    let text = "#include <assert.h>\nint main(void) { assert(0); }";
    let sandbox = Sandbox::with("@y.c", text);
    let outcome = sandbox.run(&["verify", "@y.c"]);
    outcome.ends_with(1).prints("bug: assertion failed: 0");
}

/// The program ends the process that runs it, at an address that no list of functions knows of.
#[test]
fn a_program_that_ends_its_process() {
    let sandbox = Sandbox::new();
    let distance = crate::confinement::distance(&sandbox, "_exit");
    for status in [0, 3] {
        let call = format!("find({distance}L)({status});");
        sandbox.write("attack.c", &crate::confinement::attack(&call));
        let outcome = sandbox.run(&["verify", "attack.c"]);
        outcome
            .ends_with(4)
            .says("the process that ran the program ended without a result")
            .says("note: the program has ended it, for example with _exit");
        assert!(!outcome.stderr.contains("fault of Selvedge"), "{outcome:?}");
    }
}

#[test]
fn a_damaged_cache_is_made_again() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let verify = || {
        let mut command = sandbox.command(&["verify", "program.c"]);
        command.env("XDG_CACHE_HOME", sandbox.path("cache"));
        sandbox
            .finish(command.spawn().unwrap())
            .ends_with(0)
            .clone()
    };
    verify();
    let kept = |start: &str| {
        let entries = fs::read_dir(sandbox.path("cache/selvedge")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let named = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(start)
        };
        paths.filter(named).collect::<Vec<_>>()
    };
    let compilers = kept("compiler-");
    assert!(!compilers.is_empty());
    for path in &compilers {
        fs::write(path, "nonsense").unwrap();
    }
    let [support] = &kept("support-")[..] else {
        panic!("one directory of support files")
    };
    for damaged in ["shim.c.o", "include/selvedge.h"] {
        fs::write(support.join(damaged), "nonsense").unwrap();
        verify();
    }
    fs::remove_file(support.join("stub.s.o")).unwrap();
    verify();
}

#[test]
fn limits_have_a_range() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    for (option, value) in [
        ("--stack-size", "1000G"),
        ("--stack-size", "1"),
        ("--jobs", "100000"),
        ("--jobs", "0"),
        ("--heap-limit", "99999999G"),
        ("--max-threads", "65536"),
        ("--max-threads", "4294967295"),
        ("--unroll", "1000001"),
        ("--unroll", "main=4294967295"),
        ("--preemptions", "4294967295"),
        ("--delays", "4294967295"),
        ("--switches", "4294967295"),
        ("--timeout", "1e18"),
        ("--watchdog", "1e18"),
    ] {
        sandbox
            .run(&["verify", "program.c", option, value])
            .ends_with(2)
            .says(option);
    }
}

#[test]
fn a_file_that_may_not_be_read() {
    let sandbox = Sandbox::with("secret.c", "int main(void) { return 0; }");
    let path = sandbox.path("secret.c");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::read(&path).is_ok() {
        return; // root may read everything
    }
    let outcome = sandbox.run(&["verify", "secret.c"]);
    assert_eq!(
        outcome.ends_with(2).stderr,
        "error: secret.c: permission denied\n"
    );
}

#[test]
fn a_name_that_is_neither_c_nor_cxx() {
    assert_eq!(
        refusal("notes.txt", "int main(void) { return 0; }"),
        "error: notes.txt is not a C or C++ file\n\
         help: C files are named .c, C++ files .cc, .cpp, .cxx or .C\n"
    );
}

#[test]
fn compiled_code() {
    assert_eq!(
        refusal("library.o", "\x7fELF"),
        "error: library.o is compiled code and cannot be checked\n\
         note: it carries no instrumentation: Selvedge would not see what it does\n\
         help: name its source files instead: selvedge verify FILE…\n\
         help: or have an object (.o) or an archive (.a) of it instrumented: -fsanitize=thread -fPIC\n"
    );
}

#[test]
fn an_empty_file() {
    assert_eq!(
        refusal("empty.c", ""),
        "error: empty.c is empty\nhelp: a program needs a main function\n"
    );
}

#[test]
fn no_main() {
    assert_eq!(
        refusal("part.c", "int f(void) { return 0; }"),
        "error: the program has no main function\n\
         help: name every source file of the program: selvedge verify FILE…\n"
    );
}

#[test]
fn two_mains() {
    let sandbox = Sandbox::new();
    sandbox.write("one.c", "int main(void) { return 0; }");
    sandbox.write("two.c", "int main(void) { return 0; }");
    let outcome = sandbox.run(&["verify", "one.c", "two.c"]);
    outcome
        .ends_with(2)
        .says("error: main is defined twice: in one.c and in two.c\n");
}

#[test]
fn the_compilers_words_are_passed_on_unchanged() {
    let text = "int main(void) { return nothing; }\n";
    for compiler in compilers() {
        let sandbox = Sandbox::with("wrong.c", text);
        let outcome = sandbox.run(&["verify", "wrong.c", "--cc", compiler]);
        let own = Command::new(compiler)
            .args(["-g", "-O0", "-c", "-o", "/dev/null", "wrong.c"])
            .current_dir(sandbox.path("."))
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let words = String::from_utf8(own.stderr).unwrap();
        assert!(words.contains("wrong.c:1:25: error:"), "{words}");
        assert_eq!(
            outcome.ends_with(2).stderr,
            format!("{words}error: wrong.c does not compile\n")
        );
    }
}

#[test]
fn something_that_is_not_c_at_all() {
    let noise: String = (0..2000)
        .map(|n| char::from(33 + (n * 7 % 90) as u8))
        .collect();
    assert!(refusal("noise.c", &noise).ends_with("error: noise.c does not compile\n"));
}

#[test]
fn warnings_of_the_compiler_are_shown_and_change_nothing() {
    let sandbox = Sandbox::with("odd.c", "int main(void) { int unused; return 0; }");
    let outcome = sandbox.run(&["verify", "odd.c", "--", "-Wall"]);
    outcome
        .ends_with(0)
        .says("warning: unused variable 'unused'");
    let outcome = sandbox.run(&["verify", "odd.c", "--", "-Wall", "-Werror"]);
    outcome.ends_with(2).says("error: odd.c does not compile\n");
}

#[test]
fn a_function_that_is_nowhere() {
    let text = "int missing(void);\nint main(void) { return missing(); }\n";
    assert_eq!(
        refusal("part.c", text),
        "error: cannot check this program: part.c:2: `main` needs `missing`, which Selvedge does not \
         model\nhelp: give its source file to selvedge verify, or a stub with --stub FILE\n"
    );
    let outcome = Sandbox::with("part.c", text).run(&["verify", "part.c"]);
    outcome
        .ends_with(3)
        .prints("incomplete: part.c:2: missing: it is not part of the program, and not modelled");
    let text = "extern int missing;\nint main(void) { return missing; }\n";
    let outcome = Sandbox::with("part.c", text).run(&["verify", "part.c"]);
    outcome
        .ends_with(2)
        .says("error: cannot check this program: part.c:2: `main` needs `missing`");
}

#[test]
fn a_function_that_is_there_twice() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "one.c",
        "int f(void) { return 1; }\nint main(void) { return f(); }",
    );
    sandbox.write("two.c", "int f(void) { return 2; }");
    let outcome = sandbox.run(&["verify", "one.c", "two.c"]);
    let ending = "error: the program does not link\nnote: f is defined more than once\n";
    assert!(outcome.ends_with(2).stderr.ends_with(ending), "{outcome:?}");
}

#[test]
fn a_reader_that_goes_away() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return *(int *)0; }");
    let mut child = sandbox.command(&["verify", "program.c"]).spawn().unwrap();
    drop(child.stdout.take());
    sandbox.finish(child).ends_with(1);
}

#[test]
fn no_compiler_at_all() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let mut command = sandbox.command(&["verify", "program.c"]);
    let child = command.env("PATH", sandbox.path("tmp")).spawn().unwrap();
    let outcome = sandbox.finish(child);
    outcome
        .ends_with(2)
        .says("error: no C compiler: neither of cc, gcc or clang is on the PATH\n")
        .says("help: install one: `apt install gcc` (Debian, Ubuntu)");
}

#[test]
fn a_compiler_that_is_not_there_or_is_none() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let outcome = sandbox.run(&["verify", "program.c", "--cc", "nocc-99"]);
    outcome
        .ends_with(2)
        .says("error: --cc names a compiler that is not there: nocc-99\n");
    let outcome = sandbox.run(&["verify", "program.c", "--cc", "echo"]);
    outcome.ends_with(2).says("echo is neither gcc nor clang");
    let child = sandbox
        .command(&["verify", "program.c"])
        .env("CC", "nocc-99")
        .spawn()
        .unwrap();
    sandbox
        .finish(child)
        .ends_with(2)
        .says("error: $CC names a compiler that is not there");
}

#[test]
fn ten_thousand_threads() {
    let sandbox = Sandbox::with(
        "program.c",
        "#include <pthread.h>
        static void *idle(void *a) { return a; }
        int main(void) {
            static pthread_t threads[10000];
            for (int i = 0; i < 10000; i++) pthread_create(&threads[i], 0, idle, 0);
            for (int i = 0; i < 10000; i++) pthread_join(threads[i], 0);
            return 0;
        }",
    );
    let outcome = sandbox.run(&["verify", "program.c"]);
    outcome
        .ends_with(3)
        .prints("incomplete: program.c:5: more than 1000 threads (--max-threads raises the limit)");
}

#[test]
fn a_gibibyte() {
    let text = "#include <stdlib.h>\nint main(void) { free(malloc(1u << 30)); return 0; }\n";
    let sandbox = Sandbox::with("program.c", text);
    sandbox.run(&["verify", "program.c"]).ends_with(3).prints(
        "incomplete: program.c:2: an allocation of 1073741824 bytes does not fit into the memory that an \
         execution may use (--heap-limit)",
    );
    sandbox
        .run(&["verify", "program.c", "--heap-limit", "2G"])
        .ends_with(0);
}

#[test]
fn a_program_that_overwrites_its_own_stack() {
    let text = "
        static void fill(char *p) { for (int i = 0; i < 4096; i++) p[i] = 0x41; }
        static void victim(void) { char small[8]; fill(small); }
        int main(void) { victim(); return 0; }";
    assert!(bug(text, &[]).starts_with("bug: access to memory that does not exist"));
}

#[test]
fn a_program_that_overwrites_the_process_that_runs_it() {
    // The stack of the process is at the end of the address space where that is not random. Where
    // it has to be, this is an ordinary wild access, or an assertion that fails.
    let text = "
        #include <assert.h>
        #include <pthread.h>
        #include <stdatomic.h>
        static atomic_int ready;
        static void *destroy(void *unused) {
            if (atomic_load(&ready) == 1)
                for (char *p = (char *)0x7fffffffe000; p > (char *)0x7ffffffee000; p--) *p = 0x41;
            assert(!ready);
            return unused;
        }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, destroy, 0);
            atomic_store(&ready, 1);
            return pthread_join(thread, 0);
        }";
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&["verify", "program.c", "--trace-out", "trace.json"]);
    outcome.ends_with(1);
    if outcome.stdout.starts_with("bug: fatal signal") {
        let first = outcome.stdout.lines().next();
        let message = "bug: fatal signal: the program destroyed the process that ran it (SIGSEGV)";
        assert_eq!(first, Some(message));
        outcome.prints("schedule: S0--S1-\n");
        let again = sandbox.run(&["replay", "trace.json"]);
        again.ends_with(1).prints(message);
        // The order in which a search over states takes steps is no schedule, and several processes
        // take them at once.
        let over_states = ["verify", "program.c", "--model", "sc", "--algorithm", "bfs"];
        for jobs in ["1", "2"] {
            let outcome = sandbox.run(&[&over_states[..], &["--jobs", jobs]].concat());
            outcome.ends_with(1).prints("schedule: S0--S1-\n");
            assert_eq!(outcome.stdout.lines().next(), Some(message));
        }
    }
}

#[test]
fn a_program_that_destroys_its_process_after_waiting_for_a_lock() {
    // The search goes on where threads wait, but a schedule has no attempts that failed.
    let text = "
        #include <pthread.h>
        #include <stdatomic.h>
        static atomic_int lock;
        static int order[4], n;
        static void *work(void *second) {
            for (int i = 0; i < 2; i++) {
                int expected = 0;
                while (!atomic_compare_exchange_strong(&lock, &expected, 1)) expected = 0;
                order[n++] = second != 0;
                if (n == 4 && order[0] && !order[1] && order[2])
                    for (char *p = (char *)0x7fffffffe000; p > (char *)0x7ffffffee000; p--) *p = 0x41;
                atomic_store(&lock, 0);
            }
            return second;
        }
        int main(void) {
            pthread_t one, other;
            pthread_create(&one, 0, work, 0);
            pthread_create(&other, 0, work, &lock);
            pthread_join(one, 0);
            return pthread_join(other, 0);
        }";
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&["verify", "program.c"]);
    outcome.ends_with(1);
    if outcome.stdout.starts_with("bug: fatal signal") {
        outcome.prints("schedule: S0--S2--S1--S2--S1-\n");
    }
}

#[test]
fn a_program_that_reads_its_input() {
    for call in [
        "scanf(\"%*d\")",
        "getchar()",
        "fgetc(stdin)",
        "(int)read(0, &(char){0}, 1)",
    ] {
        let text = format!(
            "#include <stdio.h>\n#include <unistd.h>\nint main(void) {{ return {call}; }}\n"
        );
        let sandbox = Sandbox::with("reader.c", &text);
        let outcome = sandbox.run(&["verify", "reader.c"]);
        outcome
            .ends_with(3)
            .prints("incomplete: reader.c:3: standard input; give it with --stdin FILE");
    }
}

#[test]
fn a_program_that_starts_others() {
    for (call, name) in [
        ("execl(\"/bin/true\", \"true\", (char *)0)", "execl"),
        ("fork()", "fork"),
        ("vfork()", "vfork"),
        ("system(\"true\")", "system"),
    ] {
        let text = format!(
            "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ return {call}; }}\n"
        );
        let words = refusal("starter.c", &text);
        let head =
            format!("error: cannot check this program: starter.c:3: `main` calls `{name}`: ");
        assert!(words.starts_with(&head), "{words}");
    }
}

#[test]
fn a_program_that_kills_itself() {
    for call in ["kill(getpid(), SIGKILL)", "raise(SIGKILL)"] {
        let text = format!(
            "#include <signal.h>\n#include <unistd.h>\nint main(void) {{ return {call}; }}\n"
        );
        assert_eq!(
            bug(&text, &[]),
            "bug: fatal signal: the program raised SIGKILL"
        );
    }
}

#[test]
fn a_raw_system_call() {
    let text = "
long raw(long number) {
    long result;
    __asm__ volatile(\"syscall\" : \"=a\"(result) : \"a\"(number) : \"rcx\", \"r11\", \"memory\");
    return result;
}
int main(void) { return raw(39) < 0; }
";
    assert_eq!(
        refusal("raw.c", text),
        "error: cannot check this program: raw.c:4: `raw` has a raw system call (`syscall`)\n\
         help: call the C library's function for it, if Selvedge models that\n"
    );
    let text = "#include <unistd.h>\nint main(void) { return syscall(39) < 0; }\n";
    let sandbox = Sandbox::with("raw.c", text);
    let outcome = sandbox.run(&["verify", "raw.c"]);
    outcome
        .ends_with(3)
        .prints("incomplete: raw.c:2: the raw system call number 39");
}

#[test]
fn a_loop_without_end() {
    let text = "static int x;\nint main(void) { for (;;) x ^= 1; }\n";
    assert_eq!(
        bug(text, &["--watchdog", "0.2"]),
        "bug: endless loop: a loop without visible operations does not end"
    );
}

#[test]
fn usage_errors() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    for (arguments, message) in [
        (&[][..], "Usage: selvedge"),
        (
            &["verify"],
            "the following required arguments were not provided",
        ),
        (
            &["verify", "program.c", "--model", "x86"],
            "invalid value 'x86'",
        ),
        (
            &["verify", "program.c", "--stack-size", "0"],
            "must be more than zero",
        ),
        (
            &["verify", "program.c", "--timeout", "soon"],
            "not a number of seconds",
        ),
        (
            &["verify", "program.c", "--frobnicate"],
            "unexpected argument '--frobnicate'",
        ),
        (
            &["replay"],
            "the following required arguments were not provided",
        ),
    ] {
        let outcome = sandbox.run(arguments);
        outcome.ends_with(2).says(message);
        assert_eq!(outcome.stdout, "");
    }
}
