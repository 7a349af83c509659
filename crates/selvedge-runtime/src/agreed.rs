//! Numbers that several processes agree upon.
//!
//! A suspended thread has numbers of locations on its stack. Where states go from one process to
//! another, the same number has to mean the same in all of them: a list that they share says which
//! number was given to what.

use std::hint;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A list in memory that processes share, to which each can append. Entries never change.
pub(crate) struct Agreed {
    /// A lock, the number of entries, and the entries, two words each.
    words: &'static [AtomicU64],
}

/// The number of entries that have room; memory is taken only as they are used.
const CAPACITY: usize = 1 << 28;
const LOCK: usize = 0;
const LENGTH: usize = 1;

impl Agreed {
    /// An empty list, shared with processes that are made of this one from now on.
    pub(crate) fn new() -> io::Result<Agreed> {
        let words = 2 + 2 * CAPACITY;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: asks for new memory wherever there is room.
        let memory = unsafe { libc::mmap(ptr::null_mut(), words * 8, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mapped above for good, zero, aligned to pages, and used as atomic words only.
        let words = unsafe { std::slice::from_raw_parts(memory.cast::<AtomicU64>(), words) };
        Ok(Agreed { words })
    }

    /// How many entries there are.
    fn len(&self) -> usize {
        self.words[LENGTH].load(Ordering::Acquire) as usize
    }

    /// The entries from number `from` on.
    pub(crate) fn since(&self, from: usize) -> impl Iterator<Item = [u64; 2]> + use<> {
        let (words, length) = (self.words, self.len());
        (from..length).map(move |number| {
            [0, 1].map(|half| words[2 + 2 * number + half].load(Ordering::Relaxed))
        })
    }

    /// Appends an entry as number `number`, unless others have appended something since: false then.
    pub(crate) fn append(&self, number: usize, entry: [u64; 2]) -> bool {
        assert!(number < CAPACITY, "more locations than there is room for");
        let lock = &self.words[LOCK];
        while lock.swap(1, Ordering::Acquire) != 0 {
            hint::spin_loop();
        }
        let next = self.len() == number;
        if next {
            for (half, word) in entry.into_iter().enumerate() {
                self.words[2 + 2 * number + half].store(word, Ordering::Relaxed);
            }
            self.words[LENGTH].store(number as u64 + 1, Ordering::Release);
        }
        lock.store(0, Ordering::Release);
        next
    }
}
