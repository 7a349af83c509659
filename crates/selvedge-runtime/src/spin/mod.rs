//! Recognising iterations that change nothing.
//!
//! A thread that comes back to the same visible read with the registers and the stack it had there
//! before, as far as they matter (see [`crate::liveness`]), and that has written nothing in between,
//! has made a *pure iteration*: only another value can end its loop.
//!
//! Writes to its stack by other threads or by visible operations do not count: they matter to the
//! thread only once it reads them, and their time depends on the order in which threads happen to
//! be run.

mod state;

use selvedge_core::random::mix;
use selvedge_core::{Location, Op};

use crate::liveness::{self, Liveness};
use state::{Overwritten, fingerprint, fingerprint_at, wide};

pub(crate) use state::Point;

/// A state in which the thread read something.
#[derive(Clone, Copy, Debug)]
struct Read {
    state: (u64, u64),
    /// The thread's events before it.
    event: u32,
}

/// The number of plain reads in a row that may be an endless loop. A power of two.
const IDLE: u64 = 1 << 16;
/// How often a state is compared with the one that is looked for.
const LOOKS: u32 = 1 << 12;

/// A state in which a thread read plainly.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Anchor {
    /// Site, stack pointer and address.
    place: (usize, usize, usize),
    state: (u64, u64),
}

/// The states in which a thread read something since its last side effect.
pub(crate) struct Spin {
    /// All states of the execution in which it read, in the order of time. It shrinks when steps are taken
    /// back.
    reads: Vec<Read>,
    /// How many of them come before the last side effect.
    older: usize,
    /// Where to find a state: one more than its place in `reads`, or zero. What was taken back stays here.
    table: Vec<u32>,
    /// How many places of the table are not zero.
    filled: usize,
    /// Another number after each side effect.
    epoch: u64,
    /// Plain reads since its last side effect or visible operation.
    idle: u64,
    /// A state among them, with how often its place was looked at since.
    anchor: Option<(Anchor, u32)>,
    /// The words of the thread's stack that others or visible operations wrote in the epoch
    /// `overwritten_in`.
    overwritten: Vec<Overwritten>,
    overwritten_in: u64,
    /// How often the thread did what no later iteration makes good, see [`crate::retry`].
    effects: u64,
    /// Another number for each set of mutexes, and places among waiters, that the thread took since it began.
    locks: u64,
    /// The thread's events up to the last time that it took one or gave one back.
    locked: u32,
}

/// The state that [`Spin::restore`] needs.
#[derive(Default)]
pub(crate) struct SavedSpin {
    reads: usize,
    older: usize,
    idle: u64,
    anchor: Option<(Anchor, u32)>,
    overwritten: Vec<Overwritten>,
    /// Whether that was in the present epoch.
    known: bool,
    effects: u64,
    locks: u64,
    locked: u32,
}

impl Spin {
    /// None yet.
    pub(crate) fn new() -> Spin {
        Spin {
            reads: Vec::new(),
            older: 0,
            table: vec![0; 16],
            filled: 0,
            epoch: 1,
            idle: 0,
            anchor: None,
            overwritten: Vec::new(),
            overwritten_in: 0,
            effects: 0,
            locks: 0,
            locked: 0,
        }
    }

    /// Keeps what is needed to get back, without giving memory back.
    pub(crate) fn save(&self, saved: &mut SavedSpin) {
        saved.reads = self.reads.len();
        saved.older = self.older;
        saved.idle = self.idle;
        saved.anchor = self.anchor;
        saved.overwritten.clone_from(&self.overwritten);
        saved.known = self.overwritten_in == self.epoch;
        saved.effects = self.effects;
        saved.locks = self.locks;
        saved.locked = self.locked;
    }

    /// Gets back to an earlier state.
    pub(crate) fn restore(&mut self, saved: &SavedSpin) {
        self.reads.truncate(saved.reads);
        self.older = saved.older.min(self.reads.len());
        self.epoch += 1;
        self.idle = saved.idle;
        self.anchor = saved.anchor;
        self.overwritten.clone_from(&saved.overwritten);
        self.effects = saved.effects;
        self.locks = saved.locks;
        self.locked = saved.locked;
        self.set_known(saved.known);
    }

    /// The overwritten words, and whether they were overwritten in this epoch.
    pub(crate) fn overwritten_bytes(&self) -> (&[u8], bool) {
        let size = size_of_val(&self.overwritten[..]);
        // SAFETY: plain words without padding.
        let bytes = unsafe { std::slice::from_raw_parts(self.overwritten.as_ptr().cast(), size) };
        (bytes, self.overwritten_in == self.epoch)
    }

    /// Sets what [`overwritten_bytes`](Spin::overwritten_bytes) returned.
    pub(crate) fn set_overwritten(&mut self, bytes: &[u8], known: bool) {
        let words = bytes.chunks_exact(size_of::<Overwritten>());
        self.overwritten.clear();
        self.overwritten.extend(words.map(|word| {
            // SAFETY: it was made of one.
            unsafe { word.as_ptr().cast::<Overwritten>().read_unaligned() }
        }));
        self.set_known(known);
    }

