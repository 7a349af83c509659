//! The comparison of memory with its known contents after every step of a search over states.
//!
//! A state holds all memory, so its contents before a step are known. A step may change only the bytes
//! that it announces; where another byte of a visible location differs after it, something was written
//! unseen. Stacks are left out: compilers do not announce stores to variables that no other thread can know.
//!
//! Locations are compared from the moment at which a thread stops before a visible operation on them. A
//! write that other threads can observe has a state before it in which one of them stands there, and the
//! search takes that step too.

use std::collections::HashMap;

use selvedge_core::{Location, MemoryOrder, Op, Pending, Stop};

use crate::locations::Kind;
use crate::memory;
use crate::problem::UNSEEN;
use crate::protection::Protection;
use crate::runtime::Runtime;
use crate::settings::Plain;
use crate::shadow::words;

/// The visible bytes of a word of memory.
struct Word {
    address: usize,
    mask: u64,
    /// The word before the present step.
    before: u64,
}

/// The words that are compared, and what the present step has announced.
#[derive(Default)]
pub(crate) struct Known {
    words: Vec<Word>,
    places: HashMap<usize, usize>,
    /// Whether the location with this number was looked at.
    listed: Vec<bool>,
    /// Addresses and sizes.
    announced: Vec<(usize, usize)>,
    /// Memory was restored since it was looked at.
    stale: bool,
}

impl Known {
    /// The present step writes `size` bytes at `address`.
    #[inline(always)]
    pub(crate) fn announce(&mut self, address: usize, size: usize) {
        self.announced.push((address, size));
    }

    /// Memory is about to be restored.
    pub(super) fn forget(&mut self) {
        self.stale = true;
    }

    fn add(&mut self, word: usize, bytes: u8) {
        let place = *self.places.entry(word).or_insert(self.words.len());
        if place == self.words.len() {
            self.words.push(Word {
                address: word,
                mask: 0,
                before: now(word),
            });
        }
        self.words[place].mask |= spread(bytes);
    }

    /// The bits of the bytes of a word that were announced.
    fn announced_in(&self, word: usize) -> u64 {
        // All bits from the byte at `address` on.
        let from = |address: usize| {
            let byte = address.clamp(word, word + 8) - word;
            u64::MAX.checked_shl(8 * byte as u32).unwrap_or(0)
        };
        let ranges = self.announced.iter();
        let bits = ranges.map(|&(start, size)| from(start) & !from(start.saturating_add(size)));
        bits.fold(0, |all, range| all | range)
    }
}

/// A byte of ones for each bit.
fn spread(bits: u8) -> u64 {
    (0..8)
        .map(|n| (u64::from(bits >> n & 1) * 0xff) << (8 * n))
        .sum()
}

#[inline(always)]
fn now(word: usize) -> u64 {
    memory::word(word)
}

impl Runtime {
    /// A step begins.
    #[inline(always)]
    pub(crate) fn begin_comparison(&mut self) {
        let known = &mut self.states.known;
        known.announced.clear();
        if std::mem::take(&mut known.stale) {
            for word in &mut known.words {
                word.before = now(word.address);
            }
        }
    }

    /// A thread has stopped before `op`.
    #[inline(always)]
    pub(super) fn compare_from_now(&mut self, op: &Op) {
        let Some(location) = op.location() else {
            return;
        };
        let plain = matches!(*op, Op::Load { order, .. } | Op::Store { order, .. } if order == MemoryOrder::Plain);
        if plain && self.settings.plain == Plain::Race {
            return;
        }
        let listed = self.states.known.listed.get(location.index());
        if !listed.is_some_and(|&listed| listed) {
            self.list(location);
        }
    }

    #[cold]
    fn list(&mut self, location: Location) {
        let entry = *self.locations.entry(location);
        let known = &mut self.states.known;
        if known.listed.len() <= location.index() {
            known.listed.resize(location.index() + 1, false);
        }
        known.listed[location.index()] = true;
        // A thread changes its own stack unannounced, and parts of the others that no longer matter are cleared between
        // steps.
        let on_a_stack = self.layout.stack_owner(entry.address).is_some();
        if entry.kind != Kind::Memory || on_a_stack || Protection::Comparison.is_off() {
            return;
        }
        for (word, bytes) in words(entry.address, entry.width.into()) {
            if self.shadow.cell(word).is_some() {
                known.add(word, bytes);
            }
        }
    }

    /// The running thread has taken its step.
    #[inline(always)]
    pub(crate) fn end_comparison(&mut self) {
        let mut differing = 0;
        let known = &self.states.known;
        for word in &known.words {
            differing |= (now(word.address) ^ word.before) & word.mask;
        }
        if differing != 0 {
            self.explain_differences();
        }
    }

    /// Looks for bytes that differ and were not announced.
    fn explain_differences(&mut self) {
        let mut unseen = None;
        for place in 0..self.states.known.words.len() {
            let known = &self.states.known;
            let word = &known.words[place];
            let (address, after) = (word.address, now(word.address));
            let differing = (after ^ word.before) & word.mask;
            if differing == 0 {
                continue;
            }
            let left = differing & !known.announced_in(address);
            if left != 0 && self.check_address(address, 1, false).is_ok() {
                unseen = unseen.or(Some(address + left.trailing_zeros() as usize / 8));
            }
            self.states.known.words[place].before = after;
        }
        let thread = &mut self.threads[self.running];
        let (Some(address), false) = (unseen, thread.went_wrong()) else {
            return;
        };
        thread.pending = Pending::Stopped(Stop::Refused);
        self.failure_place = address;
        self.refusal.get_or_insert_with(|| UNSEEN.to_owned());
    }
}
