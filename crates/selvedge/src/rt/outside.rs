//! Memory that is no part of a model, but that its threads can change: [statics and
//! thread-locals](super::statics), the stacks of other threads of the model, what the closure
//! captured, and whatever of the heap can be reached from there.
//!
//! Such changes are not announced, so the memory is copied before a segment of a thread that may be in a loop, and
//! compared afterwards. A *segment* is the part of a thread between two visible operations. No other thread of the
//! model runs meanwhile, but other OS threads of the process do. Words that go on changing while no thread of the model
//! runs are theirs. Another change counts as the thread's only if it comes back each time that the same segment is run:
//! a model is deterministic, so a change that stays away once was made by another OS thread. The search starts over to
//! see that, and no change is ever ignored: where there were too many doubts, or too many executions, it counts.
//! Changes by other OS threads can therefore add an iteration of a loop to an execution, but never remove one.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_core::Fact;

use super::{blocks, portable, statics};

/// The most bytes of the heap that are copied, in the order in which pointers lead there.
const MOST: usize = 256 << 10;
/// The number of reads of a word that show whether another OS thread changes it.
const LOOKS: usize = 2_000;
/// The number of times in a row that a segment must change a word until the change counts as its
/// own.
const SIGHTINGS: u32 = 8;
/// The most changes that are doubted at one place.
const DOUBTS: u32 = 24;
/// After this many executions, changes are no longer doubted: starting over takes too long.
const DOUBTED_RUNS: u32 = 10_000;
/// The number of rounds by which the wait before the search starts over grows each time.
const PAUSE: u32 = 1_000;

/// Whether a segment changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// It did, or another OS thread: that will be seen when the segment comes again.
    Perhaps,
    Certain,
}

/// The memory outside of the models of an OS thread, and a copy of it.
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
    /// Changes that threads of the model make: where and which word, as facts.
    confirmed: FxHashSet<Fact>,
    /// The change that a segment was seen to make, and how many times in a row.
    suspected: FxHashMap<Segment, (Fact, u32)>,
    /// How many changes were doubted where.
    doubts: FxHashMap<u64, u32>,
}

/// The part of a thread between two of its visible operations: its end, the thread, and the number of the thread's
/// events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Segment {
    pub(super) site: u64,
    pub(super) thread: usize,
    pub(super) events: u32,
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
    /// A segment begins: copies the `stacks` of the other threads, and what can be reached from
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

    /// The changes that threads of the model make.
    pub(super) fn facts(&self) -> impl Iterator<Item = Fact> + '_ {
        self.confirmed.iter().copied()
    }

    /// Another process confirmed this change.
    pub(super) fn recall(&mut self, fact: Fact) {
        self.confirmed.insert(fact);
    }

    /// `segment` ends, in the execution `run`: whether it changed something.
    pub(super) fn change(&mut self, segment: Segment, run: u32) -> Change {
        if self.stacks.first_change().is_some() {
            return Change::Certain;
        }
        while let Some((index, word)) = self.lasting.first_change() {
            if self.others.contains(&word) || is_restless(word) {
                self.others.insert(word);
                self.lasting.copy[index] = read(word);
                continue;
            }
            return self.judge(segment, word, run);
        }
        self.suspected.remove(&segment);
        Change::None
    }

    /// `segment` was seen to change `word`, which other OS threads are not known to do.
    fn judge(&mut self, segment: Segment, word: usize, run: u32) -> Change {
        let fact = portable::seen(segment.site, word);
        let suspected = self.suspected.entry(segment).or_insert((fact, 0));
        if suspected.0 != fact {
            *suspected = (fact, 0);
        }
        suspected.1 += 1;
        if suspected.1 >= SIGHTINGS {
            self.confirmed.insert(fact);
        }
        if self.confirmed.contains(&fact) {
            return Change::Certain;
        }
        let doubts = self.doubts.entry(segment.site).or_default();
        *doubts += 1;
        if *doubts > DOUBTS || run > DOUBTED_RUNS {
            return Change::Certain;
        }
        // Otherwise a thread that works at intervals may come at the same moment of each search.
        (0..*doubts * PAUSE).for_each(|_| std::hint::spin_loop());
        Change::Perhaps
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
            let segment = segment(n as u64);
            outside.remember(&closure, std::iter::once(count..count + 8));
            assert_eq!(outside.change(segment, 1), Change::None, "{n}");
            change();
            // No other OS thread can change a stack.
            let sightings = [1, SIGHTINGS][n.min(1)];
            for sighting in 1..=sightings + 1 {
                let expected = match sighting < sightings {
                    true => Change::Perhaps,
                    false => Change::Certain,
                };
                assert_eq!(outside.change(segment, 1), expected, "{n} {sighting}");
            }
        }
    }

    #[test]
    fn a_change_that_does_not_come_back_is_not_the_models_until_there_were_too_many() {
        let word = Cell::new(0_u64);
        let begin = word.as_ptr().expose_provenance();
        let closure = begin..begin + 8;
        let mut outside = Outside::default();
        let mut run = |site, changes: bool, runs| {
            outside.remember(&closure, std::iter::empty());
            word.set(word.get() + u64::from(changes));
            outside.change(segment(site), runs)
        };
        for _ in 0..DOUBTS {
            assert_eq!(run(1, true, 1), Change::Perhaps);
            assert_eq!(run(1, false, 1), Change::None);
        }
        assert_eq!(run(1, true, 1), Change::Certain);
        // At other places changes are doubted all the same.
        assert_eq!(run(2, true, DOUBTED_RUNS), Change::Perhaps);
        assert_eq!(run(3, true, DOUBTED_RUNS + 1), Change::Certain);
    }

    fn segment(site: u64) -> Segment {
        Segment {
            site,
            thread: 0,
            events: 1,
        }
    }
}
