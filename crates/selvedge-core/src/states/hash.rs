//! Fingerprints of 128 bits.
//!
//! Two lanes of 64 bits, each mixed by multiplying to 128 bits and folding, with constants of their own. Nobody chooses
//! the contents in order to make them collide; what counts is that contents that differ in a few bits have unrelated
//! fingerprints, and speed.

const A: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03];
const B: [u64; 2] = [0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB];

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The fingerprint of `bytes` as the contents of part `part`.
pub(super) fn fingerprint(part: u32, bytes: &[u8]) -> u128 {
    let seed = (u64::from(part) << 40) ^ bytes.len() as u64;
    let mut lanes = [fold(seed ^ A[0], B[1]), fold(seed ^ B[0], A[1])];
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        mix(&mut lanes, block);
    }
    if !rest.is_empty() {
        let mut block = [0; 16];
        block[..rest.len()].copy_from_slice(rest);
        mix(&mut lanes, &block);
    }
    let first = fold(lanes[0] ^ A[1], lanes[1] ^ B[0]);
    let second = fold(lanes[0].rotate_left(32) ^ B[1], lanes[1] ^ A[0]);
    u128::from(first) << 64 | u128::from(second ^ lanes[1])
}

fn mix(lanes: &mut [u64; 2], block: &[u8; 16]) {
    let word = u128::from_le_bytes(*block);
    let (low, high) = (word as u64, (word >> 64) as u64);
    lanes[0] = fold(lanes[0] ^ low ^ A[0], high ^ A[1]);
    lanes[1] = fold(lanes[1] ^ high ^ B[0], low ^ B[1]) ^ low.rotate_left(29);
    // A factor that happens to be zero must not erase the lane.
    lanes[0] = lanes[0].wrapping_add(lanes[1].rotate_left(17));
}

/// Spreads a number over 128 bits; different numbers have different images.
pub(super) fn spread(number: u32) -> u128 {
    let high = u64::from(number).wrapping_mul(A[0]);
    u128::from(high) << 64 | u128::from(number)
}

/// The hash of a pair of numbers.
pub(super) fn of_pair(first: u32, second: u32) -> u32 {
    let word = u64::from(first) << 32 | u64::from(second);
    (fold(word ^ A[0], B[0]) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn neighbours_have_unrelated_fingerprints() {
        let mut seen = [HashSet::new(), HashSet::new()];
        let mut bytes = [0; 40];
        let mut flips = 0;
        let mut last = fingerprint(0, &bytes);
        for number in 0..200_000u32 {
            bytes[12..16].copy_from_slice(&number.to_le_bytes());
            let print = fingerprint(0, &bytes);
            // Each half alone is good for that many.
            assert!(seen[0].insert(print as u64));
            assert!(seen[1].insert((print >> 64) as u64));
            flips += (print ^ last).count_ones();
            last = print;
        }
        let average = f64::from(flips) / 200_000.0;
        assert!((63.0..65.0).contains(&average), "{average}");
    }

    #[test]
    fn part_and_length_matter() {
        let prints = [
            fingerprint(0, &[]),
            fingerprint(1, &[]),
            fingerprint(0, &[0]),
            fingerprint(0, &[0; 16]),
            fingerprint(0, &[0; 17]),
            fingerprint(0, &[0; 32]),
        ];
        assert_eq!(HashSet::from(prints).len(), prints.len());
    }
}
