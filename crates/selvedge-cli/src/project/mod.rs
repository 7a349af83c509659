//! Programs that a build system builds.
//!
//! `selvedge cc` and `selvedge c++` compile as the user's compiler does and note in each object how
//! that was done. The linker gathers these notes, so that an executable tells which source files it
//! consists of, those from archives included, and how each was compiled. To check the executable,
//! these files are compiled again, with what the checker needs.

mod command;
mod database;
mod notes;
mod rust;
mod wrapper;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::compile::{Program, Recorded};
use crate::input;
use crate::problem::Problem;
pub(crate) use rust::{ARCHIVE, SHIM, USERS, link as link_rust, rustc};
pub(crate) use wrapper::run as run_compiler;

/// A source file and how it was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unit {
    directory: PathBuf,
    file: PathBuf,
    flags: Vec<String>,
    compiler: String,
}

impl Unit {
    /// Where the file is, whatever the current directory.
    fn path(&self) -> PathBuf {
        self.directory.join(&self.file)
    }
}

/// The program to check.
pub(crate) struct Target {
    /// Its source files, and how each is compiled.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) recorded: Vec<Recorded>,
    /// The compiler that it was built with, unless it is the system's.
    pub(crate) compiler: Option<String>,
}

impl Target {
    fn new(units: Vec<Unit>) -> Target {
        let is_default = |name: &Path| name.ends_with("cc") || name.ends_with("c++");
        let compiler = units.first().map(|unit| unit.compiler.clone());
        let compiler = compiler.filter(|name| !name.is_empty() && !is_default(Path::new(name)));
        let files = units.iter().map(Unit::path).collect();
        let recorded = units.into_iter().map(|unit| Recorded {
            directory: unit.directory,
            flags: unit.flags,
        });
        Target {
            files,
            recorded: recorded.collect(),
            compiler,
        }
    }

    /// The program that consists of these files and of `program`'s.
    pub(crate) fn with(self, program: Program) -> Program {
        Program {
            files: self.files.into_iter().chain(program.files).collect(),
            recorded: self.recorded,
            compiler: program.compiler.or(self.compiler),
            ..program
        }
    }
}

/// Whether `path` is an executable rather than a source file.
pub(crate) fn is_executable(path: &Path) -> bool {
    let named_otherwise = path
        .extension()
        .is_some_and(|end| ["o", "a", "so", "lo"].iter().any(|other| end == *other));
    !named_otherwise && begins_with(path, b"\x7fELF")
}

/// Whether `path` is a program that `cargo selvedge check` has built.
pub(crate) fn is_rust(path: &Path) -> bool {
    begins_with(path, ARCHIVE)
}

fn begins_with<const LENGTH: usize>(path: &Path, magic: &[u8; LENGTH]) -> bool {
    use std::io::Read as _;
    let mut begin = [0; LENGTH];
    let read = |mut file: std::fs::File| file.read_exact(&mut begin).is_ok();
    input::open(path).is_ok_and(read) && begin == *magic
}

/// The program that `path` was linked from.
pub(crate) fn of_executable(path: &Path) -> Result<Target, Problem> {
    let units = notes::of(path)?;
    if units.is_empty() {
        return Err(
            Problem::request(format!("{} was not built with selvedge cc", path.display()))
                .note("an executable of another compiler does not tell what it consists of")
                .help("build it again with CC='selvedge cc' and CXX='selvedge c++'")
                .help("or name the build directory: selvedge verify --build-dir DIR --target NAME"),
        );
    }
    Ok(Target::new(units))
}

/// The program `target` of a build directory with a compile_commands.json.
pub(crate) fn of_build(directory: &Path, target: Option<&str>) -> Result<Target, Problem> {
    database::find(directory, target).map(Target::new)
}

/// The program `target` of a compile_commands.json with this text, without a look at what was built.
pub(crate) fn of_database(text: &str, target: &str) -> Result<Option<Target>, Problem> {
    let entries = database::entries(Path::new("compile_commands.json"), text)?;
    let units = database::units(&entries, target, &BTreeSet::new());
    Ok(units.filter(|units| !units.is_empty()).map(Target::new))
}
