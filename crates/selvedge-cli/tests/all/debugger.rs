//! `selvedge debug`, driven by scripts. gdb must be installed, so the tests are ignored; `.ci/run`
//! installs it and runs them.

use crate::common::Sandbox;

const LOST_UPDATE: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int counter;
static void *bump(void *unused) {
  int seen = counter;
  counter = seen + 1;
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, bump, 0);
  bump(0);
  printf(\"joining\\n\");
  pthread_join(other, 0);
  assert(counter == 2);
}
";

/// What gdb prints for each of `commands`, after a line `# command`.
fn debug(commands: &[&str]) -> Vec<(String, String)> {
    let sandbox = Sandbox::with("lost.c", LOST_UPDATE);
    let verify = ["verify", "lost.c", "--trace-out", "bug.json", "--no-advice"];
    sandbox.run(&verify).ends_with(1);
    let lines = commands
        .iter()
        .map(|command| format!("echo # {command}\\n\n{command}\n"));
    sandbox.write("script.gdb", &lines.collect::<String>());
    // gdb kills the program at the end, which leaves a temporary directory to the next command.
    let mut command = sandbox.command(&["debug", "bug.json", "--", "-batch", "-x", "script.gdb"]);
    let outcome = command.output().expect("the debugger runs");
    let mut answers: Vec<(String, String)> = Vec::new();
    for line in String::from_utf8_lossy(&outcome.stdout).lines() {
        match line.strip_prefix("# ") {
            Some(command) => answers.push((command.to_owned(), String::new())),
            None => {
                if let Some((_, answer)) = answers.last_mut() {
                    answer.push_str(line);
                    answer.push('\n');
                }
            }
        }
    }
    assert_eq!(answers.len(), commands.len(), "{outcome:?}");
    answers
}

#[test]
#[ignore = "needs gdb"]
fn every_command_of_the_debugger_works() {
    let answers = debug(&[
        "selvedge goto 1",
        "selvedge step",
        "selvedge step 2",
        "info threads",
        "selvedge values",
        "selvedge list",
        "selvedge back",
        "selvedge back 2",
        "selvedge break counter",
        "selvedge continue",
        "selvedge continue",
        "selvedge clear",
        "selvedge break 6",
        "selvedge continue",
        "selvedge where",
        "selvedge continue",
        "selvedge threads",
        "selvedge goto 3",
    ]);
    let said = |n: usize, text: &str| {
        let (command, answer) = &answers[n];
        assert!(
            answer.contains(text),
            "{command}: {answer:?} lacks {text:?}"
        );
    };
    said(0, "before step 1: T0 create T1 (lost.c:13)");
    said(1, "before step 2: T0 load counter reads 0");
    said(2, "before step 4: T0 store counter writes 1");
    said(3, "* T0 is about to do step 4");
    said(3, "      bump (lost.c:8)");
    said(3, "      main (lost.c:14)");
    said(3, "  T1 is about to do step 5");
    said(4, "counter = 0 (initial)");
    said(5, "> step 4: T0 store");
    said(6, "before step 3");
    said(7, "before step 1: T0 create T1");
    said(8, "stops before each access to counter");
    said(9, "before step 2: T0 load counter");
    said(10, "before step 3");
    said(12, "stops before step 6");
    said(13, "before step 6");
    said(14, "before step 6");
    said(13, "joining");
    said(
        15,
        "at the bug: assertion failed: counter == 2 (T0, lost.c:17)",
    );
    said(16, "* T0 fails");
    said(17, "before step 3");
}
