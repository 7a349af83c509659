//! Putting one thread back to an earlier step of its own, for a while, see [`crate::retry`].

use super::{Mark, Record, Undo};
use crate::arena::pointer;
use crate::runtime::Runtime;

impl Undo {
    /// The number of the step that is being logged.
    #[inline(always)]
    pub(crate) fn running_step(&self) -> Option<usize> {
        self.logging.then(|| self.steps.len() - 1)
    }

    /// The writes of `thread` to memory since step number `from`, the latest first: the address, where its
    /// contents were saved, and their size.
    fn written(&self, thread: u32, from: usize) -> Vec<(usize, usize, usize)> {
        let (mut record, mut end) = (self.records.len(), self.bytes.len());
        let mut written = Vec::new();
        for step in self.steps[from..].iter().rev() {
            while record > step.records {
                record -= 1;
                let size = self.records[record].size();
                end -= size;
                if let Record::Bytes { address, .. } = self.records[record]
                    && step.thread == thread
                {
                    written.push((address, end, size));
                }
            }
        }
        written
    }
}

impl Record {
    /// How much of `bytes` it takes.
    fn size(&self) -> usize {
        match *self {
            Record::Bytes { size, .. }
            | Record::Spill { size, .. }
            | Record::Overwritten { size, .. } => size,
            Record::Cell(_) => size_of::<super::Cell>(),
            Record::Ends { .. }
            | Record::Freed { .. }
            | Record::Visit { .. }
            | Record::Entered { .. }
            | Record::Claims { .. } => 0,
        }
    }
}

impl Runtime {
    /// Puts `thread`, and the memory that it wrote to, back to what they were before step number `from`, which is
    /// its own and performed its event number `event`. All else stays. Begins a step, which
    /// [`end_return`](Runtime::end_return) takes back. False if that is impossible.
    pub(crate) fn return_to_step(&mut self, thread: usize, from: usize, event: u32) -> bool {
        let steps = &self.undo.steps;
        let own = |step: &&Mark| step.thread as usize == thread;
        // The log may have begun anew since.
        let known =
            steps.get(from).filter(own).is_some() && self.undo.images[from].event(thread) == event;
        if !known
            || steps[from..].iter().filter(own).any(|step| step.barrier)
            || self.undo.is_full()
        {
            return false;
        }
        let written = self.undo.written(thread as u32, from);
        self.begin_step(thread);
        let Some(step) = self.undo.running_step() else {
            return false;
        };
        if self.undo.steps[step].barrier {
            self.take_back_one(step);
            self.undo.logging = false;
            self.locations.set_logging(false);
            return false;
        }
        let slot = self.threads[thread].slot;
        for (address, saved, size) in written {
            if !slot.contains(address) {
                self.undo.bytes(address, size);
                let old = &self.undo.bytes[saved..saved + size];
                // SAFETY: as much memory of the program was saved from there, and no fiber runs.
                unsafe { pointer::<u8>(address).copy_from(old.as_ptr(), size) };
            }
        }
        let Runtime { undo, threads, .. } = self;
        // Going back to an earlier step forgets what came later.
        std::mem::swap(&mut undo.aside, &mut threads[thread].spin);
        threads[thread].spin.begin();
        undo.images[from].restore(&mut threads[thread], thread);
        true
    }

    /// Takes back the step that [`return_to_step`](Runtime::return_to_step) began. True if all memory outside of the
    /// thread's slot that it wrote to, or that was put back for it, is the same as before.
    pub(crate) fn end_return(&mut self) -> bool {
        self.undo.logging = false;
        self.locations.set_logging(false);
        let step = self.undo.steps.len() - 1;
        let mark = &self.undo.steps[step];
        let slot = self.threads[mark.thread as usize].slot;
        let contents = |&(address, size): &(usize, usize)| {
            // SAFETY: memory of the program that was written to, and no fiber runs.
            unsafe { std::slice::from_raw_parts(pointer::<u8>(address), size) }.to_vec()
        };
        let records = self.undo.records[mark.records..].iter();
        let written: Vec<_> = records
            .filter_map(|record| match *record {
                Record::Bytes { address, size } if !slot.contains(address) => Some((address, size)),
                _ => None,
            })
            .collect();
        let there: Vec<_> = written.iter().map(contents).collect();
        let thread = mark.thread as usize;
        std::mem::swap(&mut self.undo.aside, &mut self.threads[thread].spin);
        self.take_back_one(step);
        written.iter().map(contents).eq(there)
    }
}
