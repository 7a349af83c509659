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

/// The output of gdb at its start, and for each of `commands`.
fn debug(commands: &[&str]) -> Vec<(String, String)> {
    debug_program("lost.c", LOST_UPDATE, commands)
}

fn debug_program(name: &str, program: &str, commands: &[&str]) -> Vec<(String, String)> {
    let sandbox = Sandbox::with(name, program);
    let verify = ["verify", name, "--trace-out", "bug.json", "--no-advice"];
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
    said(3, "before step 4: T1 store counter writes 1");
    said(4, "* T1 is about to do step 4");
    said(4, "      bump (lost.c:8)");
    said(4, "      main (lost.c:14)");
    said(4, "  T0 is about to do step 5");
    said(5, "counter = 0 (initial)");
    said(6, "> step 4: T1 store");
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
    for (command, answer) in &answers {
        let noise = ["libthread_db", "auto-load", "[New", "exited"];
        let heard: Vec<&&str> = noise
            .iter()
            .filter(|noise| answer.contains(**noise))
            .collect();
        assert!(heard.is_empty(), "{command}: {answer}");
    }
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
        "behind an access by T0 at lost.c:14, after step 5",
        "before step 6",
        "before step 5",
        "behind an access by T0 at lost.c:14, after step 5",
        "before step 6",
        "before step 2",
        "",
        "at the bug",
    ];
    for ((command, answer), expected) in answers.iter().zip(expected) {
        assert!(answer.contains(expected), "{command}: {answer}");
    }
}

/// Checks that the answers to `commands` contain the texts beside them, in that order, and none of those of
/// the checker's insides but the place where the schedule stops.
#[track_caller]
fn answers_contain(name: &str, program: &str, expected: &[(&str, &[&str])]) {
    let commands: Vec<&str> = expected.iter().map(|(command, _)| *command).collect();
    let answers = debug_program(name, program, &commands);
    for ((command, answer), (_, texts)) in answers[1..].iter().zip(expected) {
        let mut rest = answer.as_str();
        for text in *texts {
            let found = rest.split_once(text);
            rest = found
                .unwrap_or_else(|| panic!("{command}: {answer:?} lacks {text:?}"))
                .1;
        }
        assert!(!answer.contains("Follower"), "{command}: {answer}");
    }
}

#[test]
#[ignore = "needs gdb"]
fn the_stack_is_that_of_the_programs_thread() {
    answers_contain(
        "lost.c",
        LOST_UPDATE,
        &[
            ("backtrace", &["#1", "main () at lost.c:13"]),
            (
                "selvedge goto 5",
                &["before step 5: T0", "bump (unused=0x0) at lost.c:8"],
            ),
            (
                "backtrace",
                &[
                    "#1",
                    "bump (unused=0x0) at lost.c:8",
                    "#2",
                    "main () at lost.c:14",
                ],
            ),
            ("info locals", &["seen = 0"]),
            ("list", &["counter = seen + 1;"]),
            ("frame", &["#1", "bump"]),
            ("print seen + 40", &["= 40"]),
            ("up", &["main () at lost.c:14"]),
            ("display counter", &[]),
            // The other thread.
            (
                "selvedge back",
                &["before step 4: T1", "bump", "lost.c:8", "1: counter = 0"],
            ),
            ("backtrace", &["#1", "bump (unused=0x0) at lost.c:8"]),
            (
                "selvedge back 2",
                &["before step 2: T0", "bump", "lost.c:7", "1: counter = 0"],
            ),
            ("break bump", &["Breakpoint 1"]),
            ("selvedge goto 1", &["before step 1"]),
            ("continue", &["hit Breakpoint 1, bump"]),
            ("backtrace", &["#0", "bump", "#1", "main () at lost.c:14"]),
            ("delete", &[]),
            ("continue", &["at the bug: assertion failed: counter == 2"]),
            ("backtrace", &["#1", "main () at lost.c:17"]),
            (
                "selvedge values",
                &["counter = 1 (step 5)", "plain = 7 (step 5)"],
            ),
        ],
    );
}

#[test]
#[ignore = "needs gdb"]
fn breakpoints_on_members_stop_at_the_steps_and_the_accesses_of_the_right_thread() {
    let program = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
struct q { int len; atomic_int n; int arr[4]; };
static struct q q, *p = &q;
static void *f(void *u) { q.len = 1; atomic_fetch_add(&p->n, 1); q.arr[2] = 5; return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  int s = atomic_load(&p->n);
  pthread_join(t, 0);
  assert(s);
}
";
    answers_contain(
        "fld.c",
        program,
        &[
            ("selvedge break p->n", &["stops before each access to p->n"]),
            ("selvedge continue", &["before step 2: T0 load q.n"]),
            ("selvedge continue", &["before step 3: T1 fetch-add q.n"]),
            ("selvedge clear", &[]),
            ("selvedge goto 1", &["before step 1"]),
            ("selvedge break q.len", &["a plain variable"]),
            ("selvedge break p->arr[2]", &["a plain variable"]),
            (
                "selvedge continue",
                &["behind an access by T1 at fld.c:6, after step 1"],
            ),
            (
                "selvedge continue",
                &["behind an access by T1 at fld.c:6, after step 3"],
            ),
            ("selvedge continue", &["at the bug"]),
            ("selvedge continue", &["at the bug"]),
        ],
    );
}

