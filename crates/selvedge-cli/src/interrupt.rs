//! Ctrl-C and friends: remembers that the user wants to stop, and ends the compilers that run.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

static REQUESTS: AtomicU32 = AtomicU32::new(0);
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Catches SIGINT, SIGTERM and SIGHUP from now on.
///
/// Without it those signals would end this process at once and leave its temporary directory
/// behind, so failing to set it up is not worth going on for, but not worth giving up for either.
pub(crate) fn install() {
    let handler = || {
        REQUESTS.fetch_add(1, Ordering::SeqCst);
        if let Ok(groups) = GROUPS.lock() {
            for &group in groups.iter() {
                let _ = killpg(Pid::from_raw(group), Signal::SIGTERM);
            }
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        crate::problem::warn(&format!("Ctrl-C will not be handled: {error}"));
    }
}

/// How often the user asked to stop.
pub(crate) fn requests() -> u32 {
    REQUESTS.load(Ordering::SeqCst)
}

/// A process group that an interruption ends, as long as this value lives.
pub(crate) struct Guarded(i32);

impl Guarded {
    /// Guards the group that the process `leader` leads.
    pub(crate) fn new(leader: u32) -> Guarded {
        let group = leader as i32;
        if let Ok(mut groups) = GROUPS.lock() {
            groups.insert(group);
        }
        Guarded(group)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Ok(mut groups) = GROUPS.lock() {
            groups.remove(&self.0);
        }
    }
}
