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

/// The configuration in docs/debugger.md.
fn launch_configuration() -> serde_json::Value {
    let page = include_str!("../../../../docs/debugger.md");
    let (_, rest) = page.split_once("```json\n").expect("a launch.json");
    let (text, _) = rest.split_once("```").expect("its end");
    let launch: serde_json::Value = serde_json::from_str(text).expect("JSON");
    launch["configurations"][0].clone()
}

#[test]
#[ignore = "needs gdb and gdbserver"]
fn an_editor_attaches_to_the_server_as_the_documentation_says() {
    let sandbox = Sandbox::with("lost.c", LOST_UPDATE);
    let verify = ["verify", "lost.c", "--trace-out", "bug.json", "--no-advice"];
    sandbox.run(&verify).ends_with(1);
    let launch = launch_configuration();
    assert_eq!(launch["type"], "cppdbg");
    assert_eq!(launch["MIMode"], "gdb");
    let address = launch["miDebuggerServerAddress"].as_str().unwrap();
    let (host, _) = address.split_once(':').unwrap();
    let free = std::net::TcpListener::bind((host, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let server = sandbox
        .command(&["debug", "--server", &format!(":{port}"), "bug.json"])
        .spawn()
        .unwrap();
    // What the editor sends: the program, the server, a breakpoint, and on.
    let program = env!("CARGO_BIN_EXE_selvedge");
    let words = [
        format!("file {program}"),
        format!("target remote {host}:{port}"),
        "set breakpoint pending on".to_owned(),
        "break bump".to_owned(),
        "continue".to_owned(),
        "print seen".to_owned(),
        "delete".to_owned(),
        "continue".to_owned(),
    ];
    let mut gdb = std::process::Command::new("gdb");
    gdb.args(["-q", "-batch"]);
    gdb.args(words.iter().flat_map(|word| ["-ex", word]));
    let output = gdb.output().expect("gdb runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Breakpoint 1, bump"), "{said}");
    assert!(said.contains("exited with code 01"), "{said}");
    let outcome = server.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&outcome.stdout);
    assert!(shown.contains("bug: assertion failed"), "{shown}");
}
