//! Formats places in the source.

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
    let demangled = demangled.or_else(|| qualified(name));
    demangled.unwrap_or_else(|| name.to_owned())
}

/// The qualified name, such as `std::swap<…>`, at the beginning of a mangled name of C++ whose types the
/// demangler does not understand.
fn qualified(mangled: &str) -> Option<String> {
    let rest = mangled.strip_prefix("_Z")?;
    let rest = match rest.strip_prefix('N') {
        Some(nested) => nested.trim_start_matches(['r', 'V', 'K', 'R', 'O']),
        None => rest,
    };
    let (mut name, mut rest) = match rest.strip_prefix("St") {
        Some(rest) => (String::from("std"), rest),
        None => (String::new(), rest),
    };
    let mut parts = 0;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = rest[..digits].parse().ok()?;
        let part = rest[digits..].get(..length)?;
        if !name.is_empty() {
            name.push_str("::");
        }
        name.push_str(part);
        rest = &rest[digits + length..];
        parts += 1;
    }
    if rest.starts_with('I') {
        name.push_str("<…>");
    }
    (parts > 0).then_some(name)
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
    fn names_with_types_that_are_not_understood_keep_their_beginning() {
        let swap = "_ZSt4swapIPiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EE\
                    St21is_move_constructibleIS5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_";
        assert_eq!(readable(swap), "std::swap<…>");
        assert_eq!(qualified("_ZNK1a3bcdIXwrongEE").unwrap(), "a::bcd<…>");
        assert_eq!(readable("_Zwrong"), "_Zwrong");
        assert_eq!(readable("_Z9wrong"), "_Z9wrong");
    }

    #[test]
    fn paths_below_the_current_directory_are_relative() {
        let here = env::current_dir().unwrap();
        assert_eq!(shorten(&here.join("a/b.c")), "a/b.c");
        assert_eq!(shorten(Path::new("./b.c")), "b.c");
        assert_eq!(shorten(Path::new("/usr/include/x.h")), "/usr/include/x.h");
    }
}
