//! Compares an access with those that are remembered, in its cell and in the list of those that did not
//! fit there.

use super::{Cell, INLINE, Record, View};

/// Accesses that did not fit into their cells.
#[derive(Default)]
pub(super) struct Spills {
    pub(super) lists: Vec<List>,
    pub(super) used: usize,
}

/// The accesses of one cell.
#[derive(Default)]
pub(super) struct List {
    pub(super) records: Vec<Record>,
    /// Whether there may be a plain access among them.
    pub(super) plain: bool,
}

impl Spills {
    pub(super) fn race(&self, cell: &Cell, new: &Record, view: View<'_>) -> Option<Record> {
        let spilled: &[Record] = match cell.spill {
            0 => &[],
            number => &self.lists[number as usize - 1].records,
        };
        let inline = &cell.records[..usize::from(cell.count)];
        inline
            .iter()
            .chain(spilled)
            .find(|old| judge(old, new, view) == Judgement::Race)
            .copied()
    }

    /// Notes an atomic access to a word whose cell holds atomic ones only: it cannot race with
    /// those. False if there may be plain ones in the list.
    pub(super) fn note_atomic(&mut self, cell: &mut Cell, new: Record) -> bool {
        let spilled: &mut [Record] = match cell.spill {
            0 => &mut [],
            number => {
                let list = &mut self.lists[number as usize - 1];
                if list.plain {
                    return false;
                }
                &mut list.records
            }
        };
        let inline = &mut cell.records[..usize::from(cell.count)];
        let mut all = inline.iter_mut().chain(spilled);
        match all.find(|old| old.thread == new.thread && new.covers(old)) {
            Some(old) => *old = new,
            None => self.add(cell, new),
        }
        true
    }

    pub(super) fn access(
        &mut self,
        cell: &mut Cell,
        new: Record,
        view: View<'_>,
    ) -> Option<Record> {
        // Nothing may change if there is a race, and mostly nothing is covered.
        let mut covered = 0_u8;
        for (index, old) in cell.records[..usize::from(cell.count)].iter().enumerate() {
            match judge(old, &new, view) {
                Judgement::Race => return Some(*old),
                Judgement::Covered => covered |= 1 << index,
                Judgement::Keep => {}
            }
        }
        if cell.spill != 0 {
            let list = &mut self.lists[cell.spill as usize - 1].records;
            let mut keep_all = true;
            for old in list.iter() {
                match judge(old, &new, view) {
                    Judgement::Race => return Some(*old),
                    Judgement::Covered => keep_all = false,
                    Judgement::Keep => {}
                }
            }
            if !keep_all {
                list.retain(|old| judge(old, &new, view) == Judgement::Keep);
            }
        }
        if covered != 0 {
            cell.drop(covered);
        }
        self.add(cell, new);
        None
    }

    fn add(&mut self, cell: &mut Cell, new: Record) {
        match usize::from(cell.count) {
            INLINE => {
                let list = self.list(cell);
                list.plain |= !new.kind.is_atomic();
                list.records.push(new);
            }
            count => {
                cell.records[count] = new;
                cell.count += 1;
            }
        }
    }

    fn list(&mut self, cell: &mut Cell) -> &mut List {
        if cell.spill == 0 {
            if self.used == self.lists.len() {
                self.lists.push(List::default());
            }
            let list = &mut self.lists[self.used];
            list.records.clear();
            list.plain = false;
            self.used += 1;
            cell.spill = self.used as u32;
        }
        &mut self.lists[cell.spill as usize - 1]
    }
}

/// The relation of a new access to an old one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Race,
    Covered,
    Keep,
}

#[inline(always)]
fn judge(old: &Record, new: &Record, view: View<'_>) -> Judgement {
    let before = old.thread == new.thread || view.knows(old.thread.into(), old.epoch);
    if !before && old.conflicts(new) {
        Judgement::Race
    } else if before && new.covers(old) {
        Judgement::Covered
    } else {
        Judgement::Keep
    }
}
