//! Freeing blocks of the heap.

use selvedge_core::{Site, ThreadId};

use super::{Access, FREED, liveness};
use crate::protection::Protection;
use crate::runtime::{Phase, Runtime};
use crate::shadow::{Kind, Record, words};
use crate::states;
use crate::watch::Fate;

/// The problem of freeing something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeProblem {
    /// It does not come from the heap.
    NotHeap,
    /// No block begins there.
    NotStart,
    /// It was freed before, by this thread at this place if that is known.
    Twice(Option<(ThreadId, Site)>),
    /// Nothing orders this access before it.
    InUse(Record),
    /// The memory there was changed by something that nobody announced.
    Unseen(usize),
}

impl Runtime {
    /// Frees the block at `address`, to which every earlier access has to be ordered.
    pub(crate) fn free(&mut self, address: usize, site: Site) -> Result<(), FreeProblem> {
        let Some(owner) = self.layout.heap_owner(address) else {
            return Err(FreeProblem::NotHeap);
        };
        let block = self
            .block_near(address)
            .filter(|block| block.start as usize == address);
        let Some(block) = block else {
            return Err(match liveness(address) {
                FREED => FreeProblem::Twice(None),
                _ => FreeProblem::NotStart,
            });
        };
        if block.freed.is_some() {
            return Err(FreeProblem::Twice(block.freed));
        }
        let by = (ThreadId(self.running as u32), site);
        self.passing(site.0 as usize);
        self.note_block(address, Fate::Freed);
        if self.settings.stateful && self.phase == Phase::Fiber {
            self.threads[owner].heap.give_back(address, by);
            self.states.changed(states::heap_of(owner));
            self.locations.forget_objects(address, block.size as usize);
            return Ok(());
        }
        if self.phase == Phase::Fiber {
            self.current().spin.effect();
            let access = Access {
                address,
                size: block.size as usize,
                kind: Kind::PlainWrite,
                site: site.0 as usize,
            };
            for (word, mask) in words(address, access.size) {
                let Some(cell) = self.shadow.cell(word) else {
                    continue;
                };
                let record = self.record_now(access, mask);
                if let Some(other) = self.shadow.check(cell, record, self.view()) {
                    return Err(FreeProblem::InUse(other));
                }
                if Protection::Comparison.is_off() {
                    continue;
                }
                let mut inside = self.locations.touched(cell, self.run);
                let lie = inside.find(|&at| self.locations.entry(at).lies(self.run));
                if let Some(lie) = lie {
                    return Err(FreeProblem::Unseen(self.locations.entry(lie).address));
                }
            }
            let freed = address..address + access.size;
            if let Some(other) = self.access_ahead(freed) {
                return Err(FreeProblem::InUse(other));
            }
        }
        self.undo.frees(owner, address);
        self.threads[owner].heap.free(address, by);
        if self.phase == Phase::Fiber {
            self.frees_compared(address, block.size as usize);
            if self.settings.reuse_memory && !self.threads[owner].heap.is_from_boot(address) {
                let freed = (address, block.size as usize);
                self.current().reusable.push(freed);
            }
        }
        Ok(())
    }
}
