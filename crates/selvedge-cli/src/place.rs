//! How places in the source are written.

use std::env;
use std::path::Path;

pub(crate) use selvedge_page::is_system;

/// `path` as the user would write it: relative to the current directory where it lies below it.
pub(crate) fn shorten(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&current).unwrap_or(path);
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// A C++ or Rust name as it is written in the source; other names as they are.
pub(crate) fn readable(name: &str) -> String {
    // `f` would be demangled as well: it stands for `float`.
    let language = match name.get(..2) {
        Some("_Z") => Some(gimli::DW_LANG_C_plus_plus),
        Some("_R") => Some(gimli::DW_LANG_Rust),
        _ => None,
    };
    let demangled = language.and_then(|language| addr2line::demangle(name, language));
    demangled.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_cxx_and_rust_are_demangled() {
        assert_eq!(readable("f"), "f");
        assert_eq!(readable("i"), "i");
        assert_eq!(readable("_ZNSt6thread4joinEv"), "std::thread::join()");
        assert_eq!(
            readable("_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal"),
            "std::rt::lang_start_internal"
        );
    }

    #[test]
    fn paths_below_the_current_directory_are_relative() {
        let here = env::current_dir().unwrap();
        assert_eq!(shorten(&here.join("a/b.c")), "a/b.c");
        assert_eq!(shorten(Path::new("./b.c")), "b.c");
        assert_eq!(shorten(Path::new("/usr/include/x.h")), "/usr/include/x.h");
    }
}
