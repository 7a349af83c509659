//! The parts of an executable that its notes do not tell of: shared libraries, and objects that another
//! compiler wrote.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{File, Object as _, ObjectSymbol as _, SymbolKind};

use super::{Unit, notes};
use crate::compile::foreign;
use crate::input;
use crate::problem::Problem;

/// Beginnings of the names of libraries that Selvedge models, or that the notes of a sanitizer's build ask for.
const MODELLED: [&str; 11] = [
    "libc.so",
    "libm.so",
    "libpthread.so",
    "librt.so",
    "libdl.so",
    "libatomic.so",
    "libstdc++.so",
    "libgcc_s.so",
    "libtsan.so",
    "libgcov.so",
    "ld-linux",
];

/// Symbols that tell that the libraries of C or C++ are linked statically.
const STATIC: [&str; 2] = ["__libc_start_main", "__gxx_personality_v0"];

/// The source files of an executable, and its other parts.
pub(super) struct Parts {
    pub(super) units: Vec<Unit>,
    /// Files and libraries that nothing is known of.
    pub(super) unknown: Vec<String>,
}

/// The parts of the executable at `path`, and of the libraries that it loads.
pub(super) fn of(path: &Path) -> Result<Parts, Problem> {
    let mut parts = Parts {
        units: notes::of(path)?,
        unknown: Vec::new(),
    };
    if parts.units.is_empty() {
        return Ok(parts);
    }
    parts.add_unknown(path);
    let mut seen = BTreeSet::new();
    let mut left = vec![path.to_owned()];
    while let Some(loader) = left.pop() {
        let dynamic = Dynamic::of(&loader);
        let needed = dynamic.needed.iter();
        for name in needed.filter(|name| !MODELLED.iter().any(|known| name.starts_with(known))) {
            if !seen.insert(name.clone()) {
                continue;
            }
            let found = dynamic.paths.iter().map(|directory| directory.join(name));
            let found = found.into_iter().find(|path| path.is_file());
            let units = found.as_deref().map(notes::of).transpose()?;
            match (found, units) {
                (Some(library), Some(units)) if !units.is_empty() => {
                    parts.units.extend(units);
                    parts.add_unknown(&library);
                    left.push(library);
                }
                _ => parts.unknown.push(name.clone()),
            }
        }
    }
    Ok(parts)
}

impl Parts {
    /// Adds the objects in the file `path` that are not of a unit.
    fn add_unknown(&mut self, path: &Path) {
        let Ok(bytes) = input::read(path) else { return };
        let mut known = BTreeSet::new();
        for unit in &self.units {
            known.extend(names_of(&unit.file));
            if foreign::is(&unit.path()) {
                let bytes = input::read(&unit.path()).unwrap_or_default();
                let members = foreign::members(&unit.path(), &bytes);
                let members = members.into_iter().flatten().map(|member| member.bytes);
                for object in members.chain([bytes.clone()]) {
                    let files = files_in(&object);
                    known.extend(files.iter().flat_map(|file| names_of(Path::new(file))));
                }
            }
        }
        for file in files_in(&bytes) {
            let shown = file.strip_suffix(".o").unwrap_or(&file).to_owned();
            let is_known = names_of(Path::new(&shown)).any(|name| known.contains(&name));
            if !is_known && !self.unknown.contains(&shown) {
                self.unknown.push(shown);
            }
        }
    }
}

/// The names that a file goes by in an object: with and without its last extension.
fn names_of(path: &Path) -> impl Iterator<Item = String> + use<> {
    let names = [path.file_name(), path.file_stem()];
    let names = names.map(|name| name.map(|name| name.to_string_lossy().into_owned()));
    names.into_iter().flatten()
}

/// The source files, or else the objects, that an executable or object was linked from, as its symbols tell. Those
/// that the compiler adds are left out.
fn files_in(bytes: &[u8]) -> Vec<String> {
    let Ok(file) = File::parse(bytes) else {
        return Vec::new();
    };
    let is_static = |name: &str| STATIC.contains(&name);
    let with_libraries = file
        .symbols()
        .any(|symbol| !symbol.is_undefined() && symbol.name().is_ok_and(is_static));
    let names = file.symbols().filter(|it| it.kind() == SymbolKind::File);
    let names = names.filter_map(|symbol| symbol.name().ok());
    let added = |name: &str| {
        let stem = name.strip_suffix(".o");
        name.is_empty()
            || name.starts_with("crt")
            || ["Scrt1.o", "tsan_preinit.cpp"].contains(&name)
            || name.starts_with('<')
            || stem.is_some_and(|stem| with_libraries && !stem.contains('.'))
    };
    names
        .filter(|name| !added(name))
        .map(str::to_owned)
        .collect()
}

/// The libraries that a program or library loads, and where they are looked for.
struct Dynamic {
    needed: Vec<String>,
    paths: Vec<PathBuf>,
}

impl Dynamic {
    fn of(path: &Path) -> Dynamic {
        let mut command = Command::new("readelf");
        let output = command.arg("-dW").arg(path).env("LC_ALL", "C").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let value = |line: &str| {
            let (_, rest) = line.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        };
        let all = |kind: &str| {
            text.lines()
                .filter(|line| line.contains(kind))
                .filter_map(value)
                .collect()
        };
        let needed = all("(NEEDED)");
        let mut listed: Vec<String> = all("PATH)");
        listed.extend(std::env::var("LD_LIBRARY_PATH"));
        let origin = path.parent().unwrap_or(Path::new("."));
        let origin = origin.display().to_string();
        let paths = listed.iter().flat_map(|paths| paths.split(':'));
        let paths = paths
            .filter(|path| !path.is_empty())
            .map(|path| {
                PathBuf::from(
                    path.replace("$ORIGIN", &origin)
                        .replace("${ORIGIN}", &origin),
                )
            })
            .collect();
        Dynamic { needed, paths }
    }
}
