//! `selvedge irs stat`: describes a prefix file.

use std::fmt::Write as _;

use anstyle::Style;
use indicatif::HumanCount;
use selvedge_irs_format::{Class, Flags, Input, View, Wait};
use serde::Serialize;

use super::picture;
use crate::args::{IrsStat, TextOrJson};
use crate::input;
use crate::output;
use crate::problem::{Problem, Status};
use crate::report::html::Page;
use crate::report::{SCHEMA, json};

const BOLD: Style = Style::new().bold();

/// Reads the file and tells what is in it.
pub(crate) fn run(stat: &IrsStat) -> Result<Status, Problem> {
    let name = stat.prefix.display();
    let problem = |why: &dyn std::fmt::Display| Problem::request(format!("{name}: {why}"));
    let bytes = input::read(&stat.prefix).map_err(|error| problem(&error))?;
    let view = View::new(&bytes).map_err(|damage| problem(&damage))?;
    if let Some(path) = &stat.svg {
        let first = || view.inputs().next().filter(|_| stat.input.is_empty());
        let input = view.input(&stat.input).or_else(first);
        let input = input.ok_or_else(|| problem(&"there is no such input"))?;
        let svg = picture::draw(view, input);
        output::write(path, svg)
            .map_err(|error| Problem::request(format!("{}: {error}", path.display())))?;
    }
    let statistics = Statistics::of(view);
    if let Some(path) = &stat.report {
        let text = anstream::adapter::strip_str(&statistics.in_words(view)).to_string();
        let page = Page::new(name.to_string(), "proven schedules".to_owned());
        page.text("What the file asks for".to_owned(), text)
            .write(path)?;
    }
    match stat.format {
        TextOrJson::Human => output::print(&statistics.in_words(view)),
        TextOrJson::Json => json::print_line(&statistics)?,
    }
    Ok(Status::Verified)
}

#[derive(Debug, Serialize)]
struct Statistics {
    schema: u32,
    fingerprint: String,
    lineage: String,
    generation: u64,
    complete: bool,
    bug: bool,
    plain_events: bool,
    constraints: usize,
    initial_constraints: u64,
    traces: u64,
    estimate: Option<u64>,
    counted_sites: usize,
    free_sites: usize,
    inputs: Vec<InputStatistics>,
}

#[derive(Debug, Serialize)]
struct InputStatistics {
    values: Vec<u64>,
    threads: usize,
    constraints: usize,
    waiting_threads: usize,
    /// Counted events that are checked or counted, and those that wait.
    counted_events: u64,
    waiting_events: usize,
    /// How many events lie one behind the other on the longest way along program order and
    /// constraints, in parts of all of them: with many threads that is what the constraints leave
    /// of running side by side.
    serial: f64,
}

impl Statistics {
    fn of(view: View<'_>) -> Statistics {
        let class = |wanted| view.sites().filter(|site| site.class == wanted).count();
        let flag = |wanted| view.flags().contains(wanted);
        Statistics {
            schema: SCHEMA,
            fingerprint: hex(&view.fingerprint()),
            lineage: hex(&view.lineage()),
            generation: view.generation(),
            complete: flag(Flags::COMPLETE),
            bug: flag(Flags::BUG),
            plain_events: flag(Flags::PLAIN_EVENTS),
            constraints: view.inputs().map(Input::waits).sum(),
            initial_constraints: view.initial_waits(),
            traces: view.traces(),
            estimate: view.estimate(),
            counted_sites: class(Class::Counted),
            free_sites: class(Class::Free),
            inputs: view.inputs().map(InputStatistics::of).collect(),
        }
    }

    fn in_words(&self, view: View<'_>) -> String {
        let mut text = String::new();
        let share = match self.estimate {
            _ if self.complete => "all of them".to_owned(),
            Some(guess) if guess > self.traces => {
                let share = 100.0 * self.traces as f64 / guess as f64;
                format!("{share:.2}% of {} at a guess", HumanCount(guess))
            }
            _ => "how many there are is not known".to_owned(),
        };
        let state = match (self.complete, self.bug) {
            (true, _) => "every schedule is proven, nothing is enforced",
            (false, true) => "some of what is left keeps bugs away",
            (false, false) => "what is left is not proven to be superfluous yet",
        };
        let _ = writeln!(
            text,
            "{BOLD}constraints{BOLD:#}  {} of {} left: {state}\n\
             {BOLD}traces{BOLD:#}       {} proven, {share}\n\
             {BOLD}call sites{BOLD:#}   {} counted, {} free of callbacks\n\
             {BOLD}events{BOLD:#}       {}",
            self.constraints,
            self.initial_constraints,
            HumanCount(self.traces),
            self.counted_sites,
            self.free_sites,
            match self.plain_events {
                true => "plain accesses to shared memory are ordered too",
                false => "atomic and synchronising operations; plain accesses do not race",
            },
        );
        for (input, statistics) in view.inputs().zip(&self.inputs) {
            let values: Vec<String> = statistics.values.iter().map(u64::to_string).collect();
            let label = match values.is_empty() {
                true => String::new(),
                false => format!("input {}: ", values.join(",")),
            };
            let _ = writeln!(
                text,
                "{BOLD}overhead{BOLD:#}     {label}{} of {} threads wait, at {} of {} counted events; \
                 {:.0}% of those lie one behind the other",
                statistics.waiting_threads,
                statistics.threads,
                statistics.waiting_events,
                statistics.counted_events,
                100.0 * statistics.serial,
            );
            for (number, thread) in input.threads().enumerate() {
                for wait in thread.waits() {
                    let _ = writeln!(
                        text,
                        "  {label}{}",
                        wait_in_words(view, input, number, wait)
                    );
                }
            }
        }
        text
    }
}

fn wait_in_words(view: View<'_>, input: Input<'_>, thread: usize, wait: Wait) -> String {
    let place = |thread: usize, event: u32| {
        let site = input
            .threads()
            .nth(thread)?
            .events()
            .nth(event as usize)??;
        let site = view.site(site);
        Some(match site.line {
            0 => site.function.to_owned(),
            line => format!("{}:{line}", site.file),
        })
    };
    let (source, last) = (wait.thread as usize, wait.count - 1);
    let at = |place: Option<String>| place.map(|place| format!(" ({place})")).unwrap_or_default();
    let bug = match wait.bug {
        0 => String::new(),
        bug => format!(", which keeps bug {bug} away"),
    };
    format!(
        "T{thread} event {}{} waits for {} events of T{source}{}{bug}",
        wait.event,
        at(place(thread, wait.event)),
        wait.count,
        at(place(source, last)),
    )
}

impl InputStatistics {
    fn of(input: Input<'_>) -> InputStatistics {
        let threads = || input.threads();
        let waiting = threads().filter(|thread| thread.waits().len() > 0).count();
        let waiting_events = threads().map(|thread| {
            let mut events: Vec<u32> = thread.waits().map(|wait| wait.event).collect();
            events.dedup();
            events.len()
        });
        let counted: u64 = threads().map(|thread| u64::from(thread.limit)).sum();
        InputStatistics {
            values: input.values().collect(),
            threads: threads().len(),
            constraints: input.waits(),
            waiting_threads: waiting,
            counted_events: counted,
            waiting_events: waiting_events.sum(),
            serial: match counted {
                0 => 0.0,
                counted => {
                    f64::from(
                        picture::depths(input)
                            .iter()
                            .flatten()
                            .max()
                            .map_or(0, |d| d + 1),
                    ) / counted as f64
                }
            },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
