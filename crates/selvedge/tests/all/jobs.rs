//! Models that several processes explore: the result does not depend on how many there are.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use selvedge::model::{Builder, Equivalence, MemoryModel, Verdict};
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use selvedge::sync::{Arc, Condvar, Mutex};
use selvedge::{hint, thread};

/// Notes that a process has come here.
fn note_start() {
    if let Some(file) = std::env::var_os("SELVEDGE_TEST_STARTS") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{}", std::process::id()).unwrap();
    }
}

/// Three threads that add one `rounds` times each.
fn add(rounds: usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                for _ in 0..rounds {
                    count.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(count.load(Relaxed), 3 * rounds);
}

#[test]
#[ignore = "run by the tests below"]
fn counter() {
    note_start();
    selvedge::model(|| add(3));
}

#[test]
#[ignore = "run by the tests below"]
fn two_counters() {
    selvedge::model(|| add(2));
    selvedge::model(|| add(3));
}

/// The search starts over several times: for a spin loop, and for counts of `Arc`s.
#[test]
#[ignore = "run by the tests below"]
fn learns() {
    selvedge::model(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let (waits, sets) = (Arc::clone(&flag), Arc::clone(&flag));
        let waiter = thread::spawn(move || {
            while !waits.load(Acquire) {
                hint::spin_loop();
            }
        });
        let setter = thread::spawn(move || {
            sets.store(true, Release);
            Arc::strong_count(&sets)
        });
        waiter.join().unwrap();
        assert!(setter.join().unwrap() >= 1);
    });
}

/// The search starts over late: the count of an `Arc` is asked for in few executions. From then on, the first
/// execution is another one.
#[test]
#[ignore = "run by the tests below"]
fn learns_late() {
    model_that_learns_late();
}

pub(crate) fn model_that_learns_late() {
    selvedge::model(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|n| {
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    let before = count.fetch_add(1, Relaxed);
                    let after = count.load(Relaxed);
                    if (n, before, after) == (0, 1, 2) {
                        assert!(Arc::strong_count(&count) >= 2);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Blocked executions, and waits on condition variables.
#[test]
#[ignore = "run by the tests below"]
fn waits() {
    let mut builder = Builder::new();
    builder.spurious_wakeups = true;
    builder.check(|| {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let pair = Arc::clone(&pair);
                thread::spawn(move || {
                    *pair.0.lock().unwrap() += 1;
                    pair.1.notify_one();
                })
            })
            .collect();
        let mut done = pair.0.lock().unwrap();
        while *done < 2 {
            done = pair.1.wait(done).unwrap();
        }
        drop(done);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
#[ignore = "run by the tests below"]
fn bounded() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| add(3));
}

/// Fails in some executions only, in the middle of the tree.
#[test]
#[ignore = "run by the tests below"]
fn loses_an_update() {
    selvedge::model(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    let first = count.fetch_add(1, Relaxed);
                    let read = count.load(Relaxed);
                    match (n, first, read) {
                        (0, 1, 2) => count.store(read + 1, Relaxed),
                        _ => drop(count.fetch_add(1, Relaxed)),
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.load(Relaxed), 6);
    });
}

/// Writes to freed memory in the last execution only.
#[test]
#[ignore = "run by the tests below"]
fn writes_to_freed_memory() {
    selvedge::model(|| {
        let value = Box::into_raw(Box::new([0_u64; 4])).expose_provenance();
        let pointer = move || std::ptr::with_exposed_provenance_mut::<[u64; 4]>(value);
        let count = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || {
            for _ in 0..5 {
                other.fetch_add(1, Relaxed);
            }
            // SAFETY: nobody else frees it.
            drop(unsafe { Box::from_raw(pointer()) });
        });
        let mine: Vec<usize> = (0..5).map(|_| count.fetch_add(1, Relaxed)).collect();
        thread.join().unwrap();
        if mine[0] == 5 {
            // SAFETY: none, it was freed.
            unsafe { (*pointer())[2] = 7 };
        }
    });
}

/// The results of the models of a test, as printed on standard error.
fn results(test: &str, jobs: usize, slice: Option<&str>) -> Vec<String> {
    let output = command(test, jobs, slice).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().filter(|line| line.starts_with("selvedge: "));
    lines.map(str::to_owned).collect()
}

fn command(test: &str, jobs: usize, slice: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        &format!("jobs::{test}"),
        "--ignored",
        "--nocapture",
    ]);
    command.envs([
        ("SELVEDGE_JOBS", jobs.to_string()),
        ("SELVEDGE_LOG", "1".to_owned()),
    ]);
    command.envs(slice.map(|slice| ("SELVEDGE_SLICE", slice)));
    command
}

