//! Recognising loop iterations that change nothing.
//!
//! A thread that comes back to a visible read with the stack and the registers it had there before,
//! and that neither wrote nor allocated anything in between, can only be helped by another value:
//! it is parked (see [`Stop::Spinning`](selvedge_core::Stop)). What it wrote to the heap is told by
//! comparing the blocks allocated in this execution before and after each of its stretches, and
//! memory that is not the model's the same way (see [`super::outside`]).
//!
//! Only reads at places that are known to be passed twice are watched. Coming to an unknown one for
//! the second time makes the search start over with that place watched, so that every replay
//! decides alike.

use selvedge_core::fingerprint::Fingerprint;

/// A state in which a thread read something.
#[derive(Clone, Copy)]
struct Seen {
    site: u64,
    stack_pointer: usize,
    state: (u64, u64),
    event: u32,
}

/// The reads of a thread since its last side effect.
#[derive(Default)]
pub(super) struct Spin {
    seen: Vec<Seen>,
    /// The fingerprint of the heap when the thread was last resumed; `None` while no read is
    /// watched.
    pub(super) heap: Option<(u64, u64)>,
    /// Whether a cell was read since the last side effect.
    pub(super) touched: bool,
    /// How many accesses to cells are not over.
    pub(super) open: u32,
}

/// The meaning of an arrival at a read.
pub(super) enum Arrival {
    /// Nothing.
    New,
    /// The thread was here, in this state, before its event of this number.
    Again(u32),
    /// It was here before, but the place was not watched.
    Unwatched,
}

impl Spin {
    /// The thread did something that others, or its own future, can notice.
    #[inline]
    pub(super) fn effect(&mut self) {
        self.seen.clear();
        self.heap = None;
        self.touched = false;
    }

    /// Whether some read since the last effect is watched.
    pub(super) fn watching(&self) -> bool {
        self.seen.iter().any(|seen| seen.state != (0, 0))
    }

    /// Whether the thread was at a read at `site` since its last effect.
    pub(super) fn was_at(&self, site: u64) -> bool {
        self.seen.iter().any(|seen| seen.site == site)
    }

    /// Notes an arrival. The `state` is known only if the place is watched.
    pub(super) fn arrive(
        &mut self,
        site: u64,
        stack_pointer: usize,
        event: u32,
        state: Option<(u64, u64)>,
    ) -> Arrival {
        let here = |seen: &&Seen| seen.site == site && seen.stack_pointer == stack_pointer;
        let state = match state {
            None if self.seen.iter().any(|seen| here(&seen)) => return Arrival::Unwatched,
            None => (0, 0),
            Some(state) => state,
        };
        let again = self
            .seen
            .iter()
            .filter(here)
            .find(|seen| seen.state == state);
        if let Some(again) = again {
            return Arrival::Again(again.event);
        }
        self.seen.push(Seen {
            site,
            stack_pointer,
            state,
            event,
        });
        Arrival::New
    }
}

/// The fingerprint of a stretch of words; different states never look alike in practice.
#[derive(Clone, Copy)]
pub(super) struct Words(Fingerprint);

impl Words {
    pub(super) fn new() -> Words {
        Words(Fingerprint::new())
    }

    #[inline(always)]
    pub(super) fn word(&mut self, word: u64) {
        self.0.pair(word as usize, 0);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    pub(super) fn finish(self) -> (u64, u64) {
        let (one, other) = self.0.finish();
        // The state of an unwatched read is kept apart.
        (one | 1, other)
    }
}
