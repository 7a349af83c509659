//! What the runtime keeps about each thread of the program.

use std::ffi::c_void;
use std::ptr;

use selvedge_core::{Op, Outcome, Pending};

use crate::fiber::Context;
use crate::frames::Frames;
use crate::heap::Region;
use crate::layout::{Layout, Slot};
use crate::quiet::Quiet;
use crate::spin::Spin;
use crate::states::Call;
use crate::visits::Visits;

/// A thread, for the whole search: the same place in the spawn tree has the same number, stack,
/// heap region and thread-local block in every execution.
pub(crate) struct Thread {
    /// The execution it was last created in.
    pub(crate) run: u32,
    /// What it is about to do.
    pub(crate) pending: Pending,
    /// Where it is about to do it.
    pub(crate) site: usize,
    /// How its last operation ended.
    pub(crate) outcome: Outcome,
    /// Where it goes on.
    pub(crate) context: Context,
    /// How many events of each thread happen before its present point.
    pub(crate) clock: Vec<u32>,
    /// The threads it ever created, in order.
    pub(crate) children: Vec<u32>,
    /// How many of them in this execution.
    pub(crate) spawned: u32,
    /// What it returned.
    pub(crate) result: *mut c_void,
    /// Its part of the stack area.
    pub(crate) slot: Slot,
    /// The lowest stack pointer seen in this execution.
    pub(crate) lowest: usize,
    /// Whether other threads may know an address in its slot.
    pub(crate) published: bool,
    /// Its heap.
    pub(crate) heap: Region,
    /// Its call stack.
    pub(crate) frames: Frames,
    /// What it did since its last side effect.
    pub(crate) spin: Spin,
    /// The operation that it came back to, if it spins.
    pub(crate) repeated: Option<Op>,
    /// What it touched on the way.
    pub(crate) quiet: Quiet,
    /// How often it came by each of its visible operations.
    pub(crate) visits: Visits,
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
            clock: Vec::new(),
            children: Vec::new(),
            spawned: 0,
            result: ptr::null_mut(),
            slot,
            lowest: slot.stack_top,
            published: false,
            heap: Region::new(index, layout.heap_region),
            frames: Frames::new(index),
            spin: Spin::new(),
            repeated: None,
            quiet: Quiet::default(),
            visits: Visits::new(),
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
        self.frames.clear();
        self.spin.begin();
        self.quiet.begin();
        self.visits.reset(run);
        self.call = Call::default();
    }

    /// Notes how far its stack was used.
    #[inline(always)]
    pub(crate) fn reached(&mut self, stack_pointer: usize) {
        if stack_pointer < self.lowest {
            self.lowest = stack_pointer;
        }
    }
}