#[test]
fn results_do_not_depend_on_the_number_of_processes() {
    let tests = [
        ("counter", 1),
        ("two_counters", 2),
        ("learns", 1),
        ("learns_late", 1),
        ("waits", 1),
        ("bounded", 1),
        ("loses_an_update", 1),
        ("writes_to_freed_memory", 1),
    ];
    for (test, models) in tests {
        let expected = results(test, 1, None);
        assert_eq!(expected.len(), models, "{test}");
        for jobs in [1, 2, 5] {
            for slice in ["1", "10", "10ms"] {
                let found = results(test, jobs, Some(slice));
                assert_eq!(
                    found, expected,
                    "{test} with {jobs} jobs and slices of {slice}"
                );
            }
        }
    }
    let counter = results("counter", 2, Some("10"));
    assert_eq!(counter, ["selvedge: 1680 executions, 0 blocked: Verified"]);
}

fn temporary(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jobs-{name}"));
    let _ = fs::remove_file(&file);
    file
}

/// How many processes run the model of `test`, this one's child included.
fn processes(test: &str, slice: Option<&str>) -> usize {
    let file = temporary(&format!("starts-{test}-{}", slice.unwrap_or_default()));
    let mut command = command(test, 3, slice);
    assert!(
        command
            .env("SELVEDGE_TEST_STARTS", &file)
            .status()
            .unwrap()
            .success()
    );
    fs::read_to_string(file).unwrap().lines().count()
}

#[test]
#[ignore = "run by the tests below"]
fn small() {
    note_start();
    selvedge::model(|| add(1));
}

#[test]
fn a_small_search_starts_no_process() {
    assert_eq!(processes("small", None), 1);
    assert_eq!(processes("counter", Some("10")), 4);
}

#[test]
fn a_confined_test_has_workers_as_well() {
    let mut command = command("counter", 2, Some("100"));
    command.env("SELVEDGE_CONFINE", selvedge_confine::exported().unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "selvedge: 1680 executions, 0 blocked: Verified";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_model_outside_of_a_test_has_one_process() {
    let explored = std::thread::spawn(|| {
        let mut builder = Builder::new();
        builder.jobs(2).explore(|| add(1)).verdict
    });
    let Verdict::Incomplete(why) = explored.join().unwrap() else {
        panic!("the thread has no name");
    };
    assert!(why.contains("jobs needs the name of the test"), "{why}");
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let mut builder = Builder::new();
    builder.model = MemoryModel::Sc;
    builder.equivalence = Equivalence::ReadsFrom;
    let Verdict::Incomplete(why) = builder.jobs(2).explore(|| add(1)).verdict else {
        panic!("reads-from classes are not divided");
    };
    assert!(
        why.starts_with("jobs needs the equivalence mazurkiewicz"),
        "{why}"
    );
}

/// A program that depends on its process.
#[test]
#[ignore = "run by the test below"]
fn depends_on_its_process() {
    let number = std::env::var_os("SELVEDGE_WORKER").map_or(1, |_| 2);
    selvedge::model(move || add(number));
}

#[test]
fn a_program_that_depends_on_its_process_is_refused() {
    let found = results("depends_on_its_process", 2, Some("10"));
    assert!(
        found[0].contains("did not behave the same in another process"),
        "{found:?}"
    );
}

/// A test that ends every process but the first.
#[test]
#[ignore = "run by the test below"]
fn ends_its_process() {
    if std::env::var_os("SELVEDGE_WORKER").is_some() {
        std::process::exit(3);
    }
    selvedge::model(|| add(2));
}

#[test]
fn a_worker_that_dies_twice_ends_the_search() {
    let found = results("ends_its_process", 2, Some("10"));
    let expected =
        "a worker process ended with exit status: 3 before it came to the model, 2 times";
    assert!(found[0].contains(expected), "{found:?}");
}

/// The children of a process.
fn children(process: u32) -> Vec<i32> {
    let tasks = format!("/proc/{process}/task");
    let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[test]
#[ignore = "run by the test below"]
fn long_counter() {
    selvedge::model(|| add(4));
}

#[test]
fn workers_that_are_killed_are_replaced() {
    let mut command = command("long_counter", 3, Some("5ms"));
    let child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut killed = 0;
    // A unit is given up when its fifth worker was killed.
    for round in 0..40 {
        std::thread::sleep(Duration::from_millis(10));
        let workers = children(child.id());
        let worker = workers.get(round % workers.len().max(1));
        if let Some(worker) = worker.filter(|_| killed < 4) {
            let status = Command::new("kill")
                .args(["-9", &worker.to_string()])
                .status();
            killed += u32::from(status.unwrap().success());
        }
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "selvedge: 34650 executions, 0 blocked: Verified";
    assert!(said.contains(expected), "{killed} killed: {said}");
    assert!(killed > 0);
}
