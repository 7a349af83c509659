//! A thread as it was before a step.

use std::ffi::c_void;
use std::ptr;

use selvedge_core::{Location, Op, Outcome, Pending, Value};

use crate::access::Access;
use crate::arena::pointer;
use crate::fiber::Context;
use crate::float::Float;
use crate::posix::state::{self, Local};
use crate::rounds::Rounds;
use crate::runtime::Deferred;
use crate::spin::SavedSpin;
use crate::thread::Thread;
use crate::tsan::settle::InFlight;

/// More than this is not copied for each step: replaying is cheaper.
const LARGE: usize = 32 << 10;

/// The parts of a thread that its own step can change.
pub(super) struct Image {
    pending: Pending,
    site: usize,
    outcome: Outcome,
    context: Context,
    float: Float,
    clock: Vec<u32>,
    spawned: u32,
    result: *mut c_void,
    published: bool,
    in_barrier: bool,
    /// The end of the heap that is in use, and the number of its blocks.
    heap: (usize, usize),
    depth: usize,
    visible_stack: usize,
    foreign: Vec<usize>,
    stopped_at: usize,
    open_range: Option<Access>,
    in_flight: Vec<InFlight>,
    parts: Vec<Location>,
    settling: Vec<(Deferred, Value)>,
    spin: SavedSpin,
    repeated: Option<Op>,
    quiet: (u32, u32),
    rounds: Rounds,
    local: Local,
    /// From where the slot is kept to its end, and the call stack behind that.
    slot: usize,
    bytes: Vec<u8>,
}

impl Default for Image {
    fn default() -> Image {
        Image {
            pending: Pending::Absent,
            site: 0,
            outcome: Outcome::default(),
            context: Context::NONE,
            float: Float::DEFAULT,
            clock: Vec::new(),
            spawned: 0,
            result: ptr::null_mut(),
            published: false,
            in_barrier: false,
            heap: (0, 0),
            depth: 0,
            visible_stack: 0,
            foreign: Vec::new(),
            stopped_at: 0,
            open_range: None,
            in_flight: Vec::new(),
            parts: Vec::new(),
            settling: Vec::new(),
            spin: SavedSpin::default(),
            repeated: None,
            quiet: (0, 0),
            rounds: Rounds::default(),
            local: Local::NEW,
            slot: 0,
            bytes: Vec::new(),
        }
    }
}

impl Image {
    /// Saves thread number `index`. Each of its parts is named, so that none is forgotten.
    pub(super) fn save(&mut self, thread: &Thread, index: usize) {
        let Thread {
            run: _,
            pending,
            site,
            outcome,
            context,
            float,
            clock,
            children: _,
            spawned,
            result,
            slot,
            // The memory below the stack is not restored, so it has to be cleared later on.
            lowest: _,
            published,
            in_barrier,
            heap,
            reusable: _,
            frames,
            visible_stack,
            foreign,
            stopped_at,
            open_range,
            in_flight,
            parts,
            settling,
            spin,
            repeated,
            // Holds only what comes before the present event.
            retry: _,
            quiet,
            // Taken back one by one.
            visits: _,
            rounds,
            // Only where states are saved.
            call: _,
        } = thread;
        self.pending = *pending;
        self.site = *site;
        self.outcome = *outcome;
        self.context = *context;
        self.float = *float;
        self.clock.clone_from(clock);
        self.spawned = *spawned;
        self.result = *result;
        self.published = *published;
        self.in_barrier = *in_barrier;
        self.heap = heap.extent();
        self.depth = frames.depth();
        self.visible_stack = *visible_stack;
        self.foreign.clone_from(foreign);
        self.stopped_at = *stopped_at;
        self.open_range = *open_range;
        self.in_flight.clone_from(in_flight);
        self.parts.clone_from(parts);
        self.settling.clone_from(settling);
        spin.save(&mut self.spin);
        self.repeated = *repeated;
        self.quiet = quiet.moments();
        self.rounds.assign(rounds);
        state::copy_thread(index, &mut self.local);
        self.slot = context.stack_pointer();
        let end = slot.locals_range().end;
        self.bytes.clear();
        if end - self.slot > LARGE {
            self.slot = end;
            return;
        }
        // SAFETY: a part of the slot of a thread that exists, and no fiber runs.
        let kept = unsafe { std::slice::from_raw_parts(pointer::<u8>(self.slot), end - self.slot) };
        self.bytes.extend_from_slice(kept);
        self.bytes.extend_from_slice(frames.bytes());
    }

    /// How many events thread number `index`, whose image this is, had performed.
    pub(super) fn event(&self, index: usize) -> u32 {
        self.clock.get(index).copied().unwrap_or(0)
    }

    /// How much memory it takes, apart from a constant.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything was small enough to be kept.
    pub(super) fn is_small(&self) -> bool {
        !self.bytes.is_empty() && self.bytes.len() <= LARGE
    }

    /// Makes thread number `index` what it was.
    pub(super) fn restore(&self, thread: &mut Thread, index: usize) {
        thread.pending = self.pending;
        thread.site = self.site;
        thread.outcome = self.outcome;
        thread.context = self.context;
        thread.float = self.float;
        // There may be more threads now.
        let known = self.clock.len();
        thread.clock[..known].copy_from_slice(&self.clock);
        thread.clock[known..].fill(0);
        thread.spawned = self.spawned;
        thread.result = self.result;
        thread.published = self.published;
        thread.in_barrier = self.in_barrier;
        thread.heap.take_back(self.heap);
        thread.visible_stack = self.visible_stack;
        thread.foreign.clone_from(&self.foreign);
        thread.stopped_at = self.stopped_at;
        thread.open_range = self.open_range;
        thread.in_flight.clone_from(&self.in_flight);
        thread.parts.clone_from(&self.parts);
        thread.settling.clone_from(&self.settling);
        thread.spin.restore(&self.spin);
        thread.repeated = self.repeated;
        thread.quiet.set_moments(self.quiet);
        thread.rounds.assign(&self.rounds);
        state::restore_thread(index, Some(&self.local));
        let end = thread.slot.locals_range().end;
        let (kept, calls) = self.bytes.split_at(end - self.slot);
        // SAFETY: saved from there, and no fiber runs.
        unsafe { pointer::<u8>(self.slot).copy_from(kept.as_ptr(), kept.len()) };
        thread.frames.restore(calls, self.depth);
    }
}
