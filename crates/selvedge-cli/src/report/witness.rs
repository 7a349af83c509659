//! `--witness FILE`: a violation witness in SV-COMP's YAML format, version 2.0 (Ayaziová, Beyer,
//! Lingsch-Rosenfeld, Spiessl, Strejček: "Software Verification Witnesses 2.0", SPIN 2024; the schema is
//! `violation-witness-schema.yml` of the project sv-witnesses).
//!
//! Version 2.0 is made for sequential programs: it expresses which values were chosen and where the
//! violation is, but not which thread goes on. The schedule is therefore written as comments.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use selvedge_core::FailureKind;
use sha2::{Digest as _, Sha256};

use super::request::Asked;
use super::{Bug, Place, Report, Step, table};
use crate::input;
use crate::output;
use crate::problem::{Problem, warn};

/// The functions whose calls SV-COMP's tasks must not reach.
const ERRORS: [&str; 2] = ["reach_error", "__VERIFIER_error"];

/// How the names of the functions begin that return a chosen value.
const CHOICES: [&str; 2] = ["selvedge_choose", "__VERIFIER_nondet_"];

/// Writes the first bug to `path`; warns if the format cannot express it.
pub(crate) fn write(path: &Path, report: &Report, asked: &Asked<'_>) -> Result<(), Problem> {
    let violation = match &report.bug {
        Some(bug) => Violation::new(bug, asked),
        None => Err("no bug was found"),
    };
    let violation = match violation {
        Ok(violation) => violation,
        Err(why) => {
            warn(&format!("no violation witness was written: {why}"));
            return Ok(());
        }
    };
    output::write(path, violation.document(asked)).map_err(|error| {
        Problem::request(format!(
            "cannot write the witness to {}: {error}",
            path.display()
        ))
    })
}

/// A bug as the format describes it.
struct Violation<'a> {
    bug: &'a Bug,
    /// The violated property.
    specification: String,
    /// The values that were chosen, each with the place of its call.
    choices: Vec<(Point, String)>,
    /// Where the property is violated.
    target: Point,
    /// The program's files.
    files: BTreeSet<String>,
}

/// A place in a file.
struct Point {
    place: Place,
    column: Option<u32>,
}

impl<'a> Violation<'a> {
    /// The bug, or why it has no witness.
    fn new(bug: &'a Bug, asked: &Asked<'_>) -> Result<Violation<'a>, &'static str> {
        let error = error_call(bug);
        let specification = match &error {
            Some((function, _)) => format!("G ! call({function}())"),
            None => specification(bug.kind)
                .ok_or("the format has no specification for this kind of bug")?
                .to_owned(),
        };
        let place = error.map_or(&bug.place, |(_, place)| place);
        let target = Point {
            place: asked.locate(place),
            column: None,
        };
        let choices: Vec<_> = bug.trace.iter().filter_map(choice).collect();
        let mut files: BTreeSet<String> = asked.files().into_iter().collect();
        files.retain(|file| Path::new(file).is_file());
        let points = choices.iter().map(|(point, _)| point).chain([&target]);
        files.extend(points.filter_map(|point| point.place.file.clone()));
        let extension = |file: &String| Path::new(file).extension()?.to_str().map(str::to_owned);
        let is_c = |file| matches!(extension(file).as_deref(), Some("c" | "h" | "i"));
        if !files.iter().all(is_c) {
            return Err("the format describes programs in C only");
        }
        Ok(Violation {
            bug,
            specification,
            choices,
            target,
            files,
        })
    }

    fn document(&self, asked: &Asked<'_>) -> String {
        let mut schedule = String::new();
        for step in &self.bug.trace {
            let line = format!("{} {} {}", step.step, step.place, table::in_words(step));
            let _ = writeln!(schedule, "# {}", line.replace(char::is_control, " "));
        }
        let mut segments = String::new();
        for (point, value) in &self.choices {
            let constraint = format!("\\result == {value}");
            segments += &segment(point, "function_return", Some(&constraint));
        }
        segments += &segment(&self.target, "target", None);
        let task = self.task();
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

    /// The program and the property.
    fn task(&self) -> String {
        let mut text = String::from("      input_files:\n");
        for file in &self.files {
            let _ = writeln!(text, "        - {}", quoted(file));
        }
        text += "      input_file_hashes:\n";
        for file in &self.files {
            let hash = Sha256::digest(input::read(Path::new(file)).unwrap_or_default());
            let _ = writeln!(text, "        {}: {}", quoted(file), quoted(&hex(&hash)));
        }
        let property = format!("CHECK( init(main()), LTL({}) )", self.specification);
        let _ = write!(
            text,
            "      specification: {}\n      data_model: LP64\n      language: C\n",
            quoted(&property)
        );
        text
    }
}

/// The property that bugs of this kind violate. An endless execution has no witness: version 2.0 has no
/// waypoint for a cycle, and the target is where a finite execution ends.
fn specification(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Assertion => "G ! call(__assert_fail())",
        FailureKind::Abort => "G ! call(abort())",
        FailureKind::DataRace => "G ! data-race",
        FailureKind::UseAfterFree
        | FailureKind::HeapOverflow
        | FailureKind::NullDereference
        | FailureKind::WildAccess => "G valid-deref",
        FailureKind::DoubleFree | FailureKind::BadFree => "G valid-free",
        FailureKind::Leak => "G valid-memtrack",
        _ => return None,
    })
}

