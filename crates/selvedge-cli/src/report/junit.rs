//! `--format junit`: one test case for the program, in the XML that JUnit made common.

use std::io::{self, Write as _};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::request::{Asked, Failed};
use super::{Report, Verdict, human};
use crate::output;
use crate::problem::Problem;

/// Prints the result.
pub(super) fn print(report: &Report, asked: &Asked<'_>) -> Result<(), Problem> {
    let case = Case {
        program: printable(&asked.program()),
        class: format!("selvedge.{}", report.model.name()),
        time: format!("{:.3}", report.seconds),
        failures: u32::from(report.verdict == Verdict::Bug),
        errors: u32::from(report.verdict == Verdict::Incomplete),
    };
    case.print(|writer| outcome(writer, report))
}

/// Prints a test case that could not be run.
pub(super) fn print_failed(failed: &Failed<'_>) -> Result<(), Problem> {
    let case = Case {
        program: printable(&failed.files.join(" ")),
        class: "selvedge".to_owned(),
        time: "0.000".to_owned(),
        failures: 0,
        errors: 1,
    };
    let message = failed.problem.message();
    case.print(|writer| problem(writer, "error", "error", message, &failed.text()))
}

/// The test case of a program.
struct Case {
    program: String,
    class: String,
    time: String,
    failures: u32,
    errors: u32,
}

impl Case {
    fn print(
        &self,
        outcome: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>,
    ) -> Result<(), Problem> {
        let text = self
            .document(outcome)
            .map_err(|error| Problem::internal(format!("the result cannot be written: {error}")))?;
        output::print(&String::from_utf8_lossy(&text));
        Ok(())
    }

    fn document(
        &self,
        outcome: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let (failures, errors) = (self.failures.to_string(), self.errors.to_string());
        let totals = [
            ("name", "selvedge"),
            ("tests", "1"),
            ("failures", &failures),
            ("errors", &errors),
            ("time", &self.time),
        ];
        let suites = writer.create_element("testsuites").with_attributes(totals);
        suites.write_inner_content(|writer| {
            let suite = writer.create_element("testsuite").with_attributes(totals);
            let suite = suite.with_attribute(("skipped", "0"));
            suite.write_inner_content(|writer| {
                let case = writer.create_element("testcase").with_attributes([
                    ("name", self.program.as_str()),
                    ("classname", &self.class),
                    ("time", &self.time),
                ]);
                case.write_inner_content(outcome)?;
                Ok(())
            })?;
            Ok(())
        })?;
        let mut text = writer.into_inner();
        text.write_all(b"\n")?;
        Ok(text)
    }
}

fn outcome(writer: &mut Writer<Vec<u8>>, report: &Report) -> io::Result<()> {
    let verdict = printable(&human::plain_verdict(report));
    let (element, kind, message, text) = match (report.verdict, &report.all_bugs()[..]) {
        (Verdict::Bug, bugs @ [first, ..]) => {
            let evidence: Vec<String> = bugs.iter().map(|bug| human::plain_evidence(bug)).collect();
            let message = match bugs.len() {
                1 => human::heading(first),
                more => format!("{} (and {} more)", human::heading(first), more - 1),
            };
            (
                "failure",
                super::kind_name(first.kind),
                message,
                evidence.join("\n"),
            )
        }
        (Verdict::Incomplete, _) => {
            let reason = report.reason.clone().unwrap_or_default();
            ("error", "incomplete".to_owned(), reason, verdict)
        }
        _ => {
            let out = writer.create_element("system-out");
            out.write_text_content(BytesText::new(&verdict))?;
            return Ok(());
        }
    };
    problem(writer, element, &kind, &message, &text)
}

fn problem(
    writer: &mut Writer<Vec<u8>>,
    element: &str,
    kind: &str,
    message: &str,
    text: &str,
) -> io::Result<()> {
    let (message, text) = (printable(message), printable(text));
    let element = writer.create_element(element);
    let element = element.with_attributes([("type", kind), ("message", &message)]);
    element.write_text_content(BytesText::new(&text))?;
    Ok(())
}

/// Without the characters that XML cannot hold.
fn printable(text: &str) -> String {
    let allowed = |&c: &char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => c >= ' ',
    };
    let replaced = |c: char| if allowed(&c) { c } else { '\u{fffd}' };
    text.chars().map(replaced).collect()
}
