//! The owners of values of `std::sync::Arc`s.
//!
//! Their reference counts are no events, and nothing announces an access to them. But they are the first word of a
//! block of the model, and only one thread runs at a time. So a count that is lower when a thread stops than it
//! was when the thread went on tells that this thread has let go of the value. The last owner, which drops the value, is
//! ordered after what each thread had done when it let go, and after nothing else: a pointer that the value
//! contains may lead to objects that other threads use without owning the value.
//!
//! Not every block whose first words look like the counts of an `Arc` belongs to one. So what is found here counts
//! only while the call stack says that the value of an `Arc` is being dropped (see [`call_stack`](super::call_stack)).

use super::shared::merge;
use super::state::State;

/// Counts are not larger than that.
const MOST: u64 = 1 << 32;

/// The blocks that may be those of `Arc`s.
#[derive(Default)]
pub(super) struct Owners(Vec<Counted>);

struct Counted {
    block: u32,
    /// The number of owners when a thread last stopped.
    strong: u64,
    /// The clock of the end of the value: everything that each owner had done when it let go.
    clock: Vec<u32>,
    /// The thread that was the last owner.
    last: Option<usize>,
}

impl Owners {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The first two words of a block in use: of an `Arc`'s, its numbers of owners and of weak references.
fn counts(address: usize) -> [u64; 2] {
    let words = std::ptr::with_exposed_provenance::<[u64; 2]>(address);
    // SAFETY: the caller has looked that the block is in use, and large and aligned enough; no fiber runs.
    unsafe { words.read() }
}

impl State {
    /// The running thread stops, or ends something: notes which values it has let go of.
    pub(super) fn note_owners(&mut self) {
        let fresh = self.memory.take_fresh();
        let owners = &mut self.owners.0;
        if owners.is_empty() && fresh.is_empty() {
            return;
        }
        let (running, memory) = (self.running, &self.memory);
        let clock = &self.threads[running].clock;
        owners.retain_mut(|known| {
            let Some((address, _)) = memory.in_use(known.block) else {
                return false;
            };
            if fresh.contains(&known.block) {
                return false;
            }
            let [strong, _] = counts(address);
            if strong < known.strong {
                merge(&mut known.clock, clock);
                // Its actions since its last event happen before the end as well.
                if known.clock.len() <= running {
                    known.clock.resize(running + 1, 0);
                }
                let own = clock.get(running).copied().unwrap_or(0);
                known.clock[running] = known.clock[running].max(own + 1);
                known.last = (strong == 0).then_some(running);
            }
            known.strong = strong;
            true
        });
        for block in fresh {
            let Some((address, layout)) = memory.in_use(block) else {
                continue;
            };
            if layout.size() < size_of::<[u64; 2]>() || layout.align() < align_of::<u64>() {
                continue;
            }
            // The owners of this crate's `Arc`s are known already.
            let value = address + size_of::<[u64; 2]>().next_multiple_of(layout.align());
            let [strong, weak] = counts(address);
            let is_arc = strong < MOST && (1..MOST).contains(&weak);
            if is_arc && !self.shared.contains_key(&value) {
                owners.push(Counted {
                    block,
                    strong,
                    clock: Vec::new(),
                    last: None,
                });
            }
        }
    }

    /// The clock of the present point if the running thread drops the values of which it was the last owner.
    pub(super) fn clock_of_last_owner(&self) -> Vec<u32> {
        let own = self.threads[self.running].counted(self.running);
        let mut clock = self.threads[self.running].clock.clone();
        let dropped = self.owners.0.iter();
        let dropped = dropped.filter(|known| known.last == Some(self.running));
        dropped.for_each(|known| merge(&mut clock, &known.clock));
        if let Some(count) = clock.get_mut(self.running) {
            *count = own;
        }
        clock
    }
}
