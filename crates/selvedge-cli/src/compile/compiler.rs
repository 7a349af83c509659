//! Finds the user's compiler and tells gcc from clang.

use std::env;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache;
use crate::problem::Problem;

/// The language of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    /// C, by whatever standard the flags say.
    C,
    /// C++.
    Cxx,
    /// Rust, as bitcode.
    Rust,
}

/// The vendor of a compiler: the ThreadSanitizer instrumentation of each differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// The GNU compilers.
    Gcc,
    /// clang and what is built from it.
    Clang,
}

/// A compiler that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    /// The words after the program's name in `--cc` or `$CC`.
    arguments: Vec<OsString>,
    /// The compiler's family.
    pub(crate) family: Family,
    /// Its major version.
    pub(crate) version: u32,
    /// Its predefined macros, see [`macros`].
    macros: String,
}

impl Compiler {
    /// The compiler for `language`: `chosen` by `origin`, else the environment's, else the system's.
    pub(crate) fn find(
        language: Language,
        chosen: Option<&str>,
        origin: &str,
    ) -> Result<Compiler, Problem> {
        let (variable, defaults): (_, &[&str]) = match language {
            Language::C | Language::Rust => ("CC", &["cc", "gcc", "clang"]),
            Language::Cxx => ("CXX", &["c++", "g++", "clang++"]),
        };
        if let Some(chosen) = chosen {
            return Compiler::named(origin, chosen, language);
        }
        match env::var(variable) {
            // While a project is built, that is how this program is called.
            Ok(value) if !value.trim().is_empty() && !is_selvedge(&value) => {
                Compiler::named(&format!("${variable}"), &value, language)
            }
            _ => match defaults.iter().find_map(|name| search(OsStr::new(name))) {
                Some(program) => Compiler::probe(program, Vec::new()),
                None => Err(no_compiler(language)),
            },
        }
    }

    fn named(origin: &str, command: &str, language: Language) -> Result<Compiler, Problem> {
        let mut words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            return Err(Problem::request(format!("{origin} is empty")));
        }
        // `ccache gcc` runs a compiler too: the name that tells the language is the last word
        // that is not a flag.
        let name = words
            .iter()
            .rposition(|w| !w.to_string_lossy().starts_with('-'))
            .unwrap_or(0);
        if let Some(counterpart) = counterpart(&words[name].to_string_lossy(), language) {
            words[name] = counterpart.into();
        }
        let program = words.remove(0);
        match search(&program) {
            Some(found) => Compiler::probe(found, words),
            None => Err(Problem::request(format!(
                "{origin} names a compiler that is not there: {}",
                program.to_string_lossy()
            ))
            .help("any gcc or clang for x86-64 Linux will do: name one with --cc")),
        }
    }

    fn probe(program: PathBuf, arguments: Vec<OsString>) -> Result<Compiler, Problem> {
        let name = program.display();
        let macros = macros(&program, &arguments)?;
        let value = |name: &str| {
            let define = macros
                .lines()
                .find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
            define.map(str::trim)
        };
        let (family, version) = match (value("__clang_major__ "), value("__GNUC__ ")) {
            (Some(version), _) => (Family::Clang, version),
            (None, Some(version)) => (Family::Gcc, version),
            (None, None) => {
                return Err(Problem::request(format!("{name} is neither gcc nor clang"))
                    .help("Selvedge needs a compiler with -fsanitize=thread: name one with --cc"));
            }
        };
        if value("__x86_64__ ").is_none() || value("__linux__ ").is_none() {
            return Err(
                Problem::request(format!("{name} does not compile for x86-64 Linux"))
                    .help("name another compiler with --cc"),
            );
        }
        let version = version.parse().unwrap_or(0);
        Ok(Compiler {
            program,
            arguments,
            family,
            version,
            macros,
        })
    }

    /// A command that runs it, with the user's own leading arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// How to name it in a message.
    pub(crate) fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Its identity, which changes with an update.
    pub(crate) fn fingerprint(&self, hasher: &mut impl Hasher) {
        (&self.program, &self.arguments, &self.macros).hash(hasher);
        stamp(&self.program).hash(hasher);
    }
}

/// The macros that tell what a compiler is.
const TELLING: [&str; 5] = [
    "__VERSION__ ",
    "__GNUC__ ",
    "__clang_major__ ",
    "__x86_64__ ",
    "__linux__ ",
];

