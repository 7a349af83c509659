//! `--format sarif`: the result as a log of static analysis, SARIF 2.1.0.
//!
//! A bug is a result whose code flow is the schedule: one thread flow for each thread, steps numbered
//! across all of them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::request::{Asked, Failed, uri};
use super::{Bug, Place, Report, Step, Verdict, human, kind_name, thread_name};
use crate::describe::title;
use crate::explain;
use crate::problem::Status;

/// The whole log.
pub(super) fn log(report: &Report, asked: &Asked<'_>) -> Value {
    let bugs = report.all_bugs();
    let kinds: BTreeSet<_> = bugs.iter().map(|bug| bug.kind).collect();
    let kinds: Vec<_> = kinds.into_iter().collect();
    let rules: Vec<Value> = kinds
        .iter()
        .map(|&kind| {
            json!({
                "id": kind_name(kind),
                "shortDescription": { "text": title(kind) },
                "fullDescription": { "text": explain::summary(kind) },
                "help": { "text": explain::page(kind), "markdown": explain::page(kind) },
                "defaultConfiguration": { "level": "error" },
            })
        })
        .collect();
    let results: Vec<Value> = bugs
        .iter()
        .map(|bug| {
            let index = kinds.iter().position(|&kind| kind == bug.kind);
            result(bug, index.unwrap_or(0), asked)
        })
        .collect();
    let properties = json!({
        "verdict": report.verdict,
        "model": report.model,
        "algorithm": report.algorithm,
        "executions": report.executions,
        "blocked": report.blocked,
        "bound": report.bound,
        "seconds": report.seconds,
    });
    let status: Status = report.verdict.into();
    let invocation = json!({
        "commandLine": asked.command,
        "exitCode": status as i32,
        "executionSuccessful": true,
        "workingDirectory": { "uri": directory(&asked.directory) },
        "toolExecutionNotifications": notifications(report),
    });
    run(rules, invocation, &asked.directory, results, properties)
}

/// The log of a request that ended without a result.
pub(super) fn failed(failed: &Failed<'_>) -> Value {
    let here = std::env::current_dir().unwrap_or_default();
    let problem = json!({
        "level": "error",
        "message": { "text": failed.text() },
        "locations": [location(&failed.home(), None)],
    });
    let invocation = json!({
        "commandLine": human::command(std::env::args_os(), &[]),
        "exitCode": failed.problem.status as i32,
        "executionSuccessful": false,
        "workingDirectory": { "uri": directory(&here) },
        "toolExecutionNotifications": [problem],
    });
    run(Vec::new(), invocation, &here, Vec::new(), json!({}))
}

fn run(
    rules: Vec<Value>,
    invocation: Value,
    here: &Path,
    results: Vec<Value>,
    properties: Value,
) -> Value {
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Selvedge",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "invocations": [invocation],
            "originalUriBaseIds": { "WORKDIR": { "uri": directory(here) } },
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties,
        }],
    })
}

fn directory(path: &Path) -> String {
    format!("{}/", uri(&path.to_string_lossy()))
}

/// The limitations of the verdict.
fn notifications(report: &Report) -> Vec<Value> {
    let message = |level: &str, text: &str| json!({ "level": level, "message": { "text": text } });
    let reason = report
        .reason
        .as_deref()
        .filter(|_| report.verdict != Verdict::Verified);
    let reason = reason.map(|reason| message("warning", &format!("incomplete: {reason}")));
    let warnings = report.warnings.iter().map(|text| message("warning", text));
    let notes = report.notes.iter().map(|text| message("note", text));
    reason.into_iter().chain(warnings).chain(notes).collect()
}

fn result(bug: &Bug, rule: usize, asked: &Asked<'_>) -> Value {
    let mut related: Vec<Value> = Vec::new();
    let inside = |place: &Place| {
        let library = place.library.as_deref()?;
        Some(location(
            library,
            Some(&format!("inside a call at {place}")),
        ))
    };
    related.extend(inside(&bug.place));
    if let Some(other) = &bug.other {
        let text = format!("{} of {}", other.what, thread_name(other.thread));
        related.push(location(&asked.locate(&other.place), Some(&text)));
        related.extend(inside(&other.place));
    }
    for wait in &bug.waiting {
        let text = format!("{} waits {}", thread_name(wait.thread), wait.what);
        related.push(location(&asked.locate(&wait.place), Some(&text)));
    }
    let threads: BTreeSet<u32> = bug.trace.iter().map(|step| step.thread).collect();
    let flows: Vec<Value> = threads
        .into_iter()
        .map(|thread| {
            let steps = bug.trace.iter().filter(|step| step.thread == thread);
            let locations: Vec<Value> = steps.map(|step| flow_location(step, asked)).collect();
            json!({ "id": thread_name(thread), "locations": locations })
        })
        .collect();
    let place = asked.locate(&bug.place);
    let mut result = json!({
        "ruleId": kind_name(bug.kind),
        "ruleIndex": rule,
        "level": "error",
        "kind": "fail",
        "message": { "text": human::plain_evidence(bug) },
        "locations": [location(&place, None)],
        "partialFingerprints": {
            "kindFunction/v1": format!(
                "{}:{}:{}",
                kind_name(bug.kind),
                place.file.as_deref().unwrap_or_default(),
                place.function.as_deref().unwrap_or_default()
            ),
        },
        "properties": {
            "preemptions": bug.preemptions,
            "contextSwitches": bug.context_switches,
            "schedule": bug.schedule,
        },
    });
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    if !flows.is_empty() {
        let text = format!("the schedule: {}", bug.schedule);
        result["codeFlows"] = json!([{ "message": { "text": text }, "threadFlows": flows }]);
    }
    result
}

fn flow_location(step: &Step, asked: &Asked<'_>) -> Value {
    let text = super::table::in_words(step);
    json!({
        "location": location(&asked.locate(&step.place), Some(&text)),
        "executionOrder": step.step,
        "importance": "essential",
    })
}

fn location(place: &Place, message: Option<&str>) -> Value {
    let file = place.file.as_deref().unwrap_or_default();
    let mut artifact = json!({ "uri": uri(file) });
    if !file.starts_with('/') {
        artifact["uriBaseId"] = "WORKDIR".into();
    }
    let mut physical = json!({ "artifactLocation": artifact });
    if let Some(line) = place.line.filter(|&line| line > 0) {
        physical["region"] = json!({ "startLine": line });
    }
    let mut location = json!({ "physicalLocation": physical });
    if let Some(function) = &place.function {
        location["logicalLocations"] = json!([{ "name": function, "kind": "function" }]);
    }
    if let Some(text) = message {
        location["message"] = json!({ "text": text });
    }
    location
}
