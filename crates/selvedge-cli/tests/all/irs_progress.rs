//! Proofs get on: whoever proves a program without an end is told so at once.

use std::io::{BufRead as _, BufReader};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::Sandbox;

/// A thread with this body beside `main`.
fn threads(body: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_int x;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static int served;\n\
         static void *work(void *p) {{\n{body}\nreturn p; }}\n\
         int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0);\n\
         x++; pthread_join(t, 0); return 0; }}\n"
    )
}

/// No limit ends these proofs.
#[test]
fn a_program_without_an_end_is_refused_at_once() {
    let served = "for (;;) { pthread_mutex_lock(&m); served++; pthread_mutex_unlock(&m); }";
    for body in ["for (;;) x++;", served] {
        let sandbox = Sandbox::with("endless.c", &threads(body));
        let outcome = sandbox.run(&["irs", "verify", "endless.c"]);
        outcome
            .ends_with(2)
            .says("warning: the loop at endless.c:7 went round ")
            .says("error: there is nothing to enforce: no execution comes to its end within 20000 steps\n")
            .says("schedules can be enforced only for programs that end: bound the loops that do not");
        assert_eq!(outcome.stderr.matches("warning").count(), 1, "{outcome:?}");
        assert!(!sandbox.path("endless.irs").exists());
        let outcome = sandbox.run(&["irs", "verify", "endless.c", "--unroll", "3"]);
        outcome
            .ends_with(2)
            .says("--unroll does not go with irs verify");
    }
}

#[test]
fn options_that_do_not_go_with_a_proof_are_not_offered() {
    for command in ["verify", "run"] {
        let help = Sandbox::new().run(&["irs", command, "--help"]);
        for option in ["--unroll", "--env", "--args", "--stdin"] {
            assert!(
                !help.ends_with(0).stdout.contains(option),
                "{command} {option}"
            );
        }
    }
}

/// Where only some executions have no end the others may still be proven first.
#[test]
fn an_execution_without_an_end_is_told_of_when_it_is_met() {
    let body = "while (x < 1) x = x - 1;";
    let sandbox = Sandbox::with("lucky.c", &threads(body));
    let mut child = sandbox
        .command(&["irs", "verify", "lucky.c"])
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(
        line.starts_with("warning: the loop at lucky.c:7 went round "),
        "{line}"
    );
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    sandbox.finish(child).ends_with(3);
}