    /// Whether what was overwritten was overwritten in this epoch.
    fn set_known(&mut self, known: bool) {
        self.overwritten_in = match known {
            true => self.epoch,
            false => 0,
        };
    }

    /// Stands for all of it.
    pub(crate) fn digest(&self) -> u64 {
        let sum = self.reads[self.older..].iter().fold(0_u64, |sum, read| {
            sum.wrapping_add(read.state.0 ^ u64::from(read.event))
        });
        sum ^ self.idle << 32 ^ (self.reads.len() as u64) << 48
    }

    /// The thread did something that others, or its own future, can notice; or it begins.
    #[inline(always)]
    pub(crate) fn effect(&mut self) {
        self.effects += 1;
        self.writes();
    }

    /// The thread took a mutex, or a place among those that wait on a condition variable (`by` is one), or gave it
    /// back (minus one). That can be made good.
    pub(crate) fn locks(&mut self, at: Location, by: i64, event: u32) {
        self.locked = event;
        let number = mix(at.index() as u64 + 1);
        self.locks = self.locks.wrapping_add(number.wrapping_mul(by as u64));
        self.effects += 1;
        self.idle = 0;
    }

    /// Whether it did so after its event number `since`.
    pub(crate) fn has_locked_since(&self, since: u32) -> bool {
        self.locked > since
    }

    /// How often the thread did something that lasts.
    pub(crate) fn effects(&self) -> u64 {
        self.effects
    }

    /// The thread wrote to memory by an access that is no event.
    #[inline(always)]
    pub(crate) fn writes(&mut self) {
        self.idle = 0;
        if self.older != self.reads.len() {
            self.older = self.reads.len();
            self.epoch += 1;
        }
    }

    /// The thread begins anew.
    pub(crate) fn begin(&mut self) {
        self.effect();
        self.reads.clear();
        self.older = 0;
        (self.locks, self.locked) = (0, 0);
        self.overwritten.clear();
    }

    /// The bytes in `mask` of the thread's stack at `word` are about to be written by another thread
    /// or by a visible operation.
    pub(crate) fn overwrites(&mut self, word: usize, mask: u8) {
        if self.overwritten_in != self.epoch {
            self.overwritten.clear();
            self.overwritten_in = self.epoch;
        }
        let (mask, now) = (wide(mask), liveness::read(word));
        let place = self
            .overwritten
            .binary_search_by_key(&word, |known| known.word);
        match place {
            Ok(place) => {
                let known = &mut self.overwritten[place];
                known.before = known.counts(now);
                known.mask |= mask;
            }
            Err(place) => {
                let before = now;
                self.overwritten
                    .insert(place, Overwritten { word, mask, before });
            }
        }
    }

    /// The thread itself writes these bytes, invisibly: they count as they are.
    #[inline(always)]
    pub(crate) fn rewrites(&mut self, word: usize, mask: u8) {
        if !self.overwritten.is_empty() {
            let place = self
                .overwritten
                .binary_search_by_key(&word, |known| known.word);
            if let Ok(place) = place {
                self.overwritten[place].mask &= !wide(mask);
            }
        }
    }

    /// The thread enters a function whose frame ends at `end`: what lies below is new.
    #[inline(always)]
    pub(crate) fn enters_function(&mut self, end: usize) {
        if !self.overwritten.is_empty() {
            self.overwritten.retain(|known| known.word >= end);
        }
    }

    /// The thread comes to a visible operation.
    #[inline(always)]
    pub(crate) fn visible(&mut self) {
        self.idle = 0;
    }

    /// The thread reads plainly. Whether it has done so for long enough to ask [`Spin::endless`].
    #[inline(always)]
    pub(crate) fn idles(&mut self) -> bool {
        self.idle += 1;
        self.idle >= IDLE
    }

    /// Whether the thread, which reads `address` plainly at `point`, was there before in the same
    /// state, without any side effect or visible operation in between: then it stays in this loop,
    /// for nobody else runs meanwhile. The state that is looked for is replaced now and then, and
    /// given up for a while where its place is passed often.
    #[cold]
    pub(crate) fn endless(
        &mut self,
        point: &Point,
        address: usize,
        liveness: &mut Liveness,
    ) -> bool {
        let place = (point.site, point.stack_pointer, address);
        if !self.idle.is_power_of_two() {
            match &mut self.anchor {
                Some((anchor, looks)) if anchor.place == place && *looks < LOOKS => *looks += 1,
                _ => return false,
            }
        }
        let anchor = Anchor {
            place,
            state: fingerprint_at(point, liveness),
        };
        if self.idle.is_power_of_two() {
            self.anchor = Some((anchor, 0));
            return false;
        }
        self.anchor
            .as_ref()
            .is_some_and(|(known, _)| *known == anchor)
    }

