//! Taking steps back.
//!
//! Before a step, the state of its thread is saved ([`image`]); while it runs, whatever else it
//! changes is written to a log before it is changed: memory outside of the thread's own slot, race
//! records, locations, other threads. Taking the step back restores both in reverse order. What is
//! known for the whole search (numbers, which memory is accessed plainly, decoded functions) stays.
//!
//! A step is a *barrier* if it cannot be taken back: the thread called a function of the C library
//! that is not known to leave its traces here ([`abi::is_undoable`]), or it goes on inside of
//! such a call. The stubs of those functions tell that by themselves, so none can be forgotten.

mod audit;
mod back;
mod image;

use selvedge_core::ThreadEnd;

use crate::abi;
use crate::arena::pointer;
use crate::gate::gate;
use crate::posix::state::{self, Claim};
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::shadow::{Cell, Shadow};
use crate::spin::Spin;
use audit::Audit;
use image::Image;

/// The steps of an execution that can be taken back.
pub(crate) struct Undo {
    /// Whether the running step is logged.
    logging: bool,
    steps: Vec<Mark>,
    /// One for each step; those beyond are kept for their memory.
    images: Vec<Image>,
    /// The memory that the images of the steps take.
    kept: usize,
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// How often steps were taken back, and how often an execution was run from its start.
    done: u64,
    started: u64,
    audit: Option<Audit>,
    /// The knowledge about loops of a thread that was put back, see [`back`].
    aside: Spin,
    /// Whether executions are always replayed, as they are if `SELVEDGE_UNDO=0` is set.
    replays: bool,
}

/// The data before a step.
struct Mark {
    thread: u32,
    barrier: bool,
    records: usize,
    bytes: usize,
    started: usize,
    written_addresses: usize,
    compared: usize,
    heap_used: usize,
    spills: usize,
    locations: (usize, usize),
    failed: bool,
    refused: bool,
    failure_place: usize,
}

/// Something that a step changes. Contents are kept in `bytes`.
enum Record {
    Bytes {
        address: usize,
        size: usize,
    },
    Cell(*mut Cell),
    Spill {
        number: u32,
        size: usize,
    },
    Ends {
        thread: u32,
        before: ThreadEnd,
    },
    Freed {
        owner: u32,
        address: usize,
    },
    Visit {
        thread: u32,
        place: (usize, usize),
    },
    Entered {
        thread: u32,
        visible_stack: usize,
        foreign: usize,
    },
    Overwritten {
        thread: u32,
        size: usize,
        known: bool,
    },
    Claims {
        thread: u32,
        before: (Option<Claim>, Option<Claim>),
        contended: bool,
    },
}

/// Steps are logged as long as few executions, beyond this many, were run from their start: random searches never
/// take a step back, and some programs cannot.
const PATIENCE: u64 = 64;
/// After this many steps the log begins anew, so that an execution without an end does not fill the memory.
const LONGEST: usize = 1 << 14;
/// The same after this many bytes of stacks.
const LARGEST: usize = 16 << 20;

impl Undo {
    pub(crate) fn new() -> Undo {
        Undo {
            logging: false,
            steps: Vec::new(),
            images: Vec::new(),
            kept: 0,
            records: Vec::new(),
            bytes: Vec::new(),
            done: 0,
            started: 0,
            audit: Audit::asked(),
            aside: Spin::new(),
            replays: std::env::var_os("SELVEDGE_UNDO").is_some_and(|value| value == "0"),
        }
    }

    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        self.started += 1;
        self.forget();
    }

    /// No step can be taken back any more.
    fn forget(&mut self) {
        self.logging = false;
        self.steps.clear();
        self.kept = 0;
        self.records.clear();
        self.bytes.clear();
    }

    /// The program is about to change `size` bytes at `address`.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, address: usize, size: usize) {
        if self.logging {
            self.save(address, size);
            self.records.push(Record::Bytes { address, size });
        }
    }

    fn save(&mut self, address: usize, size: usize) {
        // SAFETY: memory of the program or of the runtime that is about to be written.
        let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(address), size) };
        self.bytes.extend_from_slice(bytes);
    }

    /// The knowledge about a word is about to change.
    #[inline(always)]
    pub(crate) fn cell(&mut self, cell: *mut Cell, shadow: &Shadow, run: u32) {
        if self.logging {
            if let Some((number, bytes)) = shadow.spilled(cell, run) {
                let size = bytes.len();
                self.bytes.extend_from_slice(bytes);
                self.records.push(Record::Spill { number, size });
            }
            self.save(cell.expose_provenance(), size_of::<Cell>());
            self.records.push(Record::Cell(cell));
        }
    }

    #[inline(always)]
    fn push(&mut self, record: Record) {
        if self.logging {
            self.records.push(record);
        }
    }

    /// The end of a thread is about to be waited for.
    pub(crate) fn ends(&mut self, thread: usize, before: ThreadEnd) {
        let thread = thread as u32;
        self.push(Record::Ends { thread, before });
    }

    /// A block of the heap of `owner` is about to be freed.
    pub(crate) fn frees(&mut self, owner: usize, address: usize) {
        let owner = owner as u32;
        self.push(Record::Freed { owner, address });
    }

    /// The thread has counted a visit of `place`.
    #[inline(always)]
    pub(crate) fn visits(&mut self, thread: usize, place: (usize, usize)) {
        let thread = thread as u32;
        self.push(Record::Visit { thread, place });
    }

    /// The claims on a thread are about to change.
    pub(crate) fn claims(
        &mut self,
        thread: u32,
        before: (Option<Claim>, Option<Claim>),
        contended: bool,
    ) {
        self.push(Record::Claims {
            thread,
            before,
            contended,
        });
    }

    /// Whether the log has to begin anew before the next step.
    fn is_full(&self) -> bool {
        self.steps.len() >= LONGEST || self.kept >= LARGEST
    }

    /// Whether steps can be taken back with these settings at all, and there is a use for that.
    fn possible(&self, settings: &Settings) -> bool {
        let pays = !self.replays && self.started <= PATIENCE + 4 * self.done;
        !settings.stateful
            && !settings.reuse_memory
            && !settings.show_output
            && (pays || settings.skip_retries)
    }
}

