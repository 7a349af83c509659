//! Fits an executable to a prefix: removes the callbacks that no wait needs, and has unexpected ones
//! checked.

use std::collections::{HashMap, HashSet};

use selvedge_enforce::{Chosen, Notes, Policy, SYMBOL};
use selvedge_irs_format::{Class, Flags, View};

use super::calls::{Access, Call, Callee, Executable};
use super::checks;
use super::pairs::{self, Pairs};
use super::thunks;
use crate::problem::Problem;

/// An instruction that takes as much space as a call, and does nothing.
const NOTHING: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// The new form of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Keep,
    /// Nothing at all.
    Remove,
    /// A call of another function.
    Redirect(String),
}

/// Changes the file, and writes the notes into it.
pub(super) fn apply(
    bytes: &mut [u8],
    executable: &Executable,
    chosen: Option<&Chosen>,
    (fingerprint, policy): ([u8; 16], Policy),
) -> Result<(), Problem> {
    let failed = || Problem::internal("the executable cannot be fitted to the prefix");
    let prefix = chosen.and_then(|chosen| View::new(&chosen.bytes).ok());
    let pairs = pairs::find(bytes, executable);
    checks::remove(bytes);
    let (mut removed, mut uncounted) = (Vec::new(), Vec::new());
    for (call, action) in actions(executable, prefix, &pairs) {
        let at = bytes.get_mut(call.at..call.at + 5).ok_or_else(failed)?;
        match action {
            Action::Keep => continue,
            Action::Remove => at.copy_from_slice(&NOTHING),
            Action::Redirect(ref to) => {
                let target = executable.symbol(to).ok_or_else(failed)?;
                let distance = target.wrapping_sub(call.site.into()) as u32;
                at[1..].copy_from_slice(&distance.to_le_bytes());
            }
        }
        let fences = [FREE_READ, FREE_WRITE].map(|name| Action::Redirect(name.to_owned()));
        if action == Action::Remove {
            removed.push(call.site);
        } else if fences.contains(&action) {
            uncounted.push(call.site);
        }
    }
    let notes = Notes {
        policy,
        fingerprint,
        functions: executable.functions.clone(),
        removed,
        uncounted,
        together: pairs.together,
        prefix: chosen.cloned(),
    };
    let notes = notes.to_bytes().map_err(|why| {
        Problem::request(why).help(
            "try another one: selvedge irs verify FILE… -o PROGRAM.irs --anew --order ascending",
        )
    })?;
    let start = executable
        .symbol(SYMBOL)
        .and_then(|address| executable.place(address));
    let room = start.and_then(|start| bytes.get_mut(start..start + notes.len()));
    room.ok_or_else(failed)?.copy_from_slice(&notes);
    Ok(())
}

/// Functions of the library that keep the order of stores and later loads, and nothing else.
const FREE_READ: &str = "selvedge_free_read";
const FREE_WRITE: &str = "selvedge_free_write";
/// The callback for a load that is performed before a store that was announced earlier.
const BETWEEN: &str = "selvedge_between_read";

fn actions<'a>(
    executable: &'a Executable,
    prefix: Option<View<'_>>,
    pairs: &Pairs,
) -> Vec<(&'a Call, Action)> {
    let mut actions = match prefix {
        Some(prefix) => fitting(executable, prefix),
        None => {
            let calls = executable.calls.iter();
            calls.map(|call| (call, Action::Keep)).collect()
        }
    };
    let removed: HashSet<u32> = actions
        .iter()
        .filter(|(_, action)| *action == Action::Remove)
        .map(|(call, _)| call.site)
        .collect();
    for (call, action) in &mut actions {
        let store = pairs.between.get(&call.site);
        if *action == Action::Remove || store.is_none_or(|store| removed.contains(store)) {
            continue;
        }
        let volatile =
            matches!(Callee::of(&call.callee), Callee::Access(access) if access.volatile);
        if *action == Action::Redirect(thunks::name(&call.callee)) {
            *action = Action::Redirect(thunks::UNREACHED_BETWEEN.to_owned());
        } else if !volatile {
            *action = Action::Redirect(BETWEEN.to_owned());
        }
    }
    actions
}

/// The changes of calls that fit the program to a prefix.
fn fitting<'a>(executable: &'a Executable, prefix: View<'_>) -> Vec<(&'a Call, Action)> {
    let plain_events = prefix.flags().contains(Flags::PLAIN_EVENTS);
    let mut classes = HashMap::new();
    for site in prefix.sites() {
        let known = Known {
            counted: site.class == Class::Counted,
            // Without data races, order comes from elsewhere.
            alone: site.alone || !plain_events,
            tracked: site.tracked,
        };
        classes.insert((site.function, site.occurrence, site.offset), known);
    }
    let class = |call: &Call| {
        let function = &executable.functions[call.function];
        let offset = call.site - function.start;
        let key = (function.name.as_str(), function.occurrence, offset);
        classes.get(&key).copied()
    };
    let mut actions: Vec<(&Call, Action)> = Vec::new();
    let mut counting = HashSet::new();
    for call in &executable.calls {
        let class = class(call);
        if class.is_some_and(|known| known.counted) {
            counting.insert(call.function);
        }
        actions.push((call, action(call, class, plain_events)));
    }
    for (call, action) in &mut actions {
        // Where nothing is counted, nothing is left to be told at the end.
        if Callee::of(&call.callee) == Callee::Exit && !counting.contains(&call.function) {
            *action = Action::Remove;
        }
    }
    actions
}

/// The knowledge about a place.
#[derive(Clone, Copy, Debug)]
struct Known {
    counted: bool,
    alone: bool,
    tracked: bool,
}

fn action(call: &Call, known: Option<Known>, plain_events: bool) -> Action {
    let detour = || Action::Redirect(thunks::name(&call.callee));
    let counted = known.is_some_and(|known| known.counted);
    match (Callee::of(&call.callee), known) {
        (Callee::Entry, _) => Action::Remove,
        (Callee::Access(_), Some(known)) if counted || known.tracked => Action::Keep,
        (Callee::Access(access), Some(known)) => uncounted(access, known),
        (Callee::Access(access), None) if access.volatile || plain_events => detour(),
        // Accesses to memory that is not shared are not listed.
        (Callee::Access(_), None) => Action::Remove,
        (Callee::Operation, None) => detour(),
        (Callee::Memory, _) if counted => Action::Redirect(format!("selvedge_{}", call.callee)),
        _ => Action::Keep,
    }
}

/// An access that was reached, and that no event waits for. If it may race, it still has to be
/// sequentially consistent.
fn uncounted(access: Access, known: Known) -> Action {
    match access {
        _ if known.alone && !access.volatile => Action::Remove,
        Access { compound: true, .. } => Action::Keep,
        Access { writes: true, .. } => Action::Redirect(FREE_WRITE.to_owned()),
        Access { writes: false, .. } => Action::Redirect(FREE_READ.to_owned()),
    }
}
