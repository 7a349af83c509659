//! Names of functions as numbers, for the notes in the executable.

/// The hash of a function's name and of its number among those of that name.
pub(crate) fn hash(name: &[u8], occurrence: u32) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = name.iter().copied().fold(0xcbf2_9ce4_8422_2325, step);
    occurrence.to_le_bytes().into_iter().fold(hash, step)
}
