//! Memory that is still allocated at the end and that nothing can free.
//!
//! A block can still be freed if a global, or memory reachable from globals, holds an address in it.
//! Memory need not show the newest value of a visible operation, so every address that a visible
//! operation wrote counts as held. A reported leak is therefore a leak.

use selvedge_core::{Failure, FailureKind, Pending, Stop};

use crate::arena::pointer;
use crate::heap::HeapBlock;
use crate::loader::Range;
use crate::runtime::Runtime;
use crate::thread::Thread;

impl Runtime {
    /// The first block, by thread and allocation, that is lost.
    pub(crate) fn leak(&self) -> Option<Failure> {
        let live = |block: &&HeapBlock| block.freed.is_none();
        let threads = || self.threads.iter().filter(|thread| thread.run == self.run);
        let blocks: Vec<&HeapBlock> = threads()
            .flat_map(|thread| thread.heap.blocks().iter().filter(live))
            .collect();
        let mut reached = vec![false; blocks.len()];
        let mut open: Vec<Range> = self.image.writable.clone();
        // A thread may end the process in the middle of what others are doing.
        let stopped = |thread: &Thread, stop| thread.pending == Pending::Stopped(stop);
        let exited = threads().any(|thread| stopped(thread, Stop::Exited));
        let has_stack = |thread: &&Thread| {
            exited || !(stopped(thread, Stop::Finished) || stopped(thread, Stop::Returned))
        };
        open.extend(threads().filter(has_stack).map(|thread| Range {
            start: thread.lowest & !7,
            end: thread.slot.end,
        }));
        let reach = |value: usize, reached: &mut [bool], open: &mut Vec<Range>| {
            let after = blocks.partition_point(|block| block.start as usize <= value);
            let Some(index) = after.checked_sub(1) else {
                return;
            };
            let (start, size) = (blocks[index].start as usize, blocks[index].size as usize);
            if value < start + size.max(1) && !std::mem::replace(&mut reached[index], true) {
                open.push(Range {
                    start,
                    end: start + size,
                });
            }
        };
        for &value in &self.written_addresses {
            reach(value, &mut reached, &mut open);
        }
        for block in &blocks {
            let owner = self.layout.heap_owner(block.start as usize);
            if owner
                .is_some_and(|owner| self.threads[owner].heap.is_from_boot(block.start as usize))
            {
                reach(block.start as usize, &mut reached, &mut open);
            }
        }
        while let Some(Range { start, end }) = open.pop() {
            for address in (start.next_multiple_of(8)..end.saturating_sub(7)).step_by(8) {
                // SAFETY: globals, live blocks and stacks of the loaded program; no fiber runs.
                let value = unsafe { pointer::<usize>(address).read() };
                reach(value, &mut reached, &mut open);
            }
        }
        let lost = reached.iter().position(|&reached| !reached)?;
        let HeapBlock {
            size, thread, site, ..
        } = *blocks[lost];
        let count = reached.iter().filter(|&&reached| !reached).count();
        let message = match count {
            1 => format!("a heap block of {size} bytes is lost"),
            _ => format!(
                "a heap block of {size} bytes is lost, and {} more",
                count - 1
            ),
        };
        Some(Failure {
            kind: FailureKind::Leak,
            message,
            thread,
            site,
            other: None,
        })
    }
}
