//! Fingerprints that are wide enough to be unique in practice.

/// Two independent 64-bit multiply-and-fold accumulators.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint(u64, u64);

impl Fingerprint {
    /// Of nothing.
    #[inline(always)]
    pub fn new() -> Fingerprint {
        Fingerprint(0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3)
    }

    /// Goes on from the fingerprint of something else.
    #[inline(always)]
    pub fn with((a, b): (u64, u64)) -> Fingerprint {
        let mut hash = Fingerprint::new();
        hash.pair(a as usize, b as usize);
        hash
    }

    /// Adds two words.
    #[inline(always)]
    pub fn pair(&mut self, a: usize, b: usize) {
        let (a, b) = (a as u64, b as u64);
        self.0 = fold(a ^ 0x2d35_8dcc_aa6c_78a5, b ^ self.0);
        self.1 = fold(b ^ 0xa076_1d64_78bd_642f, a ^ self.1.rotate_left(31));
    }

    /// Adds bytes, and how many they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            self.wide(u128::from_le_bytes(*pair));
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        self.wide(u128::from_le_bytes(last));
        self.pair(bytes.len(), 0);
    }

    #[inline(always)]
    fn wide(&mut self, word: u128) {
        self.pair(word as usize, (word >> 64) as usize);
    }

    /// The result.
    #[inline(always)]
    pub fn finish(self) -> (u64, u64) {
        (self.0, self.1)
    }
}

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint::new()
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fingerprints_of_similar_things_differ() {
        let of = |words: [usize; 4]| {
            let mut hash = Fingerprint::new();
            hash.pair(words[0], words[1]);
            hash.pair(words[2], words[3]);
            hash.finish()
        };
        let mut all = HashSet::new();
        for a in 0..20 {
            for b in 0..20 {
                for c in 0..20 {
                    assert!(all.insert(of([a, b, c, 0])));
                }
            }
        }
    }

    #[test]
    fn the_length_of_bytes_counts() {
        let zeros = [0; 64];
        let all: HashSet<_> = (0..64)
            .map(|length| {
                let mut hash = Fingerprint::new();
                hash.bytes(&zeros[..length]);
                hash.finish()
            })
            .collect();
        assert_eq!(all.len(), 64);
    }
}
