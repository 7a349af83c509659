//! The flags that the user's files are compiled with, and the user's flags that cannot be honoured.

use super::compiler::{Compiler, Family, Language};
use crate::problem::Problem;

/// Libraries whose functions Selvedge knows one by one; naming them changes nothing.
const KNOWN_LIBRARIES: [&str; 7] = ["c", "m", "pthread", "rt", "dl", "stdc++", "atomic"];

/// Flags that take the next argument as their value.
const WITH_VALUE: [&str; 25] = [
    "-D",
    "-U",
    "-I",
    "-L",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "--sysroot",
    "--param",
    "-mllvm",
    "-Xclang",
    "-Xpreprocessor",
    "-Xassembler",
    "-MF",
    "-MT",
    "-MQ",
    "-target",
    "-arch",
    "-aux-info",
];

/// Beginnings of flags that can bring in code from elsewhere, or leave out instrumentation.
const HIDING: [&str; 13] = [
    "-Wl,",
    "-Wa,",
    "-Xlinker",
    "-Xassembler",
    "-T",
    "-z",
    "-u",
    "-B",
    "-fplugin",
    "-fpass-plugin",
    "-specs",
    "--specs",
    "-wrapper",
];

/// Flags for what is done anyway, or is not what is checked.
const ADDS_NOTHING: [&str; 5] = [
    "-fsanitize=thread",
    "--coverage",
    "-coverage",
    "-fprofile-arcs",
    "-ftest-coverage",
];

/// Before the user's flags, which therefore win: debug information, and code that does what the
/// source says. From `-O1` on, compilers merge and move plain accesses.
pub(super) const DEFAULTS: [&str; 2] = ["-g", "-O0"];

/// After the user's flags, because without them the program cannot be checked.
pub(super) fn required(compiler: &Compiler, language: Language) -> Vec<&'static str> {
    let mut flags = vec![
        "-fPIC",
        "-fsanitize=thread",
        // Every thread-local access must ask the runtime where the running thread's copy is.
        "-ftls-model=global-dynamic",
        // Library calls stay calls: expanded in place, they would touch memory unannounced.
        "-fno-builtin",
        "-U_FORTIFY_SOURCE",
        "-fno-lto",
        // A large frame must not jump over the guard page into the next thread's stack.
        "-fstack-clash-protection",
        // Every byte of a frame is allocated, and so cleared.
        "-mno-red-zone",
        // The frame pointer tells which variables are dead.
        "-fno-omit-frame-pointer",
        // Nor could that be told behind a jump through a table, and a loop around it would seem
        // endless.
        "-fno-jump-tables",
        // A function must still have its frame when it tells that it is left.
        "-fno-optimize-sibling-calls",
    ];
    match compiler.family {
        Family::Gcc => {
            flags.extend(["--param", "tsan-distinguish-volatile=1"]);
            flags.extend(["-mtls-dialect=gnu", "-Wno-tsan"]);
            // Every call may change what calls may change, also one that is put in later.
            flags.push("-fno-ipa-ra");
            // A value that another thread wrote to a variable must not be taken for that of another
            // variable.
            flags.push("-fstack-reuse=none");
            // The code that ships is checked, not a variant of it for a sanitizer.
            flags.push("-U__SANITIZE_THREAD__");
            if language == Language::Cxx {
                // Except in libstdc++, where a shared pointer would access two counters as one.
                flags.push("-D_GLIBCXX_TSAN=1");
            }
            if language == Language::C {
                flags.extend(["-include", "selvedge-builtins.h"]);
            }
        }
        Family::Clang => {
            flags.extend(["-mllvm", "-tsan-distinguish-volatile"]);
            flags.extend(["-mllvm", "-tsan-instrument-read-before-write"]);
            flags.extend(["-mllvm", "-no-stack-coloring"]);
            flags.push("-Wno-unused-command-line-argument");
            // Its comments tell where assembly outside of functions is.
            flags.push("-fverbose-asm");
            // The GNU assembler, which is faster, does not know what this would write.
            flags.push("-fno-addrsig");
            if compiler.version >= 19 {
                flags.push("-mtls-dialect=gnu");
            }
        }
    }
    flags
}

/// For a callback at the beginning of every basic block.
pub(super) fn marks(compiler: &Compiler) -> Option<&'static str> {
    Some(match compiler.family {
        Family::Gcc => "-fsanitize-coverage=trace-pc",
        Family::Clang => "-fsanitize-coverage=bb,no-prune,trace-pc",
    })
}

/// The flags that make weak compare-exchanges known to the runtime: clang's callbacks are those of strong ones.
pub(super) fn weak_exchanges(compiler: &Compiler, may_fail: bool) -> Vec<&'static str> {
    let mut flags = Vec::new();
    if compiler.family == Family::Clang {
        flags.extend(["-include", "selvedge-weak.h"]);
        flags.extend(may_fail.then_some("-DSELVEDGE_SPURIOUS_FAILURES"));
    }
    flags
}

