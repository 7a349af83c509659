//! How places in the source are written.

use std::env;
use std::path::Path;

/// `path` as the user would write it: relative to the current directory where it lies below it.
pub(crate) fn shorten(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&current).unwrap_or(path);
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}