    /// Notes an arrival at a visible read as the `event`-th event of the thread. If the thread was
    /// there in the same state since its last side effect, returns at which event.
    pub(crate) fn arrive(
        &mut self,
        point: &Point,
        op: &Op,
        event: u32,
        liveness: &mut Liveness,
    ) -> Option<u32> {
        let (one, other) = fingerprint(point, op, liveness, self.overwritten());
        // A thread that gives back a mutex which it holds here, and takes it again, lets others in between.
        let held = match self.locks {
            0 => 0,
            locks => locks ^ mix(self.effects),
        };
        let state = (one, other ^ held);
        self.note(state, event)
    }

    /// A fingerprint of the thread's state at a visible operation. `None` if others wrote to its stack.
    pub(crate) fn state(
        &self,
        point: &Point,
        op: &Op,
        liveness: &mut Liveness,
    ) -> Option<(u64, u64)> {
        let alone = self.overwritten().is_empty();
        alone.then(|| fingerprint(point, op, liveness, &[]))
    }

    /// If the explorer was asked, since the thread's last side effect and in this state, whether the
    /// weak exchange `op` fails for no reason: whether it did.
    pub(crate) fn asked(
        &mut self,
        point: &Point,
        op: &Op,
        liveness: &mut Liveness,
    ) -> Option<bool> {
        let state = self.question(point, op, liveness);
        let read = self.find(state).ok()?;
        Some(self.reads[read].event != 0)
    }

    /// The explorer was just asked that.
    pub(crate) fn note_asked(
        &mut self,
        point: &Point,
        op: &Op,
        fails: bool,
        liveness: &mut Liveness,
    ) {
        let state = self.question(point, op, liveness);
        self.note(state, fails.into());
    }

    /// The state in which the explorer is asked, which is none in which the thread reads.
    fn question(&self, point: &Point, op: &Op, liveness: &mut Liveness) -> (u64, u64) {
        let (one, other) = fingerprint(point, op, liveness, self.overwritten());
        (!one, other)
    }

    /// The words that were overwritten in the present epoch.
    fn overwritten(&self) -> &[Overwritten] {
        match self.overwritten_in == self.epoch {
            true => &self.overwritten,
            false => &[],
        }
    }

    /// Where a state of the present epoch is in `reads`, or where it belongs in the table.
    fn find(&self, state: (u64, u64)) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut slot = state.0 as usize & mask;
        let mut free = None;
        while self.table[slot] != 0 {
            let place = self.table[slot] as usize - 1;
            match self.reads.get(place) {
                Some(read) if read.state == state && place >= self.older => return Ok(place),
                Some(_) => {}
                // Taken back.
                None => free = free.or(Some(slot)),
            }
            slot = (slot + 1) & mask;
        }
        Err(free.unwrap_or(slot))
    }

    /// Notes a state. If it was noted before in the present epoch, returns at which event.
    fn note(&mut self, state: (u64, u64), event: u32) -> Option<u32> {
        match self.find(state) {
            Ok(place) => Some(self.reads[place].event),
            Err(slot) => {
                self.filled += usize::from(self.table[slot] == 0);
                self.reads.push(Read { state, event });
                self.table[slot] = self.reads.len() as u32;
                if 2 * self.filled > self.table.len() {
                    self.rebuild();
                }
                None
            }
        }
    }

    /// Makes the table anew, with room for as many states again.
    #[cold]
    fn rebuild(&mut self) {
        let size = (4 * self.reads.len()).next_power_of_two().max(16);
        self.table.clear();
        self.table.resize(size, 0);
        self.filled = self.reads.len();
        let mask = size - 1;
        for (place, read) in self.reads.iter().enumerate() {
            let mut slot = read.state.0 as usize & mask;
            while self.table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = place as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_again_until_something_happens() {
        let mut spin = Spin::new();
        for epoch in 0..3_u64 {
            for event in 0..300 {
                let state = (u64::from(event).wrapping_mul(31), epoch);
                assert_eq!(spin.note(state, event), None);
            }
            assert_eq!(spin.note((31 * 17, epoch), 999), Some(17));
            assert_eq!(spin.note((31 * 17, epoch + 7), 1000), None);
            spin.effect();
        }
    }

    #[test]
    fn a_state_that_was_taken_back_is_not_found() {
        let mut spin = Spin::new();
        let mut saved = SavedSpin::default();
        let state = |number: u64| (number.wrapping_mul(31), 0);
        for number in 0..10 {
            spin.note(state(number), number as u32);
        }
        spin.save(&mut saved);
        for round in 0..100 {
            spin.effect();
            for number in 5..50 {
                assert_eq!(spin.note(state(number + round), 7), None);
            }
            spin.restore(&saved);
            assert_eq!(spin.note(state(9), 1), Some(9));
            assert!(spin.find(state(20 + round)).is_err());
        }
    }
}
