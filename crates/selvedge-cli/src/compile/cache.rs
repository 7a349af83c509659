//! Small files that are kept between runs, in the user's cache directory.
//!
//! Nothing depends on them: where the directory cannot be written, the work is done each time. A
//! damaged file is made again.

use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// The text kept under `key`, unless it is damaged.
pub(crate) fn read(key: &str) -> Option<String> {
    let path = directory()?.join(key);
    let kept = fs::read_to_string(&path).ok()?;
    // So that it is not among the first to go.
    let used = File::options().append(true).open(path);
    let _ = used.and_then(|file| file.set_modified(SystemTime::now()));
    let (sum, text) = kept.split_once('\n')?;
    (sum == checksum(text)).then(|| text.to_owned())
}

fn checksum(contents: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Keeps `text` under `key` if possible. Readers see all of it or nothing.
pub(crate) fn write(key: &str, text: &str) {
    let keep = || -> Option<()> {
        let directory = directory()?;
        fs::create_dir_all(&directory).ok()?;
        let mut file = NamedTempFile::new_in(&directory).ok()?;
        write!(file, "{}\n{text}", checksum(text)).ok()?;
        file.persist(directory.join(key)).ok()?;
        Some(())
    };
    keep();
}

/// Removes all files whose names begin with `name` but the `most` that were used last.
pub(crate) fn prune(name: &str, most: usize) {
    let entries = directory().and_then(|directory| fs::read_dir(directory).ok());
    let named = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let is_named = entry.file_name().to_string_lossy().starts_with(name);
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        is_named.then_some((used.ok()?, entry.path()))
    });
    let mut files: Vec<_> = named.collect();
    files.sort_unstable();
    for (_, path) in files.iter().rev().skip(most) {
        let _ = fs::remove_file(path);
    }
}

/// A directory beside `key`'s own, to be filled and then handed to [`persist`].
pub(crate) fn prepare() -> Option<TempDir> {
    let directory = directory()?;
    fs::create_dir_all(&directory).ok()?;
    TempDir::new_in(directory).ok()
}

/// The name of the file with the checksum of a directory.
const CHECKSUM: &str = "checksum";

/// The directory kept under `key`. A damaged one is removed.
pub(crate) fn find(key: &str) -> Option<PathBuf> {
    let place = directory()?.join(key);
    let sum = fs::read_to_string(place.join(CHECKSUM)).ok();
    if sum.is_some() && sum == contents(&place) {
        return Some(place);
    }
    let _ = fs::remove_dir_all(&place);
    None
}

/// The checksum of everything in the directory `place`.
fn contents(place: &Path) -> Option<String> {
    let mut files = Vec::new();
    let mut directories = vec![place.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).ok()? {
            let path = entry.ok()?.path();
            match path.is_dir() {
                true => directories.push(path),
                false if path.file_name().is_some_and(|name| name == CHECKSUM) => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    let name = |path: &PathBuf| path.strip_prefix(place).ok().map(Path::to_owned);
    let file = |path: PathBuf| Some((name(&path)?, fs::read(&path).ok()?));
    Some(checksum(
        files.into_iter().map(file).collect::<Option<Vec<_>>>()?,
    ))
}

/// Makes a prepared directory the one under `key`, unless another process was faster. Tells where
/// the contents are now.
pub(crate) fn persist(prepared: TempDir, key: &str) -> Option<PathBuf> {
    let place = directory()?.join(key);
    fs::write(prepared.path().join(CHECKSUM), contents(prepared.path())?).ok()?;
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
