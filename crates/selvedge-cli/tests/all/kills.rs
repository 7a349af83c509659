//! Processes of a search that are killed at random moments: nothing is lost, and nothing counted twice.
//!
//! `SELVEDGE_KILLS=100` kills processes this often, instead of ten times.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Sandbox, wait_until, workers_of};

/// 369,600 executions, which take some seconds. With `BUG`, the numbers decide in which of them it fails.
pub(crate) const LONG: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static int last[4];
static void *count(void *mine) { for (int i = 0; i < 3; i++) *(int *)mine = x++; return 0; }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, &last[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
#ifdef BUG
    assert(last[BUG] != 2);
#endif
    return 0;
}
";

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
    let sandbox = Sandbox::with("long.c", LONG);
    let (mut moments, mut done) = (Moments::new(), 0);
    while done < kills() {
        let mut command = sandbox.command(&["verify", "long.c", "--jobs", "2"]);
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
        outcome.ends_with(0).prints("(369,600 executions");
    }
}

/// When a file was written, if there is one.
fn written(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

/// Ends the command again and again, and resumes the search until it is done. Counted are the ends of commands that
/// search and have saved what they found.
fn resumed(how: Signal) {
    let sandbox = Sandbox::with("long.c", LONG);
    let (search, copy) = (sandbox.path("search"), sandbox.path("copy"));
    let (mut moments, mut done) = (Moments::new(), 0);
    while done < kills() {
        let mut executions = 0;
        loop {
            let before = written(&search);
            let arguments: &[&str] = match before {
                None => &["verify", "long.c", "--checkpoint", "search", "--jobs", "2"],
                Some(_) => &["resume", "search", "--jobs", "2"],
            };
            let mut command = sandbox.command(arguments);
            // It saves what it has after every slice.
            command.env("SELVEDGE_SLICE", "20ms");
            // Processes that are killed leave files behind.
            command.env("TMPDIR", sandbox.path("."));
            let mut child = command.spawn().unwrap();
            wait_until("the search is saved", || {
                written(&search) > before || child.try_wait().unwrap().is_some()
            });
            std::thread::sleep(moments.next(0..400));
            let running = child.try_wait().unwrap().is_none() && search.exists();
            if running && done < kills() {
                signal(child.id(), how);
            }
            let outcome = child.wait_with_output().unwrap();
            if outcome.status.code() == Some(0) {
                let text = String::from_utf8_lossy(&outcome.stdout);
                assert!(text.contains("(369,600 executions"), "{text}");
                assert!(executions > 0, "nothing was resumed");
                assert!(!search.exists(), "a search that is done");
                break;
            }
            done += 1;
            // One more execution tells how many there were.
            fs::copy(&search, &copy).unwrap();
            let one = [
                "resume",
                "copy",
                "--max-executions",
                "1",
                "--format",
                "json",
            ];
            let saved = sandbox.run(&one).ends_with(3).json()["executions"].clone();
            let saved = saved.as_u64().expect("a number");
            assert!(saved > executions, "{saved} executions after {executions}");
            executions = saved;
        }
    }
}

#[test]
#[ignore = "takes long"]
fn a_search_that_is_interrupted_again_and_again_is_completed() {
    resumed(Signal::SIGINT);
}

#[test]
#[ignore = "takes long"]
fn a_command_that_is_killed_again_and_again_is_resumed() {
    resumed(Signal::SIGKILL);
}
