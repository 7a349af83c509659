//! Hashes of the contents of states.

use crate::fingerprint::Fingerprint;

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The fingerprint of `bytes` as the contents of part `part`.
pub(super) fn fingerprint(part: u32, bytes: &[u8]) -> u128 {
    let mut print = Fingerprint::with((part.into(), 0));
    print.bytes(bytes);
    let (first, second) = print.finish();
    u128::from(first) << 64 | u128::from(second)
}

/// Spreads a number over 128 bits; different numbers have different images.
pub(super) fn spread(number: u32) -> u128 {
    let high = u64::from(number).wrapping_mul(ODD);
    u128::from(high) << 64 | u128::from(number)
}

/// The hash of a pair of numbers.
pub(super) fn of_pair(first: u32, second: u32) -> u32 {
    let mut print = Fingerprint::new();
    print.pair(first as usize, second as usize);
    (print.finish().0 >> 32) as u32
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
    fn the_part_matters() {
        assert_ne!(fingerprint(0, &[1]), fingerprint(1, &[1]));
    }
}
