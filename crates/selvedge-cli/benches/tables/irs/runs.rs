//! Running a program again and again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program was run, and how that ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    pub(super) runs: u32,
    pub(super) failed: u32,
    pub(super) hung: u32,
}

impl Runs {
    pub(super) fn add(&mut self, other: Runs) {
        self.runs += other.runs;
        self.failed += other.failed;
        self.hung += other.hung;
    }
}

/// An enforced program that takes so long hangs.
pub(super) const HANGS: Duration = Duration::from_secs(30);

/// A handful of hangs is evidence enough.
const ENOUGH: u32 = 10;

/// How many programs run at once: most of the time they sleep, and it does no harm if they are in
/// each other's way.
pub(super) fn workers() -> usize {
    2 * thread::available_parallelism().map_or(2, usize::from)
}

/// Runs a program this many times, several at once.
pub(super) fn repeat(program: &Path, runs: u32, hangs: Duration) -> Runs {
    let left = AtomicU32::new(runs);
    let work = || {
        let mut mine = Runs::default();
        while mine.hung < ENOUGH && take_one(&left) {
            mine.add(once(program, &[], hangs));
        }
        mine
    };
    let mut all = Runs::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers()).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            all.add(worker.join().expect("nothing panics there"));
        }
    });
    all
}

fn take_one(left: &AtomicU32) -> bool {
    let order = Ordering::Relaxed;
    left.fetch_update(order, order, |left| left.checked_sub(1))
        .is_ok()
}

/// Runs a program once.
pub(super) fn once(program: &Path, variables: &[(&str, &str)], hangs: Duration) -> Runs {
    let mut result = Runs {
        runs: 1,
        ..Runs::default()
    };
    let mut command = Command::new(program);
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        result.failed += 1;
        return result;
    };
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                result.failed += u32::from(!status.success());
                return result;
            }
            _ if begin.elapsed() > hangs => {
                result.hung += 1;
                let _ = child.kill();
                let _ = child.wait();
                return result;
            }
            _ => thread::sleep(Duration::from_micros(100)),
        }
    }
}
