//! Traces: written, run again, and refused where they no longer fit.

use crate::common::{Outcome, Sandbox};

const PROGRAM: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int counter;
static void *bump(void *name) {
  int seen = counter;
  printf(\"%s saw %d\\n\", (char *)name, seen);
  counter = seen + STEP;
  return name;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, bump, \"one\");
  pthread_create(&two, 0, bump, \"two\");
  pthread_join(one, 0);
  pthread_join(two, 0);
  assert(counter == 2 * STEP);
}
";

/// Checks the program with these options.
fn verify(sandbox: &Sandbox, options: &[&str]) -> Outcome {
    sandbox.run(&[&["verify", "program.c"], options, &["--", "-DSTEP=1"]].concat())
}

fn traced() -> Sandbox {
    let sandbox = Sandbox::with("program.c", PROGRAM);
    let outcome = verify(&sandbox, &["--trace-out", "trace.json"]);
    outcome
        .ends_with(1)
        .prints("next: selvedge replay trace.json\n");
    assert!(
        !outcome.stdout.contains("saw"),
        "the program's output is muted: {outcome:?}"
    );
    sandbox
}

#[test]
fn a_trace_leads_to_the_same_failure_with_the_programs_output() {
    let sandbox = traced();
    let outcome = sandbox.run(&["replay", "trace.json"]);
    outcome
        .ends_with(1)
        .prints("saw 0\n")
        .prints("bug: assertion failed: counter == 2 * STEP\n  --> program.c:18:3\n")
        .prints("next: selvedge debug trace.json\n");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_trace_can_be_replayed_inside_the_command() {
    let sandbox = traced();
    let outcome = sandbox.run(&["replay", "--in-process", "trace.json"]);
    outcome
        .ends_with(1)
        .prints("saw 0\n")
        .prints("bug: assertion failed: counter == 2 * STEP\n");
}

#[test]
fn a_trace_can_be_replayed_from_elsewhere() {
    let sandbox = traced();
    let trace = sandbox.path("trace.json");
    let mut command = sandbox.command(&["replay", trace.to_str().unwrap()]);
    let child = command.current_dir("/").spawn().unwrap();
    sandbox
        .finish(child)
        .ends_with(1)
        .prints("bug: assertion failed: counter == 2 * STEP\n");
}

#[test]
fn a_replay_in_json_keeps_the_programs_output_out() {
    let sandbox = traced();
    let outcome = sandbox.run(&["replay", "trace.json", "--format", "json"]);
    let json = outcome.ends_with(1).says("saw 0\n").json();
    assert_eq!(json["kind"], "assertion");
}

#[test]
fn a_program_that_has_changed_is_noticed() {
    let sandbox = traced();
    // The text that is replaced, its replacement, the exit status, and the message or output.
    for (old, new, status, told) in [
        (
            "int seen = counter;",
            "int seen = 0;",
            2,
            "error: the program is not the one that the trace was written for: in step ",
        ),
        (
            "assert(",
            "(void)(",
            2,
            "the schedule was followed, and nothing fails\n",
        ),
        (
            "counter == 2 * STEP",
            "counter == 3",
            1,
            "bug: assertion failed: counter == 3\n",
        ),
    ] {
        sandbox.write("program.c", &PROGRAM.replace(old, new));
        let outcome = sandbox.run(&["replay", "trace.json"]);
        outcome
            .ends_with(status)
            .says("warning: program.c has changed since the trace was written\n");
        match status {
            1 => outcome.prints(told),
            _ => outcome
                .says(told)
                .says("help: write the trace again with selvedge verify --trace-out FILE\n"),
        };
    }
}

#[test]
fn a_deadlock_can_be_replayed() {
    let text = "\
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *other(void *unused) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  return 0;
}
";
    let sandbox = Sandbox::with("locks.c", text);
    let first = sandbox.run(&["verify", "locks.c", "--trace-out", "trace.json"]);
    let again = sandbox.run(&["replay", "trace.json"]);
    first.ends_with(1);
    let report = |text: &str| text.split("\nnext:").next().unwrap().to_owned();
    let (first, again) = (
        report(&first.timeless()),
        report(&again.ends_with(1).timeless()),
    );
    assert_eq!(first.trim_end(), again.trim_end());
    assert!(
        again.starts_with("bug: deadlock: no thread can go on"),
        "{again}"
    );
}

/// Where states are searched, what a plain or volatile store writes is known only afterwards.
#[test]
fn a_trace_of_states_is_replayed_with_its_values() {
    let text = "\
#include <assert.h>
#include <pthread.h>
static int plain;
static volatile int flag;
static void *other(void *unused) {
  if (flag == 7)
    assert(plain == 3);
  return unused;
}
int main(void) {
  pthread_t thread;
  plain = 2;
  pthread_create(&thread, 0, other, 0);
  flag = 7;
}
";
    let sandbox = Sandbox::with("stores.c", text);
    let search = ["verify", "stores.c", "--algorithm", "csdr"];
    let first = sandbox.run(&[&search[..], &["--trace-out", "trace.json"]].concat());
    let again = sandbox.run(&["replay", "trace.json"]);
    for outcome in [first, again] {
        outcome
            .ends_with(1)
            .prints("bug: assertion failed: plain == 3")
            .prints("store flag = 7")
            .prints("load plain = 2");
    }
}

#[test]
fn what_is_not_a_trace_is_refused() {
    let sandbox = Sandbox::with("trace.json", "{ \"schema\": 1 }");
    let outcome = sandbox.run(&["replay", "trace.json"]);
    outcome
        .ends_with(2)
        .says("error: trace.json is not a trace: ");
    let outcome = sandbox.run(&["replay", "nowhere.json"]);
    outcome
        .ends_with(2)
        .says("error: cannot read the trace nowhere.json: ");
}

/// Whatever finds a bug, its schedule is a schedule; and a seed always leads to the same one.
#[test]
fn bugs_found_at_random_and_within_cheap_bounds_are_replayed() {
    let sandbox = Sandbox::with("program.c", PROGRAM);
    let searches: [&[&str]; 5] = [
        &["--algorithm", "random", "--seed", "5"],
        &["--algorithm", "pct", "--depth", "2"],
        &["--algorithm", "pos"],
        &["--delays", "2"],
        &["--switches", "5"],
    ];
    for search in searches {
        let run = || {
            let options = [&["--model", "sc", "--trace-out", "trace.json"], search].concat();
            let outcome = verify(&sandbox, &options);
            outcome.ends_with(1).prints("bug: assertion failed");
            let trace = std::fs::read_to_string(sandbox.path("trace.json"));
            trace.expect("a trace was written")
        };
        assert_eq!(run(), run(), "{search:?}");
        let outcome = sandbox.run(&["replay", "trace.json"]);
        outcome.ends_with(1).prints("bug: assertion failed");
    }
    let outcome = verify(&sandbox, &["--model", "sc", "--delays", "0"]);
    outcome.ends_with(0).prints("verified within 0 delays");
}

#[test]
fn a_trace_does_not_choose_the_compiler() {
    let sandbox = traced();
    let text = std::fs::read_to_string(sandbox.path("trace.json")).unwrap();
    let evil = "#!/bin/sh\ntouch \"$(dirname \"$0\")/owned\"\n";
    sandbox.write("evil", evil);
    let path = sandbox.path("evil");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    let named = format!("\"compiler\": \"{}\"", path.display());
    sandbox.write("evil.json", &text.replace("\"compiler\": null", &named));
    let outcome = sandbox.run(&["replay", "evil.json"]);
    outcome
        .ends_with(2)
        .says("error: the trace was written with --cc ")
        .says("help: selvedge replay evil.json --cc ");
    assert!(!sandbox.path("owned").exists());
    sandbox
        .run(&["replay", "evil.json", "--cc", "gcc"])
        .ends_with(1)
        .prints("bug: assertion failed");
}

#[test]
fn a_trace_does_not_make_the_compiler_run_something_else() {
    let sandbox = traced();
    let text = std::fs::read_to_string(sandbox.path("trace.json")).unwrap();
    let evil = "\"-DSTEP=1\", \"-fuse-ld=/tmp/evil\"";
    sandbox.write("evil.json", &text.replace("\"-DSTEP=1\"", evil));
    let outcome = sandbox.run(&["replay", "evil.json"]);
    outcome
        .ends_with(2)
        .says("error: the trace has the compiler flag -fuse-ld=/tmp/evil\n")
        .says("help: if the trace is your own: selvedge replay evil.json --trust\n");
}

#[test]
fn a_trace_that_cannot_be_written_does_not_hide_the_bug() {
    let sandbox = Sandbox::with("program.c", PROGRAM);
    let outcome = verify(&sandbox, &["--trace-out", "/nowhere/trace.json"]);
    outcome
        .ends_with(1)
        .prints("bug: assertion failed: counter == 2 * STEP\n")
        .prints("\n      selvedge replay trace.json\n")
        .says("error: cannot write the trace to /nowhere/trace.json: ");
    let outcome = verify(&sandbox, &["--report", "/nowhere/r.html"]);
    outcome
        .ends_with(1)
        .says("error: cannot write the report to /nowhere/r.html: ");
}

/// Compilers read flags from a file that is named after an `@`, wherever it stands.
#[test]
fn a_trace_does_not_hide_flags_in_a_file() {
    let sandbox = traced();
    let text = std::fs::read_to_string(sandbox.path("trace.json")).unwrap();
    sandbox.write("evil.sh", "#!/bin/sh\ntouch ran\n");
    sandbox.write(
        "z.rsp",
        &format!("-wrapper {}", sandbox.path("evil.sh").display()),
    );
    for (flags, named) in [
        ("\"-I\", \"@z.rsp\"", "@z.rsp"),
        ("\"-D\", \"@z.rsp\"", "@z.rsp"),
        ("\"-I@z.rsp\"", "-I@z.rsp"),
    ] {
        let evil = text.replace("\"-DSTEP=1\"", &format!("\"-DSTEP=1\", {flags}"));
        assert_ne!(evil, text);
        sandbox.write("evil.json", &evil);
        sandbox
            .run(&["replay", "evil.json"])
            .ends_with(2)
            .says(&format!("error: the trace has the compiler flag {named}\n"));
        let flags: Vec<&str> = flags
            .split(", ")
            .map(|flag| flag.trim_matches('"'))
            .collect();
        let verify = ["verify", "program.c", "--", "-DSTEP=1"];
        sandbox
            .run(&[&verify, &flags[..]].concat())
            .ends_with(2)
            .says(&format!(
                "the flag {named} cannot be used: flags are not read from files"
            ));
    }
    assert!(!sandbox.path("ran").exists());
}
