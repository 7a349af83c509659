//! Where the blocks of models live: at addresses that are the same in every execution of a search.
//!
//! A program may keep an address in an integer, tagged or not, and a search compares what atomics
//! hold across executions. So each name of a block has one home for the whole search. The homes of
//! all searches of the process lie in one stretch of its address space, by which `free` can
//! tell a block from those of the system's allocator.

use std::alloc::Layout;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::block::Name;
use super::blocks;

/// How much address space there is for all searches.
const SPACE: usize = 16 << 30;
/// How much of it a search takes at a time.
const CHUNK: usize = 256 << 10;
/// Larger blocks come from the system's allocator, and so do those of a search that has taken too much.
const LARGEST: usize = 64 << 10;
const MOST: usize = 256 << 20;
/// Before each block there is room for its size.
const HEADER: usize = 16;
const PAGE: usize = 4 << 10;
/// The first blocks of a search have pages of their own, up to this many, so that they can be protected.
const PAGES: usize = 8 << 10;

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

/// The layout of a block without a home, which has pages of its own.
pub(super) fn of_pages(layout: Layout) -> Layout {
    let aligned = layout.align_to(PAGE).unwrap_or(layout);
    let size = aligned.size().max(1).checked_next_multiple_of(PAGE);
    let whole = size.and_then(|size| Layout::from_size_align(size, aligned.align()).ok());
    // Larger than there can be: the allocator says so.
    whole.unwrap_or(layout)
}

/// Changes what may be done with pages of blocks; false if the system does not allow it.
pub(super) fn set_access(pages: &Range<usize>, access: libc::c_int) -> bool {
    let begin = std::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: pages of one search, whose blocks are not in use, or all are to be.
    unsafe { libc::mprotect(begin, pages.len(), access) == 0 }
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
    let open = set_access(&(chunk..chunk + CHUNK), libc::PROT_READ | libc::PROT_WRITE);
    chunks.used += CHUNK;
    open.then_some(chunk)
}

/// The homes of one search.
#[derive(Default)]
pub(super) struct Homes {
    known: FxHashMap<(Name, Layout), usize>,
    /// The free part of the last chunk.
    rest: Range<usize>,
    chunks: Vec<usize>,
    /// How many pages are given to blocks of their own.
    pages: usize,
    /// The pages of these blocks, by where they begin.
    own: FxHashMap<usize, Range<usize>>,
    /// The blocks whose pages are protected from access.
    protected: Vec<usize>,
    /// Whether all blocks have pages of their own.
    separate: bool,
}

impl Homes {
    /// No homes yet. `separate` says that all of them are to have pages of their own.
    pub(super) fn new(separate: bool) -> Homes {
        let mut homes = Homes::default();
        homes.separate = separate;
        homes
    }

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
        let own = self.separate || self.pages < PAGES;
        if own {
            // Not all at the same offset, where they would compete for the same lines of the cache.
            let color =
                (self.own.len() % 16 * 64).min(((PAGE - (HEADER + size) % PAGE) % PAGE) & !63);
            let room = (HEADER + size + color).next_multiple_of(PAGE);
            let begin = self.room(room)?;
            self.pages += room / PAGE;
            let home = self.settle(begin + color, size);
            self.rest.start = begin + room;
            self.own.insert(home, begin..begin + room);
            return Some(home);
        }
        let begin = self.room(HEADER + size)?;
        let home = self.settle(begin, size);
        self.rest.start = home + size;
        Some(home)
    }

    /// Where there are this many bytes.
    fn room(&mut self, size: usize) -> Option<usize> {
        if self.rest.len() < size {
            if self.chunks.len() * CHUNK >= MOST {
                return None;
            }
            let chunk = take_chunk()?;
            self.chunks.push(chunk);
            self.rest = chunk..chunk + CHUNK;
        }
        Some(self.rest.start)
    }

    /// Makes a home for a block of `size` bytes behind a header at `begin`.
    fn settle(&mut self, begin: usize, size: usize) -> usize {
        let header = std::ptr::with_exposed_provenance_mut::<usize>(begin);
        // SAFETY: within a chunk of this search, and aligned, since all sizes are multiples of the
        // header's.
        unsafe { header.write(size) };
        begin + HEADER
    }

    /// From now on nobody can access the block at `home`, if it has pages of its own. Whether that is so.
    pub(super) fn protect(&mut self, home: usize) -> bool {
        let own = self.own.get(&home);
        let protected = own.is_some_and(|pages| set_access(pages, libc::PROT_NONE));
        if protected {
            self.protected.push(home);
        }
        protected
    }

    /// The block at `home` can be accessed again.
    pub(super) fn open(&mut self, home: usize) {
        if let Some(at) = self.protected.iter().position(|&other| other == home) {
            self.protected.swap_remove(at);
            set_access(&self.own[&home], libc::PROT_READ | libc::PROT_WRITE);
        }
    }

    /// All blocks can be accessed again.
    pub(super) fn unprotect(&mut self) {
        let mut pages: Vec<_> = self
            .protected
            .drain(..)
            .map(|home| &self.own[&home])
            .collect();
        pages.sort_unstable_by_key(|pages| pages.start);
        // All chunks belong to this search, so what lies between two blocks of one can be opened, too.
        let chunk = |address: usize| {
            self.chunks
                .iter()
                .position(|&chunk| address.wrapping_sub(chunk) < CHUNK)
        };
        for pages in pages.chunk_by(|one, other| chunk(one.start) == chunk(other.start)) {
            let range = pages[0].start..pages[pages.len() - 1].end;
            set_access(&range, libc::PROT_READ | libc::PROT_WRITE);
        }
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
