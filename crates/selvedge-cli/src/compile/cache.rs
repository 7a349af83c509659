//! Small things worth keeping between runs, in the user's cache directory.
//!
//! Nothing depends on it: where the directory cannot be written, the work is done each time.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use tempfile::{NamedTempFile, TempDir};

/// The directory, if the environment names one. It may not exist yet.
pub(crate) fn directory() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("selvedge"))
}

/// The text kept under `key`.
pub(crate) fn read(key: &str) -> Option<String> {
    fs::read_to_string(directory()?.join(key)).ok()
}

/// Keeps `text` under `key` if possible. Readers see all of it or nothing.
pub(crate) fn write(key: &str, text: &str) {
    let keep = || -> Option<()> {
        let directory = directory()?;
        fs::create_dir_all(&directory).ok()?;
        let mut file = NamedTempFile::new_in(&directory).ok()?;
        file.write_all(text.as_bytes()).ok()?;
        file.persist(directory.join(key)).ok()?;
        Some(())
    };
    keep();
}

/// A directory beside `key`'s own, to be filled and then handed to [`persist`].
pub(crate) fn prepare() -> Option<TempDir> {
    let directory = directory()?;
    fs::create_dir_all(&directory).ok()?;
    TempDir::new_in(directory).ok()
}

/// Makes a prepared directory the one under `key`, unless another process was faster. Tells where
/// the contents are now.
pub(crate) fn persist(prepared: TempDir, key: &str) -> Option<PathBuf> {
    let place = directory()?.join(key);
    match fs::rename(prepared.path(), &place) {
        Ok(()) => {
            // The directory has moved away; dropping the handle must not look for it.
            let _ = prepared.keep();
            Some(place)
        }
        Err(_) if place.is_dir() => Some(place),
        Err(_) => None,
    }
}
