//! Places in the source: of the program, of libraries, of the language.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::place;

/// A place in the source, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The file, relative to the current directory where it lies below it.
    pub(crate) file: Option<String>,
    /// The line.
    pub(crate) line: Option<u32>,
    /// The function, as it is written in the source.
    pub(crate) function: Option<String>,
    /// The innermost line of an installed library that this line of the program called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) library: Option<Box<Place>>,
}

impl Place {
    /// Whether it lies in the program's own source.
    pub(crate) fn is_users(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|file| !place::is_system(file))
    }

    /// Whether it lies in an installed library, which is neither the program nor the language.
    pub(crate) fn is_library(&self) -> bool {
        let installed = |file: &String| place::is_system(file) && !place::is_language(file);
        self.file.as_ref().is_some_and(installed)
    }

    /// Whether it lies in a layer over the access itself, whose caller says what is accessed in which
    /// order: `<atomic>`, Boost.Atomic, and those of Concurrency Kit and DPDK.
    pub(crate) fn is_atomic_layer(&self) -> bool {
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
    pub(crate) fn nearest(mut calls: Vec<Place>) -> Place {
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
    pub(crate) fn in_full(&self) -> String {
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
