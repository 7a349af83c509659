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
    path.starts_with("/usr/") || path.contains("/include/c++/") || path.starts_with("/rustc/")
}

/// Whether `path`, of which [`is_system`] is true, belongs to the language rather than to an installed
/// library: the standard libraries, the C library, and what compilers bring along.
pub(crate) fn is_language(path: &str) -> bool {
    let directories = ["bits", "sys", "gnu", "c++"];
    let headers = path.strip_prefix("/usr/include/").unwrap_or_default();
    let headers = headers.strip_prefix("x86_64-linux-gnu/").unwrap_or(headers);
    path.contains("/include/c++/")
        || path.starts_with("/usr/lib/")
        || path.starts_with("/rustc/")
        || headers
            .split_once('/')
            .is_some_and(|(directory, _)| directories.contains(&directory))
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
    fn installed_libraries_are_not_the_language() {
        for path in [
            "/usr/include/boost/lockfree/queue.hpp",
            "/usr/include/ck_ring.h",
            "/usr/include/x86_64-linux-gnu/urcu.h",
            "/usr/local/include/x.h",
            "/usr/src/googletest/googletest/src/gtest.cc",
        ] {
            assert!(is_system(path) && !is_language(path), "{path}");
        }
        for path in [
            "/usr/include/c++/12/bits/atomic_base.h",
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
            "/usr/include/x86_64-linux-gnu/bits/stdio2.h",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include/stdatomic.h",
            "/usr/lib/llvm-14/lib/clang/14.0.6/include/stdatomic.h",
            "/rustc/0/library/core/src/ptr/mod.rs",
        ] {
            assert!(is_system(path) && is_language(path), "{path}");
        }
    }

    #[test]
    fn paths_below_the_current_directory_are_relative() {
        let here = env::current_dir().unwrap();
        assert_eq!(shorten(&here.join("a/b.c")), "a/b.c");
        assert_eq!(shorten(Path::new("./b.c")), "b.c");
        assert_eq!(shorten(Path::new("/usr/include/x.h")), "/usr/include/x.h");
    }
}
