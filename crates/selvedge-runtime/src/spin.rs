//! Recognising iterations that change nothing.
//!
//! A thread that comes back to the same visible read with the registers and the stack it had there
//! before, as far as they matter (see [`crate::liveness`]), and that has written nothing in between,
//! has made a *pure iteration*: only another value can end its loop.
//!
//! What others write into its stack meanwhile does not count, nor what visible operations write
//! there: it matters to the thread once it reads it, and when it is written depends on the order
//! in which threads happen to be run.

use selvedge_core::fingerprint::Fingerprint;
use selvedge_core::op::Rmw;
use selvedge_core::{Function, Op, Value};

use crate::float::{self, Float};
use crate::gate::Registers;
use crate::liveness::{self, Liveness};

/// Where a thread stands when it enters the runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) site: usize,
    pub(crate) stack_pointer: usize,
    pub(crate) stack_top: usize,
    pub(crate) registers: Registers,
}

/// A state in which the thread read something.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    /// The effect-free stretch it belongs to; those of older stretches count as free.
    stretch: u64,
    state: (u64, u64),
    /// The thread's events before it.
    event: u32,
}

/// A word of the thread's stack that does not count as it is.
#[derive(Clone, Copy)]
struct Overwritten {
    word: usize,
    /// The bits that count as they were.
    mask: usize,
    before: usize,
}

impl Overwritten {
    /// What the word counts as, while `now` is there.
    fn counts(&self, now: usize) -> usize {
        self.before & self.mask | now & !self.mask
    }
}

/// So many plain reads in a row may be a loop without an end. A power of two.
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
    table: Vec<Read>,
    used: usize,
    stretch: u64,
    /// Plain reads since its last side effect or visible operation.
    idle: u64,
    /// A state among them, with how often its place was looked at since.
    anchor: Option<(Anchor, u32)>,
    /// What was written to the thread's stack in the stretch `overwritten_in`, but not by the
    /// thread's own doing.
    overwritten: Vec<Overwritten>,
    overwritten_in: u64,
    /// How often the thread did what no later iteration makes good, see [`crate::retry`].
    effects: u64,
}

impl Spin {
    /// None yet.
    pub(crate) fn new() -> Spin {
        Spin {
            table: vec![Read::default(); 16],
            used: 0,
            stretch: 1,
            idle: 0,
            anchor: None,
            overwritten: Vec::new(),
            overwritten_in: 0,
            effects: 0,
        }
    }

    /// Keeps what [`restore`](Spin::restore) needs to get back to `other`, without giving memory back.
    pub(crate) fn save(&mut self, other: &Spin) {
        let Spin {
            table,
            used,
            stretch,
            idle,
            anchor,
            overwritten,
            overwritten_in,
            effects,
        } = other;
        if *used != 0 {
            self.table.clone_from(table);
        }
        self.used = *used;
        self.stretch = *stretch;
        self.idle = *idle;
        self.anchor = *anchor;
        self.overwritten.clone_from(overwritten);
        self.overwritten_in = *overwritten_in;
        self.effects = *effects;
    }

    /// Becomes what `saved` was made of. Where no state had been noted yet, the table is not copied: a new
    /// stretch begins, in which none is noted.
    pub(crate) fn restore(&mut self, saved: &Spin) {
        let known = saved.overwritten_in == saved.stretch;
        self.stretch += 1;
        if saved.used != 0 {
            self.table.clone_from(&saved.table);
            self.stretch = saved.stretch;
        }
        self.used = saved.used;
        self.idle = saved.idle;
        self.anchor = saved.anchor;
        self.overwritten.clone_from(&saved.overwritten);
        self.effects = saved.effects;
        self.set_known(known);
    }

    /// Whether it is copied quickly.
    pub(crate) fn is_small(&self) -> bool {
        self.table.len() <= 256
    }

