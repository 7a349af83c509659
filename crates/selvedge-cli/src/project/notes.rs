//! The notes in objects and executables: one line of JSON for each source file.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::{File, Object as _, ObjectSection as _};

use super::{BUILD_AGAIN, Unit};
use crate::compile::foreign;
use crate::input;
use crate::problem::Problem;

/// The section that holds them. Linkers join sections of the same name.
const SECTION: &str = ".selvedge.units";

/// The source files that `path`, an executable, an object or an archive, consists of.
pub(super) fn of(path: &Path) -> Result<Vec<Unit>, Problem> {
    let name = path.display();
    let bytes = input::read(path).map_err(|error| Problem::request(format!("{name}: {error}")))?;
    let Some(members) = foreign::members(path, &bytes) else {
        return read(path, &bytes);
    };
    let mut units = Vec::new();
    for member in members {
        // Files that are no objects have no notes.
        units.extend(read(path, &member.bytes).unwrap_or_default());
    }
    Ok(units)
}

/// The source files that an executable or object with these bytes, which is in `path`, consists of.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Unit>, Problem> {
    let name = path.display();
    let file = File::parse(bytes)
        .map_err(|_| Problem::request(format!("{name} is not an executable of this system")))?;
    let notes = file
        .section_by_name(SECTION)
        .and_then(|section| section.uncompressed_data().ok())
        .unwrap_or_default();
    let lines = notes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let mut units: Vec<Unit> = Vec::new();
    for line in lines {
        let unit = serde_json::from_slice(line).map_err(|_| other_version(path))?;
        // Each member of an archive names the archive.
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    Ok(units)
}

fn other_version(path: &Path) -> Problem {
    let name = path.display();
    Problem::request(format!(
        "{name} was built with another version of selvedge cc"
    ))
    .help(BUILD_AGAIN)
}

/// Notes in the object `path` what it was compiled from.
pub(super) fn add(path: &Path, unit: &Unit, scratch: &Path) -> Result<(), Problem> {
    let failed = |error: &dyn std::fmt::Display| {
        Problem::internal(format!(
            "{}: cannot note how it was compiled: {error}",
            path.display()
        ))
    };
    let text = serde_json::to_string(unit).map_err(|error| failed(&error))?;
    let notes = scratch.join("notes");
    fs::write(&notes, text + "\n").map_err(|error| failed(&error))?;
    let mut section = std::ffi::OsString::from(format!("{SECTION}="));
    section.push(&notes);
    let status = Command::new("objcopy")
        .arg("--add-section")
        .arg(section)
        .arg(path)
        .status()
        .map_err(|error| failed(&format!("objcopy: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(&"objcopy failed")),
    }
}
