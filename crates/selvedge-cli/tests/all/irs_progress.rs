//! Proofs get on: whoever proves a program without an end is told so at once, and a proof that is killed again and
//! again comes to its end nevertheless.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use selvedge_irs_format::{Contents, View};
use serde_json::Value;

use crate::common::{Outcome, Sandbox, workers_of};
use crate::irs_verify::{example, prefix};
use crate::kills::kills;

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
            .says("error: there is nothing to enforce: no execution ends within 20000 steps\n")
            .says(
                "schedules can be enforced only for programs that end: bound the endless loops in the program",
            );
        assert_eq!(outcome.stderr.matches("warning").count(), 1, "{outcome:?}");
        assert!(!sandbox.path("endless.irs").exists());
        let outcome = sandbox.run(&["irs", "verify", "endless.c", "--unroll", "3"]);
        outcome
            .ends_with(2)
            .says("`irs verify` does not support --unroll");
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

/// How many executions a proof has explored, those of the step in hand as well.
fn explored(sandbox: &Sandbox) -> u64 {
    let contents = Contents::read(View::new(&prefix(sandbox)).unwrap());
    let state: Value = serde_json::from_slice(&contents.resume).expect("JSON");
    let attempts = state["saved"]["attempts"].as_array().expect("a list");
    let segments = attempts
        .iter()
        .filter_map(|attempt| attempt["work"]["segments"].as_array());
    let done = segments
        .flatten()
        .filter_map(|segment| segment["Done"]["counts"]["executions"].as_u64());
    contents.traces + done.sum::<u64>()
}

/// The processor time of a verifier, its compilers and its workers.
fn processor_time(verifier: u32) -> Duration {
    let ticks = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (_, numbers) = stat.rsplit_once(") ").unwrap_or_default();
        // Of the process, and of those of its children that it has waited for.
        let times = numbers.split(' ').skip(11).take(4);
        let ticks = times.map(|ticks| ticks.parse::<u64>().expect("a number"));
        ticks.sum::<u64>()
    };
    let all = ticks(verifier) + workers_of(verifier).into_iter().map(ticks).sum::<u64>();
    Duration::from_millis(10 * all)
}

/// Four threads, written in C++ with headers that take long to compile.
const CXX: &str = "\
#include <atomic>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>
static std::atomic<int> x;
static void add() { x = x + 1; x = x + 1; }
int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(add);
  for (auto &thread : threads) thread.join();
}
";

/// A proof that is killed every second explores at least half as much as one that is let alone. These are seconds of
/// processor time: how much of the processor a proof gets is not its business.
///
/// `SELVEDGE_KILLS=100` kills it a hundred times.
#[test]
#[ignore = "takes minutes"]
fn a_proof_that_is_killed_every_second_goes_half_as_fast() {
    let kills = kills();
    let source = example("micro.c");
    let micro = [
        source.to_str().unwrap(),
        "--plain",
        "sc",
        "--",
        "-DTHREADS=4",
    ];
    for arguments in [&micro[..], &["threads.cc"]] {
        let (alone, killed) = (Sandbox::new(), Sandbox::new());
        let run = |sandbox: &Sandbox, seconds: u32| {
            sandbox.write("threads.cc", CXX);
            let mut command = sandbox.command(&["irs", "verify", "-o", "p.irs"]);
            let mut child = command.args(arguments).spawn().expect("it starts");
            while processor_time(child.id()) < Duration::from_secs(seconds.into()) {
                let ended: Option<_> = child.try_wait().expect("a child");
                assert!(ended.is_none(), "{}", words(child));
                sleep(Duration::from_millis(5));
            }
            child.kill().expect("it can be killed");
            child.wait().expect("and is gone");
        };
        // Both find what is kept of their programs.
        run(&Sandbox::new(), 2);
        run(&alone, kills);
        (0..kills).for_each(|_| run(&killed, 1));
        let (alone, killed) = (explored(&alone), explored(&killed));
        println!("{arguments:?}: {alone} undisturbed, {killed} with {kills} kills");
        assert!(2 * killed >= alone, "{arguments:?}: {alone} and {killed}");
    }
}

fn words(child: Child) -> String {
    let output = child.wait_with_output().expect("it has ended");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `irs verify` on `prog.cc` with a compiler that notes when it compiles, and how often that was.
fn compilations(sandbox: &Sandbox, options: &[&str], status: i32) -> (Outcome, usize) {
    let log = sandbox.path("log");
    let _ = fs::remove_file(&log);
    let compiler = sandbox.path("c++");
    if !compiler.exists() {
        let noting = "case \" $* \" in *\" -S \"*) echo >>\"$LOG\";; esac";
        sandbox.write("c++", &format!("#!/bin/sh\n{noting}\nexec g++ \"$@\"\n"));
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = sandbox.command(&["irs", "verify", "prog.cc", "--anew"]);
    command.arg("--cc").arg(&compiler).env("LOG", &log);
    command.env("XDG_CACHE_HOME", sandbox.path("cache"));
    let outcome = sandbox.finish(command.args(options).spawn().unwrap());
    outcome.ends_with(status);
    let lines = fs::read_to_string(log).unwrap_or_default().lines().count();
    (outcome, lines)
}

/// The output of a C++ compiler is kept, but never used if it would write something else now.
#[test]
fn an_unchanged_program_in_cxx_is_compiled_once() {
    let sandbox = Sandbox::new();
    let header = |good: bool| {
        format!("#include <cassert>\ninline int check() {{ assert({good}); return 0; }}\n")
    };
    sandbox.write(
        "prog.cc",
        "#include \"check.h\"\nint main() { return check(); }\n",
    );
    for directory in ["first", "second"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.write("second/check.h", &header(true));
    let run = |options: &[&str], status: i32| {
        let paths = ["--", "-Ifirst", "-Isecond"];
        compilations(&sandbox, &[options, &paths].concat(), status).1
    };
    let (proven, fails) = (0, 2);
    assert_eq!(run(&[], proven), 1);
    assert_eq!(run(&[], proven), 0);
    assert_eq!(run(&["--plain", "sc"], proven), 0);
    // Other flags.
    assert_eq!(compilations(&sandbox, &["--", "-Isecond"], proven).1, 1);
    // A header that changes, and changes back.
    sandbox.write("second/check.h", &header(false));
    assert_eq!(run(&[], fails), 1);
    assert_eq!(run(&[], fails), 0);
    sandbox.write("second/check.h", &header(true));
    assert_eq!(run(&[], proven), 0);
    // One that comes before it.
    sandbox.write("first/check.h", &header(false));
    assert_eq!(run(&[], fails), 1);
    // The compiler itself.
    let compiler = fs::read_to_string(sandbox.path("c++")).unwrap();
    sandbox.write("c++", &(compiler + "# newer\n"));
    assert_eq!(run(&[], fails), 1);
    // Kept files may be damaged.
    for entry in fs::read_dir(sandbox.path("cache/selvedge")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with("assembly-") {
            fs::write(path, "nonsense\nnonsense").unwrap();
        }
    }
    assert_eq!(run(&[], fails), 1);
    // Warnings are shown each time.
    sandbox.write("prog.cc", "int main() { int unused; return 0; }\n");
    for _ in 0..2 {
        let (outcome, compiled) = compilations(&sandbox, &["--", "-Wall"], proven);
        outcome.says("unused variable");
        assert_eq!(compiled, 1);
    }
}
