//! `selvedge debug`, driven by scripts. gdb must be installed, so the tests are ignored; `.ci/run`
//! installs it and runs them.

use std::time::{Duration, Instant};

use crate::common::Sandbox;

const LOST_UPDATE: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int counter; static int plain;
static void *bump(void *unused) {
  int seen = counter;
  counter = seen + 1;
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, bump, 0);
  bump(0); plain = 7;
  printf(\"joining\\n\");
  pthread_join(other, 0);
  assert(counter == 2);
}
";

/// The output of gdb at its start, and for each of `commands`, after a line `# command`.
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
    let mut answers = vec![("the start".to_owned(), String::new())];
    for line in String::from_utf8_lossy(&outcome.stdout).lines() {
        match line.strip_prefix("# ") {
            Some(command) => answers.push((command.to_owned(), String::new())),
            None => {
                let (_, answer) = answers.last_mut().expect("the start at least");
                answer.push_str(line);
                answer.push('\n');
            }
        }
    }
    assert_eq!(answers.len(), 1 + commands.len(), "{outcome:?}");
    answers
}

#[test]
#[ignore = "needs gdb"]
fn every_command_of_the_debugger_works() {
    let answers = debug(&[
        "selvedge where",
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
    said(1, "before step 1: T0 create T1 (lost.c:13)");
    said(2, "before step 2: T0 load counter reads 0");
    said(3, "before step 4: T0 store counter writes 1");
    said(4, "* T0 is about to do step 4");
    said(4, "      bump (lost.c:8)");
    said(4, "      main (lost.c:14)");
    said(4, "  T1 is about to do step 5");
    said(5, "counter = 0 (initial)");
    said(6, "> step 4: T0 store");
    said(7, "before step 3");
    said(8, "before step 1: T0 create T1");
    said(9, "stops before each access to counter");
    said(10, "before step 2: T0 load counter");
    said(11, "before step 3");
    said(13, "stops before step 6");
    said(14, "before step 6");
    said(15, "before step 6");
    said(14, "joining");
    said(
        16,
        "at the bug: assertion failed: counter == 2 (T0, lost.c:17)",
    );
    said(17, "* T0 fails");
    said(18, "before step 3");
    let early = answers[..14].iter().chain(&answers[18..]);
    for (command, answer) in early {
        assert!(!answer.contains("joining"), "{command}: {answer}");
    }
}

#[test]
#[ignore = "needs gdb"]
fn the_debugger_stops_at_accesses_to_plain_variables() {
    let answers = debug(&[
        "selvedge break plain",
        "selvedge continue",
        "selvedge where",
        "selvedge back",
        "selvedge continue",
        "selvedge step",
        "selvedge goto 2",
        "selvedge clear",
        "selvedge continue",
    ]);
    let expected = [
        "before step 1",
        "a plain variable",
        "behind an access by T0 at lost.c:14, after step 4",
        "before step 5",
        "before step 4",
        "behind an access by T0 at lost.c:14, after step 4",
        "before step 5",
        "before step 2",
        "",
        "at the bug",
    ];
    for ((command, answer), expected) in answers.iter().zip(expected) {
        assert!(answer.contains(expected), "{command}: {answer}");
    }
}

#[test]
fn the_documentation_names_every_command_of_the_debugger() {
    let page = include_str!("../../../../docs/debugger.md");
    let script = include_str!("../../src/debug/selvedge_gdb.py");
    let defined = script.split("\ncommand(\"").skip(1);
    let defined: Vec<&str> = defined
        .filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect();
    assert_eq!(defined.len(), 11);
    for name in &defined {
        let named = [format!("`{name}`"), format!("`{name} ")];
        assert!(named.iter().any(|name| page.contains(name)), "{name}");
    }
    for named in page.split("`selvedge ").skip(1) {
        let name = named.split(['`', ' ']).next().unwrap();
        let command = format!("selvedge {name}");
        assert!(name == "debug" || defined.contains(&&*command), "{command}");
    }
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
    let serve = ["debug", "--server", &format!(":{port}"), "bug.json"];
    let server = sandbox
        .command(&[&serve[..], &["--extension", "selvedge_gdb.py"]].concat())
        .spawn()
        .unwrap();
    let extension = sandbox.path("selvedge_gdb.py");
    let patience = Instant::now() + Duration::from_secs(60);
    while !extension.exists() {
        assert!(Instant::now() < patience, "no extension is written");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The editor sends the commands to set up, the program and the server; then come the user's commands.
    let setup = launch["setupCommands"].as_array().unwrap().iter();
    let folder = extension.parent().unwrap().display().to_string();
    let setup = setup.map(|command| {
        let text = command["text"].as_str().unwrap();
        text.replace("${workspaceFolder}", &folder)
    });
    let connect = match launch["useExtendedRemote"].as_bool() {
        Some(true) => "extended-remote",
        _ => "remote",
    };
    let program = env!("CARGO_BIN_EXE_selvedge");
    let typed = [
        format!("file {program}"),
        format!("target {connect} {host}:{port}"),
        "selvedge goto 1".to_owned(),
        "selvedge step 3".to_owned(),
        "selvedge back".to_owned(),
        "info threads".to_owned(),
        "break bump".to_owned(),
        "selvedge goto 1".to_owned(),
        "continue".to_owned(),
        "print seen".to_owned(),
        "delete".to_owned(),
        "selvedge continue".to_owned(),
        "continue".to_owned(),
        "monitor exit".to_owned(),
    ];
    let words: Vec<String> = setup.chain(typed).collect();
    let mut gdb = std::process::Command::new("gdb");
    gdb.args(["-q", "-batch"]);
    gdb.args(words.iter().flat_map(|word| ["-ex", word]));
    let output = gdb.output().expect("gdb runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut rest = &*said;
    for expected in [
        "before step 1: T0 create T1",
        "before step 4: T0 store counter",
        "before step 3: T1 load counter",
        "* T1 is about to do step 3",
        "Breakpoint 1, bump",
        "at the bug: assertion failed",
    ] {
        let found = rest.split_once(expected);
        rest = found.unwrap_or_else(|| panic!("{expected} in {rest}")).1;
    }
    assert!(said.contains("exited with code 01"), "{said}");
    let outcome = server.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&outcome.stdout);
    assert!(shown.contains("bug: assertion failed"), "{shown}");
}
