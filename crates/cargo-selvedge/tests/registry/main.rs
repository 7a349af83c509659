//! The loom tests that crates of the registry ship, unmodified.
//!
//! Builds everything anew with `--cfg loom`, so it is run only when asked for:
//! `cargo test -p cargo-selvedge --test registry -- --ignored the_loom_tests`. `beside_loom` makes the tables of
//! `docs/rust.md`.

mod beside_loom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate and how its loom tests are run.
struct Crate {
    name: &'static str,
    version: &'static str,
    /// The arguments of `cargo selvedge test`. Bounds are those of the crate's own continuous integration.
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
        // The tests that end within seconds.
        arguments: "loom_list loom_oneshot loom_notify loom_mpsc loom_watch loom_set_once loom_rwlock \
                    --skip concurrent_read_write --skip wait_for_test --skip loom_mpsc::try_recv \
                    --preemptions 2 -- --lib --features full,test-util",
        tests: 38,
    },
];

/// Where cargo keeps the sources of these crates, having fetched them.
fn fetch(directory: &Path, crates: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let fetch = directory.join("fetch");
    fs::create_dir_all(fetch.join("src")).unwrap();
    fs::write(fetch.join("src/lib.rs"), "").unwrap();
    let mut manifest = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                        [workspace]\n[dependencies]\n"
        .to_owned();
    for (name, version) in crates {
        manifest.push_str(&format!("{name} = \"={version}\"\n"));
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
fn source(metadata: &str, (name, version): (&str, &str)) -> PathBuf {
    let end = format!("{name}-{version}/Cargo.toml\"");
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

/// How tests are built, with loom or with Selvedge.
fn build_as_usual(command: &mut Command, flags: &str) {
    command
        .env("RUSTFLAGS", format!("--cap-lints allow {flags}"))
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
}

/// Runs the tests of `known`, of which there is a copy `here`.
fn check(directory: &Path, here: &Path, known: &Crate) {
    let junit = directory.join(format!("{}.xml", known.name));
    let report = directory.join(format!("{}-report", known.name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"));
    build_as_usual(&mut command, "");
    let output = command
        .args(["selvedge", "test", "--junit"])
        .arg(&junit)
        .arg("--report")
        .arg(&report)
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
}

#[test]
#[ignore = "builds other crates, see above"]
fn the_loom_tests_of_registry_crates_pass() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
    // Outside of this workspace, which they are no members of.
    let copies =
        std::env::temp_dir().join(format!("cargo-selvedge-registry-{}", std::process::id()));
    let names = || CRATES.iter().map(|known| (known.name, known.version));
    let metadata = fetch(&directory, names());
    for (known, name) in CRATES.iter().zip(names()) {
        let here = copies.join(known.name);
        copy(&source(&metadata, name), &here);
        let manifest = fs::read(here.join("Cargo.toml")).unwrap();
        let lock = fs::read(here.join("Cargo.lock")).ok();
        check(&directory, &here, known);
        assert_eq!(fs::read(here.join("Cargo.toml")).unwrap(), manifest);
        assert_eq!(fs::read(here.join("Cargo.lock")).ok(), lock);
    }
    let _ = fs::remove_dir_all(copies);
}