    /// What was overwritten, and whether that was in this stretch.
    pub(crate) fn overwritten_bytes(&self) -> (&[u8], bool) {
        let size = size_of_val(&self.overwritten[..]);
        // SAFETY: plain words without padding.
        let bytes = unsafe { std::slice::from_raw_parts(self.overwritten.as_ptr().cast(), size) };
        (bytes, self.overwritten_in == self.stretch)
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

    /// Whether what was overwritten was overwritten in this stretch.
    fn set_known(&mut self, known: bool) {
        self.overwritten_in = match known {
            true => self.stretch,
            false => 0,
        };
    }

    /// Stands for all of it.
    pub(crate) fn digest(&self) -> u64 {
        let live = self
            .table
            .iter()
            .filter(|read| read.stretch == self.stretch);
        let sum = live.fold(0_u64, |sum, read| {
            sum.wrapping_add(read.state.0 ^ u64::from(read.event))
        });
        sum ^ self.idle << 32 ^ (self.used as u64) << 48
    }

    /// The thread did something that others, or its own future, can notice; or it begins.
    #[inline(always)]
    pub(crate) fn effect(&mut self) {
        self.effects += 1;
        self.writes();
    }

    /// How often that was so.
    pub(crate) fn effects(&self) -> u64 {
        self.effects
    }

    /// The thread wrote to memory by an access that is no event.
    #[inline(always)]
    pub(crate) fn writes(&mut self) {
        self.idle = 0;
        if self.used != 0 {
            self.used = 0;
            self.stretch += 1;
        }
    }

    /// The thread begins anew.
    pub(crate) fn begin(&mut self) {
        self.effect();
        self.overwritten.clear();
    }

    /// The bytes in `mask` of the thread's stack at `word` are about to be written by another thread
    /// or by a visible operation.
    pub(crate) fn overwrites(&mut self, word: usize, mask: u8) {
        if self.overwritten_in != self.stretch {
            self.overwritten.clear();
            self.overwritten_in = self.stretch;
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
        let mut hash = Fingerprint::new();
        visit(&mut hash, point, liveness, &[]);
        let anchor = Anchor {
            place,
            state: hash.finish(),
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
        let state = fingerprint(point, op, liveness, self.overwritten());
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
        let mask = self.table.len() - 1;
        let mut slot = state.0 as usize & mask;
        while self.table[slot].stretch == self.stretch {
            let read = &self.table[slot];
            if read.state == state {
                return Some(read.event != 0);
            }
            slot = (slot + 1) & mask;
        }
        None
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

    /// What was overwritten in the present stretch.
    fn overwritten(&self) -> &[Overwritten] {
        match self.overwritten_in == self.stretch {
            true => &self.overwritten,
            false => &[],
        }
    }

    fn note(&mut self, state: (u64, u64), event: u32) -> Option<u32> {
        if 2 * self.used > self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = state.0 as usize & mask;
        loop {
            let read = &mut self.table[slot];
            if read.stretch != self.stretch {
                *read = Read {
                    stretch: self.stretch,
                    state,
                    event,
                };
                self.used += 1;
                return None;
            }
            if read.state == state {
                return Some(read.event);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Read::default(); self.table.len() * 2];
        let old = std::mem::replace(&mut self.table, larger);
        self.used = 0;
        let stretch = self.stretch;
        for read in old.into_iter().filter(|read| read.stretch == stretch) {
            self.note(read.state, read.event);
        }
    }
}

/// A fingerprint of what the thread's future can depend on, wide enough that two different states
/// never have the same in practice.
#[inline(always)]
fn fingerprint(
    point: &Point,
    op: &Op,
    liveness: &mut Liveness,
    overwritten: &[Overwritten],
) -> (u64, u64) {
    let mut hash = Fingerprint::new();
    hash.pair(point.site, point.stack_pointer);
    operation(&mut hash, op);
    visit(&mut hash, point, liveness, overwritten);
    hash.finish()
}

/// The registers and the stack, as far as they matter, and the floating-point environment.
#[inline(always)]
fn visit(
    hash: &mut Fingerprint,
    point: &Point,
    liveness: &mut Liveness,
    overwritten: &[Overwritten],
) {
    let counts = |word: usize, now: usize| match overwritten {
        [] => now,
        all => {
            let place = all.binary_search_by_key(&word, |known| known.word);
            place.map_or(now, |place| all[place].counts(now))
        }
    };
    if float::in_use() {
        hash.pair(Float::now().word(), 0);
    }
    liveness.visit(
        point.site,
        &point.registers,
        (point.stack_pointer + 8, point.stack_top),
        counts,
        |a, b| hash.pair(a, b),
    );
}

/// The bits of the bytes in `mask`.
fn wide(mask: u8) -> usize {
    let byte = |n: usize| usize::from(mask >> n & 1) * (0xff << (8 * n));
    (0..8).map(byte).sum()
}

/// The operation itself: its arguments come in registers that calls do not preserve.
#[inline(always)]
fn operation(hash: &mut Fingerprint, op: &Op) {
    let (at, order, failure) = match *op {
        Op::Load { at, order } => (at, order, order),
        Op::Update {
            at, order, failure, ..
        } => (at, order, failure),
        _ => return,
    };
    hash.pair(at.index(), (order as usize) << 8 | failure as usize);
    let Op::Update {
        function: Function::Memory { width, rmw, .. },
        ..
    } = *op
    else {
        return;
    };
    let (kind, operands) = match rmw {
        Rmw::Exchange(value) => (1, [value, 0]),
        Rmw::Add(value) => (2, [value, 0]),
        Rmw::Sub(value) => (3, [value, 0]),
        Rmw::And(value) => (4, [value, 0]),
        Rmw::Or(value) => (5, [value, 0]),
        Rmw::Xor(value) => (6, [value, 0]),
        Rmw::Nand(value) => (7, [value, 0]),
        Rmw::Max(value) => (8, [value, 0]),
        Rmw::Min(value) => (9, [value, 0]),
        Rmw::UMax(value) => (10, [value, 0]),
        Rmw::UMin(value) => (11, [value, 0]),
        Rmw::CompareExchange { expected, desired } => (12, [expected, desired]),
        Rmw::Replace(value) => (13, [value, 0]),
    };
    hash.pair(kind, width.0.into());
    let halves = |value: Value| (value as usize, (value >> 64) as usize);
    for value in operands {
        let (low, high) = halves(value);
        hash.pair(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_again_until_something_happens() {
        let mut spin = Spin::new();
        for stretch in 0..3_u64 {
            for event in 0..300 {
                let state = (u64::from(event).wrapping_mul(31), stretch);
                assert_eq!(spin.note(state, event), None);
            }
            assert_eq!(spin.note((31 * 17, stretch), 999), Some(17));
            assert_eq!(spin.note((31 * 17, stretch + 7), 1000), None);
            spin.effect();
        }
    }
}
