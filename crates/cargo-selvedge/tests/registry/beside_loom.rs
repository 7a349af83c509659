//! The same tests with Selvedge and with loom, for the tables in `docs/rust.md`:
//! `cargo test -p cargo-selvedge --test registry -- --ignored --nocapture beside_loom`.
//!
//! `SELVEDGE_SUITES=parking,tokio-runtime` chooses suites, `SELVEDGE_SECONDS=60` is how long each test may take.
//! Each test is a process of its own, which both libraries run one after the other; the times are those that the
//! processes had a processor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use super::{build_as_usual, copy, fetch, source};

/// Some loom tests of a crate.
struct Suite {
    name: &'static str,
    /// The crate and its version.
    of: (&'static str, &'static str),
    cfg: &'static str,
    /// The bound on preemptions, as the crate's own continuous integration has it.
    bound: Option<&'static str>,
    /// The model that Selvedge checks, if it is not the default.
    model: Option<&'static str>,
    /// The prefix of the names of the tests.
    prefix: &'static str,
    /// The arguments of cargo that choose the test program.
    cargo: &'static str,
}

const SUITE: Suite = Suite {
    name: "",
    of: ("", ""),
    cfg: "loom",
    bound: None,
    model: None,
    prefix: "",
    cargo: "--features loom --test loom",
};

const SUITES: [Suite; 10] = [
    Suite {
        name: "concurrent-queue",
        of: ("concurrent-queue", "2.5.0"),
        bound: Some("2"),
        model: Some("sc"),
        ..SUITE
    },
    Suite {
        name: "event-listener",
        of: ("event-listener", "5.4.2"),
        ..SUITE
    },
    Suite {
        name: "parking",
        of: ("parking", "2.2.1"),
        ..SUITE
    },
    Suite {
        name: "bytes",
        of: ("bytes", "1.12.1"),
        prefix: "fuzz",
        cargo: "--lib",
        ..SUITE
    },
    Suite {
        name: "left-right",
        of: ("left-right", "0.11.8"),
        cargo: "--test loom",
        ..SUITE
    },
    Suite {
        name: "sharded-slab",
        of: ("sharded-slab", "0.1.7"),
        bound: Some("2"),
        cargo: "--lib",
        ..SUITE
    },
    Suite {
        name: "haphazard",
        of: ("haphazard", "0.1.8"),
        bound: Some("2"),
        cargo: "--test loom",
        ..SUITE
    },
    Suite {
        name: "diatomic-waker",
        of: ("diatomic-waker", "0.2.3"),
        cfg: "diatomic_waker_loom",
        bound: Some("2"),
        cargo: "--lib",
        ..SUITE
    },
    Suite {
        name: "tokio-sync",
        of: ("tokio", "1.54.1"),
        bound: Some("2"),
        prefix: "sync::tests::loom_",
        cargo: "--lib --features full,test-util",
        ..SUITE
    },
    Suite {
        name: "tokio-runtime",
        of: ("tokio", "1.54.1"),
        bound: Some("2"),
        prefix: "runtime::tests::loom_",
        cargo: "--lib --features full,test-util",
        ..SUITE
    },
];

/// How a test went with one of the libraries.
#[derive(Default)]
struct Went {
    /// The failure, if the test neither passed nor took too long.
    failure: Option<String>,
    is_too_slow: bool,
    executions: u64,
    blocked: u64,
    time: Duration,
}

impl Went {
    fn result(&self) -> &str {
        match (&self.failure, self.is_too_slow) {
            (Some(_), _) => "fails",
            (None, true) => "not in time",
            (None, false) => "passes",
        }
    }

    fn count(&self, count: u64) -> String {
        match (count, self.is_too_slow) {
            // loom does not tell if the test has a builder of its own.
            (0, _) => "?".to_owned(),
            (_, true) => format!("{count}+"),
            (_, false) => count.to_string(),
        }
    }
}

/// The time that the processes had that have ended so far.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = |value: nix::sys::time::TimeVal| {
        Duration::new(value.tv_sec() as u64, 1_000 * value.tv_usec() as u32)
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// Runs a test and returns what it says, and whether it was stopped after `limit`.
fn run(command: &mut Command, here: &Path, test: &str, limit: Duration) -> (String, Went) {
    let (start, before) = (Instant::now(), used());
    let log = here.join("log");
    let file = fs::File::create(&log).unwrap();
    let arguments = ["--exact", test, "--nocapture", "--test-threads=1"];
    command.args(arguments).current_dir(here);
    command.stderr(file.try_clone().unwrap()).stdout(file);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let mut went = Went::default();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            went.is_too_slow = true;
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    went.time = used() - before;
    let said = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    if !status.success() && !went.is_too_slow {
        went.failure = Some(said.clone());
    }
    (said, went)
}

/// The first number of `text`.
fn number(text: &str) -> u64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().unwrap_or(0)
}

