//! Reading files that the user names.
//!
//! Only regular files of a bounded size are read: opening a pipe could wait for ever, and a device
//! may have no end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest file that is read, in bytes. A trace with a million steps is smaller.
const LARGEST: u64 = 1 << 30;

/// Opens the regular file `path` for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // A pipe without a writer would keep a blocking open waiting.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > LARGEST {
        return Err(io::Error::other("it is larger than 1 GiB"));
    }
    Ok(file)
}

/// The contents of the regular file `path`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A file that grows meanwhile has no more than this either.
    open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in the regular file `path`.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::other("it is not text in UTF-8"))
}
