//! Fingerprints of the state of a thread.

use selvedge_core::fingerprint::Fingerprint;
use selvedge_core::op::Rmw;
use selvedge_core::{Function, Op, Value};

use crate::float::{self, Float};
use crate::gate::Registers;
use crate::liveness::Liveness;

/// Where a thread stands when it enters the runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) site: usize,
    pub(crate) stack_pointer: usize,
    pub(crate) stack_top: usize,
    pub(crate) registers: Registers,
}

/// A word of the thread's stack that does not count as it is.
#[derive(Clone, Copy)]
pub(super) struct Overwritten {
    pub(super) word: usize,
    /// The bits that count as they were.
    pub(super) mask: usize,
    pub(super) before: usize,
}

impl Overwritten {
    /// The value that the word counts as while it holds `now`.
    pub(super) fn counts(&self, now: usize) -> usize {
        self.before & self.mask | now & !self.mask
    }
}

/// A fingerprint of what the thread's future can depend on, wide enough that two different states
/// never have the same in practice.
#[inline(always)]
pub(super) fn fingerprint(
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

/// The same for a thread that is at no operation.
pub(super) fn fingerprint_at(point: &Point, liveness: &mut Liveness) -> (u64, u64) {
    let mut hash = Fingerprint::new();
    visit(&mut hash, point, liveness, &[]);
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
pub(super) fn wide(mask: u8) -> usize {
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
