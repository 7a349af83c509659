//! The parsers of files and messages, as entry points for the fuzz targets in `fuzz/`.
//!
//! Each function takes arbitrary bytes. It may refuse them, but must not panic, hang or take much
//! memory. Checksums would stop nearly every input, so they are computed here.

use std::path::Path;

use selvedge_core::ltl::{self, Automaton};
use selvedge_core::model::Rc11;
use selvedge_core::trust::Unit;
use selvedge_irs_format::{View, weaker};

use crate::pool::checkpoint::{Saved, sealed};
use crate::project;
use crate::report::html::Page;
use crate::report::human;
use crate::trace::Trace;
use crate::worker::orders::{Order, Sliced};
use crate::worker::protocol::{FoundBug, Reply, Request};
use crate::worker::wire;

/// A target: its name, which is that of its corpus, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 7] = [
    ("checkpoint", checkpoint),
    ("compile_commands", compile_commands),
    ("litmus", litmus),
    ("ltl", formula),
    ("prefix", prefix),
    ("protocol", protocol),
    ("trace", trace),
];

/// A checkpoint, and the work units in it.
pub fn checkpoint(bytes: &[u8]) {
    let _ = Saved::decode("checkpoint", bytes);
    let Ok(mut saved) = Saved::decode("checkpoint", &sealed(bytes)) else {
        return;
    };
    let state = &mut saved.state;
    let _ = (state.done(), state.estimate(state.elapsed));
    let _ = state.work.counts().all();
    while let Some((_, unit)) = state.work.take() {
        let unit = unit.and_then(|unit| postcard::from_bytes::<Unit>(&unit).ok());
        let _ = unit.map(|mut unit| (unit.share(), unit.split()));
    }
    for bug in state.work.found().bugs {
        show(&bug.0);
    }
}

/// A compile_commands.json.
pub fn compile_commands(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = project::of_database(&text, "program");
}

/// A litmus test. Small ones are run.
pub fn litmus(bytes: &[u8]) {
    /// Larger tests may have too many executions.
    const LARGEST: usize = 8;
    let text = String::from_utf8_lossy(bytes);
    if let Ok(test) = selvedge_litmus::parse(&text)
        && test.operations() <= LARGEST
    {
        let _ = selvedge_litmus::run::<Rc11>(&test).to_string();
    }
}

/// A formula of temporal logic. What is printed of it must mean the same.
pub fn formula(bytes: &[u8]) {
    /// Automata of larger formulas may be exponentially large.
    const LARGEST: usize = 24;
    let text = String::from_utf8_lossy(bytes);
    match ltl::parse(&text) {
        Ok(formula) => {
            let printed = formula.to_string();
            // The printed formula has more parentheses, so it may be nested too deeply.
            if text.len() <= 100 {
                assert_eq!(ltl::parse(&printed).as_ref(), Ok(&formula), "{printed}");
            }
            if text.len() <= LARGEST {
                let _ = Automaton::new(&formula, false);
            }
        }
        Err(error) => assert!(text.is_char_boundary(error.at), "{error:?}"),
    }
}

/// A prefix file.
pub fn prefix(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    selvedge_irs_format::seal(&mut sealed);
    for bytes in [bytes, &sealed] {
        let Ok(view) = View::new(bytes) else { continue };
        let sites = view.sites().map(|site| site.function.len()).sum::<usize>();
        let inputs = view
            .inputs()
            .map(|input| input.waits() + input.values().len());
        let _ = (sites, inputs.sum::<usize>(), view.resume().len());
        assert_eq!(weaker(view, view), Ok(()));
    }
}

/// Messages between the command and its workers.
pub fn protocol(bytes: &[u8]) {
    let _ = wire::receive::<Request>(&mut &*bytes);
    let _ = wire::receive::<Order>(&mut &*bytes);
    let mut rest = bytes;
    while let Ok(Some(reply)) = wire::receive::<Reply>(&mut rest) {
        match reply {
            Reply::Bug(bug) => show(&bug),
            Reply::Sliced(sliced) => slices(*sliced),
            _ => {}
        }
    }
}

fn slices(sliced: Sliced) {
    sliced.bugs.iter().for_each(show);
    let mut state = crate::pool::State::new();
    if let Some((id, ..)) = state.work.take() {
        state.answer(id, sliced);
        let _ = (state.done(), state.work.counts().all());
    }
}

/// A trace, and what is shown of it.
pub fn trace(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(trace) = Trace::parse(Path::new("trace.json"), &text) {
        show(&FoundBug {
            described: trace.bug,
            raw: trace.decisions,
        });
    }
}

/// Shows a bug in every form.
fn show(bug: &FoundBug) {
    let _ = human::evidence(&bug.described);
    let _ = Page::of_replay(String::new(), bug).html();
}
