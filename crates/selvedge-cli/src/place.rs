//! How places in the source are written.

use std::env;
use std::path::Path;

/// `path` as the user would write it: relative to the current directory where it lies below it.
pub(crate) fn shorten(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&current).unwrap_or(path);
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// Whether `path`, as [`shorten`] writes it, belongs to the system's headers and libraries rather
/// than to the program.
pub(crate) fn is_system(path: &str) -> bool {
    path.starts_with("/usr/") || path.contains("/include/c++/")
}
