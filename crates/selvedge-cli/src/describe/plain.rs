//! The values of plain global variables along a schedule.
//!
//! Accesses to them are no steps. So the memory is read before the first step and behind each one: what has
//! changed there was written by the thread that took the step, before it came to its next one.

use selvedge_core::{Op, Value};
use selvedge_page::Change;
use selvedge_runtime::NativeMachine;

use super::binary::Binary;
use super::names::Names;

/// A scalar in a global variable.
struct Scalar {
    address: u64,
    width: u8,
    first: Value,
    now: Value,
}

/// The scalars of global variables, and what changed when.
pub(crate) struct Plain {
    scalars: Vec<Scalar>,
    /// For each step, scalars with their new values.
    changes: Vec<Vec<(usize, Value)>>,
}

impl Plain {
    /// Before the first step.
    pub(crate) fn new(binary: &Binary, machine: &NativeMachine) -> Plain {
        let base = machine.load_base();
        let scalars = binary.scalars().into_iter();
        let scalars = scalars.filter_map(|(offset, width)| {
            let address = base + offset;
            let first = machine.global(address, width)?;
            Some(Scalar {
                address,
                width,
                first,
                now: first,
            })
        });
        Plain {
            scalars: scalars.collect(),
            changes: Vec::new(),
        }
    }

    /// Behind the next step.
    pub(crate) fn see(&mut self, machine: &NativeMachine) {
        let mut changes = Vec::new();
        for (n, scalar) in self.scalars.iter_mut().enumerate() {
            match machine.global(scalar.address, scalar.width) {
                Some(value) if value != scalar.now => {
                    scalar.now = value;
                    changes.push((n, value));
                }
                _ => {}
            }
        }
        self.changes.push(changes);
    }

    /// Leaves out what the steps of a schedule access: their values are known from the steps.
    pub(crate) fn leave_out<'a>(
        &mut self,
        machine: &NativeMachine,
        steps: impl Iterator<Item = &'a Op>,
    ) {
        let locations = steps.filter_map(Op::location);
        let mut taken: Vec<(u64, u64)> = locations
            .map(|location| machine.range_of(location))
            .map(|(address, width)| (address, address + u64::from(width)))
            .collect();
        taken.sort_unstable();
        taken.dedup();
        let accessed = |scalar: &Scalar| {
            let end = scalar.address + u64::from(scalar.width);
            taken
                .iter()
                .any(|&(from, to)| from < end && scalar.address < to)
        };
        let accessed: Vec<bool> = self.scalars.iter().map(accessed).collect();
        for changes in &mut self.changes {
            changes.retain(|&(n, _)| !accessed[n]);
        }
    }

    /// The values before the first step of those that change.
    pub(super) fn initial(&self, names: &Names<'_>) -> Vec<Change> {
        let mut changed: Vec<usize> = self.changes.iter().flatten().map(|&(n, _)| n).collect();
        changed.sort_unstable();
        changed.dedup();
        let first = |n| self.change(names, n, self.scalars[n].first);
        changed.into_iter().filter_map(first).collect()
    }

    /// The changes behind each step.
    pub(super) fn changes(&self, names: &Names<'_>) -> impl Iterator<Item = Vec<Change>> {
        self.changes.iter().map(|changes| {
            let changes = changes.iter();
            changes
                .filter_map(|&(n, value)| self.change(names, n, value))
                .collect()
        })
    }

    fn change(&self, names: &Names<'_>, n: usize, value: Value) -> Option<Change> {
        let Scalar { address, width, .. } = self.scalars[n];
        let found = names.memory(address, width.into())?;
        Some(Change {
            value: names.value(value, width, &found.encoding),
            variable: found.name,
        })
    }
}