#[test]
#[ignore = "needs gdb"]
fn a_stop_must_be_in_the_schedule() {
    let command = r#"python exec("try:\n gdb.execute('selvedge break 99')\nexcept gdb.error as error:\n print(error)")"#;
    let answers = debug(&[command]);
    let (_, answer) = answers.last().expect("an answer");
    assert!(answer.contains("the schedule has 7 steps"), "{answer}");
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

/// The debugger as a server for an editor.
struct Server {
    sandbox: Sandbox,
    process: std::process::Child,
    /// The editor's input at the start: its commands to set up, the program, the server.
    setup: Vec<String>,
    connect: String,
}

impl Server {
    fn start() -> Server {
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
        let process = sandbox
            .command(&[&serve[..], &["--extension", "selvedge_gdb.py"]].concat())
            .spawn()
            .unwrap();
        let extension = sandbox.path("selvedge_gdb.py");
        let patience = Instant::now() + Duration::from_secs(60);
        while !extension.exists() {
            assert!(Instant::now() < patience, "no extension is written");
            std::thread::sleep(Duration::from_millis(10));
        }
        let setup = launch["setupCommands"].as_array().unwrap().iter();
        let folder = extension.parent().unwrap().display().to_string();
        let setup = setup.map(|command| {
            let text = command["text"].as_str().unwrap();
            text.replace("${workspaceFolder}", &folder)
        });
        let setup = setup.collect();
        let connect = match launch["useExtendedRemote"].as_bool() {
            Some(true) => format!("extended-remote {host}:{port}"),
            _ => format!("remote {host}:{port}"),
        };
        Server {
            sandbox,
            process,
            setup,
            connect,
        }
    }

    /// Waits for its end, and checks that it has shown the bug.
    fn finish(self) {
        let outcome = self.process.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&outcome.stdout);
        assert!(shown.contains("bug: assertion failed"), "{shown}");
        drop(self.sandbox);
    }
}

#[test]
#[ignore = "needs gdb and gdbserver"]
fn an_editor_attaches_to_the_server_as_the_documentation_says() {
    let server = Server::start();
    let program = env!("CARGO_BIN_EXE_selvedge");
    let typed = [
        format!("file {program}"),
        format!("target {}", server.connect),
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
    let words: Vec<String> = server.setup.iter().cloned().chain(typed).collect();
    let mut gdb = std::process::Command::new("gdb");
    gdb.args(["-q", "-batch"]);
    gdb.args(words.iter().flat_map(|word| ["-ex", word]));
    let output = gdb.output().expect("gdb runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut rest = &*said;
    for expected in [
        "before step 1: T0 create T1",
        "before step 4: T1 store counter",
        "before step 3: T1 load counter",
        "* T1 is about to do step 3",
        "Breakpoint 1, bump",
        "at the bug: assertion failed",
    ] {
        let found = rest.split_once(expected);
        rest = found.unwrap_or_else(|| panic!("{expected} in {rest}")).1;
    }
    assert!(said.contains("exited with code 01"), "{said}");
    server.finish();
}

#[test]
#[ignore = "needs gdb and gdbserver"]
fn an_editor_sees_the_programs_frames_and_locals_in_the_machine_interface() {
    let server = Server::start();
    let console = |command: &str| format!("-interpreter-exec console \"{command}\"");
    let mut words: Vec<String> = server.setup.iter().map(|word| console(word)).collect();
    words.extend([
        format!("-file-exec-and-symbols {}", env!("CARGO_BIN_EXE_selvedge")),
        format!("-target-select {}", server.connect),
        console("selvedge goto 5"),
        "-stack-list-frames".to_owned(),
        "-stack-select-frame 1".to_owned(),
        "-stack-list-variables --all-values".to_owned(),
        "-break-insert -f lost.c:9".to_owned(),
        "-exec-continue".to_owned(),
        "-stack-list-frames".to_owned(),
        "-data-evaluate-expression seen".to_owned(),
        "-break-delete".to_owned(),
        "-exec-continue".to_owned(),
        "-stack-list-frames".to_owned(),
        "-exec-continue".to_owned(),
        console("monitor exit"),
    ]);
    let said = machine_interface(&words);
    let mut rest = &*said;
    for expected in [
        "before step 5: T0 store counter",
        r#"level="1""#,
        r#"func="bump",file="lost.c""#,
        r#"line="8""#,
        r#"level="2""#,
        r#"func="main",file="lost.c""#,
        r#"{name="seen",value="0"}"#,
        r#"*stopped,reason="breakpoint-hit""#,
        r#"func="bump""#,
        r#"line="9""#,
        r#"^done,value="0""#,
        "at the bug: assertion failed",
        r#"func="main",file="lost.c""#,
        r#"line="17""#,
        r#"*stopped,reason="exited",exit-code="01""#,
    ] {
        let found = rest.split_once(expected);
        rest = found.unwrap_or_else(|| panic!("{expected} in {said}")).1;
    }
    server.finish();
}

/// The output of gdb for an editor that sends these commands, each when the process stands still.
fn machine_interface(words: &[String]) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};
    let mut gdb = Command::new("gdb")
        .args(["-q", "--interpreter=mi2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("gdb runs");
    let mut input = gdb.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(gdb.stdout.take().expect("a pipe")).lines();
    let mut said = String::new();
    for word in words {
        writeln!(input, "{word}").expect("gdb listens");
        // A command that runs the process has ended when the process stops.
        let mut ends = ["^done", "^error", "^connected"].as_slice();
        for line in lines.by_ref() {
            let line = line.expect("text");
            said += &format!("{line}\n");
            if line.starts_with("^running") {
                ends = &["*stopped"];
            } else if ends.iter().any(|end| line.starts_with(end)) {
                break;
            }
        }
    }
    drop(input);
    said.extend(lines.map(|line| line.expect("text") + "\n"));
    gdb.wait().expect("gdb ends");
    said
}
