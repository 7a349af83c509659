//! Processes of a search that are killed at random moments: nothing is lost, and nothing counted twice.
//!
//! `SELVEDGE_KILLS=100` kills processes this often, instead of ten times.

use std::ops::Range;
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Sandbox, wait_until, workers_of};
pub(crate) use crate::scale::{COUNTERS, EXECUTIONS};

/// How often processes are killed.
pub(crate) fn kills() -> u32 {
    let asked = std::env::var("SELVEDGE_KILLS");
    asked.map_or(10, |kills| kills.parse().expect("a number"))
}

/// Random moments. What they are is told, so that a failure can be repeated.
pub(crate) struct Moments(u64);

impl Moments {
    pub(crate) fn new() -> Moments {
        let asked = std::env::var("SELVEDGE_SEED").ok();
        let seed = asked.map_or_else(|| std::process::id().into(), |seed| seed.parse().unwrap());
        println!("SELVEDGE_SEED={seed}");
        Moments(seed)
    }

    /// A number of milliseconds in `range`.
    pub(crate) fn next(&mut self, range: Range<u64>) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let width = range.end - range.start;
        Duration::from_millis(range.start + (self.0 >> 33) % width)
    }
}

/// Kills a process.
pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid as i32), signal);
}

#[test]
#[ignore = "takes long"]
fn workers_that_are_killed_lose_nothing() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let (mut moments, mut done) = (Moments::new(), 0);
    while done < kills() {
        let mut command = sandbox.command(&["verify", "counters.c", "--jobs", "2"]);
        let mut child = command.env("SELVEDGE_SLICE", "20ms").spawn().unwrap();
        let pid = child.id();
        wait_until("there are workers", || {
            !workers_of(pid).is_empty() || child.try_wait().unwrap().is_some()
        });
        while child.try_wait().unwrap().is_none() && done < kills() {
            std::thread::sleep(moments.next(5..150));
            let workers = workers_of(pid);
            if let Some(&worker) = workers.get(done as usize % workers.len().max(1)) {
                signal(worker, Signal::SIGKILL);
                done += 1;
            }
        }
        let outcome = sandbox.finish(child);
        outcome.ends_with(0).prints("(34,650 executions");
    }
}

/// Ends the command again and again, and resumes the search until it is done.
fn resumed(how: Signal, range: Range<u64>) {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let (mut moments, mut done) = (Moments::new(), 0);
    while done < kills() {
        let mut begun = false;
        loop {
            let arguments: &[&str] = match begun {
                false => &["verify", "counters.c", "--checkpoint", "search"],
                true => &["resume", "search", "--jobs", "2"],
            };
            let mut command = sandbox.command(arguments);
            command.env("SELVEDGE_SLICE", "20ms");
            // Processes that are killed leave files behind.
            command.env("TMPDIR", sandbox.path("."));
            let child = command.spawn().unwrap();
            let pid = child.id();
            if done < kills() {
                std::thread::sleep(moments.next(range.clone()));
                signal(pid, how);
                done += 1;
            }
            let outcome = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&outcome.stdout);
            if outcome.status.code() == Some(0) {
                assert!(text.contains("(34,650 executions"), "{text}");
                assert!(!sandbox.path("search").exists(), "a search that is done");
                break;
            }
            // A command that was ended before it saved anything begins anew.
            begun = sandbox.path("search").exists();
        }
    }
}

#[test]
#[ignore = "takes long"]
fn a_search_that_is_interrupted_again_and_again_is_completed() {
    resumed(Signal::SIGINT, 100..900);
}

#[test]
#[ignore = "takes long"]
fn a_command_that_is_killed_again_and_again_is_resumed() {
    // It saves what it has every second.
    resumed(Signal::SIGKILL, 500..4000);
}
