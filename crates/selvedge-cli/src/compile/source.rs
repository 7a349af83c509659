//! The files that the user names, before they are compiled.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{Language, Program, Recorded, expressions, foreign};
use crate::input;
use crate::problem::Problem;
use crate::project;

/// A file that the user names.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) language: Language,
    /// The file that is given to the compiler in its place.
    pub(super) compiled: Option<PathBuf>,
    /// How it is compiled, if not as the user says.
    pub(super) recorded: Option<Recorded>,
    /// Whether it is an object that another compiler has instrumented, or an archive of some.
    pub(super) foreign: bool,
}

impl Source {
    /// Whether it is an archive of objects.
    pub(super) fn is_archive(&self) -> bool {
        self.foreign && self.path.extension().is_some_and(|end| end == "a")
    }

    /// Makes sure that `path` can be compiled at all; compilers' words for these cases are poor. It may be part of
    /// what was `built`.
    pub(super) fn open(program: &Program, path: &Path, built: bool) -> Result<Source, Problem> {
        let name = path.display();
        let foreign = foreign::is(&program.path(path));
        let language = match path.extension().and_then(|e| e.to_str()) {
            Some("c" | "i") => Some(Language::C),
            Some("cc" | "cpp" | "cxx" | "c++" | "cp" | "C" | "CPP" | "ii") => Some(Language::Cxx),
            Some("o" | "a") if foreign => Some(Language::C),
            _ => project::is_rust(&program.path(path)).then_some(Language::Rust),
        };
        let metadata = fs::metadata(program.path(path)).map_err(|error| {
            let problem = Problem::request(format!("{name}: {}", plainly(&error)));
            if built {
                problem
                    .note("the program was built from it, and is checked by compiling it once more")
                    .help("build again, and keep generated files until the check is done")
            } else if path.to_string_lossy().starts_with('-') {
                problem.help("flags for the compiler come after two dashes: FILE… -- FLAGS…")
            } else if path.extension().is_none() && error.kind() == std::io::ErrorKind::NotFound {
                problem.help("if it is a program, build it first, with CC='selvedge cc' and CXX='selvedge c++'")
            } else {
                problem
            }
        })?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(Problem::request(format!("{name} is not a regular file"))
                .help("write the program to a file and name that"));
        }
        if metadata.is_dir() {
            return Err(Problem::request(format!("{name} is a directory"))
                .help("name the source files of one program"));
        }
        let Some(language) = language else {
            return Err(match path.extension().and_then(|e| e.to_str()) {
                Some("o" | "a" | "so" | "lo") => prebuilt(&path.to_string_lossy()),
                Some("s" | "S") => Problem::request(format!("{name} is assembly")).note(
                    "assembly carries no instrumentation: Selvedge would not see what it does",
                ),
                _ => Problem::request(format!("{name} is not a C or C++ file"))
                    .help("C files are named .c, C++ files .cc, .cpp, .cxx or .C"),
            });
        };
        let mut first = [0];
        match input::open(&program.path(path)).and_then(|mut file| file.read(&mut first)) {
            Ok(0) => Err(Problem::request(format!("{name} is empty"))
                .help("a program needs a main function")),
            Ok(_) => Ok(Source {
                path: path.to_owned(),
                language,
                compiled: None,
                recorded: None,
                foreign,
            }),
            Err(error) => Err(Problem::request(format!("{name}: {}", plainly(&error)))),
        }
    }

    /// Has the expressions of `program` compiled with it.
    pub(super) fn wrap(&mut self, program: &Program, directory: &Path) -> Result<(), Problem> {
        let name = match self.language {
            Language::C => "expressions.c",
            Language::Cxx => "expressions.cc",
            Language::Rust => {
                return Err(Problem::request(
                    "expressions in a formula go with C and C++ programs only",
                ));
            }
        };
        let path = directory.join(name);
        fs::write(&path, expressions::wrapper(program, self)).map_err(|error| {
            Problem::internal(format!("cannot write {}: {error}", path.display()))
        })?;
        self.compiled = Some(path);
        Ok(())
    }
}

/// Compiled code that was not compiled here.
pub(super) fn prebuilt(name: &str) -> Problem {
    Problem::request(format!("{name} is compiled code and cannot be checked"))
        .note("it carries no instrumentation: Selvedge would not see what it does")
        .help("name its source files instead: selvedge verify FILE…")
        .help(
            "or have an object (.o) or an archive (.a) of it instrumented: -fsanitize=thread -fPIC",
        )
}

/// The system's words for an error, without the number.
pub(crate) fn plainly(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
