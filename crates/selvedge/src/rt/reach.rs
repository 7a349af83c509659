//! Finds memory that outlives an execution: blocks that a thread of the model allocated and that a
//! static, a thread-local, what the closure captured, or memory that these lead to, points to.
//!
//! The question is asked after each execution, but memory outside of the model seldom changes. So that
//! memory is copied, and only words that changed are followed.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::memory::Memory;
use super::outside::{differs, read, words};
use super::{arena, blocks, statics};

/// The blocks that memory outside of the model leads to.
#[derive(Default)]
pub(super) struct Reach {
    /// The closure, all statics and thread-locals, then blocks that belong to no model.
    ranges: Vec<Part>,
    /// The blocks among them, by where they begin.
    known: FxHashSet<usize>,
    kept: FxHashSet<usize>,
    /// Words that are to be followed.
    next: Vec<u64>,
}

struct Part {
    range: Range<usize>,
    copy: Vec<u64>,
    is_block: bool,
    /// Whether a word in it points to where blocks of models live: that is followed each time.
    suspect: bool,
}

impl Part {
    fn new(range: Range<usize>, is_block: bool) -> Part {
        Part {
            copy: words(range.clone()).map(read).collect(),
            range,
            is_block,
            suspect: false,
        }
    }
}

impl Reach {
    /// The blocks of `memory` in use, by where they begin, that outlive the execution.
    pub(super) fn find(&mut self, closure: &Range<usize>, memory: &Memory) -> &FxHashSet<usize> {
        self.kept.clear();
        if self.ranges.is_empty() {
            let mut found = vec![closure.clone()];
            statics::find(&mut found, false);
            for range in found {
                self.add(range, false);
            }
        } else {
            self.look();
        }
        while let Some(word) = self.next.pop() {
            let word = word as usize;
            if let Some((begin, size)) = memory.find(word) {
                if self.kept.insert(begin) {
                    self.add(begin..begin + size, true);
                    self.known.insert(begin);
                }
            } else if let Some(block) = blocks::find(word)
                && self.known.insert(block.start)
            {
                self.add(block, true);
            }
        }
        &self.kept
    }

    fn add(&mut self, range: Range<usize>, is_block: bool) {
        let mut part = Part::new(range, is_block);
        part.suspect = part.copy.iter().any(|&word| arena::contains(word as usize));
        self.next.extend_from_slice(&part.copy);
        self.ranges.push(part);
    }

    /// Follows what has changed.
    fn look(&mut self) {
        let Reach {
            ranges,
            known,
            next,
            ..
        } = self;
        ranges.retain_mut(|part| {
            if part.is_block && !blocks::begins_at(part.range.start) {
                known.remove(&part.range.start);
                return false;
            }
            if part.suspect || differs(part.range.start & !7, &part.copy) {
                part.suspect = false;
                for (word, before) in words(part.range.clone()).map(read).zip(&mut part.copy) {
                    let model = arena::contains(word as usize);
                    part.suspect |= model;
                    if model || word != *before {
                        next.push(word);
                    }
                    *before = word;
                }
            }
            true
        });
    }
}
