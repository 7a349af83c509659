//! Where the blocks of the heap begin that do not belong to a model.
//!
//! A thread of a model may change what was allocated before the model began, if it finds a pointer
//! to it. So each such block has a bit in a map of the address space, from which the block that a
//! pointer leads to can be told, wherever in the block that is. The map grows by pages from the
//! system: it is used within the allocator.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::atomic::{AtomicUsize, Ordering::Acquire};

use super::arena;

/// Blocks begin at multiples of this many bytes.
const GRAIN: usize = 16;
/// A leaf has a bit for each grain of this many bytes.
const LEAF_BYTES: usize = 4 << 20;
const LEAF_WORDS: usize = LEAF_BYTES / GRAIN / 64;
/// A node has this many leaves, and the root this many nodes: together they span what programs can address.
const LEAVES: usize = 1 << 13;
const NODES: usize = 1 << 12;
/// The most words that are searched for the beginning of a block that a pointer leads into: a
/// megabyte.
const BACK: usize = (1 << 20) / GRAIN / 64;

type Leaf = [AtomicU64; LEAF_WORDS];
type Node = [AtomicPtr<Leaf>; LEAVES];
type Root = [AtomicPtr<Node>; NODES];

static ROOT: AtomicPtr<Root> = AtomicPtr::new(std::ptr::null_mut());
/// No block lies below or above.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// The target of `slot`; a missing one is made of zeroes if `make` is set.
fn at<T>(slot: &AtomicPtr<T>, make: bool) -> Option<&'static T> {
    let mut found = slot.load(Acquire);
    if found.is_null() && make {
        // SAFETY: a fresh anonymous mapping at an address of the system's choice.
        let made = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if made == libc::MAP_FAILED {
            return None;
        }
        found = made.cast();
        if let Err(other) = slot.compare_exchange(std::ptr::null_mut(), found, Release, Acquire) {
            // SAFETY: the mapping just made, which nobody else knows.
            unsafe { libc::munmap(made, size_of::<T>()) };
            found = other;
        }
    }
    // SAFETY: null, or a mapping that is never given back, large enough, and zero at first: no
    // pointers, no bits.
    unsafe { found.as_ref() }
}

/// The word of the map for `address`, and which of its bits.
fn word(address: usize, make: bool) -> Option<(&'static AtomicU64, u32)> {
    let leaf = address / LEAF_BYTES;
    let node = at(at(&ROOT, make)?.get(leaf / LEAVES)?, make)?;
    let grain = address % LEAF_BYTES / GRAIN;
    let words = at(&node[leaf % LEAVES], make)?;
    Some((&words[grain / 64], (grain % 64) as u32))
}

/// A block that belongs to no model begins at `address`.
pub(super) fn note(address: usize) {
    if address < LOWEST.load(Relaxed) {
        LOWEST.fetch_min(address, Relaxed);
    }
    if address > HIGHEST.load(Relaxed) {
        HIGHEST.fetch_max(address, Relaxed);
    }
    if let Some((word, bit)) = word(address, true) {
        word.fetch_or(1 << bit, Relaxed);
    }
}

/// The block that begins at `address` is given back.
pub(super) fn forget(address: usize) {
    if let Some((word, bit)) = word(address, false) {
        word.fetch_and(!(1 << bit), Relaxed);
    }
}

/// Whether a block begins at `address`.
pub(super) fn begins_at(address: usize) -> bool {
    word(address, false).is_some_and(|(word, bit)| word.load(Relaxed) >> bit & 1 != 0)
}

/// Whether a block begins in `range`.
pub(super) fn any_in(range: Range<usize>) -> bool {
    let words = range.step_by(64 * GRAIN);
    words
        .map(|at| word(at, false))
        .any(|word| word.is_some_and(|(word, _)| word.load(Relaxed) != 0))
}

/// The block that `address` leads into.
pub(super) fn find(address: usize) -> Option<Range<usize>> {
    if address < LOWEST.load(Relaxed) || address > HIGHEST.load(Relaxed) + (1 << 30) {
        return None;
    }
    let mut at = address;
    for _ in 0..BACK {
        let (word, bit) = word(at, false)?;
        let upto = word.load(Relaxed) & (u64::MAX >> (63 - bit));
        if upto != 0 {
            let first = at - at % (64 * GRAIN);
            let begin = first + (63 - upto.leading_zeros() as usize) * GRAIN;
            let size = match arena::contains(begin) {
                true => arena::size(begin),
                // SAFETY: a block of the system's allocator that is in use begins there.
                false => unsafe {
                    libc::malloc_usable_size(std::ptr::with_exposed_provenance_mut(begin))
                },
            };
            return (address < begin + size).then_some(begin..begin + size);
        }
        at = (at - at % (64 * GRAIN)).checked_sub(GRAIN)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_by_any_address_in_it() {
        let block = vec![0_u8; 100_000].into_boxed_slice();
        let begin = block.as_ptr().addr();
        for inside in [0, 1, 17, 50_000, 99_999] {
            let found = find(begin + inside).unwrap();
            assert_eq!(found.start, begin, "{inside}");
            assert!(found.end >= begin + block.len(), "{inside}");
        }
        drop(block);
        assert_ne!(find(begin).map(|found| found.start), Some(begin));
        assert_eq!(find(8), None);
    }
}
