//! Lines of the program that no execution reached.
//!
//! Each worker watches for itself. It tells addresses in the program's file, so that the command can put together
//! what several workers saw.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_runtime::NativeMachine;

use crate::describe::Binary;
use crate::report::Place;

/// The most lines that are reported.
const TOLD: usize = 500;

/// The lines of the program's own source, with the addresses of each in the program's file.
struct Lines(BTreeMap<(String, u32), Line>);

struct Line {
    addresses: Vec<u64>,
    function: Option<String>,
}

/// Watches every line of the program's own source. False where code runs before `main`, which nothing can
/// watch, or where the system does not let code be watched.
pub(super) fn watch(binary: &Binary, machine: &mut NativeMachine) -> bool {
    if binary.has_constructors() {
        return false;
    }
    let Lines(lines) = Lines::of(binary);
    let base = machine.load_base();
    let all = lines.values().flat_map(|line| &line.addresses);
    let all = all.map(|address| address + base).collect();
    machine.watch_lines(all).is_ok()
}

/// The addresses that were reached so far.
pub(super) fn reached(machine: &NativeMachine) -> BTreeSet<u64> {
    let base = machine.load_base();
    let reached = machine.reached_lines().into_iter();
    reached.map(|address| address - base).collect()
}

/// The lines that have none of these addresses, in the order of the source.
pub(crate) fn unreached(binary: &Binary, reached: &BTreeSet<u64>) -> Vec<Place> {
    let missed = |line: &Line| line.addresses.iter().all(|at| !reached.contains(at));
    let Lines(lines) = Lines::of(binary);
    let missed = lines.into_iter().filter(|(_, line)| missed(line));
    let places = missed.map(|((file, number), line)| Place {
        file: Some(file),
        line: Some(number),
        function: line.function,
        library: None,
    });
    places.take(TOLD).collect()
}

impl Lines {
    fn of(binary: &Binary) -> Lines {
        let mut lines: BTreeMap<(String, u32), Line> = BTreeMap::new();
        for (address, place) in binary.lines() {
            if let Place {
                file: Some(file),
                line: Some(line),
                function,
                ..
            } = place
            {
                let line = lines.entry((file, line)).or_insert(Line {
                    addresses: Vec::new(),
                    function,
                });
                line.addresses.push(address);
            }
        }
        Lines(lines)
    }
}
