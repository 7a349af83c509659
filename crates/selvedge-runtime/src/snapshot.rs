//! The program's globals as its constructors left them.

use crate::arena::pointer;
use crate::loader::Range;

/// Copies of the writable segments.
#[derive(Default)]
pub(crate) struct Snapshot {
    parts: Vec<(Range, Box<[u8]>)>,
}

impl Snapshot {
    /// Copies the contents of `ranges`.
    pub(crate) fn take(ranges: &[Range]) -> Snapshot {
        let copy = |range: &Range| {
            // SAFETY: a writable segment of the loaded program; no fiber runs.
            let bytes = unsafe {
                std::slice::from_raw_parts(pointer::<u8>(range.start), range.end - range.start)
            };
            (*range, bytes.into())
        };
        Snapshot {
            parts: ranges.iter().map(copy).collect(),
        }
    }

    /// Puts the contents back.
    pub(crate) fn restore(&self) {
        for (range, bytes) in &self.parts {
            // SAFETY: as in `take`; source and destination have the same length.
            unsafe { pointer::<u8>(range.start).copy_from(bytes.as_ptr(), bytes.len()) };
        }
    }
}
