//! The calls in which the steps of a failing execution are taken, for the HTML report.
//!
//! The schedule is run once more, and the calls of its threads are recorded on the way. `std` tells calls as
//! text only, so this text is read.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use selvedge_page::{BugPage, Place};

use crate::rt::Limits;
use crate::{clerk, replay, token};

/// The source of this library, whose calls nobody wants to see.
const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// How much stack it takes to find out the calls.
const STACK: usize = 512 << 10;

/// The page of an execution of `model`, which `schedule` repeats, with the calls of its steps.
pub(crate) fn add(page: BugPage, schedule: &str, model: Arc<dyn Fn()>, limits: Limits) -> BugPage {
    let Ok(token) = token::read(schedule) else {
        return page;
    };
    let limits = Limits {
        max_branches: usize::MAX,
        max_threads: None,
        stack_size: limits.stack_size.max(STACK),
        check_leaks: true,
        protects: true,
        spurious: token.spurious,
        replaying: true,
        calls: true,
    };
    let Some((steps, last)) = replay::calls(&token, model, limits) else {
        return page;
    };
    let known: Vec<String> = page.files().into_iter().collect();
    let here = std::env::current_dir().unwrap_or_default();
    let (steps, last) = clerk::have(move || {
        // Steps in the same calls share them.
        let mut texts: HashMap<*const Backtrace, Vec<Place>> = HashMap::new();
        let mut read = |calls: &Option<Arc<Backtrace>>| {
            let Some(calls) = calls else {
                return Vec::new();
            };
            let read = || own_calls(&calls.to_string(), &here, &known);
            let places = texts.entry(Arc::as_ptr(calls)).or_insert_with(read);
            places.clone()
        };
        let steps: Vec<Vec<Place>> = steps.iter().map(&mut read).collect();
        let last = last.iter().map(|(thread, calls)| (*thread, read(calls)));
        (steps, last.collect::<Vec<_>>())
    });
    page.calls(steps, last)
}

/// The program's own calls, innermost first, in what [`Backtrace`] prints. A file that ends like one of `known`
/// is called like it.
fn own_calls(text: &str, here: &Path, known: &[String]) -> Vec<Place> {
    let mut calls: Vec<(Place, bool)> = Vec::new();
    let numbered = |line: &str| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok().map(|_| name.to_owned())
    };
    for line in text.lines() {
        if let Some(name) = numbered(line) {
            let own = is_own(&name);
            let place = Place {
                function: Some(name),
                ..Place::default()
            };
            calls.push((place, own));
        } else if let (Some(at), Some((call, own))) =
            (line.trim_start().strip_prefix("at "), calls.last_mut())
        {
            let mut parts = at.rsplitn(3, ':');
            let (_column, line, file) = (parts.next(), parts.next(), parts.next());
            let path = here.join(file.unwrap_or_default().trim_start_matches("./"));
            *own &= !path.starts_with(OURS) && !file.is_some_and(selvedge_page::is_system);
            let named = known.iter().find(|name| path.ends_with(name));
            call.file = named.cloned().or_else(|| file.map(str::to_owned));
            call.line = line.and_then(|line| line.parse().ok());
        }
    }
    let own = calls.into_iter().filter(|(_, own)| *own);
    own.map(|(call, _)| call).collect()
}

/// Whether a function with this name can belong to the program. Names of inlined functions have no path.
fn is_own(name: &str) -> bool {
    let foreign = [
        "selvedge::",
        "selvedge_fiber::",
        "std::",
        "core::",
        "alloc::",
        "__rust",
        "rust_",
    ];
    let name = name.trim_start_matches(['<', '&']);
    !foreign.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_what_std_prints() {
        let text = "   0: std::backtrace::Backtrace::create\n   1: record_calls\n             \
                    at OURS/rt/engine.rs:320:5\n   2: queue::push\n             at ./src/queue.rs:7:9\n   \
                    3: core::ops::function::FnOnce::call_once\n             at /rustc/0/library/core/src/ops/function.rs:250:5\n   \
                    4: queue::test::{{closure}}\n             at /w/app/tests/all.rs:12:3\n   \
                    5: selvedge::rt::engine::begin\n   6: selvedge_fiber::begin\n";
        let text = text.replace("OURS", OURS);
        let known = ["app/src/queue.rs".to_owned()];
        let calls = own_calls(&text, Path::new("/w/app"), &known);
        let calls: Vec<String> = calls.iter().map(Place::in_full).collect();
        assert_eq!(
            calls,
            [
                "queue::push (app/src/queue.rs:7)",
                "queue::test::{{closure}} (/w/app/tests/all.rs:12)"
            ]
        );
    }
}
