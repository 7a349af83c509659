//! The turns that threads in loops that only wait have, and those that they left to others.

use crate::ids::ThreadId;

/// By the frames in which it happened, growing.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Where attempts of several reads begin, or may do so.
    pub(super) watching: Vec<u32>,
    /// Where threads left their turn to others.
    pub(super) leaving: Vec<u32>,
    /// The threads with a read that would contradict that, whatever of what is there it reads.
    pub(super) put_off: Vec<ThreadId>,
}

impl Turns {
    /// The last frame, which has this number, is forgotten.
    pub(super) fn close(&mut self, number: u32) {
        self.watching.pop_if(|first| *first == number);
        self.leaving.pop_if(|left| *left == number);
    }

    /// There are no frames any more.
    pub(super) fn clear(&mut self) {
        self.watching.clear();
        self.leaving.clear();
        self.put_off.clear();
    }
}
