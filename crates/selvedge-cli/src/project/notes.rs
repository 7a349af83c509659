//! The notes in objects and executables: one line of JSON for each source file.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::{File, Object as _, ObjectSection as _};

use super::Unit;
use crate::input;
use crate::problem::Problem;

/// The section that holds them. Linkers join sections of the same name.
const SECTION: &str = ".selvedge.units";

/// The source files that `path` was linked from.
pub(super) fn of(path: &Path) -> Result<Vec<Unit>, Problem> {
    let name = path.display();
    let bytes = input::read(path).map_err(|error| Problem::request(format!("{name}: {error}")))?;
    let file = File::parse(&*bytes)
        .map_err(|_| Problem::request(format!("{name} is not an executable of this system")))?;
    let notes = file
        .section_by_name(SECTION)
        .and_then(|section| section.uncompressed_data().ok())
        .unwrap_or_default();
    let lines = notes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let units: Result<Vec<Unit>, _> = lines.map(serde_json::from_slice).collect();
    units.map_err(|_| {
        Problem::request(format!(
            "{name} was built with another version of selvedge cc"
        ))
        .help("build it again")
    })
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
