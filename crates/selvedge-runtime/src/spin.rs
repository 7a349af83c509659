//! Recognising iterations that change nothing.
//!
//! A thread that comes back to a visible read with the registers and the stack it had there before, as
//! far as they matter (see [`crate::liveness`]), and that has written nothing in between, has made a *pure iteration*: only another value can end
//! its loop.

use crate::gate::Registers;
use crate::liveness::Liveness;

/// A visit of a visible operation: where, in which frame, how often.
#[derive(Clone, Copy, Default)]
struct Visit {
    run: u32,
    count: u32,
    site: usize,
    stack_pointer: usize,
    /// The effect-free stretch to which `trail` belongs.
    stretch: u32,
    /// One more than the index of its last entry in the trail.
    trail: u32,
}

/// A read since the last side effect.
#[derive(Clone, Copy)]
struct Read {
    state: (u64, u64),
    /// The thread's events before it.
    event: u32,
    /// One more than the index of the previous read at the same place.
    previous: u32,
}

/// Where a thread stands when it enters the runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) site: usize,
    pub(crate) stack_pointer: usize,
    pub(crate) stack_top: usize,
    pub(crate) registers: Registers,
}

/// What a thread has done since its last side effect.
pub(crate) struct Spin {
    visits: Vec<Visit>,
    used: usize,
    run: u32,
    stretch: u32,
    trail: Vec<Read>,
}

impl Spin {
    /// Nothing yet.
    pub(crate) fn new() -> Spin {
        Spin {
            visits: vec![Visit::default(); 64],
            used: 0,
            run: 0,
            stretch: 1,
            trail: Vec::new(),
        }
    }

    /// Begins an execution.
    pub(crate) fn reset(&mut self, run: u32) {
        self.run = run;
        self.used = 0;
        self.effect();
    }

    /// Forgets executions altogether, because their numbers start again.
    pub(crate) fn forget(&mut self) {
        self.visits.fill(Visit::default());
        self.run = 0;
    }

    /// The thread did something that others, or its own future, can notice.
    #[inline(always)]
    pub(crate) fn effect(&mut self) {
        if !self.trail.is_empty() {
            self.trail.clear();
            self.stretch = self.stretch.wrapping_add(1);
        }
    }

    /// Counts an arrival at a visible operation and returns how many there were.
    #[inline(always)]
    pub(crate) fn count(&mut self, point: &Point) -> u32 {
        let slot = self.find(point);
        self.visits[slot].count += 1;
        self.visits[slot].count
    }

    /// Notes an arrival at a visible read as the `event`-th event of the thread. If the thread was
    /// there in the same state since its last side effect, returns at which event.
    pub(crate) fn arrive(
        &mut self,
        point: &Point,
        event: u32,
        liveness: &mut Liveness,
    ) -> Option<u32> {
        let state = state(point, liveness);
        let slot = self.find(point);
        let visit = &mut self.visits[slot];
        if visit.stretch != self.stretch {
            visit.stretch = self.stretch;
            visit.trail = 0;
        }
        let mut next = visit.trail;
        while next != 0 {
            let read = &self.trail[next as usize - 1];
            if read.state == state {
                return Some(read.event);
            }
            next = read.previous;
        }
        self.trail.push(Read {
            state,
            event,
            previous: visit.trail,
        });
        visit.trail = self.trail.len() as u32;
        None
    }

    #[inline(always)]
    fn find(&mut self, point: &Point) -> usize {
        let mask = self.visits.len() - 1;
        let key = point.site.wrapping_add(point.stack_pointer.rotate_left(20));
        let mut slot = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & mask;
        loop {
            let visit = &mut self.visits[slot];
            if visit.run != self.run {
                break;
            }
            if visit.site == point.site && visit.stack_pointer == point.stack_pointer {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
        if 2 * self.used > mask {
            self.grow();
            return self.find(point);
        }
        self.used += 1;
        self.visits[slot] = Visit {
            run: self.run,
            count: 0,
            site: point.site,
            stack_pointer: point.stack_pointer,
            stretch: self.stretch,
            trail: 0,
        };
        slot
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Visit::default(); self.visits.len() * 2];
        let old = std::mem::replace(&mut self.visits, larger);
        self.used = 0;
        let run = self.run;
        for visit in old.into_iter().filter(|visit| visit.run == run) {
            let point = Point {
                site: visit.site,
                stack_pointer: visit.stack_pointer,
                stack_top: 0,
                registers: Registers::default(),
            };
            let slot = self.find(&point);
            self.visits[slot] = visit;
        }
    }
}

/// A fingerprint of what the thread's future can depend on, wide enough that two different states
/// never have the same in practice.
fn state(point: &Point, liveness: &mut Liveness) -> (u64, u64) {
    let mut hash = Fingerprint::new();
    liveness.visit(
        point.site,
        &point.registers,
        point.stack_pointer + 8,
        point.stack_top,
        |a, b| hash.pair(a, b),
    );
    hash.finish()
}

/// Two independent 64-bit multiply-and-fold accumulators.
struct Fingerprint(u64, u64);

impl Fingerprint {
    fn new() -> Fingerprint {
        Fingerprint(0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3)
    }

    #[inline(always)]
    fn pair(&mut self, a: usize, b: usize) {
        let (a, b) = (a as u64, b as u64);
        self.0 = fold(a ^ 0x2d35_8dcc_aa6c_78a5, b ^ self.0);
        self.1 = fold(b ^ 0xa076_1d64_78bd_642f, a ^ self.1.rotate_left(31));
    }

    fn finish(self) -> (u64, u64) {
        (self.0, self.1)
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