/// The properties of a file that change when it is replaced.
fn stamp(program: &Path) -> Option<[u64; 4]> {
    let metadata = program.metadata().ok()?;
    let time = [metadata.mtime(), metadata.mtime_nsec()].map(i64::cast_unsigned);
    Some([metadata.ino(), time[0], time[1], metadata.len()])
}

/// How the compiler defines the macros that tell what it is; remembered, because clang takes its
/// time.
fn macros(program: &Path, arguments: &[OsString]) -> Result<String, Problem> {
    let mut hasher = DefaultHasher::new();
    (program, arguments, TELLING, stamp(program)).hash(&mut hasher);
    let key = format!("compiler-{:016x}", hasher.finish());
    if let Some(known) = cache::read(&key) {
        return Ok(known);
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["-E", "-dM", "-x", "c", "/dev/null"]);
    let output = command.output().map_err(|error| {
        Problem::request(format!("{} does not run: {error}", program.display()))
            .help("name another compiler with --cc")
    })?;
    let all = String::from_utf8_lossy(&output.stdout);
    let telling = |line: &&str| {
        let defined = line.strip_prefix("#define ");
        defined.is_some_and(|defined| TELLING.iter().any(|name| defined.starts_with(name)))
    };
    let macros = all.lines().filter(telling).collect::<Vec<_>>().join("\n");
    if !macros.is_empty() {
        cache::write(&key, &macros);
    }
    Ok(macros)
}

/// The compiler of the same make for the other language, if `name` is not for `language` already.
fn counterpart(name: &str, language: Language) -> Option<String> {
    const PAIRS: [(&str, &str); 3] = [("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")];
    let (directory, file) = match name.rfind('/') {
        Some(slash) => name.split_at(slash + 1),
        None => ("", name),
    };
    for (c, cxx) in PAIRS {
        let (from, to) = match language {
            Language::C | Language::Rust => (cxx, c),
            Language::Cxx => (c, cxx),
        };
        let is_cxx = file.contains("++");
        if is_cxx == (language == Language::Cxx) {
            return None;
        }
        if let Some(at) = file.rfind(from) {
            let end = at + from.len();
            return Some(format!("{directory}{}{to}{}", &file[..at], &file[end..]));
        }
    }
    None
}

/// The GNU assembler, where it is installed.
pub(super) fn assembler() -> Option<PathBuf> {
    search(OsStr::new("as"))
}

/// The executable file that a shell would run for `name`.
fn search(name: &OsStr) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if Path::new(name).components().count() > 1 {
        return executable(Path::new(name)).then(|| std::path::absolute(name).ok())?;
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|d| d.join(name))
        .find(|path| executable(path))
}

/// Whether a command is `selvedge cc` or the like.
fn is_selvedge(command: &str) -> bool {
    let program = command.split_whitespace().next().map(Path::new);
    program.and_then(Path::file_name) == Some(OsStr::new("selvedge"))
}

fn no_compiler(language: Language) -> Problem {
    let (what, names, packages) = match language {
        Language::C | Language::Rust => ("C", "cc, gcc or clang", ["gcc", "gcc", "gcc"]),
        Language::Cxx => ("C++", "c++, g++ or clang++", ["g++", "gcc-c++", "gcc"]),
    };
    let [debian, fedora, arch] = packages;
    Problem::request(format!(
        "no {what} compiler: neither of {names} is on the PATH"
    ))
    .help(format!(
        "install one: `apt install {debian}` (Debian, Ubuntu), `dnf install {fedora}` (Fedora),\n\
         `pacman -S {arch}` (Arch), or name one with --cc"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_has_a_counterpart_for_the_other_language() {
        let cxx = |name| counterpart(name, Language::Cxx);
        assert_eq!(cxx("gcc").as_deref(), Some("g++"));
        assert_eq!(
            cxx("/opt/gcc/bin/x86_64-linux-gnu-gcc-12").as_deref(),
            Some("/opt/gcc/bin/x86_64-linux-gnu-g++-12")
        );
        assert_eq!(cxx("clang-19").as_deref(), Some("clang++-19"));
        assert_eq!(cxx("cc").as_deref(), Some("c++"));
        assert_eq!(cxx("g++"), None);
        assert_eq!(
            counterpart("clang++", Language::C).as_deref(),
            Some("clang")
        );
        assert_eq!(counterpart("gcc", Language::C), None);
    }
}
