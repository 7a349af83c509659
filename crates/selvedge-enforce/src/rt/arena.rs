//! Memory that is never given back.
//!
//! The first few things that need memory find it in an arena: asking the system takes longer than
//! everything else that a small program does for its prefix.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::sys;

/// The arena. It is defined by the assembly that every executable gets, behind everything else that is written
/// to: so its beginning lies in the page that the program's own variables are in, and so do the
/// library's.
#[repr(align(128))]
struct Arena(UnsafeCell<[u8; ARENA]>);

// SAFETY: every byte is handed out once.
unsafe impl Sync for Arena {}

const ARENA: usize = 64 << 10;
#[cfg(not(test))]
unsafe extern "C" {
    #[link_name = "selvedge_arena"]
    safe static ARENA_BYTES: Arena;
}
#[cfg(test)]
static ARENA_BYTES: Arena = Arena(UnsafeCell::new([0; ARENA]));
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);

/// Memory that is never given back; null if there is none. What is in it is not known.
pub(super) fn memory(size: usize, alignment: usize) -> *mut u8 {
    let room = size + alignment;
    let start = ARENA_USED.load(Ordering::Relaxed);
    if room > ARENA - start.min(ARENA) {
        return sys::memory(size);
    }
    let start = ARENA_USED.fetch_add(room, Ordering::Relaxed);
    if start + room > ARENA {
        return sys::memory(size);
    }
    let aligned = start.next_multiple_of(alignment);
    ARENA_BYTES.0.get().cast::<u8>().wrapping_add(aligned)
}

/// Up to `size` bytes that nobody uses, aligned to words; before there are other threads. They are
/// used once [`use_room`] says so.
pub(crate) fn room(size: usize) -> &'static mut [u8] {
    let start = ARENA_USED.load(Ordering::Relaxed).next_multiple_of(8);
    ARENA_USED.store(start, Ordering::Relaxed);
    let size = size.min(ARENA.saturating_sub(start));
    let first = ARENA_BYTES
        .0
        .get()
        .cast::<u8>()
        .wrapping_add(start.min(ARENA));
    // SAFETY: inside of the arena, and nobody else was given these bytes.
    unsafe { core::slice::from_raw_parts_mut(first, size) }
}

/// The first `size` bytes of [`room`] are used.
pub(crate) fn use_room(size: usize) {
    ARENA_USED.fetch_add(size, Ordering::Relaxed);
}

/// Space for `count` values that lives for ever; empty if there is none.
pub(crate) fn space<T: Copy>(count: usize, fill: T) -> &'static mut [T] {
    let memory: *mut T = memory(count * size_of::<T>(), align_of::<T>()).cast();
    if memory.is_null() {
        return &mut [];
    }
    for at in 0..count {
        // SAFETY: inside of the memory, which is aligned.
        unsafe { memory.add(at).write(fill) };
    }
    // SAFETY: all of it was just written, and nobody else knows it.
    unsafe { core::slice::from_raw_parts_mut(memory, count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_aligned_and_nobody_elses() {
        let one = space(3, 7_u8);
        let two = space(2, 9_u64);
        assert!(two.as_ptr().is_aligned());
        assert_eq!((&*one, &*two), (&[7; 3][..], &[9; 2][..]));
        let large = space(ARENA, 1_u8);
        assert_eq!(large.len(), ARENA);
        assert_eq!(one, [7; 3]);
    }
}