/// The call of a function that tasks of SV-COMP must not reach, if that is the bug: the function and the
/// place that calls it.
fn error_call(bug: &Bug) -> Option<(&'static str, &Place)> {
    if !matches!(bug.kind, FailureKind::Assertion | FailureKind::Abort) {
        return None;
    }
    // Without a definition in the program, the call itself fails.
    let called = |name: &&str| bug.message.starts_with(&format!("{name}()"));
    if let Some(name) = ERRORS.into_iter().find(|name| called(name)) {
        return Some((name, &bug.place));
    }
    let stack = bug.stacks.iter().find(|stack| stack.thread == bug.thread)?;
    stack.frames.windows(2).find_map(|calls| {
        let function = calls[0].function.as_deref()?;
        let name = ERRORS.into_iter().find(|name| *name == function)?;
        Some((name, &calls[1]))
    })
}

/// The value that `step` chooses, at the closing parenthesis of its call. `None` if the call is not the
/// only one on its line: a waypoint at another call would make the witness wrong, a missing one only makes
/// it less precise.
fn choice(step: &Step) -> Option<(Point, String)> {
    if step.operation != "choose" {
        return None;
    }
    let value = step.read.as_ref()?.to_string();
    let source = input::read_text(Path::new(step.place.file.as_ref()?)).ok()?;
    let (line, column) = closing_parenthesis(&source, step.place.line?)?;
    let mut place = step.place.clone();
    place.line = Some(line);
    let column = Some(column);
    Some((Point { place, column }, value))
}

/// The line and the column, both from one, where the only call on line `line` ends that chooses a value.
fn closing_parenthesis(source: &str, line: u32) -> Option<(u32, u32)> {
    let lines = (line as usize).checked_sub(1)?;
    let before = source.split_inclusive('\n').take(lines);
    let rest = &source[before.map(str::len).sum()..];
    let text = rest.lines().next()?;
    let mut calls = CHOICES.iter().flat_map(|name| text.match_indices(name));
    let (start, _) = calls.next()?;
    if calls.next().is_some() {
        return None;
    }
    let (mut line, mut column, mut depth) = (line, 0, 0);
    for (at, character) in rest.char_indices() {
        column += 1;
        match character {
            '\n' => (line, column) = (line + 1, 0),
            '(' if at > start => depth += 1,
            ')' if at > start => depth -= 1,
            _ => continue,
        }
        if character == ')' && depth == 0 {
            return Some((line, column));
        }
    }
    None
}

fn segment(point: &Point, kind: &str, constraint: Option<&str>) -> String {
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
    let place = &point.place;
    let file = quoted(place.file.as_deref().unwrap_or_default());
    let line = place.line.unwrap_or(1).max(1);
    let _ = write!(
        text,
        "            location:\n              file_name: {file}\n              line: {line}\n"
    );
    if let Some(column) = point.column {
        let _ = writeln!(text, "              column: {column}");
    }
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
    // Version 4: the other bits are random, or look so.
    bytes[6] = bytes[6] & 0x0f | 0x40;
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

#[cfg(test)]
mod tests {
    use super::closing_parenthesis;

    #[test]
    fn a_choice_ends_at_the_parenthesis_of_its_call() {
        let end = |source| closing_parenthesis(source, 2);
        assert_eq!(end("\nint by = selvedge_choose(2);\n"), Some((2, 27)));
        assert_eq!(end("\nint ü = f(selvedge_choose((2)));"), Some((2, 30)));
        assert_eq!(end("\nint x = __VERIFIER_nondet_bool(\n  );"), Some((3, 3)));
        assert_eq!(end("\nselvedge_choose(2) + selvedge_choose(3);"), None);
        assert_eq!(end("\npthread_cond_wait(&c, &m);"), None);
        assert_eq!(end("\nint x = selvedge_choose("), None);
        assert_eq!(closing_parenthesis("x", 7), None);
    }
}
