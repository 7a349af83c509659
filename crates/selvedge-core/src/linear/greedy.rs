//! Greedy schedules: an upper bound on the least number of preemptions that is nearly always exact.
//!
//! Each thread goes on until it needs something that has not been performed. The next thread is one that can be left
//! freely afterwards, or one that has to be left in any case, because what it needs comes after something that it can do
//! now; otherwise the one that gets furthest.
//!
//! Graphs that are scheduled one after the other mostly differ in little. The builder keeps as many runs of the previous
//! schedule as are still possible.

use super::frontier::{ALL, Frontier};
use super::steps::Steps;
use crate::graph::Kind;
use crate::ids::ThreadId;
use crate::op::Op;

/// Events of one thread that are performed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) thread: ThreadId,
    /// The index of the first event, and the index after the last one.
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Makes `runs` a schedule of `steps` and returns its number of preemptions. Runs that are there already and still
/// possible are kept. `None` if there is no schedule.
pub(crate) fn schedule<F: Frontier>(steps: &Steps<'_, F>, runs: &mut Vec<Run>) -> Option<u32> {
    let mut builder = Builder {
        steps,
        done: steps.start(),
        preemptions: 0,
        reach: F::none(steps.threads()),
        lacked_thread: F::none(steps.threads()),
        lacked_count: F::none(steps.threads()),
    };
    builder.build(runs)
}

struct Builder<'s, 'a, F> {
    steps: &'s Steps<'a, F>,
    done: F,
    preemptions: u32,
    /// How far each thread is known to get.
    reach: F,
    /// Something that it needs to get further: this many events of a thread.
    lacked_thread: F,
    lacked_count: F,
}

impl<F: Frontier> Builder<'_, '_, F> {
    fn build(&mut self, runs: &mut Vec<Run>) -> Option<u32> {
        let ends = self.steps.ends.as_ref().iter();
        let mut left: u32 = ends.sum();
        let mut next = self.keep(runs);
        left -= runs.iter().map(|run| run.to - run.from).sum::<u32>();
        for thread in 0..self.steps.threads() {
            let end = self.steps.ends.get(thread);
            self.reach.as_mut()[thread] = self.done.get(thread).min(end);
        }
        self.extend_reach(next);
        loop {
            let from = self.done.get(next).min(self.steps.ends.get(next));
            let to = self.reach.get(next);
            runs.push(Run {
                thread: ThreadId(next as u32),
                from,
                to,
            });
            self.steps.perform(&mut self.done, next, to);
            left -= to - from;
            if left == 0 {
                return Some(self.preemptions);
            }
            self.preemptions += u32::from(!self.steps.leaves_freely(&self.done, next));
            next = self.next(next)?;
        }
    }

    /// Follows the previous schedule as long as that is possible and returns the thread that goes on. That is the one of
    /// the last run: it may get further now.
    fn keep(&mut self, runs: &mut Vec<Run>) -> usize {
        let steps = self.steps;
        let mut kept = 0;
        // Of the last run: its thread, and what there was before it.
        let main = ThreadId::MAIN.index();
        let mut last = (main, self.done.get(main), 0);
        for run in runs.iter() {
            let thread = run.thread.index();
            if thread >= steps.threads() || run.to > steps.ends.get(thread) || run.to == run.from {
                break;
            }
            let end = steps.events(thread)[run.to as usize - 1];
            let halved = steps.graph.event(end).kind == Kind::ReadHalf;
            let before = self.done.get(thread);
            self.done.set(thread, ALL);
            if halved || !self.done.covers(steps.clocks, end) {
                self.done.set(thread, before);
                break;
            }
            steps.perform(&mut self.done, thread, run.to);
            last = (thread, before, self.preemptions);
            self.preemptions += u32::from(!steps.leaves_freely(&self.done, thread));
            kept += 1;
        }
        runs.truncate(kept);
        runs.pop();
        let (thread, before, preemptions) = last;
        self.done.set(thread, before);
        self.preemptions = preemptions;
        thread
    }

    /// The thread that goes on after `last`.
    #[inline]
    fn next(&mut self, last: usize) -> Option<usize> {
        let threads = self.steps.threads();
        let mut best = None;
        let mut most = 0;
        for thread in (last + 1..threads).chain(0..last) {
            let end = self.steps.ends.get(thread);
            let done = self.done.get(thread);
            if done >= end {
                continue;
            }
            let lacked = self.lacked_thread.get(thread) as usize;
            if self.done.get(lacked) >= self.lacked_count.get(thread) {
                self.extend_reach(thread);
            }
            let reach = self.reach.get(thread);
            if reach == done {
                continue;
            }
            if reach == end || self.waits_for_end(thread) || self.is_forced(thread) {
                return Some(thread);
            }
            if reach - done > most {
                most = reach - done;
                best = Some(thread);
            }
        }
        best
    }

    /// Finds out how far `thread` gets.
    fn extend_reach(&mut self, thread: usize) {
        let from = self.reach.get(thread) as usize;
        let (to, blocked) = self.steps.run(&mut self.done, thread, from);
        self.reach.as_mut()[thread] = to;
        if let Some(slot) = blocked {
            let before = self.done.get(thread);
            self.done.set(thread, ALL);
            let lacking = self.done.lacking(self.steps.clocks, slot);
            self.done.set(thread, before);
            let (other, count) = lacking.unwrap_or_default();
            self.lacked_thread.as_mut()[thread] = other as u32;
            self.lacked_count.as_mut()[thread] = count;
        }
    }

    /// Whether `thread` gets to a join, where it has to wait.
    fn waits_for_end(&self, thread: usize) -> bool {
        let ahead = self.steps.events(thread)[self.reach.get(thread) as usize];
        let op = self.steps.graph.event(ahead).op;
        matches!(op, Op::Join { .. } | Op::JoinAll)
    }

    /// Whether what `thread` needs to get further comes after something that it can do now.
    fn is_forced(&self, thread: usize) -> bool {
        let (other, needed) = (
            self.lacked_thread.get(thread),
            self.lacked_count.get(thread),
        );
        let events = self.steps.graph.thread(ThreadId(other));
        let Some(&last) = (needed as usize)
            .checked_sub(1)
            .and_then(|at| events.get(at))
        else {
            return false;
        };
        let before = self.steps.clocks.of(last).get(thread);
        before.is_some_and(|&before| before > self.done.get(thread))
    }
}
