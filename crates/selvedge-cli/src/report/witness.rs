//! `--witness FILE`: a violation witness in SV-COMP's YAML format, version 2.0.
//!
//! The format was made for sequential programs: it can say which values were chosen and where the
//! violation is, but not which thread goes on. The schedule is therefore written as comments.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use selvedge_core::FailureKind;
use sha2::{Digest as _, Sha256};

use super::request::Asked;
use super::{Bug, Place, Report, table};
use crate::input;
use crate::problem::{Problem, warn};

/// Writes the first bug to `path`; warns if there is none, or if no specification of SV-COMP is
/// about it.
pub(crate) fn write(path: &Path, report: &Report, asked: &Asked<'_>) -> Result<(), Problem> {
    let Some(bug) = &report.bug else {
        warn("no violation witness was written: no bug was found");
        return Ok(());
    };
    let Some(specification) = specification(bug.kind) else {
        warn("no violation witness was written: SV-COMP has no specification for this kind of bug");
        return Ok(());
    };
    let text = document(bug, specification, asked);
    fs::write(path, text).map_err(|error| {
        Problem::request(format!(
            "cannot write the witness to {}: {error}",
            path.display()
        ))
    })
}

/// What SV-COMP calls the property that is violated.
fn specification(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Assertion | FailureKind::Abort => "G ! call(reach_error())",
        FailureKind::DataRace => "G ! data-race",
        FailureKind::UseAfterFree
        | FailureKind::HeapOverflow
        | FailureKind::NullDereference
        | FailureKind::WildAccess => "G valid-deref",
        FailureKind::DoubleFree | FailureKind::BadFree => "G valid-free",
        FailureKind::Leak => "G valid-memtrack",
        FailureKind::EndlessLoop | FailureKind::Livelock => "F end",
        _ => return None,
    })
}

fn document(bug: &Bug, specification: &str, asked: &Asked<'_>) -> String {
    let mut schedule = String::new();
    let mut segments = String::new();
    for step in &bug.trace {
        let (number, place) = (step.step, &step.place);
        let line = format!("{number} {place} {}", table::in_words(step));
        let _ = writeln!(schedule, "# {}", line.replace(char::is_control, " "));
        if let (true, Some(value)) = (step.operation == "choose", &step.read) {
            let constraint = format!("\\result == {value}");
            segments += &segment(&asked.locate(place), "function_return", Some(&constraint));
        }
    }
    segments += &segment(&asked.locate(&bug.place), "target", None);
    let task = task(specification, asked);
    let uuid = uuid(&format!("{task}{schedule}{segments}"));
    let created = humantime::format_rfc3339_seconds(SystemTime::now());
    format!(
        "# The schedule, which this format has no place for:\n{schedule}\
         - entry_type: violation_sequence\n\
         \x20 metadata:\n\
         \x20   format_version: \"2.0\"\n\
         \x20   uuid: {uuid}\n\
         \x20   creation_time: \"{created}\"\n\
         \x20   producer:\n\
         \x20     name: Selvedge\n\
         \x20     version: {version}\n\
         \x20     command_line: {command}\n\
         \x20   task:\n{task}\
         \x20 content:\n{segments}",
        version = quoted(env!("CARGO_PKG_VERSION")),
        command = quoted(&asked.command),
    )
}

/// The program and what was asked about it.
fn task(specification: &str, asked: &Asked<'_>) -> String {
    let mut text = String::from("      input_files:\n");
    let files = asked.files();
    for file in &files {
        let _ = writeln!(text, "        - {}", quoted(file));
    }
    text += "      input_file_hashes:\n";
    for file in &files {
        let hash = Sha256::digest(input::read(Path::new(file)).unwrap_or_default());
        let _ = writeln!(text, "        {}: {}", quoted(file), quoted(&hex(&hash)));
    }
    let property = quoted(&format!("CHECK( init(main()), LTL({specification}) )"));
    let _ = write!(
        text,
        "      specification: {property}\n      data_model: LP64\n      language: C\n"
    );
    text
}

fn segment(place: &Place, kind: &str, constraint: Option<&str>) -> String {
    let mut text = format!(
        "    - segment:\n        - waypoint:\n            type: {kind}\n            action: follow\n"
    );
    if let Some(constraint) = constraint {
        let constraint = quoted(constraint);
        let _ = write!(
            text,
            "            constraint:\n              value: {constraint}\n              format: acsl_expression\n"
        );
    }
    let file = quoted(place.file.as_deref().unwrap_or_default());
    let line = place.line.unwrap_or(1).max(1);
    let _ = write!(
        text,
        "            location:\n              file_name: {file}\n              line: {line}\n"
    );
    if let Some(function) = &place.function {
        let _ = writeln!(text, "              function: {}", quoted(function));
    }
    text
}

/// A string as YAML, which has those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name that depends on the contents only.
fn uuid(contents: &str) -> String {
    let digest = Sha256::digest(contents);
    let mut bytes: Vec<u8> = digest[..16].to_vec();
    // Version 8, which leaves the rest to us.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}
