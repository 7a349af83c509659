//! Weak compare-exchanges that fail although they read what they expect.
//!
//! Before a weak exchange the explorer chooses whether it fails for no reason. If it does, it is a
//! load. Where the load does not read the expected value, the exchange would have failed anyway, and
//! the execution is given up: it is explored with the other choice. A thread that comes back to the exchange in the
//! same state, without a side effect since, is not asked again, so that loops that only wait are
//! recognised as ever. If the exchange failed for no reason in between, the execution is given up:
//! the one without that iteration is explored as well.

use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Op, Value, Width};

use crate::current;
use crate::memory;
use crate::runtime::{Phase, Runtime, with};
use crate::tsan::atomic::{expected_value, order};

/// Whether the thread is asked about a weak exchange.
enum Asked {
    /// It is.
    Yes,
    /// It was, in the same state.
    Before,
    /// The exchange failed for no reason since it was in the same state.
    InVain,
}

/// Whether the weak compare-exchange at `address`, which the running thread has been called for,
/// fails for no reason, having read the expected value: given where that is, the value that the
/// exchange would write, and the order of its failure.
pub(crate) fn fails_spuriously(
    address: usize,
    width: Width,
    (expected, desired, order): (usize, Value, MemoryOrder),
) -> bool {
    let wanted = with(|runtime| {
        let running = runtime.phase == Phase::Fiber;
        runtime.overlooked.weak_exchanges |= running;
        runtime.settings.spurious_failures && running
    });
    if !wanted {
        return false;
    }
    let site = current::site();
    let at = current::location(address, width);
    let expected = expected_value(expected, width.0, site);
    let rmw = Rmw::CompareExchange { expected, desired };
    let op = Op::Update {
        at,
        function: Function::memory(width, rmw),
        order,
        failure: order,
    };
    match with(|runtime| runtime.asks_about(&op)) {
        Asked::Yes => {}
        Asked::Before => return false,
        Asked::InVain => current::assume_false(),
    }
    let fails = current::choose(2, site) == 1;
    with(|runtime| runtime.note_asked(&op, fails));
    if fails && current::perform(Op::Load { at, order }, site).read != expected {
        current::assume_false();
    }
    fails
}

/// The same for code whose compiler does not tell weak exchanges from others: it asks first. The
/// value that the exchange would write is on the thread's own stack.
pub(crate) extern "C" fn selvedge_fails_spuriously(
    address: usize,
    expected: usize,
    desired: usize,
    size: usize,
    failure: i32,
) -> i32 {
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return 0;
    }
    let width = Width(size as u8);
    let desired = memory::read(desired, width.0);
    fails_spuriously(address, width, (expected, desired, order(failure))).into()
}

/// Such code performs a weak exchange.
pub(crate) extern "C" fn selvedge_weak_exchange() {
    with(|runtime| runtime.overlooked.weak_exchanges |= runtime.phase == Phase::Fiber);
}

impl Runtime {
    fn asks_about(&mut self, op: &Op) -> Asked {
        let point = self.entry_point();
        let (Some(point), false) = (point, self.settings.stateful) else {
            return Asked::Yes;
        };
        let spin = &mut self.threads[self.running].spin;
        match spin.asked(&point, op, &mut self.liveness) {
            None => Asked::Yes,
            Some(false) => Asked::Before,
            Some(true) => Asked::InVain,
        }
    }

    fn note_asked(&mut self, op: &Op, fails: bool) {
        if let (Some(point), false) = (self.entry_point(), self.settings.stateful) {
            let spin = &mut self.threads[self.running].spin;
            spin.note_asked(&point, op, fails, &mut self.liveness);
        }
    }
}
