//! The race check against complete histories.

use selvedge_core::random::Random;

use super::*;

#[test]
fn an_access_is_split_into_words_with_masks() {
    let split = |address, size| words(address, size).collect::<Vec<_>>();
    assert_eq!(split(0x100, 8), [(0x100, 0xff)]);
    assert_eq!(split(0x104, 4), [(0x100, 0xf0)]);
    assert_eq!(split(0x102, 1), [(0x100, 0b100)]);
    assert_eq!(split(0x106, 4), [(0x100, 0xc0), (0x108, 0x03)]);
    assert_eq!(split(0x100, 16), [(0x100, 0xff), (0x108, 0xff)]);
}

/// Every kind of conflict, and only those.
#[test]
fn conflicts_are_those_of_the_language() {
    use Kind::*;
    let kinds = [PlainRead, PlainWrite, AtomicRead, AtomicWrite];
    for a in kinds {
        for b in kinds {
            let plain = |k| matches!(k, PlainRead | PlainWrite);
            let expected = (a.writes() || b.writes()) && (plain(a) || plain(b));
            assert_eq!(a.conflicts() & (1 << b as u8) != 0, expected, "{a:?} {b:?}");
        }
    }
}

/// Random accesses by threads that sometimes synchronise: a race is reported exactly when a
/// complete history contains one.
#[test]
fn no_race_is_missed_and_none_is_invented() {
    const THREADS: usize = 7;
    let kinds = [
        Kind::PlainRead,
        Kind::PlainWrite,
        Kind::AtomicRead,
        Kind::AtomicWrite,
    ];
    let ends = [ThreadEnd::NOT_AWAITED; THREADS];
    let (mut raced, mut spilled) = (0, 0);
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut shadow = Shadow::default();
        // SAFETY: all fields of a cell are numbers, but for `kind`, whose first value is zero.
        let mut cell: Box<Cell> = Box::new(unsafe { std::mem::zeroed() });
        let mut clocks = vec![vec![0_u32; THREADS]; THREADS];
        let mut history: Vec<Record> = Vec::new();
        let writes = random.below(4);
        // Sometimes a word is accessed plainly only after many atomic accesses.
        let plain_from = 15 * random.below(3);
        for step in 0..40 {
            let thread = random.below(THREADS as u64) as usize;
            if random.below(3) == 0 {
                let other = random.below(THREADS as u64) as usize;
                let from = clocks[other].clone();
                clocks[other][other] += 1;
                for (known, news) in clocks[thread].iter_mut().zip(from) {
                    *known = (*known).max(news);
                }
                clocks[thread][thread] += 1;
            }
            // Few writes, so that many readers pile up.
            let kind = match random.below(4) < writes {
                true => kinds[random.below(4) as usize],
                false => kinds[2 * random.below(2) as usize],
            };
            let kind = match kind {
                Kind::PlainRead if step < plain_from => Kind::AtomicRead,
                Kind::PlainWrite if step < plain_from => Kind::AtomicWrite,
                other => other,
            };
            let masks = [0xff, 0x0f, 0xf0, 1 << random.below(8)];
            let new = Record {
                epoch: clocks[thread][thread],
                site: 0,
                thread: thread as u16,
                mask: masks[random.below(4) as usize],
                kind,
            };
            let view = View {
                run: 1,
                clock: &clocks[thread],
                ends: &ends,
            };
            let expected = history.iter().any(|old| {
                old.thread != new.thread
                    && clocks[thread][usize::from(old.thread)] <= old.epoch
                    && old.conflicts(&new)
            });
            let found = shadow.access(&raw mut *cell, new, view);
            assert_eq!(
                found.is_some(),
                expected,
                "seed {seed}: {new:?} after {history:?}"
            );
            if expected {
                raced += 1;
                break;
            }
            history.push(new);
        }
        spilled += usize::from(cell.spill != 0);
    }
    assert!(raced > 1000 && spilled > 1000, "{raced} {spilled}");
}
