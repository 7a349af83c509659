//! The loom tests that crates of the registry ship, unmodified.
//!
//! Builds everything anew with `--cfg loom`, so it is run only when asked for:
//! `cargo test -p cargo-selvedge --test registry -- --ignored the_loom_tests`. With loom as well, for the table in
//! `docs/rust.md`: `… -- --ignored --nocapture beside_loom`; `SELVEDGE_CRATES=parking,bytes` chooses crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A crate and how its loom tests are run.
struct Crate {
    name: &'static str,
    version: &'static str,
    /// What `cargo selvedge test` is told. Bounds are those of the crate's own continuous integration.
    arguments: &'static str,
    /// How many tests there must be.
    tests: usize,
}

const CRATES: [Crate; 6] = [
    Crate {
        name: "concurrent-queue",
        version: "2.5.0",
        arguments: "--preemptions 2 --model sc -- --features loom --test loom",
        tests: 2,
    },
    Crate {
        name: "event-listener",
        version: "5.4.2",
        arguments: "-- --features loom --test loom",
        tests: 9,
    },
    Crate {
        name: "parking",
        version: "2.2.1",
        arguments: "-- --features loom --test loom",
        tests: 2,
    },
    Crate {
        name: "bytes",
        version: "1.12.1",
        arguments: "fuzz -- --lib",
        tests: 2,
    },
    Crate {
        name: "left-right",
        version: "0.11.8",
        arguments: "-- --test loom",
        tests: 1,
    },
    Crate {
        name: "tokio",
        version: "1.54.1",
        // Those that end within seconds.
        arguments: "loom_list loom_oneshot loom_notify loom_mpsc loom_watch loom_set_once loom_rwlock \
                    --skip concurrent_read_write --skip wait_for_test --skip loom_mpsc::try_recv \
                    --preemptions 2 -- --lib --features full,test-util",
        tests: 38,
    },
];

/// Where cargo keeps the sources of all crates, having fetched them.
fn fetch(directory: &Path) -> String {
    let fetch = directory.join("fetch");
    fs::create_dir_all(fetch.join("src")).unwrap();
    fs::write(fetch.join("src/lib.rs"), "").unwrap();
    let mut manifest = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                        [workspace]\n[dependencies]\n"
        .to_owned();
    for known in &CRATES {
        manifest.push_str(&format!("{} = \"={}\"\n", known.name, known.version));
    }
    fs::write(fetch.join("Cargo.toml"), manifest).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .current_dir(&fetch)
        .output()
        .unwrap();
    assert!(output.status.success(), "the registry is out of reach");
    String::from_utf8(output.stdout).unwrap()
}

