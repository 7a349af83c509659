//! Where the blocks of models live: at addresses that are the same in every execution of a search.
//!
//! A program may keep an address in an integer, tagged or not, and a search compares what atomics
//! hold across executions. So each name of a block has one home for the whole search. The homes of
//! all searches of the process lie in one stretch of its address space, by which whoever frees a
//! block can tell it from those of the system's allocator.

use std::alloc::Layout;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::blocks;
use super::memory::Name;

/// How much address space there is for all searches.
const SPACE: usize = 16 << 30;
/// How much of it a search takes at a time.
const CHUNK: usize = 256 << 10;
/// Larger blocks come from the system's allocator, and so do those of a search that has taken too much.
const LARGEST: usize = 64 << 10;
const MOST: usize = 256 << 20;
/// Before each block there is room for its size.
const HEADER: usize = 16;

/// Where the stretch begins; 0 as long as it is not needed.
static BEGIN: AtomicUsize = AtomicUsize::new(0);

/// Whether `address` is the home of a block.
pub(super) fn contains(address: usize) -> bool {
    let begin = BEGIN.load(Relaxed);
    begin != 0 && address.wrapping_sub(begin) < SPACE
}

/// How many bytes the block has that begins at `address`, which must be its home.
pub(super) fn size(address: usize) -> usize {
    // SAFETY: `Homes::build` wrote it there, and nobody else writes before a block.
    unsafe { std::ptr::with_exposed_provenance::<usize>(address - HEADER).read() }
}

/// Parts of the stretch that no search uses, and how much of it was ever used.
struct Chunks {
    free: Vec<usize>,
    used: usize,
}

static CHUNKS: Mutex<Chunks> = Mutex::new(Chunks {
    free: Vec::new(),
    used: 0,
});

/// The stretch, which nobody can use yet; `None` if the system does not allow it.
fn reserve() -> Option<usize> {
    // SAFETY: a fresh anonymous mapping at an address of the system's choice.
    let begin = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            SPACE,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (begin != libc::MAP_FAILED).then(|| begin.expose_provenance())
}

/// A chunk for a search.
fn take_chunk() -> Option<usize> {
    let mut chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(chunk) = chunks.free.pop() {
        return Some(chunk);
    }
    if BEGIN.load(Relaxed) == 0 {
        BEGIN.store(reserve()?, Relaxed);
    }
    if chunks.used + CHUNK > SPACE {
        return None;
    }
    let chunk = BEGIN.load(Relaxed) + chunks.used;
    let begin = std::ptr::with_exposed_provenance_mut(chunk);
    // SAFETY: a part of the stretch that nobody uses yet.
    let open = unsafe { libc::mprotect(begin, CHUNK, libc::PROT_READ | libc::PROT_WRITE) };
    chunks.used += CHUNK;
    (open == 0).then_some(chunk)
}

/// The homes of one search.
#[derive(Default)]
pub(super) struct Homes {
    known: FxHashMap<(Name, Layout), usize>,
    /// What is free of the last chunk.
    rest: Range<usize>,
    chunks: Vec<usize>,
}

impl Homes {
    /// The home of the block with this name; `None` if it has to live elsewhere, for example
    /// because a block of an earlier execution still lives there.
    pub(super) fn find(&mut self, name: Name, layout: Layout) -> Option<usize> {
        if layout.size() > LARGEST || layout.align() > HEADER {
            return None;
        }
        match self.known.get(&(name, layout)) {
            Some(&home) => (!blocks::begins_at(home)).then_some(home),
            None => {
                let home = self.build(layout.size())?;
                self.known.insert((name, layout), home);
                Some(home)
            }
        }
    }

    fn build(&mut self, size: usize) -> Option<usize> {
        let size = size.next_multiple_of(HEADER);
        if self.rest.len() < HEADER + size {
            if self.chunks.len() * CHUNK >= MOST {
                return None;
            }
            let chunk = take_chunk()?;
            self.chunks.push(chunk);
            self.rest = chunk..chunk + CHUNK;
        }
        let header = std::ptr::with_exposed_provenance_mut::<usize>(self.rest.start);
        // SAFETY: within a chunk of this search, and aligned, since all sizes are multiples of the
        // header's.
        unsafe { header.write(size) };
        let home = self.rest.start + HEADER;
        self.rest.start = home + size;
        Some(home)
    }
}

impl Drop for Homes {
    /// Gives back the chunks in which nothing lives any more.
    fn drop(&mut self) {
        let mut chunks = CHUNKS.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = |&chunk: &usize| !blocks::any_in(chunk..chunk + CHUNK);
        chunks.free.extend(self.chunks.drain(..).filter(empty));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_home_unless_somebody_lives_there() {
        let layout = Layout::new::<[u64; 3]>();
        let name = |ordinal| Name {
            thread: 0,
            events: 0,
            size: layout.size(),
            ordinal,
        };
        let mut homes = Homes::default();
        let first = homes.find(name(0), layout).unwrap();
        let second = homes.find(name(1), layout).unwrap();
        assert_ne!(first, second);
        assert_eq!(homes.find(name(0), layout), Some(first));
        assert!(contains(first) && size(first) >= layout.size());
        blocks::note(first);
        assert_eq!(homes.find(name(0), layout), None);
        assert_eq!(blocks::find(first + 20), Some(first..first + size(first)));
        blocks::forget(first);
        assert_eq!(homes.find(name(0), layout), Some(first));
    }
}
