//! Places in the source: of the program, of libraries, of the language.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the source, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file, relative to the current directory where it lies below it.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The function, as it is written in the source.
    pub function: Option<String>,
    /// The innermost line of an installed library that this line of the program called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Box<Place>>,
}

impl Place {
    /// Whether it lies in the program's own source.
    pub fn is_users(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !is_system(file))
    }

    /// Whether it lies in an installed library, which is neither the program nor the language.
    pub fn is_library(&self) -> bool {
        let installed = |file: &String| is_system(file) && !is_language(file);
        self.file.as_ref().is_some_and(installed)
    }

    /// Whether it lies in a layer over the access itself, whose caller says what is accessed in which
    /// order: `<atomic>`, Boost.Atomic, and those of Concurrency Kit and DPDK.
    pub fn is_atomic_layer(&self) -> bool {
        let layers = [
            "std::atomic",
            "std::__atomic",
            "std::operator&",
            "boost::atomics::",
            "ck_pr_",
            "rte_atomic",
        ];
        let function = self.function.as_deref().unwrap_or_default();
        layers.iter().any(|layer| function.contains(layer)) && !self.is_users()
    }

    /// The place a reader looks for in these calls, innermost first: the first one in the
    /// program's own source, with the line of a library that it called.
    pub fn nearest(mut calls: Vec<Place>) -> Place {
        let users = calls.iter().position(Place::is_users);
        let tells = |place: &Place| place.is_library() && !place.is_atomic_layer();
        let library = calls.iter().position(tells);
        let known = users
            .or(library)
            .or_else(|| calls.iter().position(|place| place.file.is_some()));
        if calls.is_empty() {
            return Place::default();
        }
        let mut nearest = calls.swap_remove(known.unwrap_or(0));
        // A library that called the program's line is further out.
        let inside = library.filter(|library| users.is_some_and(|users| *library < users));
        nearest.library = inside.map(|library| Box::new(calls.swap_remove(library)));
        nearest
    }

    /// The function with its line, such as `push (queue.hpp:304)`.
    pub fn in_full(&self) -> String {
        match (&self.function, &self.file) {
            (Some(function), Some(_)) => format!("{function} ({self})"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line, &self.function) {
            (Some(file), Some(line), _) => write!(f, "{file}:{line}"),
            (Some(file), None, _) => write!(f, "{file}"),
            (None, _, Some(function)) => write!(f, "{function}"),
            (None, _, None) => write!(f, "?"),
        }
    }
}

/// Whether `path`, belongs to the system's headers and libraries rather
/// than to the program.
pub fn is_system(path: &str) -> bool {
    path.starts_with("/usr/") || path.contains("/include/c++/") || path.starts_with("/rustc/")
}

/// Whether `path`, of which [`is_system`] is true, belongs to the language rather than to an installed
/// library: the standard libraries, the C library, and what compilers bring along.
pub fn is_language(path: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
