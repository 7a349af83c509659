//! Temporary directories. The next command removes those that a killed command left behind.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// The prefix of the names of all of them. A directory that a user calls `selvedge-work` must not
/// be taken for one.
const PREFIX: &str = "selvedge-scratch-";
/// A directory without a lock that is younger than this may still be on its way to one.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory that is removed with this value. It is locked for as long as its process lives.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: TempDir,
    _lock: File,
}

impl Scratch {
    /// A new one, where temporary files go.
    pub(crate) fn new() -> io::Result<Scratch> {
        remove_stale(&std::env::temp_dir(), YOUNG);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(directory.path())?;
        // Where there are no locks, nobody can take one to remove it either.
        let _ = lock.try_lock();
        Ok(Scratch {
            directory,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes our own directories in `place` that nobody holds. What does not work is left as it is.
fn remove_stale(place: &Path, young: Duration) {
    let (Ok(entries), Ok(ourselves)) = (fs::read_dir(place), fs::metadata("/proc/self")) else {
        return;
    };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Some(found) = named.then(|| entry.metadata().ok()).flatten() else {
            continue;
        };
        let age = found.modified().ok();
        let age = age.and_then(|since| SystemTime::now().duration_since(since).ok());
        let old = age.is_some_and(|age| age >= young);
        if !found.is_dir() || found.uid() != ourselves.uid() || !old {
            continue;
        }
        if let Ok(directory) = File::open(entry.path())
            && directory.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_behind_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let [left, held, other] = [
            "selvedge-scratch-left",
            "selvedge-scratch-held",
            "selvedge-other",
        ]
        .map(|name| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "text").unwrap();
            path
        });
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        remove_stale(place.path(), YOUNG);
        assert!(left.exists(), "it may be new");
        remove_stale(place.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(held.exists() && other.exists());
        drop(lock);
        remove_stale(place.path(), Duration::ZERO);
        assert!(!held.exists());
    }
}
