//! Whether one file may replace another under a running program.

use core::fmt;

use crate::view::{Site, Thread, View, Wait};

/// Why a file may not replace another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWeaker {
    /// They are not about the same program, initial trace, inputs and threads.
    Unrelated,
    /// The later file asks an event to wait for something that the earlier one did not ask for.
    Stricter(Wait),
    /// Places are checked that were not, or the other way round: a program that runs has counted by the earlier file.
    Tracking,
}

impl fmt::Display for NotWeaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotWeaker::Unrelated => f.write_str("the files are of different lineages"),
            NotWeaker::Stricter(wait) => write!(
                f,
                "event {} has to wait for more than before: for {} events of thread {}",
                wait.event, wait.count, wait.thread
            ),
            NotWeaker::Tracking => f.write_str("the files do not check the same places"),
        }
    }
}

impl core::error::Error for NotWeaker {}

/// Checks that whatever `later` admits beyond `earlier` it admits by leaving waits out: each of its
/// waits is asked for by `earlier` too, for that many events or more, of that event or of an
/// earlier one of its thread. Threads that follow different files of one lineage then keep to the
/// latest of them.
pub fn weaker(earlier: View<'_>, later: View<'_>) -> Result<(), NotWeaker> {
    let related = earlier.fingerprint() == later.fingerprint()
        && earlier.lineage() == later.lineage()
        && earlier.inputs().len() == later.inputs().len();
    if !related {
        return Err(NotWeaker::Unrelated);
    }
    // Both lists have the order of addresses, and the later one may have more.
    let mut sites = later.sites();
    for old in earlier.sites() {
        let place = |site: &Site<'_>| (site.occurrence, site.offset);
        let same = |new: &Site<'_>| place(new) == place(&old) && new.function == old.function;
        if sites
            .find(same)
            .is_none_or(|new| new.tracked != old.tracked)
        {
            return Err(NotWeaker::Tracking);
        }
    }
    for (old, new) in earlier.inputs().zip(later.inputs()) {
        let same = |(old, new): (Thread<'_>, Thread<'_>)| {
            (old.parent, old.child) == (new.parent, new.child)
        };
        let known = old.values().eq(new.values()) && old.threads().len() <= new.threads().len();
        if !known || !old.threads().zip(new.threads()).all(same) {
            return Err(NotWeaker::Unrelated);
        }
        // Threads that only later proofs have met.
        let mut further = new.threads().skip(old.threads().len());
        if let Some(wait) = further.find_map(|thread| thread.waits().next()) {
            return Err(NotWeaker::Stricter(wait));
        }
        for (old, new) in old.threads().zip(new.threads()) {
            let asked = |wait: &Wait| {
                old.waits().any(|before| {
                    before.event <= wait.event
                        && before.thread == wait.thread
                        && before.count >= wait.count
                })
            };
            if let Some(wait) = new.waits().find(|wait| !asked(wait)) {
                return Err(NotWeaker::Stricter(wait));
            }
        }
    }
    Ok(())
}