/// The directory that the manifest of this crate is in.
fn source(metadata: &str, known: &Crate) -> PathBuf {
    let end = format!("{}-{}/Cargo.toml\"", known.name, known.version);
    let end = metadata.find(&end).expect("it was fetched") + end.len() - "/Cargo.toml\"".len();
    let begin = metadata[..end].rfind('"').unwrap() + 1;
    PathBuf::from(&metadata[begin..end])
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

/// How both are built.
fn build_as_usual(command: &mut Command, flags: &str) {
    command
        .env("RUSTFLAGS", format!("--cap-lints allow {flags}"))
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
}

/// Runs the tests of `known`, of which there is a copy `here`. Returns the results as JUnit XML.
fn check(directory: &Path, here: &Path, known: &Crate, one_at_a_time: bool) -> String {
    let junit = directory.join(format!("{}.xml", known.name));
    let report = directory.join(format!("{}-report", known.name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"));
    build_as_usual(&mut command, "");
    let output = command
        .args(["selvedge", "test", "--junit"])
        .arg(&junit)
        .arg("--report")
        .arg(&report)
        .args(one_at_a_time.then_some("--jobs=1"))
        .args(known.arguments.split_whitespace())
        .current_dir(here)
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = format!("{} passed, 0 failed", known.tests);
    assert!(
        output.status.success() && text.contains(&passed),
        "{}\n{text}\n{}",
        known.name,
        String::from_utf8_lossy(&output.stderr)
    );
    let results = fs::read_to_string(junit).unwrap();
    assert_eq!(results.matches("<testcase ").count(), known.tests);
    let index = fs::read_to_string(report.join("index.html")).unwrap();
    assert_eq!(index.matches("<td><a href=").count(), known.tests);
    println!("{}: {text}", known.name);
    results
}

/// The value of the attribute that follows `before` in `xml`.
fn attribute<'a>(xml: &'a str, before: &str) -> &'a str {
    let (_, rest) = xml.split_once(before).unwrap();
    rest.split_once('"').unwrap().0
}

/// How many executions a test has with loom, which has so much time: `None` if that is not enough.
fn with_loom(
    program: &str,
    here: &Path,
    test: &str,
    bound: Option<&str>,
) -> Option<(u64, Duration)> {
    const TIME: Duration = Duration::from_secs(60);
    let start = Instant::now();
    let log = here.join("loom-log");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("LOOM_LOG", "loom=info").current_dir(here);
    command.envs(bound.map(|bound| ("LOOM_MAX_PREEMPTIONS", bound)));
    command
        .stderr(Stdio::null())
        .stdout(fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > TIME {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let time = start.elapsed();
    let said = fs::read_to_string(log).unwrap();
    assert!(status.success(), "{test}: {said}");
    let counts = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("Completed in ")?;
        rest.split_once(' ')?.0.parse::<u64>().ok()
    });
    Some((counts.sum(), time))
}

/// Builds the tests of `known` with loom and tells the test program.
fn build_with_loom(directory: &Path, here: &Path, known: &Crate) -> String {
    let arguments = known.arguments.split_once("-- ").unwrap().1;
    let mut command = Command::new(env!("CARGO"));
    build_as_usual(&mut command, "--cfg loom");
    let output = command
        .args(["test", "--no-run", "--message-format=json"])
        .args(arguments.split_whitespace())
        .env("CARGO_TARGET_DIR", directory.join("loom-target"))
        .current_dir(here)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let program = text
        .rsplit_once("\"executable\":\"")
        .expect("it is built")
        .1;
    program.split_once('"').unwrap().0.to_owned()
}

#[test]
#[ignore = "builds other crates twice, see above"]
fn beside_loom() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
    let copies = std::env::temp_dir().join(format!("cargo-selvedge-loom-{}", std::process::id()));
    let metadata = fetch(&directory);
    let chosen = std::env::var("SELVEDGE_CRATES").ok();
    let is_chosen = |known: &&Crate| {
        let chosen = chosen.as_ref();
        chosen.is_none_or(|names| names.split(',').any(|name| name == known.name))
    };
    println!("| test | Selvedge | s | loom | s |\n|---|---|---|---|---|");
    for known in CRATES.iter().filter(is_chosen) {
        let here = copies.join(known.name);
        copy(&source(&metadata, known), &here);
        let results = check(&directory, &here, known, true);
        let program = build_with_loom(&directory, &here, known);
        let mut words = known.arguments.split_whitespace();
        let bound = words
            .any(|word| word == "--preemptions")
            .then(|| words.next())
            .flatten();
        for case in results.split("<testcase ").skip(1) {
            let test = attribute(case, " name=\"");
            let executions = attribute(case, "\"executions\" value=\"");
            let time = attribute(case, "time=\"");
            let (loom, loom_time) = match with_loom(&program, &here, test, bound) {
                Some((count, time)) => (count.to_string(), format!("{:.3}", time.as_secs_f64())),
                None => ("+".to_owned(), "60+".to_owned()),
            };
            println!(
                "| {} {test} | {executions} | {time} | {loom} | {loom_time} |",
                known.name
            );
        }
    }
    let _ = fs::remove_dir_all(copies);
}

#[test]
#[ignore = "builds other crates, see above"]
fn the_loom_tests_of_registry_crates_pass() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
    // Outside of this workspace, which they are no members of.
    let copies =
        std::env::temp_dir().join(format!("cargo-selvedge-registry-{}", std::process::id()));
    let metadata = fetch(&directory);
    for known in &CRATES {
        let here = copies.join(known.name);
        copy(&source(&metadata, known), &here);
        let manifest = fs::read(here.join("Cargo.toml")).unwrap();
        let lock = fs::read(here.join("Cargo.lock")).ok();
        check(&directory, &here, known, false);
        assert_eq!(fs::read(here.join("Cargo.toml")).unwrap(), manifest);
        assert_eq!(fs::read(here.join("Cargo.lock")).ok(), lock);
    }
    let _ = fs::remove_dir_all(copies);
}
