//! What a program may refer to outside of itself.
//!
//! A user's object that refers to a [`Symbol::Refused`] function is refused before it runs. C++'s
//! standard library, which is linked in whole files, refers to many of those without calling
//! them; so every one of them has a stub that gives up by name when it is called after all (see
//! `refusing_stubs`). What the linked program then still needs from the host must be
//! [`Symbol::Known`].

mod known;
mod refused;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::abi::EntryPoint;
use crate::support;

/// What the runtime makes of an external symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The runtime or its shim defines it.
    Provided,
    /// A function or variable of the host's C library or compiler runtime that touches no memory
    /// that threads could share, or that is known to be harmless.
    Known,
    /// Not modelled: why, and what to do instead.
    Refused(String),
    /// Nothing is known about it.
    Unknown,
}

static PROVIDED: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stubs = crate::abi::exports()
        .into_iter()
        .map(|export| export.name.into_owned());
    stubs
        .chain(support::SHIM_SYMBOLS.split(' ').map(str::to_owned))
        .collect()
});

static ARGUMENTS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let entries = [crate::posix::entries(), crate::cxx::entries()].concat();
    let arguments = |(name, _, count): EntryPoint| (name, usize::from(count));
    entries.into_iter().map(arguments).collect()
});

/// How many arguments the function `name` takes, if the runtime defines it.
pub fn arguments(name: &str) -> Option<usize> {
    ARGUMENTS.get(name).copied()
}

/// What the runtime makes of the symbol `name`, which a program leaves undefined.
pub fn classify(name: &str) -> Symbol {
    if PROVIDED.contains(name) {
        Symbol::Provided
    } else if let Some(reason) = refused::reason(name) {
        Symbol::Refused(reason)
    } else if known::contains(name) {
        Symbol::Known
    } else {
        Symbol::Unknown
    }
}

/// How to say that the program calls `name`, which is not modelled.
pub(crate) fn refusal(name: &str) -> String {
    match refused::reason(name) {
        Some(reason) => format!("{name}: {reason}"),
        None => format!("{name}: not modelled"),
    }
}

/// Assembly for one function per refused name: it gives up with that name.
pub(crate) fn refusing_stubs() -> String {
    let mut text = String::new();
    let mut strings = String::from("\t.section .rodata.selvedge,\"a\",@progbits\n");
    for (index, name) in refused::names().enumerate() {
        let _ = write!(
            text,
            "\t.weak {name}\n\t.hidden {name}\n\t.type {name}, @function\n{name}:\n\
             \tleaq .Lrefused{index}(%rip), %rdi\n\tmovq (%rsp), %rsi\n\tjmp selvedge_refuse\n"
        );
        let _ = writeln!(strings, ".Lrefused{index}: .asciz \"{name}\"");
    }
    text + &strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_on_one_list() {
        for name in refused::names() {
            assert!(
                !PROVIDED.contains(name),
                "{name} is both provided and refused"
            );
            assert!(!known::contains(name), "{name} is both known and refused");
        }
        let mut names: Vec<_> = refused::names().collect();
        names.sort_unstable();
        let doubled = names.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(doubled, None);
    }

    #[test]
    fn symbols_are_told_apart() {
        assert_eq!(classify("pthread_create"), Symbol::Provided);
        assert_eq!(classify("printf"), Symbol::Provided);
        assert_eq!(classify("sqrt"), Symbol::Known);
        assert_eq!(classify("hypotl"), Symbol::Known);
        assert!(matches!(classify("fork"), Symbol::Refused(reason) if reason.contains("thread")));
        assert_eq!(classify("frobnicate"), Symbol::Unknown);
    }
}