impl Runtime {
    /// The running thread enters, or writes to, the slot of `owner`.
    pub(crate) fn enters_slot(&mut self, owner: usize) {
        if self.undo.logging {
            let thread = &self.threads[owner];
            let record = Record::Entered {
                thread: owner as u32,
                visible_stack: thread.visible_stack,
                foreign: thread.foreign.len(),
            };
            self.undo.records.push(record);
        }
    }

    /// The running thread overwrites words of the stack of `owner`.
    pub(crate) fn overwrites_stack(&mut self, owner: usize) {
        if self.undo.logging && owner != self.running {
            let (bytes, known) = self.threads[owner].spin.overwritten_bytes();
            let record = Record::Overwritten {
                thread: owner as u32,
                size: bytes.len(),
                known,
            };
            self.undo.bytes.extend_from_slice(bytes);
            self.undo.records.push(record);
        }
    }

    /// `thread` is about to take a step.
    #[inline]
    pub(crate) fn begin_step(&mut self, thread: usize) {
        // Retries of a step, and all else that is done while no step is logged, stay possible.
        if !self.undo.possible(&self.settings) || self.image.has_library || self.watch.is_set() {
            self.undo.forget();
            return;
        }
        if self.undo.is_full() {
            self.undo.forget();
            self.locations.forget_log();
        }
        let step = self.undo.steps.len();
        if self.undo.images.len() == step {
            self.undo.images.push(Image::default());
        }
        self.undo.images[step].save(&self.threads[thread], thread);
        self.undo.kept += self.undo.images[step].size();
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).barrier = 0 };
        self.undo.steps.push(Mark {
            thread: thread as u32,
            barrier: self.threads[thread].in_barrier || !self.undo.images[step].is_small(),
            records: self.undo.records.len(),
            bytes: self.undo.bytes.len(),
            started: self.started.len(),
            written_addresses: self.written_addresses.len(),
            compared: self.compared.len(),
            heap_used: self.heap_used,
            spills: self.shadow.spills(),
            locations: self.locations.mark(),
            failed: self.failure.is_some(),
            refused: self.refusal.is_some(),
            failure_place: self.failure_place,
        });
        self.undo.logging = true;
        self.locations.set_logging(true);
        if self.undo.audit.is_some() {
            let now = Audit::look(self);
            if let Some(audit) = &mut self.undo.audit {
                audit.push(step, now);
            }
        }
        // Stores that the thread has announced and not yet made are made without another callback.
        let Runtime { undo, threads, .. } = self;
        let thread = &threads[thread];
        if let Some(range) = thread.open_range {
            undo.bytes(range.address, range.size);
        }
        for (address, size) in thread.in_flight.iter().map(|store| store.range()) {
            undo.bytes(address, size);
        }
    }

    /// The step was a retry: only its thread has changed.
    pub(crate) fn end_retry(&mut self) {
        self.undo.logging = false;
        self.locations.set_logging(false);
    }

    /// The step is over.
    #[inline]
    pub(crate) fn end_step(&mut self, thread: usize) {
        if !self.undo.logging {
            return;
        }
        self.undo.logging = false;
        self.locations.set_logging(false);
        // SAFETY: the gate is mapped while a program is loaded.
        let barrier = std::mem::take(unsafe { &mut (*gate()).barrier }) != 0;
        if let Some(step) = self.undo.steps.last_mut() {
            step.barrier |= barrier;
        }
        let thread = &mut self.threads[thread];
        // Unless the thread has just called the function that it is stopped in, the call may have
        // begun before any of its last stops.
        // SAFETY: as above.
        let entered = unsafe { (*gate()).entering };
        thread.in_barrier = match thread.stopped_at {
            0 => thread.in_barrier | barrier,
            _ => !abi::is_undoable(entered),
        };
    }

    /// Takes back the last `steps` steps. False if that is impossible.
    pub(crate) fn take_back(&mut self, steps: usize) -> bool {
        let Some(kept) = self.undo.steps.len().checked_sub(steps) else {
            return false;
        };
        if self.undo.replays {
            return false;
        }
        let barrier = |step: &Mark| step.barrier;
        if self.undo.steps[kept..].iter().any(barrier) {
            return false;
        }
        self.undo.done += 1;
        for step in (kept..self.undo.steps.len()).rev() {
            self.take_back_one(step);
        }
        if self.undo.audit.is_some() {
            let now = Audit::look(self);
            if let Some(audit) = &self.undo.audit {
                audit.compare(kept, &now);
            }
        }
        true
    }

    fn take_back_one(&mut self, step: usize) {
        let Some(mark) = self.undo.steps.pop() else {
            return;
        };
        let mut records = std::mem::take(&mut self.undo.records);
        for record in records.drain(mark.records..).rev() {
            self.revert(record);
        }
        self.undo.records = records;
        debug_assert_eq!(self.undo.bytes.len(), mark.bytes);
        self.locations.take_back(mark.locations);
        self.shadow.set_spills(mark.spills);
        while self.started.len() > mark.started {
            self.forget_thread();
        }
        self.written_addresses.truncate(mark.written_addresses);
        self.compared.truncate(mark.compared);
        self.heap_used = mark.heap_used;
        if !mark.failed {
            self.failure = None;
        }
        if !mark.refused {
            self.refusal = None;
        }
        self.failure_place = mark.failure_place;
        let thread = mark.thread as usize;
        self.undo.kept -= self.undo.images[step].size();
        self.undo.images[step].restore(&mut self.threads[thread], thread);
    }

    /// The thread that was created last was never created.
    fn forget_thread(&mut self) {
        if let Some(index) = self.started.pop() {
            let thread = &mut self.threads[index as usize];
            thread.slot.clear(thread.lowest);
            thread.heap.reset();
            thread.run = 0;
            state::restore_thread(index as usize, None);
        }
    }

    fn revert(&mut self, record: Record) {
        let contents = |undo: &mut Undo, size: usize| undo.bytes.len() - size;
        match record {
            Record::Bytes { address, size } => {
                let from = contents(&mut self.undo, size);
                let bytes = &self.undo.bytes[from..];
                // SAFETY: as much memory of the program was saved from there, and no fiber runs.
                unsafe { pointer::<u8>(address).copy_from(bytes.as_ptr(), size) };
                self.undo.bytes.truncate(from);
            }
            Record::Cell(cell) => {
                let from = contents(&mut self.undo, size_of::<Cell>());
                let bytes = &self.undo.bytes[from..];
                Cell::restore(cell, bytes);
                self.undo.bytes.truncate(from);
            }
            Record::Spill { number, size } => {
                let from = contents(&mut self.undo, size);
                self.shadow.restore_spill(number, &self.undo.bytes[from..]);
                self.undo.bytes.truncate(from);
            }
            Record::Ends { thread, before } => self.ends[thread as usize] = before,
            Record::Freed { owner, address } => {
                self.threads[owner as usize].heap.unfree(address);
            }
            Record::Visit { thread, place } => {
                let visits = &mut self.threads[thread as usize].visits;
                visits.take_back(place.0, place.1);
            }
            Record::Entered {
                thread,
                visible_stack,
                foreign,
            } => {
                let thread = &mut self.threads[thread as usize];
                thread.visible_stack = visible_stack;
                thread.foreign.truncate(foreign);
            }
            Record::Overwritten {
                thread,
                size,
                known,
            } => {
                let from = contents(&mut self.undo, size);
                let spin = &mut self.threads[thread as usize].spin;
                spin.set_overwritten(&self.undo.bytes[from..], known);
                self.undo.bytes.truncate(from);
            }
            Record::Claims {
                thread,
                before,
                contended,
            } => state::set_claims(thread, before, contended),
        }
    }
}
