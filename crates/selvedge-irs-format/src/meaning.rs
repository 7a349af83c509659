//! The meaning of the numbers in a file.

use crate::layout;

/// The first eight bytes of every file.
pub const MAGIC: [u8; 8] = *b"SLVGIRS\n";

/// The version of the layout. A reader refuses every other one.
pub const VERSION: u32 = 2;

/// Stands for "no such index": the parent of main, an event whose site varies.
pub const NONE: u32 = u32::MAX;

/// The flags of a whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    /// Every schedule is proven: there are no waits and there never will be any.
    pub const COMPLETE: Flags = Flags(1);
    /// Plain accesses to shared memory are events (`--plain sc`).
    pub const PLAIN_EVENTS: Flags = Flags(2);
    /// Some wait keeps a known bug away and will stay.
    pub const BUG: Flags = Flags(4);
    /// Histories tell where threads may end.
    pub const ENDS: Flags = Flags(8);

    /// Whether all of `other` is set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The verifier's knowledge about a call site. A site that is not in the file was never reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Reached, and in no wait of the lineage: its callback can be taken out.
    Free = 1,
    /// Its performances are counted.
    Counted = 2,
}

/// The operation at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Several different operations.
    Mixed = 0,
    /// A load.
    Load = 1,
    /// A store.
    Store = 2,
    /// A read-modify-write or a compare-exchange.
    Update = 3,
    /// A fence.
    Fence = 4,
    /// Creation of a thread.
    Create = 5,
    /// Waiting for the end of one or all threads.
    Join = 6,
    /// A data choice.
    Choice = 7,
    /// A step on a mutex.
    Mutex = 8,
    /// A step on a read-write lock.
    ReadWriteLock = 9,
    /// A step on a semaphore.
    Semaphore = 10,
    /// A step on a condition variable.
    Condition = 11,
    /// A step on a barrier.
    Barrier = 12,
    /// A step on a once.
    Once = 13,
    /// The end of an object's life.
    Destroy = 14,
}

impl Class {
    pub(crate) fn from_byte(byte: u8) -> Option<Class> {
        match byte {
            1 => Some(Class::Free),
            2 => Some(Class::Counted),
            _ => None,
        }
    }
}

impl Kind {
    const ALL: [Kind; 15] = [
        Kind::Mixed,
        Kind::Load,
        Kind::Store,
        Kind::Update,
        Kind::Fence,
        Kind::Create,
        Kind::Join,
        Kind::Choice,
        Kind::Mutex,
        Kind::ReadWriteLock,
        Kind::Semaphore,
        Kind::Condition,
        Kind::Barrier,
        Kind::Once,
        Kind::Destroy,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(byte)).copied()
    }
}

/// FNV-1a over 64-bit words with a final mix; the checksum field counts as zero. Good enough to
/// notice a torn or a foreign file, and nothing else.
pub(crate) fn checksum(file: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for (index, chunk) in file.chunks(8).enumerate() {
        let mut word = [0; 8];
        if index * 8 != layout::CHECKSUM {
            word[..chunk.len()].copy_from_slice(chunk);
        }
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash ^ (file.len() as u64)
}
