//! Whether the model does the same when it is run again.
//!
//! A search compares each execution with what it has in common with those before. If there is but
//! one, nothing would be compared; so the first execution is run once more at the end.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};
use selvedge_core::{Machine, Op, Outcome, Pending, ThreadId};

use super::machine::RustMachine;

/// The first execution of a search.
#[derive(Default)]
pub(super) struct First {
    steps: Vec<Step>,
    /// The state of each thread at the end.
    end: Vec<Pending>,
    /// Executions so far.
    runs: u32,
}

struct Step {
    thread: ThreadId,
    op: Option<Op>,
    outcome: Outcome,
    clock: Vec<u32>,
}

impl First {
    /// `thread` performs its pending operation.
    #[inline]
    pub(super) fn step(
        &mut self,
        thread: ThreadId,
        op: Option<Op>,
        outcome: Outcome,
        clock: &[u32],
    ) {
        if self.runs == 1 {
            self.steps.push(Step {
                thread,
                op,
                outcome,
                clock: clock.to_vec(),
            });
        }
    }
}

impl First {
    /// A fingerprint that must be the same in all processes that search together. Values are left out, which may be
    /// addresses, and threads and locations are numbered as they come.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = FxHasher::default();
        let (mut threads, mut locations) = (FxHashMap::default(), FxHashMap::default());
        for step in &self.steps {
            let next = threads.len();
            let thread = *threads.entry(step.thread).or_insert(next);
            let sort = step.op.map(|op| std::mem::discriminant(&op));
            let location = step.op.and_then(|op| op.location()).map(|location| {
                let next = locations.len();
                *locations.entry(location).or_insert(next)
            });
            (thread, sort, location).hash(&mut hash);
        }
        hash.finish()
    }
}

impl RustMachine {
    /// An execution begins, or all of them are over.
    pub(super) fn note_first(&mut self) {
        if self.first.runs == 1 {
            let threads = (0..self.threads() as u32).map(ThreadId);
            self.first.end = threads.map(|thread| self.pending(thread)).collect();
        }
        self.first.runs += 1;
    }

    /// The search starts over.
    pub(crate) fn forget_first(&mut self) {
        self.first = First::default();
    }

    /// Runs the first execution again, as far as it went. What is different, if something is.
    pub(crate) fn differs(&mut self) -> Option<String> {
        self.note_first();
        let first = std::mem::take(&mut self.first);
        self.reset();
        for step in &first.steps {
            if step.op.is_none_or(|op| !self.is_about_to(step.thread, &op)) {
                return Some(self.explain(step.thread));
            }
            self.resume(step.thread, step.outcome, &step.clock);
        }
        let threads = (0..self.threads() as u32).map(ThreadId);
        let ends = first
            .end
            .iter()
            .copied()
            .chain(std::iter::repeat(Pending::Absent));
        let other = threads
            .zip(ends)
            .find(|&(thread, end)| self.pending(thread) != end)?;
        Some(self.explain(other.0))
    }

    /// Says that `thread` did something else.
    pub(crate) fn explain(&self, thread: ThreadId) -> String {
        match self.pending(thread) {
            Pending::Op(_) => {
                let place = self.place_of(self.site(thread));
                format!("{thread} came to another operation than before, at {place}")
            }
            _ => format!(
                "{thread} ended, or was not there, where it had performed an operation before"
            ),
        }
    }
}
