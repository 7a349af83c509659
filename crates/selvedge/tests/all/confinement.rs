//! Tests that `cargo selvedge` runs are confined.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::thread;

/// Runs the ignored test `name` as `cargo selvedge` does, and returns what it says.
fn confined(name: &str, allowed: bool) -> (ExitStatus, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command.env_remove("SELVEDGE_CONFINE");
    if !allowed {
        command.env("SELVEDGE_CONFINE", selvedge_confine::exported().unwrap());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, said)
}

fn victim(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("selvedge-confinement-{name}"))
}

#[test]
#[ignore = "run by the tests below, confined"]
fn deletes_a_file() {
    selvedge::model(|| {
        let _ = fs::remove_file(victim("deleted"));
    });
}

#[test]
fn a_model_that_deletes_a_file_fails_and_the_file_stays() {
    let file = victim("deleted");
    fs::write(&file, "here").unwrap();
    let (status, said) = confined("confinement::deletes_a_file", false);
    assert_eq!(status.code(), Some(101), "{said}");
    assert!(
        said.contains("the system call unlink is not allowed"),
        "{said}"
    );
    assert!(file.exists());
    let (status, said) = confined("confinement::deletes_a_file", true);
    assert!(status.success(), "{said}");
    assert!(!file.exists());
}

/// Landlock does not need the list of system calls, and does not forbid what only reads.
#[test]
fn where_there_is_no_list_of_system_calls_files_stay_all_the_same() {
    // SAFETY: asks for the version of Landlock.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, 1_usize) };
    let file = victim("deleted-without-list");
    fs::write(&file, "here").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "confinement::deletes_another_file";
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    let output = command
        .env("SELVEDGE_CONFINE", "no filter")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let warning = "selvedge unconfined: SELVEDGE_CONFINE is not a filter";
    assert_eq!(
        said.lines().filter(|&line| line == warning).count(),
        1,
        "{said}"
    );
    assert_eq!(file.exists(), version >= 1, "{said}");
}

#[test]
#[ignore = "run by the test above, confined"]
fn deletes_another_file() {
    let file = victim("deleted-without-list");
    selvedge::model(move || {
        let _ = fs::remove_file(&file);
        assert!(fs::read("/proc/self/stat").is_ok());
    });
}

#[test]
#[ignore = "run by the tests below, confined"]
fn starts_a_program() {
    selvedge::model(|| {
        let _ = Command::new("true").status();
    });
}

#[test]
#[ignore = "run by the tests below, confined"]
fn opens_a_socket() {
    selvedge::model(|| {
        let _ = TcpListener::bind("127.0.0.1:0");
    });
}

#[test]
#[ignore = "run by the tests below, confined"]
fn writes_a_file() {
    selvedge::model(|| {
        let _ = fs::write(victim("written"), "there");
    });
}

#[test]
fn models_that_start_programs_open_sockets_or_write_files_fail() {
    let attacks = [
        ("confinement::opens_a_socket", "the system call socket is"),
        ("confinement::writes_a_file", "the system call openat is"),
    ];
    for (name, call) in attacks {
        let (status, said) = confined(name, false);
        assert_eq!(status.code(), Some(101), "{name}: {said}");
        assert!(said.contains(call), "{name}: {said}");
    }
    assert!(!victim("written").exists());
    // The C library blocks signals while it starts a process, so that this one ends.
    let (status, _) = confined("confinement::starts_a_program", false);
    assert_eq!(status.signal(), Some(libc::SIGSYS));
}

#[test]
#[ignore = "run by the test below, confined"]
fn counts() {
    for _ in 0..2 {
        selvedge::model(|| {
            let counter = Arc::new(AtomicUsize::new(0));
            let other = Arc::clone(&counter);
            let thread = thread::spawn(move || other.fetch_add(1, Ordering::Relaxed));
            counter.fetch_add(1, Ordering::Relaxed);
            thread.join().unwrap();
            println!("{}", counter.load(Ordering::Relaxed));
        });
    }
}

#[test]
fn ordinary_models_do_not_notice() {
    let (status, said) = confined("confinement::counts", false);
    assert!(status.success(), "{said}");
}
