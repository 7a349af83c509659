//! Finds the registers that hold addresses of the frame where basic blocks begin.
//!
//! A forward analysis: a register holds an address at the beginning of a block if it holds the same one
//! at the end of all blocks that lead there. Otherwise the address is lost, which [`escape`](Held::escape)
//! tells: unless the register is dead there, what it points to may be accessed in ways that nobody follows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use iced_x86::{Instruction, Register};

use super::effects::{Tracker, Unknown};
use super::flow::Flow;

/// Registers that hold the frame pointer plus an offset, by the first instruction of a block.
pub(super) struct Held(BTreeMap<usize, Vec<(Register, i64)>>);

impl Held {
    pub(super) fn of(
        instructions: &[Instruction],
        flow: &Flow,
        tracker: &mut Tracker<'_>,
    ) -> Result<Held, Unknown> {
        let mut held = BTreeMap::from([(0, Vec::new())]);
        let mut open = vec![0];
        while let Some(leader) = open.pop() {
            tracker.addresses.clone_from(&held[&leader]);
            for (index, instruction) in instructions.iter().enumerate().skip(leader) {
                if index != leader && flow.leaders.contains(&index) {
                    break;
                }
                tracker.effects(instruction)?;
                for &next in &flow.successors[index] {
                    if flow.leaders.contains(&next) && meet(held.entry(next), &tracker.addresses) {
                        open.push(next);
                    }
                }
            }
        }
        Ok(Held(held))
    }

    /// The registers that hold addresses where the block of `leader` begins.
    pub(super) fn at(&self, leader: usize) -> &[(Register, i64)] {
        self.0.get(&leader).map_or(&[], Vec::as_slice)
    }

    /// Control goes to the block of `leader`: addresses that are not known to be held there escape, except
    /// those in registers that are not `live`.
    pub(super) fn escape(
        &self,
        tracker: &mut Tracker<'_>,
        leader: usize,
        live: impl Fn(Register) -> bool,
    ) {
        let known = self.at(leader);
        let lost = |held: &&(Register, i64)| !known.contains(held) && live(held.0);
        let lowest = tracker.addresses.iter().filter(lost);
        if let Some(lowest) = lowest.map(|&(_, offset)| offset).min() {
            tracker.escape(lowest);
        }
    }
}

/// Keeps what is held on this way to a block as well. Tells whether that is news.
fn meet(entry: Entry<'_, usize, Vec<(Register, i64)>>, now: &[(Register, i64)]) -> bool {
    match entry {
        Entry::Vacant(entry) => {
            entry.insert(now.to_vec());
            true
        }
        Entry::Occupied(mut entry) => {
            let before = entry.get().len();
            entry.get_mut().retain(|held| now.contains(held));
            entry.get().len() != before
        }
    }
}
