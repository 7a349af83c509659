//! Build directories with a compile_commands.json, as CMake, Meson and others write it.
//!
//! The file tells how each source file is compiled, but not which source files a program consists
//! of. The debug information of the program tells that if it has been built with `-g`. Otherwise
//! the names of the objects are used, which do not show the contents of libraries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _};
use serde::Deserialize;

use super::{Unit, command, is_executable, notes};
use crate::compile::plainly;
use crate::input;
use crate::problem::{Problem, note};

/// How to have the file written.
const WRITE: &str =
    "write it again: cmake -S . -B DIR -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or meson setup DIR";

/// An entry of the file.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    directory: PathBuf,
    file: PathBuf,
    command: Option<String>,
    arguments: Option<Vec<String>>,
    output: Option<PathBuf>,
}

impl Entry {
    fn words(&self) -> Option<Vec<String>> {
        match (&self.arguments, &self.command) {
            (Some(words), _) => Some(words.clone()),
            (None, Some(command)) => shlex::split(command),
            (None, None) => None,
        }
    }

    fn path(&self) -> PathBuf {
        tidy(&self.directory.join(&self.file))
    }
}

/// The source files of `target`, and how each is compiled.
pub(super) fn find(directory: &Path, target: Option<&str>) -> Result<Vec<Unit>, Problem> {
    let path = directory.join("compile_commands.json");
    let shown = path.display();
    let text = input::read_text(&path)
        .map_err(|error| Problem::request(format!("{shown}: {}", plainly(&error))).help(WRITE))?;
    let entries = entries(&path, &text)?;
    let Some(target) = target else {
        return Err(Problem::request("--build-dir needs --target NAME")
            .note(listed(&entries))
            .help("selvedge verify --build-dir DIR --target NAME"));
    };
    let executable = executable(directory, target);
    if let Some(executable) = &executable {
        let noted = notes::of(executable)?;
        if !noted.is_empty() {
            return Ok(noted);
        }
    }
    let linked = executable.as_deref().map(compiled_from).unwrap_or_default();
    let units = units(&entries, target, &linked).ok_or_else(|| {
        Problem::request(format!("{shown}: an entry has no command that can be read")).help(WRITE)
    })?;
    if !units.is_empty() && executable.is_none() {
        let build = format!(
            "cmake --build {0}, or meson compile -C {0}",
            directory.display()
        );
        if library(directory, target) {
            return Err(Problem::request(format!("{target} is a library"))
                .note(listed(&entries))
                .help("name a program: selvedge verify --build-dir DIR --target NAME"));
        }
        note(&format!(
            "{target} has not been built, so its libraries are not known; build it first: {build}"
        ));
    }
    match units.is_empty() {
        true => Err(
            Problem::request(format!("{shown} knows no target {target}"))
                .note(listed(&entries))
                .help("name one of them: selvedge verify --build-dir DIR --target NAME")
                .help("or build with CC='selvedge cc' and CXX='selvedge c++', then: selvedge verify PROGRAM"),
        ),
        false => Ok(units),
    }
}

/// The entries in the text of `path`.
pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, Problem> {
    let shown = path.display();
    serde_json::from_str(text)
        .map_err(|error| Problem::request(format!("{shown} is damaged: {error}")).help(WRITE))
}

/// The units of `target`, which was compiled from the files in `linked` if these are known.
pub(super) fn units(
    entries: &[Entry],
    target: &str,
    linked: &BTreeSet<PathBuf>,
) -> Option<Vec<Unit>> {
    let belongs = |entry: &&Entry| match linked.is_empty() {
        true => target_of(entry).as_deref() == Some(target),
        false => linked.contains(&entry.path()),
    };
    entries.iter().filter(belongs).map(unit).collect()
}

fn unit(entry: &Entry) -> Option<Unit> {
    let words = entry.words()?;
    let line = command::parse(words.get(1..)?);
    Some(Unit {
        directory: entry.directory.clone(),
        file: entry.file.clone(),
        flags: line.flags,
        compiler: command::compiler(&words),
        digest: None,
    })
}

/// The target that an entry's object is built for: CMake puts it into `TARGET.dir`, Meson into
/// `TARGET.p`.
fn target_of(entry: &Entry) -> Option<String> {
    let output = entry.output.clone().or_else(|| {
        let words = entry.words()?;
        command::parse(words.get(1..)?).output
    })?;
    output.iter().find_map(|part| {
        let part = part.to_str()?;
        let name = part.strip_suffix(".dir").or(part.strip_suffix(".p"))?;
        Some(name.to_owned())
    })
}

fn listed(entries: &[Entry]) -> String {
    let targets: BTreeSet<String> = entries.iter().filter_map(target_of).collect();
    let targets: Vec<String> = targets.into_iter().collect();
    match targets.is_empty() {
        true => "no target is known there".to_owned(),
        false => format!("the targets there: {}", targets.join(", ")),
    }
}

/// The executable that is called `target`, if it has been built.
fn executable(directory: &Path, target: &str) -> Option<PathBuf> {
    built(directory, |directory| {
        let path = directory.join(target);
        (path.is_file() && is_executable(&path)).then_some(path)
    })
}

/// Whether a library that is called `target` has been built.
fn library(directory: &Path, target: &str) -> bool {
    let found = built(directory, |directory| {
        let names = ["a", "so"].map(|end| directory.join(format!("lib{target}.{end}")));
        let named = directory.join(target);
        let is_library = named
            .extension()
            .is_some_and(|end| end == "a" || end == "so");
        let named = is_library.then_some(named);
        names.into_iter().chain(named).find(|path| path.is_file())
    });
    found.is_some()
}

/// The result of `look` in a directory or, if it finds nothing, in the directories below.
fn built(directory: &Path, look: impl Fn(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    /// The depth down to which targets are looked for.
    const DEPTH: usize = 6;
    let mut level = vec![directory.to_owned()];
    for _ in 0..DEPTH {
        let mut below = Vec::new();
        for directory in &level {
            if let Some(path) = look(directory) {
                return Some(path);
            }
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let directories = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
            below.extend(directories.map(|entry| entry.path()));
        }
        below.sort();
        level = below;
    }
    None
}

/// The source files that an executable tells of in its debug information.
fn compiled_from(path: &Path) -> BTreeSet<PathBuf> {
    units_in(path).unwrap_or_default()
}

fn units_in(path: &Path) -> Option<BTreeSet<PathBuf>> {
    let bytes = input::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.uncompressed_data().ok());
        Ok(data.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(load).ok()?;
    let dwarf = sections.borrow(|data| gimli::EndianSlice::new(data, gimli::LittleEndian));
    let mut found = BTreeSet::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        let unit = dwarf.unit(header).ok()?;
        if let (Some(name), Some(directory)) = (unit.name, unit.comp_dir) {
            let name = name.to_string_lossy().into_owned();
            let directory = directory.to_string_lossy().into_owned();
            found.insert(tidy(&Path::new(&directory).join(name)));
        }
    }
    Some(found)
}

/// The path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}
