//! The state of each thread of the program.

use std::ffi::c_void;
use std::ptr;

use selvedge_core::{Location, Op, Outcome, Pending, Stop, Value};

use crate::access::Access;
use crate::fiber::Context;
use crate::float::Float;
use crate::frames::Frames;
use crate::heap::Region;
use crate::layout::{Layout, Slot};
use crate::quiet::Quiet;
use crate::retry::Retry;
use crate::rounds::Rounds;
use crate::runtime::Deferred;
use crate::spin::Spin;
use crate::states::Call;
use crate::tsan::settle::InFlight;
use crate::visits::Visits;

/// A thread, for the whole search: the same place in the spawn tree has the same number, stack,
/// heap region and thread-local block in every execution.
pub(crate) struct Thread {
    /// The execution it was last created in.
    pub(crate) run: u32,
    /// Its next operation.
    pub(crate) pending: Pending,
    /// Where it is about to do it.
    pub(crate) site: usize,
    /// How its last operation ended.
    pub(crate) outcome: Outcome,
    /// Where it goes on.
    pub(crate) context: Context,
    /// Its floating-point environment while it is suspended.
    pub(crate) float: Float,
    /// How many events of each thread happen before its present point.
    pub(crate) clock: Vec<u32>,
    /// The threads it ever created, in order.
    pub(crate) children: Vec<u32>,
    /// How many of them in this execution.
    pub(crate) spawned: u32,
    /// The value it returned.
    pub(crate) result: *mut c_void,
    /// Its part of the stack area.
    pub(crate) slot: Slot,
    /// The lowest stack pointer seen in this execution.
    pub(crate) lowest: usize,
    /// Whether other threads may know an address in its slot.
    pub(crate) published: bool,
    /// Whether it is stopped in a call that cannot be undone.
    pub(crate) in_barrier: bool,
    /// Its heap.
    pub(crate) heap: Region,
    /// The blocks that it freed and may be given again, with their sizes, the latest last.
    pub(crate) reusable: Vec<(usize, usize)>,
    /// Its call stack.
    pub(crate) frames: Frames,
    /// Below which address nothing on its stack is visible: there is no frame to look at further down.
    pub(crate) visible_stack: usize,
    /// Words of its stack that other threads have accessed.
    pub(crate) foreign: Vec<usize>,
    /// The program's stack pointer where it was stopped, or zero if that is not known.
    pub(crate) stopped_at: usize,
    /// The range that it has announced a store to, in a function that it has not left.
    pub(crate) open_range: Option<Access>,
    /// The stores that it has announced and not made yet.
    pub(crate) in_flight: Vec<InFlight>,
    /// The locations that it reads or writes one after the other: those in a range, or those that share bytes
    /// with what it wrote.
    pub(crate) parts: Vec<Location>,
    /// The stores that it is performing, with their values.
    pub(crate) settling: Vec<(Deferred, Value)>,
    /// Its steps since its last side effect.
    pub(crate) spin: Spin,
    /// The operation that it came back to, if it spins.
    pub(crate) repeated: Option<Op>,
    /// The attempts that it may be repeating.
    pub(crate) retry: Retry,
    /// The memory it touched on the way.
    pub(crate) quiet: Quiet,
    /// How often it came by each of its visible operations.
    pub(crate) visits: Visits,
    /// The loops it is in, if they are bounded.
    pub(crate) rounds: Rounds,
    /// The call that it is stopped in, if states are saved.
    pub(crate) call: Call,
}

impl Thread {
    /// Thread number `index`, not created yet.
    pub(crate) fn new(index: usize, layout: &Layout) -> Thread {
        let slot = layout.slot(index);
        Thread {
            run: 0,
            pending: Pending::Absent,
            site: 0,
            outcome: Outcome::default(),
            context: Context::NONE,
            float: Float::DEFAULT,
            clock: Vec::new(),
            children: Vec::new(),
            spawned: 0,
            result: ptr::null_mut(),
            slot,
            lowest: slot.stack_top,
            published: false,
            in_barrier: false,
            heap: Region::new(index, layout.heap_region),
            reusable: Vec::new(),
            frames: Frames::new(index),
            visible_stack: usize::MAX,
            foreign: Vec::new(),
            stopped_at: 0,
            open_range: None,
            in_flight: Vec::new(),
            parts: Vec::new(),
            settling: Vec::new(),
            spin: Spin::new(),
            repeated: None,
            retry: Retry::default(),
            quiet: Quiet::default(),
            visits: Visits::new(),
            rounds: Rounds::default(),
            call: Call::default(),
        }
    }

    /// Makes it a thread of execution `run` that has done nothing yet.
    pub(crate) fn begin(&mut self, run: u32) {
        self.run = run;
        self.pending = Pending::Absent;
        self.clock.fill(0);
        self.spawned = 0;
        self.result = ptr::null_mut();
        self.lowest = self.slot.stack_top;
        self.published = false;
        self.in_barrier = false;
        self.reusable.clear();
        self.frames.clear();
        self.visible_stack = usize::MAX;
        self.foreign.clear();
        self.stopped_at = 0;
        self.open_range = None;
        self.in_flight.clear();
        self.parts.clear();
        self.settling.clear();
        self.spin.begin();
        self.retry.begin();
        self.quiet.begin();
        self.visits.reset(run);
        self.rounds.begin();
        self.call = Call::default();
    }

    /// Whether it has come to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.pending == Pending::Stopped(Stop::Finished)
    }

    /// Whether it is in the middle of several accesses, or in a call that cannot be undone.
    pub(crate) fn is_busy(&self) -> bool {
        self.open_range.is_some()
            || self.in_barrier
            || !(self.in_flight.is_empty() && self.parts.is_empty() && self.settling.is_empty())
    }

    /// Notes how far its stack was used.
    #[inline(always)]
    pub(crate) fn reached(&mut self, stack_pointer: usize) {
        if stack_pointer < self.lowest {
            self.lowest = stack_pointer;
        }
    }
}