impl Suite {
    /// Builds the tests with Selvedge or with loom. Returns the test program.
    fn build(&self, directory: &Path, here: &Path, with_loom: bool) -> PathBuf {
        let (target, mut command) = match with_loom {
            true => {
                let mut command = Command::new(env!("CARGO"));
                build_as_usual(&mut command, &format!("--cfg {}", self.cfg));
                command.args(["test", "--no-run"]);
                (directory.join("loom-target"), command)
            }
            false => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"));
                build_as_usual(&mut command, "");
                command.args(["selvedge", "test", "--exact", "none of them"]);
                command.args(["--cfg", self.cfg, "--"]);
                (directory.join("target"), command)
            }
        };
        let output = command
            .args(self.cargo.split_whitespace())
            .env("CARGO_TARGET_DIR", &target)
            .current_dir(here)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // The last line of cargo: Executable unittests src/lib.rs (PATH), with loom; otherwise it is not shown.
        let shown = said.rsplit_once("Executable ").and_then(|(_, rest)| {
            let (_, path) = rest.split_once('(')?;
            Some(here.join(path.split_once(')')?.0))
        });
        let built = shown.or_else(|| newest(&target.join("debug/deps")));
        built.unwrap_or_else(|| panic!("{} is not built: {said}", self.name))
    }

    /// The tests of the program.
    fn tests(&self, program: &Path) -> Vec<String> {
        let list = ["--list", "--format", "terse"];
        let output = Command::new(program).args(list).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let wanted = |name: &&str| name.starts_with(self.prefix);
        names.filter(wanted).map(str::to_owned).collect()
    }

    fn with_selvedge(&self, program: &Path, here: &Path, test: &str, limit: Duration) -> Went {
        let mut command = Command::new(program);
        command.envs(self.bound.map(|bound| ("SELVEDGE_MAX_PREEMPTIONS", bound)));
        command.envs(self.model.map(|model| ("SELVEDGE_MODEL", model)));
        command.envs([("SELVEDGE_LOG", "1"), ("SELVEDGE_ALLOW_INCOMPLETE", "1")]);
        command.env("SELVEDGE_MAX_DURATION", limit.as_secs().to_string());
        // It stops itself, and tells what it has done so far.
        let start = Instant::now();
        let (said, mut went) = run(&mut command, here, test, limit + Duration::from_secs(30));
        for line in said.lines() {
            let Some(counts) = line.split_once("selvedge: ").map(|(_, counts)| counts) else {
                continue;
            };
            went.executions += number(counts);
            let blocked = counts.split_once(" executions, ");
            went.blocked += blocked.map_or(0, |(_, rest)| number(rest));
            // Some tests ask for one execution only.
            went.is_too_slow |= line.ends_with(": Stopped") && start.elapsed() >= limit;
        }
        went
    }

    fn with_loom(&self, program: &Path, here: &Path, test: &str, limit: Duration) -> Went {
        let mut command = Command::new(program);
        command.env("LOOM_LOG", "loom=info");
        command.envs(self.bound.map(|bound| ("LOOM_MAX_PREEMPTIONS", bound)));
        let (said, mut went) = run(&mut command, here, test, limit);
        for line in said.lines() {
            if let Some((_, rest)) = line.split_once("Completed in ") {
                went.executions += number(rest);
            }
        }
        went
    }
}

/// The executable in `directory` that was written last.
fn newest(directory: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(directory).ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let written = path.metadata().and_then(|data| data.modified()).ok()?;
        path.extension().is_none().then_some((written, path))
    });
    files.max().map(|(_, path)| path)
}

#[test]
#[ignore = "builds other crates twice, see above"]
fn beside_loom() {
    let variable = |name: &str| std::env::var(name).ok();
    let limit = variable("SELVEDGE_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    let limit = Duration::from_secs(limit);
    let chosen = variable("SELVEDGE_SUITES");
    let is_chosen = |suite: &&Suite| {
        let chosen = chosen.as_ref();
        chosen.is_none_or(|names| names.split(',').any(|name| name == suite.name))
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
    let copies = std::env::temp_dir().join(format!("cargo-selvedge-loom-{}", std::process::id()));
    let mut crates: Vec<_> = SUITES.iter().map(|suite| suite.of).collect();
    crates.dedup();
    let metadata = fetch(&directory, crates.into_iter());
    println!(
        "| test | Selvedge | executions | blocked | s | loom | executions | s |\n|---|---|---|---|---|---|---|---|"
    );
    let (mut worse, mut failures) = (Vec::new(), Vec::new());
    for suite in SUITES.iter().filter(is_chosen) {
        let here = copies.join(suite.name);
        copy(&source(&metadata, suite.of), &here);
        let loom_program = suite.build(&directory, &here, true);
        let program = suite.build(&directory, &here, false);
        for test in suite.tests(&program) {
            let ours = suite.with_selvedge(&program, &here, &test, limit);
            let looms = suite.with_loom(&loom_program, &here, &test, limit);
            let name = test.strip_prefix(suite.prefix).unwrap_or(&test);
            println!(
                "| {} `{name}` | {} | {} | {} | {:.3} | {} | {} | {:.3} |",
                suite.name,
                ours.result(),
                ours.count(ours.executions),
                ours.blocked,
                ours.time.as_secs_f64(),
                looms.result(),
                looms.count(looms.executions),
                looms.time.as_secs_f64(),
            );
            if looms.result() == "passes"
                && (ours.result() != "passes"
                    || (looms.executions > 0 && ours.executions > looms.executions)
                    || ours.time > looms.time)
            {
                worse.push(format!("{} {name}", suite.name));
            }
            if let Some(failure) = ours.failure {
                failures.push(format!("{} {name}: {failure}", suite.name));
            }
        }
    }
    let _ = fs::remove_dir_all(copies);
    println!("not better than loom: {worse:#?}\nfailures: {failures:#?}");
}
