//! `selvedge runs`: lists the runs of a broker.

use std::fmt::Write as _;

use indicatif::HumanCount;
use serde::Serialize;

use super::messages::{Record, RunState};
use super::{address, connect};
use crate::args::{self, TextOrJson};
use crate::output;
use crate::problem::{Problem, Status};
use crate::report::json;

#[derive(Serialize)]
struct Listed {
    run: String,
    #[serde(flatten)]
    record: Record,
}

/// Lists the runs, or removes one.
pub(crate) fn runs(runs: &args::Runs) -> Result<Status, Problem> {
    let cluster = connect(&runs.url, &runs.broker)?;
    if let Some(name) = &runs.remove {
        let run = cluster.run(name);
        if run.entry()?.is_none() {
            return Err(Problem::request(format!("there is no run {name}")));
        }
        run.remove()?;
        return Ok(Status::Verified);
    }
    let listed = cluster.runs()?.into_iter().filter_map(|entry| {
        let record = Record::decode(&entry.record).ok()?;
        let run = address(&runs.url, &entry.name);
        Some(Listed { run, record })
    });
    let listed: Vec<Listed> = listed.collect();
    if runs.format == TextOrJson::Json {
        json::print_line(&listed)?;
        return Ok(Status::Verified);
    }
    let mut text = String::new();
    for Listed { run, record } in &listed {
        let _ = writeln!(text, "{run}  {}  {}", record.files, described(record));
    }
    if listed.is_empty() {
        text.push_str("no runs\n");
    }
    output::print(&text);
    Ok(Status::Verified)
}

fn described(record: &Record) -> String {
    let executions = format!("{} executions", HumanCount(record.executions));
    let bugs = match record.bugs {
        0 => String::new(),
        1 => ", 1 bug".to_owned(),
        bugs => format!(", {bugs} bugs"),
    };
    let percent = 100.0 * record.progress;
    match record.state {
        RunState::Done => format!("done: {executions}{bugs}"),
        RunState::Stopped => format!("stopped at {percent:.0}%: {executions}{bugs}"),
        RunState::Searching => format!(
            "{percent:.0}%: {executions}{bugs}, {} per second, {} workers on {} machines, {} units",
            HumanCount(record.per_second as u64),
            record.jobs,
            record.machines,
            record.units
        ),
    }
}
