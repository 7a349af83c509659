//! Memory that is no part of a model, but that its threads can change: [statics and thread-locals](super::statics), the stacks of
//! other threads of the model, what the closure captured, and whatever of the heap can be reached from there.
//!
//! Nothing tells of such changes, so what is there is copied before a stretch of a thread that may be in a loop, and compared afterwards.
//! No other thread of the model runs meanwhile, but other OS threads of the process do. Words that go on changing while no thread of the
//! model runs are theirs. Another change must be seen twice at the same place to count.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{blocks, statics};

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
    /// Statics and thread-locals, once they are known.
    fixed: Vec<Range<usize>>,
    roots: Vec<Range<usize>>,
    /// What was copied.
    ranges: Vec<Range<usize>>,
    copy: Vec<u64>,
    reached: FxHashSet<usize>,
    /// Words that other OS threads change.
    others: FxHashSet<usize>,
    /// Changes seen: where, which word; and how many where.
    seen: FxHashSet<(u64, usize)>,
    doubts: FxHashMap<u64, u32>,
}

impl Outside {
    /// A stretch begins: copies what can be reached from `roots`, thread-locals and statics.
    pub(super) fn remember(&mut self, roots: impl Iterator<Item = Range<usize>>) {
        let before = std::mem::take(&mut self.roots);
        self.roots.extend(roots);
        if self.fixed.is_empty() {
            statics::find(&mut self.fixed);
        } else if self.roots == before && self.first_change().is_none() {
            return;
        }
        self.copy.clear();
        self.reached.clear();
        self.ranges.clear();
        self.ranges.extend(self.roots.iter().cloned());
        self.ranges.extend(self.fixed.iter().cloned());
        let certain = self.ranges.len();
        let mut heap = 0;
        let mut next = 0;
        while let Some(range) = self.ranges.get(next).cloned() {
            next += 1;
            if next > certain {
                if heap + range.len() > MOST {
                    self.ranges[next - 1] = 0..0;
                    continue;
                }
                heap += range.len();
            }
            for word in words(range) {
                self.copy.push(read(word));
                if let Some(block) = blocks::find(read(word) as usize)
                    && self.reached.insert(block.start)
                {
                    self.ranges.push(block);
                }
            }
        }
    }

    /// The stretch ends at `site`: whether it changed something.
    pub(super) fn change(&mut self, site: u64) -> Change {
        while let Some((index, word)) = self.first_change() {
            if self.others.contains(&word) || is_restless(word) {
                self.others.insert(word);
                self.copy[index] = read(word);
                continue;
            }
            let doubts = self.doubts.entry(site).or_default();
            *doubts += 1;
            return match self.seen.insert((site, word)) && *doubts < DOUBTS {
                true => Change::Perhaps,
                false => Change::Certain,
            };
        }
        Change::None
    }

    /// The first word that is not as it was copied, and where its copy is.
    fn first_change(&self) -> Option<(usize, usize)> {
        let all = self.ranges.iter().cloned().flat_map(words);
        let mut both = all.zip(&self.copy).enumerate();
        let found = both.find(|(_, (word, before))| read(*word) != **before)?;
        Some((found.0, found.1.0))
    }
}

/// The addresses of the words that a range consists of; it is widened to whole words.
fn words(range: Range<usize>) -> impl Iterator<Item = usize> {
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

fn read(word: usize) -> u64 {
    // SAFETY: an aligned word of memory that is mapped: a segment, a stack, or a block in use. Other OS threads may be writing it,
    // which is why it is read as volatile, and why nothing is made of it but a comparison.
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
        let own = |word: &AtomicUsize| word.as_ptr().addr()..word.as_ptr().addr() + 8;
        let behind = (&raw const BEHIND).addr();
        let roots = [own(&COUNT), behind..behind + size_of_val(&BEHIND)];
        BEHIND.lock().unwrap().push(1);
        let changes: [fn(); 3] = [
            || COUNT.store(1, Relaxed),
            || LOCAL.with(|local| std::hint::black_box(local).set(1)),
            || BEHIND.lock().unwrap()[0] = 2,
        ];
        let mut outside = Outside::default();
        for (n, change) in changes.into_iter().enumerate() {
            outside.remember(roots.iter().cloned());
            let site = n as u64;
            assert_eq!(outside.change(site), Change::None, "{n}");
            change();
            assert_eq!(outside.change(site), Change::Perhaps, "{n}");
            assert_eq!(outside.change(site), Change::Certain, "{n}");
        }
    }
}
