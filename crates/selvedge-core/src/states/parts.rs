//! The contents of parts, each kept once.

use super::hash;
use super::index::Index;

/// The contents of a part, by number. The empty contents of every part have number [`EMPTY`].
pub(super) type Contents = u32;

/// A part that does not exist in a state.
pub(super) const EMPTY: Contents = 0;

/// Numbers for contents of parts (collapse compression).
pub(super) struct Parts {
    /// Of each contents, what identifies them, if that is compared in full, and what restores them,
    /// if that is something else.
    bytes: Vec<u8>,
    known: Vec<Known>,
    index: Index,
    /// Whether contents are told apart by all that identifies them, not by its fingerprint.
    exact: bool,
}

struct Known {
    /// The lower and the upper half.
    fingerprint: [u64; 2],
    /// Where its bytes end; they begin where those of the contents before end.
    end: u64,
    part: u32,
    /// How many of them restore it, the last ones; [`ALL`] if they do both.
    restore: u32,
}

const ALL: u32 = u32::MAX;

impl Parts {
    pub(super) fn new(exact: bool) -> Parts {
        let nothing = Known {
            fingerprint: [0; 2],
            end: 0,
            part: 0,
            restore: 0,
        };
        Parts {
            bytes: Vec::new(),
            known: vec![nothing],
            index: Index::default(),
            exact,
        }
    }

    /// The number of the contents of `part` that `identity` tells from others. What restores them
    /// is asked for with `save` if they are new.
    pub(super) fn intern(
        &mut self,
        part: u32,
        identity: &[u8],
        save: impl FnOnce(&mut Vec<u8>),
    ) -> Contents {
        if identity.is_empty() {
            return EMPTY;
        }
        let fingerprint = hash::fingerprint(part, identity);
        let identity = if self.exact { identity } else { &[] };
        self.admit(part, fingerprint, identity, save)
    }

    /// The same for contents of which the fingerprint is known, and what identifies them if that is
    /// compared.
    pub(super) fn admit(
        &mut self,
        part: u32,
        fingerprint: u128,
        identity: &[u8],
        save: impl FnOnce(&mut Vec<u8>),
    ) -> Contents {
        let halves = [fingerprint as u64, (fingerprint >> 64) as u64];
        let new = self.known.len() as u32;
        let (known, all) = (&self.known, &self.bytes);
        let found = self
            .index
            .find_or_insert((fingerprint >> 96) as u32, new, |number| {
                let it = &known[number as usize];
                let same = || {
                    let begin = known[number as usize - 1].end as usize;
                    all[begin..it.end_of_identity()] == *identity
                };
                it.fingerprint == halves && it.part == part && (!self.exact || same())
            });
        found.unwrap_or_else(|| {
            let first = self.bytes.len();
            self.bytes.extend_from_slice(identity);
            let middle = self.bytes.len();
            save(&mut self.bytes);
            let same = !identity.is_empty() && self.bytes[middle..] == *identity;
            if same {
                self.bytes.truncate(middle);
            }
            debug_assert!(self.bytes.len() - first < ALL as usize);
            self.known.push(Known {
                fingerprint: halves,
                end: self.bytes.len() as u64,
                part,
                restore: match same {
                    true => ALL,
                    false => (self.bytes.len() - middle) as u32,
                },
            });
            new
        })
    }

    /// The bytes that restore the contents with a number.
    pub(super) fn contents(&self, number: Contents) -> &[u8] {
        let known = &self.known[number as usize];
        let end = known.end as usize;
        let begin = match known.restore {
            ALL => self.known[number as usize - 1].end as usize,
            restore => end - restore as usize,
        };
        &self.bytes[begin..end]
    }

    /// The fingerprint of part and contents; zero for what is empty.
    pub(super) fn fingerprint(&self, number: Contents) -> u128 {
        let [low, high] = self.known[number as usize].fingerprint;
        u128::from(high) << 64 | u128::from(low)
    }

    /// How many contents have a number.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.known.capacity() * size_of::<Known>() + self.index.bytes()
    }
}

impl Known {
    fn end_of_identity(&self) -> usize {
        match self.restore {
            ALL => self.end as usize,
            restore => self.end as usize - restore as usize,
        }
    }
}
