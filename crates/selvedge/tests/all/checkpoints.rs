//! Searches that are saved in a file and continued.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use selvedge::model::{Builder, Equivalence, MemoryModel, Verdict};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering::*};
use selvedge::thread;

/// Three threads that add one three times each.
fn add() {
    let count = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                for _ in 0..3 {
                    count.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(count.load(Relaxed), 9);
}

#[test]
#[ignore = "run by the tests below"]
fn counter() {
    selvedge::model(add);
}

/// Fails in the last executions only.
#[test]
#[ignore = "run by the tests below"]
fn fails() {
    selvedge::model(|| {
        let order = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let order = Arc::clone(&order);
                thread::spawn(move || {
                    for _ in 0..2 {
                        let before = order.load(Relaxed);
                        order.store(before * 4 + n + 1, Relaxed);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_ne!(order.load(Relaxed), 3 * 4 + 1);
    });
}

fn temporary(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoint-{name}"));
    let _ = fs::remove_file(&file);
    file
}

fn command(test: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        &format!("checkpoints::{test}"),
        "--ignored",
        "--nocapture",
    ]);
    command
        .env("SELVEDGE_CHECKPOINT", file)
        .env("SELVEDGE_LOG", "1");
    command.stdout(Stdio::null());
    command
}

/// The result of the model, as printed on standard error.
fn result(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().find(|line| line.starts_with("selvedge: "));
    line.unwrap_or(&said).to_owned()
}

#[test]
fn a_search_that_a_limit_stopped_goes_on_with_the_next_run() {
    let expected = "selvedge: 1680 executions, 0 blocked: Verified";
    for jobs in ["1", "2"] {
        let file = temporary(&format!("limit-{jobs}"));
        for run in 1..=3 {
            // A limit on executions is one process's.
            let found = result(command("counter", &file).env("SELVEDGE_MAX_EXECUTIONS", "500"));
            let so_far = 500 * run;
            assert_eq!(
                found,
                format!("selvedge: {so_far} executions, 0 blocked: Stopped")
            );
            assert!(file.exists());
        }
        let found = result(command("counter", &file).env("SELVEDGE_JOBS", jobs));
        assert_eq!(found, expected);
        assert!(!file.exists(), "a search that is done leaves no file");
        assert_eq!(result(&mut command("counter", &file)), expected);
    }
}

/// The search starts over late, see there.
#[test]
#[ignore = "run by the test below"]
fn learns_late() {
    crate::jobs::model_that_learns_late();
}

#[test]
fn what_was_learned_is_saved() {
    let file = temporary("learned");
    let whole = result(command("learns_late", &file).env_remove("SELVEDGE_CHECKPOINT"));
    assert!(whole.ends_with("Verified"), "{whole}");
    let mut runs = 0;
    loop {
        let jobs = [1, 2][runs % 2].to_string();
        let mut command = command("learns_late", &file);
        command.envs([("SELVEDGE_MAX_EXECUTIONS", "1"), ("SELVEDGE_SLICE", "1")]);
        let found = result(command.env("SELVEDGE_JOBS", jobs));
        runs += 1;
        if !found.ends_with(": Stopped") {
            assert_eq!(found, whole);
            break;
        }
    }
    assert!(runs > 3, "{runs}");
}

#[test]
fn a_bug_is_the_same_after_interruptions() {
    let file = temporary("bug");
    let mut whole = command("fails", &file);
    whole.env_remove("SELVEDGE_CHECKPOINT");
    let expected = result(&mut whole);
    assert!(expected.contains("Failed("), "{expected}");
    let mut runs = 0;
    loop {
        let mut command = command("fails", &file);
        command.envs([("SELVEDGE_MAX_EXECUTIONS", "200"), ("SELVEDGE_SLICE", "30")]);
        let found = result(&mut command);
        runs += 1;
        if !found.ends_with(": Stopped") {
            assert_eq!(found, expected);
            break;
        }
    }
    assert!(runs > 3, "{runs}");
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_was_saved() {
    let file = temporary("killed");
    let mut killed = 0;
    for jobs in [1, 3] {
        for delay in 1..=15 {
            let mut command = command("counter", &file);
            let jobs = format!("{jobs}");
            command.envs([("SELVEDGE_SLICE", "2"), ("SELVEDGE_JOBS", &*jobs)]);
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(5 * delay));
            killed += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let found = result(&mut command("counter", &file));
        assert_eq!(found, "selvedge: 1680 executions, 0 blocked: Verified");
    }
    assert!(killed > 0);
}

#[test]
fn a_file_that_does_not_fit_is_refused() {
    let file = temporary("refused");
    let refused = |command: &mut Command, why: &str| {
        let before = fs::read(&file).unwrap();
        let found = result(command);
        assert!(
            found.contains("Incomplete(") && found.contains(why),
            "{found}"
        );
        assert_eq!(fs::read(&file).unwrap(), before, "the file stays as it is");
    };
    result(command("counter", &file).env("SELVEDGE_MAX_EXECUTIONS", "10"));
    refused(
        &mut command("fails", &file),
        "is of another model of this program",
    );
    let mut other = command("counter", &file);
    refused(
        other.env("SELVEDGE_MODEL", "sc"),
        "is of a search with other settings",
    );
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    refused(&mut command("counter", &file), "is damaged");
    fs::write(&file, "something else").unwrap();
    refused(
        &mut command("counter", &file),
        "is not a checkpoint of a Rust model",
    );
}

#[test]
fn a_confined_test_writes_its_checkpoint() {
    let file = temporary("confined");
    let mut command = command("counter", &file);
    command.env("SELVEDGE_CONFINE", selvedge_confine::exported().unwrap());
    let found = result(command.env("SELVEDGE_MAX_EXECUTIONS", "10"));
    assert_eq!(found, "selvedge: 10 executions, 0 blocked: Stopped");
    assert!(file.exists());
}

#[test]
fn a_search_that_cannot_be_divided_has_no_checkpoint() {
    let mut builder = Builder::new();
    builder.checkpoint_file(temporary("reads-from").to_str().unwrap());
    builder.model = MemoryModel::Sc;
    builder.equivalence = Equivalence::ReadsFrom;
    let Verdict::Incomplete(why) = builder.explore(add).verdict else {
        panic!("reads-from classes are not divided");
    };
    let expected = "checkpoint_file needs the equivalence mazurkiewicz";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_told() {
    let mut builder = Builder::new();
    builder.checkpoint_file("/nonexistent/directory/file");
    builder.max_permutations = Some(10);
    let Verdict::Incomplete(why) = builder.explore(add).verdict else {
        panic!("there is no such directory");
    };
    assert!(
        why.starts_with("cannot write the checkpoint /nonexistent"),
        "{why}"
    );
}