/// For linking the program into an executable.
pub(super) const EXECUTABLE: [&str; 6] = [
    "-pie",
    "-pthread",
    "-static-libstdc++",
    "-lm",
    "-Wl,-z,now",
    // Code and notes in one piece: each piece costs the program a page fault, which is much for a
    // short one.
    "-Wl,-z,noseparate-code",
];

/// The user's flags as they are given to the compiler, or which of them is in the way.
pub(super) fn accepted(flags: &[String]) -> Result<Vec<&str>, Problem> {
    let mut accepted = Vec::with_capacity(flags.len());
    if let Some(flag) = flags.iter().find(|flag| from_file(flag)) {
        return Err(Problem::request(format!(
            "the flag {flag} cannot be used: flags are not read from files"
        ))
        .help("write them on the command line; if it is the name of a file: ./@NAME"));
    }
    let mut rest = flags.iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        if ADDS_NOTHING.contains(&flag) {
            continue;
        }
        if let Some(problem) = refused(flag, &mut rest) {
            return Err(problem);
        }
        if flag == "-l" || flag == "-L" {
            rest.next();
        } else if !flag.starts_with("-l") && !flag.starts_with("-L") {
            accepted.push(flag);
            if WITH_VALUE.contains(&flag) {
                accepted.extend(rest.next());
            }
        }
    }
    Ok(accepted)
}

/// Whether compilers take this argument, wherever it stands, for the name of a file with more flags. gcc hands
/// the value of a flag on as an argument of its own: `-I@file` becomes `-I @file`.
fn from_file(argument: &str) -> bool {
    let value = |flag: &&str| argument.strip_prefix(*flag);
    argument.starts_with('@')
        || WITH_VALUE
            .iter()
            .chain(&["-l"])
            .filter_map(value)
            .any(|value| value.starts_with('@'))
}

/// The first of these flags that is not known to be harmless when the user did not choose it: with it, a
/// compiler could run another program or write a file.
pub(crate) fn untrusted(flags: &[String]) -> Option<&str> {
    /// Flags that take the next argument as their value.
    const NAMED: [&str; 7] = ["-D", "-U", "-I", "-include", "-isystem", "-iquote", "-l"];
    /// Beginnings of flags whose rest may be anything.
    const ANYTHING: [&str; 6] = ["-D", "-U", "-I", "-std=", "-O", "-l"];
    /// Beginnings of flags whose rest may be a word, but no path.
    const WORD: [&str; 4] = ["-f", "-g", "-m", "-W"];
    let word = |rest: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.=".contains(c);
        rest.chars().all(plain)
    };
    let harmless = |flag: &str| match flag {
        "-pthread" | "-pedantic" | "-ansi" | "-w" => true,
        "-mllvm" | "-fuse-ld" => false,
        // Compiled modules are kept beside the sources.
        _ if flag.starts_with("-fmodule") => false,
        _ if ANYTHING.iter().any(|start| flag.starts_with(start)) => true,
        // A program or a plugin would be named after the sign.
        _ if flag.starts_with("-f") && flag.contains('=') => false,
        _ => WORD
            .iter()
            .any(|start| flag.strip_prefix(start).is_some_and(word)),
    };
    let mut rest = flags.iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        let value = rest.clone().next().filter(|_| NAMED.contains(&flag));
        if let Some(hidden) = [Some(flag), value]
            .into_iter()
            .flatten()
            .find(|&f| from_file(f))
        {
            return Some(hidden);
        }
        if value.is_some() {
            rest.next();
        } else if !harmless(flag) {
            return Some(flag);
        }
    }
    None
}

fn refused<'a>(flag: &str, rest: &mut (impl Iterator<Item = &'a str> + Clone)) -> Option<Problem> {
    let refuse = |why: &str, help: &str| {
        Some(Problem::request(format!("the flag {flag} cannot be used: {why}")).help(help))
    };
    if let Some(library) = flag.strip_prefix("-l") {
        let library = if library.is_empty() {
            rest.clone().next()?
        } else {
            library
        };
        if KNOWN_LIBRARIES.contains(&library) {
            return None;
        }
        return Some(
            Problem::request(format!("the library {library} cannot be checked"))
                .note(
                    "it was compiled without instrumentation: Selvedge would not see what it does",
                )
                .help("give its source files to selvedge verify instead"),
        );
    }
    match flag {
        "-c" | "-S" | "-E" | "-M" | "-MM" | "-r" | "-shared" | "-static" | "-static-pie"
        | "-nostdlib" | "-nodefaultlibs" | "-nostartfiles" | "-nolibc" => {
            refuse("Selvedge decides what is built", "leave it out")
        }
        "-m32" | "-mx32" | "-m16" => refuse("only 64-bit programs can be checked", "leave it out"),
        "-" => refuse(
            "a program cannot be read from standard input",
            "write it to a file",
        ),
        _ if flag.starts_with("-o") => refuse("Selvedge decides what is built", "leave it out"),
        _ if flag.starts_with("-x") => refuse(
            "the language is told by the file's name",
            "name C files .c and C++ files .cc, .cpp, .cxx or .C",
        ),
        _ if flag.starts_with("-fsanitize") || flag.starts_with("-fno-sanitize") => refuse(
            "the program is built with -fsanitize=thread, which cannot be combined with another sanitizer",
            "leave it out",
        ),
        _ if flag.starts_with("-stdlib=") && flag != "-stdlib=libstdc++" => refuse(
            "libstdc++ is the only C++ library that is modelled",
            "leave it out",
        ),
        _ if HIDING.iter().any(|prefix| flag.starts_with(prefix)) => refuse(
            "it can bring in code that Selvedge would not see",
            "leave it out",
        ),
        _ if !flag.starts_with('-') => Some(not_a_flag(flag)),
        _ => None,
    }
}

