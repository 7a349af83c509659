//! Memory that is no part of a model, but that its threads can change: [statics and
//! thread-locals](super::statics), the stacks of other threads of the model, what the closure
//! captured, and whatever of the heap can be reached from there.
//!
//! Nothing tells of such changes, so what is there is copied before a stretch of a thread that may
//! be in a loop, and compared afterwards. No other thread of the model runs meanwhile, but other OS
//! threads of the process do. Words that go on changing while no thread of the model runs are
//! theirs. Another change must be seen twice at the same place to count.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_core::Fact;

use super::{blocks, portable, statics};

/// So many bytes of the heap are looked at, in the order in which pointers lead there.
const MOST: usize = 256 << 10;
/// So often a word is read to find out whether somebody else changes it.
const LOOKS: usize = 2_000;
/// So many changes are doubted at one place.
const DOUBTS: u32 = 4;

/// Whether a stretch changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// It did, or another OS thread: that will be seen when the stretch comes again.
    Perhaps,
    Certain,
}

/// What there is outside of the models of an OS thread, and a copy of it.
#[derive(Default)]
pub(super) struct Outside {
    /// Statics and thread-locals, once they are known, what the closure consists of, and what can
    /// be reached from there.
    lasting: Copied,
    /// How many of those ranges are there without being reached.
    roots: usize,
    reached: FxHashSet<usize>,
    /// The stacks of the other threads.
    stacks: Copied,
    /// Words that other OS threads change.
    others: FxHashSet<usize>,
    /// Changes seen: where and which word, as facts; and how many where.
    seen: FxHashSet<Fact>,
    doubts: FxHashMap<u64, u32>,
}

/// Some memory, and a copy of it.
#[derive(Default)]
struct Copied {
    ranges: Vec<Range<usize>>,
    copy: Vec<u64>,
}

impl Copied {
    /// The first word that is not as it was copied, and where its copy is.
    fn first_change(&self) -> Option<(usize, usize)> {
        let mut at = 0;
        for range in &self.ranges {
            let words = words(range.clone());
            let copy = &self.copy[at..at + words.len()];
            if !copy.is_empty() && differs(range.start & !7, copy) {
                let mut both = words.zip(copy).enumerate();
                let found = both.find(|(_, (word, before))| read(*word) != **before);
                // Another OS thread may have put it back meanwhile.
                if let Some((index, (word, _))) = found {
                    return Some((at + index, word));
                }
            }
            at += copy.len();
        }
        None
    }
}

impl Outside {
    /// A stretch begins: copies the `stacks` of the other threads, and what can be reached from
    /// `closure`, thread-locals and statics.
    pub(super) fn remember(
        &mut self,
        closure: &Range<usize>,
        stacks: impl Iterator<Item = Range<usize>>,
    ) {
        self.stacks.ranges.clear();
        self.stacks.ranges.extend(stacks);
        self.stacks.copy.clear();
        let all = self.stacks.ranges.iter().cloned().flat_map(words);
        self.stacks.copy.extend(all.map(read));
        if self.roots == 0 {
            self.lasting.ranges.push(closure.clone());
            statics::find(&mut self.lasting.ranges, true);
            self.roots = self.lasting.ranges.len();
        } else if self.lasting.first_change().is_none() {
            return;
        }
        let Copied { ranges, copy } = &mut self.lasting;
        ranges.truncate(self.roots);
        copy.clear();
        self.reached.clear();
        let mut heap = 0;
        let mut next = 0;
        while let Some(range) = ranges.get(next).cloned() {
            next += 1;
            if next > self.roots {
                if heap + range.len() > MOST {
                    ranges[next - 1] = 0..0;
                    continue;
                }
                heap += range.len();
            }
            for word in words(range).map(read) {
                copy.push(word);
                if let Some(block) = blocks::find(word as usize)
                    && self.reached.insert(block.start)
                {
                    ranges.push(block);
                }
            }
        }
    }

    /// The changes that were seen.
    pub(super) fn facts(&self) -> impl Iterator<Item = Fact> + '_ {
        self.seen.iter().copied()
    }

    /// Another process saw this change.
    pub(super) fn recall(&mut self, fact: Fact) {
        self.seen.insert(fact);
    }

    /// The stretch ends at `site`: whether it changed something.
    pub(super) fn change(&mut self, site: u64) -> Change {
        if self.stacks.first_change().is_some() {
            return Change::Certain;
        }
        while let Some((index, word)) = self.lasting.first_change() {
            if self.others.contains(&word) || is_restless(word) {
                self.others.insert(word);
                self.lasting.copy[index] = read(word);
                continue;
            }
            let doubts = self.doubts.entry(site).or_default();
            *doubts += 1;
            return match self.seen.insert(portable::seen(site, word)) && *doubts < DOUBTS {
                true => Change::Perhaps,
                false => Change::Certain,
            };
        }
        Change::None
    }
}

/// Whether the memory at `begin` is not what `copy` holds.
pub(super) fn differs(begin: usize, copy: &[u64]) -> bool {
    let memory = std::ptr::with_exposed_provenance(begin);
    // SAFETY: as for `read`, as many words as there are in the copy.
    unsafe { libc::memcmp(memory, copy.as_ptr().cast(), size_of_val(copy)) != 0 }
}

/// The addresses of the words that a range consists of; it is widened to whole words.
pub(super) fn words(range: Range<usize>) -> impl ExactSizeIterator<Item = usize> {
    (range.start & !7..range.end).step_by(8)
}

/// Whether a word changes while no thread of the model runs.
fn is_restless(word: usize) -> bool {
    let before = read(word);
    (0..LOOKS).any(|_| {
        std::hint::spin_loop();
        read(word) != before
    })
}

pub(super) fn read(word: usize) -> u64 {
    // SAFETY: an aligned word of memory that is mapped: a segment, a stack, or a block in use.
    // Other OS threads may be writing it, which is why it is read as volatile, and why nothing is
    // made of it but a comparison.
    unsafe { std::ptr::with_exposed_provenance::<u64>(word).read_volatile() }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn changes_of_statics_thread_locals_and_what_they_lead_to_are_noticed() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        static BEHIND: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
        std::thread_local! {
            static LOCAL: Cell<usize> = const { Cell::new(0) };
        }
        // The statics of this crate are left out.
        let behind = (&raw const BEHIND).addr();
        let closure = behind..behind + size_of_val(&BEHIND);
        let count = COUNT.as_ptr().addr();
        BEHIND.lock().unwrap().push(1);
        let changes: [fn(); 3] = [
            || COUNT.store(1, Relaxed),
            || LOCAL.with(|local| std::hint::black_box(local).set(1)),
            || BEHIND.lock().unwrap()[0] = 2,
        ];
        let mut outside = Outside::default();
        for (n, change) in changes.into_iter().enumerate() {
            outside.remember(&closure, std::iter::once(count..count + 8));
            let site = n as u64;
            assert_eq!(outside.change(site), Change::None, "{n}");
            change();
            // No other OS thread can change a stack.
            let first = [Change::Certain, Change::Perhaps][n.min(1)];
            assert_eq!(outside.change(site), first, "{n}");
            assert_eq!(outside.change(site), Change::Certain, "{n}");
        }
    }
}
