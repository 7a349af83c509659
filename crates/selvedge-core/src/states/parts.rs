//! The contents of parts, each kept once.

use super::hash;
use super::index::Index;

/// The contents of a part, by number. The empty contents of every part have number [`EMPTY`].
pub(super) type Contents = u32;

/// What does not exist in a state.
pub(super) const EMPTY: Contents = 0;

/// Numbers for contents of parts (collapse compression).
pub(super) struct Parts {
    bytes: Vec<u8>,
    known: Vec<Known>,
    index: Index,
}

struct Known {
    part: u32,
    end: usize,
    fingerprint: u128,
}

impl Parts {
    pub(super) fn new() -> Parts {
        let nothing = Known {
            part: 0,
            end: 0,
            fingerprint: 0,
        };
        Parts {
            bytes: Vec::new(),
            known: vec![nothing],
            index: Index::default(),
        }
    }

    /// The number of `bytes` as contents of `part`.
    pub(super) fn intern(&mut self, part: u32, bytes: &[u8]) -> Contents {
        if bytes.is_empty() {
            return EMPTY;
        }
        let fingerprint = hash::fingerprint(part, bytes);
        let new = self.known.len() as u32;
        let (known, all) = (&self.known, &self.bytes);
        let found = self
            .index
            .find_or_insert((fingerprint >> 96) as u32, new, |number| {
                let it = &known[number as usize];
                it.fingerprint == fingerprint
                    && it.part == part
                    && all[known[number as usize - 1].end..it.end] == *bytes
            });
        found.unwrap_or_else(|| {
            self.bytes.extend_from_slice(bytes);
            self.known.push(Known {
                part,
                end: self.bytes.len(),
                fingerprint,
            });
            new
        })
    }

    /// The contents with a number.
    pub(super) fn contents(&self, number: Contents) -> &[u8] {
        match number {
            EMPTY => &[],
            _ => {
                let begin = self.known[number as usize - 1].end;
                &self.bytes[begin..self.known[number as usize].end]
            }
        }
    }

    /// The fingerprint of part and contents; zero for what is empty.
    pub(super) fn fingerprint(&self, number: Contents) -> u128 {
        self.known[number as usize].fingerprint
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.known.capacity() * size_of::<Known>() + self.index.bytes()
    }
}
