//! Lines of the program that no execution reached.

use std::collections::{BTreeMap, HashSet};

use selvedge_runtime::NativeMachine;

use crate::describe::Binary;
use crate::report::Place;

/// So many lines are told.
const TOLD: usize = 500;

/// The lines that are watched, with the addresses of each in the program's file.
pub(super) struct Lines(BTreeMap<(String, u32), Line>);

struct Line {
    addresses: Vec<u64>,
    function: Option<String>,
}

impl Lines {
    /// Watches every line of the program's own source. `None` where code runs before `main`, which
    /// nothing can watch, or where the system does not let code be watched.
    pub(super) fn watch(binary: &Binary, machine: &mut NativeMachine) -> Option<Lines> {
        if binary.has_constructors() {
            return None;
        }
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
        let base = machine.load_base();
        let all = lines.values().flat_map(|line| &line.addresses);
        let all = all.map(|address| address + base).collect();
        machine.watch_lines(all).ok()?;
        Some(Lines(lines))
    }

    /// Those that were not reached, in the order of the source.
    pub(super) fn unreached(self, machine: &NativeMachine) -> Vec<Place> {
        let base = machine.load_base();
        let reached: HashSet<u64> = machine.reached_lines().into_iter().collect();
        let missed = |line: &Line| {
            !line
                .addresses
                .iter()
                .any(|at| reached.contains(&(at + base)))
        };
        let missed = self.0.into_iter().filter(|(_, line)| missed(line));
        let places = missed.map(|((file, number), line)| Place {
            file: Some(file),
            line: Some(number),
            function: line.function,
            library: None,
        });
        places.take(TOLD).collect()
    }
}
