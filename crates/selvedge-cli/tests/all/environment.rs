//! The modelled environment: descriptors, files, streams, mapped memory, signals.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Outcome, Sandbox, compilers};

fn sources() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/environment")
}

/// Runs `verify` in a copy of the directory with the programs.
fn verify(arguments: &[&str]) -> (Sandbox, Outcome) {
    let sandbox = Sandbox::new();
    for entry in fs::read_dir(sources()).expect("the directory exists") {
        let entry = entry.expect("it can be read");
        fs::copy(
            entry.path(),
            sandbox.path(&entry.file_name().to_string_lossy()),
        )
        .expect("the file is copied");
    }
    let outcome = sandbox.run(&[&["verify"], arguments].concat());
    (sandbox, outcome)
}

#[track_caller]
fn is_verified(arguments: &[&str], executions: u64) {
    let (_sandbox, outcome) = verify(&[arguments, &["--format", "json"]].concat());
    let result = outcome.ends_with(0).json();
    assert_eq!(result["executions"], executions, "{arguments:?}");
}

/// The programs, and in how many executions each is verified.
const PROGRAMS: [(&str, u64); 8] = [
    // The reader comes between the write and the close, or after both.
    ("pipe.c", 2),
    // Either writer first, and the reader before or after the second one.
    ("two_writers.c", 4),
    ("reader_of_full_pipe.c", 1),
    ("poll.c", 3),
    ("epoll.c", 21),
    ("files.c", 1),
    ("names.c", 8),
    ("calls.c", 1),
];

#[test]
fn modelled_calls_do_what_the_system_does() {
    for compiler in compilers() {
        for (program, executions) in PROGRAMS {
            let arguments = [program, "--stdin", "input.txt", "--cc", compiler];
            if compiler == "gcc" || !program.ends_with("poll.c") {
                is_verified(&arguments, executions);
            } else {
                // The compiler decides which iteration of a waiting loop is the first that repeats
                // another.
                verify(&arguments).1.ends_with(0);
            }
        }
    }
    is_verified(&["streams.cc", "--stdin", "input.txt"], 1);
}

/// The assertions about a model must also hold where the program runs by itself.
#[test]
fn the_system_agrees() {
    let sandbox = Sandbox::new();
    for (program, _) in PROGRAMS {
        let built = sandbox.path("program");
        let compiled = Command::new("cc")
            .args(["-pthread", "-o"])
            .arg(&built)
            .arg(sources().join(program))
            .status();
        assert!(compiled.expect("cc runs").success(), "{program}");
        fs::copy(sources().join("data.txt"), sandbox.path("data.txt")).expect("a copy");
        let input = fs::File::open(sources().join("input.txt")).expect("the input exists");
        let ran = Command::new(&built)
            .current_dir(sandbox.path(""))
            .stdin(input)
            .status();
        assert!(ran.expect("it runs").success(), "{program}");
    }
}

#[test]
fn other_models_and_explorers_agree() {
    for options in [
        &["--model", "sc"][..],
        &["--model", "tso"],
        &["--model", "ra"],
        &["--model", "sc", "--algorithm", "optimal-dpor"],
        &["--model", "sc", "--equivalence", "reads-from"],
    ] {
        is_verified(&[&["two_writers.c"], options].concat(), 4);
    }
    for algorithm in ["csdr", "bfs", "dfs"] {
        let options = ["--model", "sc", "--algorithm", algorithm];
        let (_sandbox, outcome) = verify(&[&["two_writers.c"], &options[..]].concat());
        outcome.ends_with(0);
    }
}

#[test]
fn variables_can_be_changed_and_are_there_before_main() {
    for compiler in compilers() {
        let given = ["--env", "A=1", "--env", "B=2=3", "--cc", compiler];
        is_verified(&[&["variables.c"], &given[..]].concat(), 1);
    }
    let sandbox = Sandbox::new();
    let built = sandbox.path("program");
    let compiled = Command::new("cc")
        .arg(sources().join("variables.c"))
        .arg("-o")
        .arg(&built)
        .status();
    assert!(compiled.expect("cc runs").success());
    let variables = [("A", "1"), ("B", "2=3")];
    let ran = Command::new(&built).env_clear().envs(variables).status();
    assert!(ran.expect("it runs").success(), "the system agrees");
}

#[test]
fn threads_that_change_and_read_variables_race() {
    let program = "#include <pthread.h>\n#include <stdlib.h>\n\
         static void *work(void *unused) { return getenv(\"A\") ? unused : 0; }\n\
         int main(void) {\n    pthread_t thread;\n    pthread_create(&thread, 0, work, 0);\n\
         \x20   setenv(\"A\", \"1\", 1);\n    return pthread_join(thread, 0);\n}\n";
    let sandbox = Sandbox::with("program.c", program);
    let outcome = sandbox.run(&["verify", "program.c"]);
    outcome.ends_with(1).prints("data race").prints("`environ`");
}

