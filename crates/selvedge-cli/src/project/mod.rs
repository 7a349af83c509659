//! Programs that a build system builds.
//!
//! `selvedge cc` and `selvedge c++` compile as the user's compiler does and note in each object how
//! that was done. The linker gathers these notes, so that an executable tells which source files it
//! consists of, those from archives included, and how each was compiled. To check the executable,
//! these files are compiled again, with what the checker needs.

mod command;
mod database;
mod notes;
mod parts;
mod rust;
mod wrapper;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::compile::{Program, Recorded};
use crate::input;
use crate::problem::{Problem, note, warn};
pub(crate) use rust::{ARCHIVE, SHIM, USERS, link as link_rust, rustc};
pub(crate) use wrapper::run as run_compiler;

/// How to have everything compiled by `selvedge cc`.
pub(crate) const BUILD_AGAIN: &str =
    "build everything again: make clean && make CC='selvedge cc' CXX='selvedge c++'";

/// A source file and how it was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unit {
    directory: PathBuf,
    file: PathBuf,
    flags: Vec<String>,
    compiler: String,
    /// The hash of the file when it was built, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<u64>,
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
    !is_object(path) && begins_with(path, b"\x7fELF")
}

/// Whether `path` is called as an object or a library is.
fn is_object(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| ["o", "a", "so", "lo"].iter().any(|other| end == *other))
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
    let parts = parts::of(path)?;
    if parts.units.is_empty() {
        return Err(
            Problem::request(format!("{} was not built with selvedge cc", path.display()))
                .note("an executable of another compiler does not tell what it consists of")
                .help(BUILD_AGAIN)
                .help("or name the build directory: selvedge verify --build-dir DIR --target NAME"),
        );
    }
    if !parts.unknown.is_empty() {
        note(&format!(
            "{} has parts that selvedge cc did not compile, which are left out: {}; {BUILD_AGAIN}; \
             or give the sources of a library with --stub FILE",
            path.display(),
            some(&parts.unknown)
        ));
    }
    warn_of_changes(&parts.units);
    Ok(Target::new(parts.units))
}

/// The objects, archives and libraries among `files` that `selvedge cc` compiled, and the other files.
pub(crate) fn of_objects(files: &[PathBuf]) -> Result<(Target, Vec<PathBuf>), Problem> {
    let (mut units, mut others) = (Vec::new(), Vec::new());
    for file in files {
        let noted = match is_object(file) {
            // Files that are no objects are refused elsewhere.
            true => notes::of(file).unwrap_or_default(),
            false => Vec::new(),
        };
        match noted.is_empty() {
            true => others.push(file.clone()),
            false => units.extend(noted),
        }
    }
    warn_of_changes(&units);
    Ok((Target::new(units), others))
}

/// A few of `names`, in words.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len() - names.len().min(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Warns of source files that are not what they were when the program was built.
fn warn_of_changes(units: &[Unit]) {
    let changed = |unit: &&Unit| unit.digest.is_some() && digest(&unit.path()) != unit.digest;
    let changed = units.iter().filter(changed).filter(|it| it.path().exists());
    let changed: Vec<String> = changed.map(|it| it.file.display().to_string()).collect();
    if !changed.is_empty() {
        warn(&format!(
            "changed since the program was built: {}; what is checked is the source as it is now",
            some(&changed)
        ));
    }
}

/// A hash of what is in a file, if it can be read.
fn digest(path: &Path) -> Option<u64> {
    // FNV-1a: its result is the same for every version of the compiler.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let bytes = input::read(path).ok()?;
    Some(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
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
