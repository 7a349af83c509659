//! The contents of parts, each kept once.

use super::hash;
use super::index::Index;

/// The contents of a part, by number. The empty contents of every part have number [`EMPTY`].
pub(super) type Contents = u32;

/// What does not exist in a state.
pub(super) const EMPTY: Contents = 0;

/// Numbers for contents of parts (collapse compression).
pub(super) struct Parts {
    /// Of each contents, what identifies them and what restores them, if that is something else.
    bytes: Vec<u8>,
    known: Vec<Known>,
    index: Index,
}

struct Known {
    part: u32,
    /// Where its identity ends; it begins where the contents before end.
    identity: usize,
    /// Where what restores it begins.
    begin: usize,
    end: usize,
    fingerprint: u128,
}

impl Parts {
    pub(super) fn new() -> Parts {
        let nothing = Known {
            part: 0,
            identity: 0,
            begin: 0,
            end: 0,
            fingerprint: 0,
        };
        Parts {
            bytes: Vec::new(),
            known: vec![nothing],
            index: Index::default(),
        }
    }

    /// The number of the contents of `part` that `identity` tells from others. What restores them is asked
    /// for with `save` if they are new.
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
        let new = self.known.len() as u32;
        let (known, all) = (&self.known, &self.bytes);
        let found = self
            .index
            .find_or_insert((fingerprint >> 96) as u32, new, |number| {
                let it = &known[number as usize];
                it.fingerprint == fingerprint
                    && it.part == part
                    && all[known[number as usize - 1].end..it.identity] == *identity
            });
        found.unwrap_or_else(|| {
            self.add(part, identity, fingerprint, save);
            new
        })
    }

    fn add(
        &mut self,
        part: u32,
        identity: &[u8],
        fingerprint: u128,
        save: impl FnOnce(&mut Vec<u8>),
    ) {
        let first = self.bytes.len();
        self.bytes.extend_from_slice(identity);
        let middle = self.bytes.len();
        save(&mut self.bytes);
        let same = self.bytes[middle..] == *identity;
        if same {
            self.bytes.truncate(middle);
        }
        self.known.push(Known {
            part,
            identity: middle,
            begin: if same { first } else { middle },
            end: self.bytes.len(),
            fingerprint,
        });
    }

    /// What restores the contents with a number.
    pub(super) fn contents(&self, number: Contents) -> &[u8] {
        let Known { begin, end, .. } = self.known[number as usize];
        &self.bytes[begin..end]
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