/// One thread writes to a pipe and another one reads, while main looks without waiting.
const TAKEN: &str = "\
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2];
static void *put(void *unused) { write(ends[1], \"x\", 1); return unused; }
static void *take(void *unused) { char byte; read(ends[0], &byte, 1); return unused; }
int main(void) {
  pthread_t one, other;
  pipe2(ends, O_NONBLOCK);
  pthread_create(&one, 0, put, 0);
  pthread_create(&other, 0, take, 0);
  struct pollfd set = {ends[0], POLLIN, 0};
  poll(&set, 1, 0);
  pthread_join(one, 0);
  pthread_join(other, 0);
}
";

#[test]
fn a_look_that_does_not_wait_ends_although_another_thread_takes_what_it_saw() {
    let sandbox = Sandbox::with("taken.c", TAKEN);
    for compiler in compilers() {
        let outcome = sandbox.run(&["verify", "taken.c", "--cc", compiler]);
        outcome.ends_with(0).prints("verified");
    }
}

#[test]
fn files_of_the_system_do_not_change() {
    let (sandbox, outcome) = verify(&["calls.c"]);
    outcome.ends_with(0);
    let text = fs::read_to_string(sandbox.path("data.txt")).expect("the file exists");
    assert_eq!(text, "hello\n12 -7\n");
    let (sandbox, outcome) = verify(&["files.c", "--stdin", "input.txt"]);
    outcome.ends_with(0);
    assert!(!sandbox.path("out.txt").exists());
}

#[test]
fn a_descriptor_that_another_thread_closes_is_bad() {
    let (_sandbox, outcome) = verify(&["closed_elsewhere.c"]);
    outcome
        .ends_with(1)
        .prints("bug: assertion failed: eventfd_read(counter, &value) == 0")
        .prints("closed_elsewhere.c:13");
}

/// A program of one function, how it ends, and what is said about it.
#[track_caller]
fn ends(body: &str, status: i32, text: &str) {
    let program = format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <poll.h>\n#include <signal.h>\n\
         #include <stdio.h>\n#include <sys/mman.h>\n#include <sys/socket.h>\n#include <unistd.h>\n\
         int main(void) {{\n    {body}\n    return 0;\n}}\n"
    );
    let sandbox = Sandbox::with("program.c", &program);
    sandbox
        .run(&["verify", "program.c"])
        .ends_with(status)
        .prints(text);
}

#[test]
fn calls_that_never_return_are_found() {
    ends(
        "int ends[2]; char c; pipe(ends); read(ends[0], &c, 1);",
        1,
        "T0 waits for data in channels[0].guard\n    read (",
    );
    ends(
        "int ends[2]; pipe(ends); struct pollfd set = {ends[0], POLLIN, 0}; poll(&set, 1, -1);",
        1,
        "bug: endless spinning",
    );
    ends(
        "int ends[2]; pipe(ends); close(ends[0]); write(ends[1], \"x\", 1);",
        1,
        "the program raised SIGPIPE",
    );
    ends(
        "char *m = mmap(0, 8, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(m, 8); *m = 1;",
        1,
        "bug: use after free",
    );
}

#[test]
fn what_the_model_leaves_out_is_refused() {
    for (body, text) in [
        (
            "getchar();",
            "incomplete: program.c:10: standard input; give it with --stdin FILE",
        ),
        (
            "socketpair(AF_UNIX, SOCK_DGRAM, 0, (int[2]){0});",
            "another type than SOCK_STREAM",
        ),
        (
            "fopen(\"/proc/self/maps\", \"r\");",
            "a file of /dev, /proc or /sys",
        ),
        (
            "mmap((void *)4096, 8, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);",
            "a fixed address",
        ),
        (
            "mprotect((void *)4096, 8, PROT_NONE);",
            "mprotect to anything else",
        ),
        ("dup2(1, 2);", "dup2 to a standard stream"),
        (
            "signal(SIGUSR1, (void (*)(int))main); kill(getpid(), SIGUSR1);",
            "use raise",
        ),
        ("fcntl(1, F_GETLK);", "fcntl with another command"),
        (
            "pipe((int[2]){0}); socket(AF_INET, SOCK_STREAM, 0);",
            "socket: uses the network",
        ),
    ] {
        ends(body, 3, text);
    }
}

#[test]
fn a_trace_keeps_the_input() {
    let sandbox = Sandbox::with(
        "program.c",
        "#include <assert.h>\n#include <stdio.h>\nint main(void) { assert(getchar() == 'a'); }\n",
    );
    sandbox.write("input", "b");
    let arguments = [
        "verify",
        "program.c",
        "--stdin",
        "input",
        "--trace-out",
        "trace.json",
    ];
    sandbox.run(&arguments).ends_with(1);
    let replay = sandbox.run(&["replay", "trace.json"]);
    replay.prints("assertion failed: getchar() == 'a'");
}

#[test]
fn an_input_that_is_not_there_is_an_error() {
    let sandbox = Sandbox::with(
        "program.c",
        "#include <stdio.h>\nint main(void) { getchar(); }\n",
    );
    let outcome = sandbox.run(&["verify", "program.c", "--stdin", "missing"]);
    outcome.ends_with(2).says("missing: no such file");
}
