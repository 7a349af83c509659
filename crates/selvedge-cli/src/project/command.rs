//! Reads a compiler's command line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::input;
use crate::problem::Problem;

/// Flags about dependencies, followed by a value or not.
const DEPENDENCIES: [&str; 5] = ["-MD", "-MMD", "-MP", "-MG", "-M"];
const DEPENDENCIES_WITH_VALUE: [&str; 4] = ["-MF", "-MT", "-MQ", "-MJ"];
/// Flags that concern only the linker or what is written, followed by a value or not.
const LINKING: [&str; 12] = [
    "-c",
    "-S",
    "-shared",
    "-static",
    "-static-pie",
    "-pie",
    "-no-pie",
    "-rdynamic",
    "-s",
    "-pipe",
    "-static-libgcc",
    "-static-libstdc++",
];
const LINKING_WITH_VALUE: [&str; 7] = ["-o", "-l", "-L", "-Xlinker", "-T", "-z", "-u"];
/// Beginnings of flags that concern only the linker.
const LINKING_STARTS: [&str; 7] = [
    "-l",
    "-L",
    "-Wl,",
    "-o",
    "-fuse-ld=",
    "-save-temps",
    "-flto",
];
/// Beginnings of flags for what a build adds to a program, which is not what is checked: sanitizers, coverage and
/// profiles.
const ADDED_STARTS: [&str; 6] = [
    "-fsanitize",
    "-fno-sanitize",
    "--coverage",
    "-coverage",
    "-fprofile-",
    "-ftest-coverage",
];
/// Flags of the compiler that take the next word.
const WITH_VALUE: [&str; 14] = [
    "-D",
    "-U",
    "-I",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "--sysroot",
    "--param",
    "-Xclang",
    "-mllvm",
    "-Xpreprocessor",
];

/// Programs that are put before a compiler.
const LAUNCHERS: [&str; 4] = ["ccache", "sccache", "distcc", "icecc"];

/// A command line of a compiler.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Its source files: which words they are.
    pub(super) sources: Vec<usize>,
    /// The flags that say how source files are compiled.
    pub(super) flags: Vec<String>,
    /// Whether it compiles only.
    pub(super) compiles_only: bool,
    /// Whether it writes neither objects nor executables.
    pub(super) writes_text: bool,
    /// The file it writes.
    pub(super) output: Option<PathBuf>,
}

/// Whether `word` names a C or C++ file.
fn is_source(word: &str) -> bool {
    const ENDS: [&str; 8] = ["c", "cc", "cpp", "cxx", "c++", "cp", "C", "CPP"];
    let end = Path::new(word).extension().and_then(|end| end.to_str());
    !word.starts_with('-') && end.is_some_and(|end| ENDS.contains(&end))
}

/// Parses `words`, the words after the compiler's name.
pub(super) fn parse(words: &[String]) -> CommandLine {
    let mut line = CommandLine::default();
    let mut next = 0;
    while let Some(word) = words.get(next) {
        next += 1;
        let word = word.as_str();
        if is_source(word) {
            line.sources.push(next - 1);
            continue;
        }
        line.compiles_only |= word == "-c";
        line.writes_text |= ["-E", "-S", "-M", "-MM", "-fsyntax-only"].contains(&word);
        if let Some(output) = word.strip_prefix("-o") {
            let output = match output {
                "" => words.get(next).map(String::as_str).unwrap_or_default(),
                joined => joined,
            };
            line.output = Some(PathBuf::from(output));
        }
        let dropped_with_value =
            DEPENDENCIES_WITH_VALUE.contains(&word) || LINKING_WITH_VALUE.contains(&word);
        let dropped = DEPENDENCIES.contains(&word)
            || LINKING.contains(&word)
            || LINKING_STARTS.iter().any(|start| word.starts_with(start))
            || ADDED_STARTS.iter().any(|start| word.starts_with(start));
        if dropped_with_value {
            next += 1;
        } else if !dropped && word.starts_with('-') {
            line.flags.push(word.to_owned());
            if WITH_VALUE.contains(&word) {
                line.flags.extend(words.get(next).cloned());
                next += 1;
            }
        }
    }
    line
}

/// The words with those that response files hold in the places of `@FILE`.
pub(super) fn expand(words: Vec<String>) -> Result<Vec<String>, Problem> {
    let mut expanded = Vec::with_capacity(words.len());
    for word in words {
        let Some(path) = word.strip_prefix('@').map(Path::new) else {
            expanded.push(word);
            continue;
        };
        // As compilers do it, what is no file is a word.
        let Ok(text) = input::read_text(path) else {
            expanded.push(word);
            continue;
        };
        let inside = shlex::split(&text).ok_or_else(|| {
            Problem::request(format!(
                "{}: a quotation mark is not closed",
                path.display()
            ))
        })?;
        // Files that it names are left to the compiler.
        expanded.extend(inside);
    }
    Ok(expanded)
}

/// The static archives that `-l` means, by the number of the word, if they are in a directory of `-L`.
pub(super) fn libraries(words: &[String]) -> HashMap<usize, PathBuf> {
    let mut directories = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.strip_prefix("-L") {
            Some("") => directories.extend(rest.next().map(PathBuf::from)),
            Some(directory) => directories.push(PathBuf::from(directory)),
            None => {}
        }
    }
    let archive = |name: &str| {
        let file = |end: &str| {
            let mut paths = directories
                .iter()
                .map(|it| it.join(format!("lib{name}.{end}")));
            paths.find(|path| path.is_file())
        };
        file("a").filter(|_| file("so").is_none())
    };
    let named = |(number, word): (usize, &String)| {
        let name = word.strip_prefix("-l").filter(|name| !name.is_empty())?;
        Some((number, archive(name)?))
    };
    words.iter().enumerate().filter_map(named).collect()
}

/// The name of a compiler that is not this program.
pub(super) fn compiler(words: &[String]) -> String {
    let launcher = |word: &&String| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| LAUNCHERS.contains(&name))
    };
    let name = words.iter().find(|word| !launcher(word));
    let name = name.map(String::as_str).unwrap_or_default();
    let own = Path::new(name)
        .file_name()
        .is_some_and(|name| name == "selvedge");
    match own {
        true => String::new(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn flags_for_the_compiler_are_kept_and_others_are_not() {
        let line = parse(&words(
            "-O2 -I include -DN=3 -MD -MF d -pthread -c a.c -o b/a.o -Wl,x -lm -L lib -std=c11",
        ));
        assert_eq!(line.flags, words("-O2 -I include -DN=3 -pthread -std=c11"));
        assert_eq!(line.output, Some(PathBuf::from("b/a.o")));
        assert!(line.compiles_only && !line.writes_text);
        assert_eq!(line.sources, [9]);
    }

    #[test]
    fn objects_and_archives_are_no_sources() {
        let line = parse(&words("a.o libb.a main.cc -o x"));
        assert_eq!(line.sources, [2]);
        assert!(!line.compiles_only);
    }
}
