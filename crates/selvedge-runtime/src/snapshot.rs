//! The program's memory as its constructors left it.
//!
//! Small regions are copied back as a whole. Of larger ones, only pages that were ever written are copied back: all
//! pages start write-protected, and the first write to one marks it for the rest of the search.

use std::io;

use crate::arena::{PAGE, pointer, round_up};
use crate::loader::Range;

/// Up to this size in all, copying everything is cheaper than finding out what changed.
const SMALL: usize = 16 << 10;

/// A stretch of memory to be restored.
struct Part {
    range: Range,
    saved: Box<[u8]>,
}

/// The saved memory.
#[derive(Default)]
pub(crate) struct Snapshot {
    parts: Vec<Part>,
    /// The protected area of each part: whole pages inside of it.
    protected: Vec<Range>,
    /// Pages that were written since they were protected, as ranges with their saved contents.
    dirty: Vec<(Range, *const u8)>,
}

impl Snapshot {
    /// Saves `ranges`, which must stay mapped and writable.
    pub(crate) fn take(ranges: &[Range]) -> io::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for &range in ranges {
            let length = range.end - range.start;
            // SAFETY: memory of the loaded program; no fiber runs.
            let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(range.start), length) };
            snapshot.parts.push(Part {
                range,
                saved: bytes.into(),
            });
        }
        let small = ranges.iter().map(|r| r.end - r.start).sum::<usize>() <= SMALL;
        for index in 0..snapshot.parts.len() {
            let range = snapshot.parts[index].range;
            let inside = Range {
                start: round_up(range.start, PAGE),
                end: (range.end & !(PAGE - 1)).max(round_up(range.start, PAGE)),
            };
            if small || inside.start >= inside.end {
                snapshot.note(index, range);
                continue;
            }
            snapshot.note(
                index,
                Range {
                    start: range.start,
                    end: inside.start,
                },
            );
            snapshot.note(
                index,
                Range {
                    start: inside.end,
                    end: range.end,
                },
            );
            protect(inside, libc::PROT_READ)?;
            snapshot.protected.push(inside);
        }
        Ok(snapshot)
    }

    /// Marks `range` of part `index` as changed for good.
    fn note(&mut self, index: usize, range: Range) {
        if range.start < range.end {
            let part = &self.parts[index];
            self.dirty
                .push((range, &raw const part.saved[range.start - part.range.start]));
        }
    }

    /// Whether `address` is a protected page that was not written before; if so, it is opened.
    pub(crate) fn open_page(&mut self, address: usize) -> bool {
        let page = Range {
            start: address & !(PAGE - 1),
            end: (address & !(PAGE - 1)) + PAGE,
        };
        let protected = self.protected.iter().any(|range| range.contains(address));
        if !protected || self.dirty.iter().any(|(range, _)| *range == page) {
            return false;
        }
        let Some(part) = self
            .parts
            .iter()
            .position(|part| part.range.contains(address))
        else {
            return false;
        };
        if protect(page, libc::PROT_READ | libc::PROT_WRITE).is_err() {
            return false;
        }
        self.note(part, page);
        true
    }

    /// The ranges that may have changed, each with its initial contents.
    pub(crate) fn changing(&self) -> impl Iterator<Item = (Range, &[u8])> {
        self.dirty.iter().map(|&(range, saved)| {
            // SAFETY: `saved` points to as many bytes of the part that contains the range.
            let saved = unsafe { std::slice::from_raw_parts(saved, range.end - range.start) };
            (range, saved)
        })
    }

    /// Puts the contents back.
    pub(crate) fn restore(&self) {
        for (range, saved) in &self.dirty {
            // SAFETY: `saved` points to as many bytes of the part that contains the range; the
            // range is writable, and no fiber runs.
            unsafe { pointer::<u8>(range.start).copy_from(*saved, range.end - range.start) };
        }
    }

    /// Takes the protection away.
    pub(crate) fn release(&mut self) {
        for range in self.protected.drain(..) {
            // Failing here would leave pages that nobody writes any more.
            let _ = protect(range, libc::PROT_READ | libc::PROT_WRITE);
        }
    }
}

fn protect(range: Range, protection: i32) -> io::Result<()> {
    let length = range.end - range.start;
    // SAFETY: whole pages of the loaded program's data; reads stay possible.
    if unsafe { libc::mprotect(pointer(range.start), length, protection) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
