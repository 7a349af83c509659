//! `cargo selvedge test` and `cargo selvedge replay` with a small crate, which needs no registry.
//!
//! Builds the library anew with `--cfg loom`, so it is run only when asked for:
//! `cargo test -p cargo-selvedge --test fixture -- --ignored`

use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the crate.
struct Fixture(PathBuf);

/// The output of a command, and its exit status.
struct Said {
    output: String,
    errors: String,
    status: Option<i32>,
}

impl Fixture {
    fn new() -> Fixture {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let here = crates.join("cargo-selvedge/tests/fixture");
        let there = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixture");
        let library = crates.join("selvedge");
        for file in ["Cargo.toml", "src/lib.rs", ".cargo/config.toml"] {
            let text = std::fs::read_to_string(here.join(file)).unwrap();
            let text = text.replace("../../../selvedge", library.to_str().unwrap());
            std::fs::create_dir_all(there.join(file).parent().unwrap()).unwrap();
            std::fs::write(there.join(file), text).unwrap();
        }
        // The versions that are there already.
        std::fs::copy(crates.join("../Cargo.lock"), there.join("Cargo.lock")).unwrap();
        Fixture(there)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"));
        command
            .arg("selvedge")
            .args(arguments)
            .current_dir(&self.0)
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        said(&mut self.command(arguments))
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        status: output.status.code(),
    }
}

impl Said {
    /// The tests that were run, with the first word of each result.
    fn tests(&self) -> Vec<(&str, &str)> {
        let lines = self.output.lines();
        let results = lines.filter_map(|line| {
            let (name, result) = line.strip_prefix("fixture ")?.split_once(" ... ")?;
            Some((name, result.split(' ').next().unwrap()))
        });
        let mut results: Vec<_> = results.collect();
        results.sort_unstable();
        results
    }

    #[track_caller]
    fn has(&self, text: &str) {
        let found = self.output.contains(text) || self.errors.contains(text);
        assert!(found, "no `{text}` in\n{}\n{}", self.output, self.errors);
    }
}

#[test]
#[ignore = "builds the library once more, see above"]
fn tests_are_chosen_run_and_replayed() {
    let fixture = Fixture::new();
    let (ok, failed) = ("ok", "FAILED");

    let all = fixture.run(&["test"]);
    assert_eq!(
        all.tests(),
        [
            ("count", ok),
            ("count_at_once", ok),
            ("lose", failed),
            ("the_flag_of_the_user_is_set", ok),
        ],
        "{}",
        all.errors
    );
    assert_eq!(all.status, Some(1));
    all.has("3 passed, 1 failed; ");
    all.has("failed: fixture lose");
    all.has("(2 executions, 0 blocked, ");

    // The names that cargo's own tests have.
    let some = |arguments: &[&str]| {
        let said = fixture.run(&[&["test"], arguments].concat());
        assert_eq!(said.status, Some(0), "{}", said.errors);
        let names: Vec<String> = said
            .tests()
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        names.join(" ")
    };
    assert_eq!(some(&["count"]), "count count_at_once");
    assert_eq!(some(&["count", "--exact"]), "count");
    assert_eq!(some(&["count", "--skip", "once"]), "count");
    assert_eq!(some(&["count", "--ignored"]), "count_late");
    assert_eq!(
        some(&["count", "--include-ignored"]),
        "count count_at_once count_late"
    );
    assert_eq!(some(&["nothing"]), "");

    // Several tests at a time, or several processes for one.
    let at_a_time = fixture.run(&["test", "--jobs", "3"]);
    assert_eq!(at_a_time.tests(), all.tests());
    for (jobs, processes) in [("1", "Err(NotPresent)"), ("3", "Ok(\"3\")")] {
        let said = fixture.run(&["test", "tell_processes", "--ignored", "--jobs", jobs]);
        said.has(&format!("processes: {processes}"));
    }

    let (_, token) = all
        .output
        .split_once("cargo selvedge replay lose \"")
        .unwrap();
    let (token, _) = token.split_once('"').unwrap();
    let again = fixture.run(&["replay", "lose", token]);
    assert_eq!(again.status, Some(1));
    again.has("an update was lost");
    again.has("  in T0 at src/lib.rs:22:9");
    // The other test does something else in the same schedule.
    let other = fixture.run(&["replay", "count", token]);
    assert_eq!(other.status, Some(1));
    assert!(
        !other.errors.contains("an update was lost"),
        "{}",
        other.errors
    );
    let unknown = fixture.run(&["replay", "los", token]);
    assert_eq!(unknown.status, Some(2));
    unknown.has("there is no test los");

    let variable = said(
        fixture
            .command(&["test", "lose"])
            .env("SELVEDGE_REPLAY", token),
    );
    assert_eq!(variable.tests(), [("lose", failed)]);
    variable.has("an update was lost");
    // One execution is no exploration.
    variable.has("lose ... FAILED (no model)");
}