fn not_a_flag(argument: &str) -> Problem {
    let prebuilt = [".o", ".a", ".so", ".lo"]
        .iter()
        .any(|end| argument.ends_with(end))
        || argument.contains(".so.");
    if prebuilt {
        super::prebuilt(argument)
    } else {
        Problem::request(format!("{argument} is not a flag for the compiler"))
            .help("files of the program come before the dashes: selvedge verify FILE… -- FLAGS…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(flags: &[&str]) -> Result<Vec<String>, String> {
        let flags: Vec<String> = flags.iter().map(|f| f.to_string()).collect();
        match accepted(&flags) {
            Ok(list) => Ok(list.into_iter().map(str::to_owned).collect()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    #[test]
    fn ordinary_flags_pass_in_order() {
        let flags = [
            "-O2", "-I", "include", "-DX=1", "-std=c11", "-Wall", "-Werror", "-pthread",
        ];
        assert_eq!(accept(&flags).unwrap(), flags);
    }

    #[test]
    fn flags_of_strangers_neither_run_programs_nor_write_files() {
        let first = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|f| f.to_string()).collect();
            untrusted(&flags).map(str::to_owned)
        };
        let ordinary = [
            "-O2",
            "-I",
            "/a/b",
            "-I../c",
            "-DX=\"y z\"",
            "-std=c11",
            "-Wall",
            "-Wno-error=x",
            "-pthread",
            "-g3",
            "-march=native",
            "-fno-strict-aliasing",
            "-include",
            "x.h",
            "-lm",
        ];
        assert_eq!(first(&ordinary), None);
        for flag in [
            "-fplugin=/tmp/x.so",
            "-fuse-ld=/tmp/x",
            "--ld-path=/tmp/x",
            "-wrapper",
            "-B/tmp",
            "-specs=/tmp/x",
            "-Xclang",
            "-mllvm",
            "-MF",
            "-aux-info",
            "-dumpdir",
            "-Wp,-MD,/tmp/x",
            "-Wl,x",
            "-fdump-tree-all=/tmp/x",
            "-save-temps=/tmp/x",
            "@x",
            "-fmodules-ts",
            "-gsplit=/x",
            "--param",
        ] {
            assert_eq!(first(&["-O1", flag]).as_deref(), Some(flag));
        }
    }

    #[test]
    fn values_of_flags_are_not_read_from_files_either() {
        for flag in ["-D", "-U", "-I", "-include", "-isystem", "-iquote", "-l"] {
            let joined = format!("{flag}@z.rsp");
            for (flags, named) in [([flag, "@z.rsp"], "@z.rsp"), (["-O1", &joined], &joined)] {
                let flags = flags.map(str::to_owned);
                assert_eq!(untrusted(&flags), Some(named));
                let problem = accepted(&flags).unwrap_err().to_string();
                assert!(problem.contains(&format!("the flag {named} ")), "{problem}");
            }
        }
        let harmless = ["-DX=@", "-I", "./@x", "-Ia/@b"].map(str::to_owned);
        assert_eq!(untrusted(&harmless), None);
        assert_eq!(accepted(&harmless).unwrap(), harmless);
    }

    #[test]
    fn known_libraries_are_dropped_and_others_refused() {
        assert_eq!(accept(&["-lpthread", "-l", "m", "-O1"]).unwrap(), ["-O1"]);
        assert!(
            accept(&["-lssl"])
                .unwrap_err()
                .contains("the library ssl cannot be checked")
        );
        assert!(
            accept(&["-l", "z"])
                .unwrap_err()
                .contains("the library z cannot be checked")
        );
    }

    #[test]
    fn flags_that_would_hide_code_are_refused_by_name() {
        for flag in [
            "-fsanitize=address",
            "-Wl,x.a",
            "-Wa,x.s",
            "-o",
            "-c",
            "-m32",
            "foo.o",
            "foo.c",
            "@f",
        ] {
            assert!(accept(&[flag]).unwrap_err().contains(flag), "{flag}");
        }
    }
}
