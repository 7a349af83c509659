//! Damaged input: texts and files that are nearly right.

use selvedge_core::random::Random;

/// Damages one of the `samples` in a few random ways: bytes are changed, cut out, doubled or repeated
/// many times, and pieces of the samples and `words` are put in.
pub fn damaged(random: &mut Random, samples: &[&[u8]], words: &[&str]) -> Vec<u8> {
    let pick = |random: &mut Random, count: usize| random.below(count as u64) as usize;
    let mut bytes = samples[pick(random, samples.len())].to_vec();
    for _ in 0..=random.below(4) {
        let at = pick(random, bytes.len() + 1);
        let piece = |random: &mut Random, of: &[u8]| {
            let start = pick(random, of.len() + 1);
            let length = pick(random, (of.len() - start).min(24) + 1);
            of[start..start + length].to_vec()
        };
        let inserted = match random.below(6) {
            0 => vec![random.word() as u8],
            1 => {
                let sample = samples[pick(random, samples.len())];
                piece(random, sample)
            }
            2 if !words.is_empty() => words[pick(random, words.len())].as_bytes().to_vec(),
            3 => {
                let times = [2, 10, 400][pick(random, 3)];
                piece(random, &bytes).repeat(times)
            }
            _ => Vec::new(),
        };
        let removed = match random.below(3) {
            0 => pick(random, (bytes.len() - at).min(24) + 1),
            1 => 1.min(bytes.len() - at),
            _ => 0,
        };
        bytes.splice(at..at + removed, inserted);
    }
    bytes
}

/// How many damaged inputs a test tries: `SELVEDGE_DAMAGED`, or this many.
pub fn damaged_inputs(usual: u64) -> u64 {
    let asked = std::env::var("SELVEDGE_DAMAGED").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(usual)
}
