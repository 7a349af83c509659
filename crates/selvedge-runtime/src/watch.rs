//! The call stacks of the accesses that a report is about.
//!
//! A race has two sides, and only one of its threads stands there when it is noticed. So when a
//! failure is repeated for its report, its places are watched: each time a thread passes one, the
//! calls that it is in are written down. So are the calls in which memory is allocated and freed, as it is
//! not known yet which blocks the report will name.

use std::collections::HashMap;

use selvedge_core::{Failure, ThreadId};

use crate::runtime::Runtime;

/// The places of one failure.
#[derive(Default)]
pub(crate) struct Watch {
    passed: Vec<Passed>,
    /// The run that is about to begin is the one to watch.
    fresh: bool,
    /// The present run is the one to watch.
    on: bool,
    /// The calls in which blocks were allocated and freed last, by their first bytes.
    blocks: HashMap<(usize, Fate), Vec<usize>>,
}

/// The fate of a heap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Allocated,
    Freed,
}

struct Passed {
    thread: usize,
    site: usize,
    /// Return addresses, innermost first.
    calls: Vec<usize>,
}

impl Watch {
    /// Watches the places of `failure` in the run that begins next.
    pub(crate) fn over(failure: &Failure) -> Watch {
        let place = |thread: ThreadId, site: selvedge_core::Site| Passed {
            thread: thread.index(),
            site: site.0 as usize,
            calls: Vec::new(),
        };
        let other = failure.other.as_ref();
        let other = other.map(|other| place(other.thread, other.site));
        let own = place(failure.thread, failure.site);
        Watch {
            passed: other.map(|other| vec![own, other]).unwrap_or_default(),
            fresh: true,
            ..Watch::default()
        }
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.on = std::mem::take(&mut self.fresh);
        if !self.on {
            self.passed.clear();
            self.blocks.clear();
        }
    }

    /// Whether something is watched.
    pub(crate) fn is_set(&self) -> bool {
        !self.passed.is_empty()
    }

    /// The calls in which the block at `start` was allocated or freed.
    pub(crate) fn block(&self, start: usize, fate: Fate) -> &[usize] {
        self.blocks.get(&(start, fate)).map_or(&[], Vec::as_slice)
    }

    /// The calls that `thread` was in when it passed `site` last.
    pub(crate) fn calls(&self, thread: ThreadId, site: usize) -> Option<&[usize]> {
        let matches = |passed: &&Passed| (passed.thread, passed.site) == (thread.index(), site);
        let passed = self.passed.iter().find(matches)?;
        (!passed.calls.is_empty()).then_some(&passed.calls)
    }
}

impl Runtime {
    /// The running thread makes an access at `site`.
    #[inline(always)]
    pub(crate) fn passing(&mut self, site: usize) {
        if !self.watch.passed.is_empty() {
            self.write_down(site);
        }
    }

    /// The running thread allocates or frees the block at `start`.
    #[inline(always)]
    pub(crate) fn note_block(&mut self, start: usize, fate: Fate) {
        if self.watch.on {
            let calls = self.threads[self.running].frames.return_addresses();
            self.watch.blocks.insert((start, fate), calls.collect());
        }
    }

    #[cold]
    fn write_down(&mut self, site: usize) {
        let running = self.running;
        for passed in &mut self.watch.passed {
            if (passed.thread, passed.site) == (running, site) {
                passed.calls.clear();
                let calls = self.threads[running].frames.return_addresses();
                passed.calls.extend(calls);
            }
        }
    }
}
