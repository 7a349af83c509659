//! Linearisations of small graphs without operations that wait, joins aside. How far each thread has come fits
//! into one word, a byte for each thread, so that everything takes a few instructions.
//!
//! The two halves of an update are two steps here. That makes no difference: nothing has to come between them, so
//! the first can always be moved to where the second is.

use rustc_hash::FxHashMap;

use crate::graph::{Event, Graph, Kind, LANES};
use crate::ids::ThreadId;
use crate::model::SequentialConsistency;
use crate::op::{Function, Op};

/// Of each thread, how many events: seven bits, and one to compare by.
pub(crate) type Lanes = u64;

/// How many events of a thread fit, and one place more.
const EVENTS: usize = 128;
const TOPS: Lanes = 0x8080_8080_8080_8080;
/// No gap ends here.
const NONE: u8 = u8::MAX;

/// How many events of `thread`.
#[inline]
pub(crate) fn lane(lanes: Lanes, thread: usize) -> usize {
    usize::from((lanes >> (8 * thread)) as u8)
}

/// So many events of `thread` alone.
#[inline]
pub(crate) fn of_thread(thread: usize, events: usize) -> Lanes {
    (events as Lanes) << (8 * thread)
}

/// What one of two has.
#[inline]
pub(crate) fn union(one: Lanes, other: Lanes) -> Lanes {
    let more = (((one | TOPS) - other) & TOPS) >> 7;
    let mask = more.wrapping_mul(0xff);
    (one & mask) | (other & !mask)
}

/// Whether `done` has all of `needed`.
#[inline]
fn covers(done: Lanes, needed: Lanes) -> bool {
    ((done | TOPS) - needed) & TOPS == TOPS
}

/// Something about each event, by thread and index.
struct Places<T>([[T; EVENTS]; LANES]);

impl<T: Copy + Default> Default for Places<T> {
    fn default() -> Places<T> {
        Places([[T::default(); EVENTS]; LANES])
    }
}

impl<T: Copy> Places<T> {
    #[inline]
    fn of(&self, thread: usize) -> &[T; EVENTS] {
        &self.0[thread % LANES]
    }

    #[inline]
    fn of_mut(&mut self, thread: usize) -> &mut [T; EVENTS] {
        &mut self.0[thread % LANES]
    }

    #[inline]
    fn at(&self, thread: usize, index: usize) -> T {
        self.0[thread % LANES][index % EVENTS]
    }
}

/// How many gaps do not overlap among the first events of a thread, and where the next may begin.
#[derive(Clone, Copy, Default)]
struct Count {
    gaps: u8,
    free: u8,
}

/// A table of the events of a graph, kept for its memory.
#[derive(Default)]
pub(crate) struct Packed {
    threads: usize,
    /// All events of each thread.
    ends: Lanes,
    /// Which events of the main thread are joins. No other thread has any.
    joins: u128,
    /// What must come before an event, of other threads and its own.
    before: Places<[u8; LANES]>,
    /// If the path from an earlier event of the same thread leads through another thread, the latest such.
    gaps: Places<u8>,
    counts: Places<Count>,
    /// How many gaps do not overlap among those from an event on.
    needed: Places<u8>,
    /// With what budgets the search has failed.
    failed: FxHashMap<(Lanes, u8), u32>,
}

impl Packed {
    /// Takes a graph in. False if it does not fit.
    pub(crate) fn fill(&mut self, graph: &Graph, order: &SequentialConsistency) -> bool {
        // A thread that has just been created may have no place in the clocks yet.
        let clocks = order.clocks().narrow();
        let Some(clocks) = clocks.filter(|_| graph.threads() <= LANES) else {
            return false;
        };
        self.threads = graph.threads();
        self.joins = 0;
        self.ends = 0;
        for thread in 0..self.threads {
            let events = graph.thread(ThreadId(thread as u32)).len();
            if events >= EVENTS {
                return false;
            }
            self.ends |= of_thread(thread, events);
        }
        for (event, clock) in graph.events().iter().zip(clocks) {
            let (thread, index) = (event.id.thread.index() % LANES, event.id.index);
            let before = &mut self.before.0[thread][index as usize % EVENTS];
            for (before, &count) in before.iter_mut().zip(clock) {
                *before = count as u8;
            }
            before[thread] = index as u8;
            if !matches!(event.kind, Kind::Read | Kind::Write) && !self.take(event) {
                return false;
            }
        }
        !has_objects(graph)
    }

    /// Whether an event of a rarer kind fits.
    #[cold]
    fn take(&mut self, event: &Event) -> bool {
        match event.kind {
            Kind::Read | Kind::Write | Kind::WriteHalf => true,
            Kind::ReadHalf => event.woken_from.is_none(),
            Kind::Parked => false,
            Kind::Silent => {
                let joins = event.op.may_wait();
                self.joins |= u128::from(joins) << (event.id.index % EVENTS as u32);
                !joins || event.id.thread == ThreadId::MAIN
            }
        }
    }

    /// Looks where threads have to be left.
    pub(crate) fn find_gaps(&mut self) {
        for thread in 0..self.threads {
            let shift = 8 * thread as u32;
            let others = !(0xff << shift);
            let mut previous = 0;
            let mut known = 0;
            let mut waited = 0;
            let mut count = Count::default();
            let gaps = self.gaps.of_mut(thread);
            let counts = self.counts.of_mut(thread);
            let own = self.before.of(thread);
            let end = lane(self.ends, thread) % EVENTS;
            for index in 0..end {
                gaps[index] = NONE;
                counts[index] = count;
                let before = Lanes::from_le_bytes(own[index]) & others;
                let mut news = before ^ previous;
                if news == 0 {
                    continue;
                }
                previous = before;
                if thread == 0 && self.joins >> index & 1 != 0 {
                    waited = index as u8 + 1;
                    count.free = count.free.max(index as u8);
                    counts[index] = count;
                }
                let old = known;
                while news != 0 {
                    let other = news.trailing_zeros() as usize / 8;
                    let last = lane(before, other) - 1;
                    known = known.max(self.before.at(other, last)[thread % LANES]);
                    news &= !(0xff << (8 * other));
                }
                // A gap that a join is in does not count: leaving there may be free.
                if known > old && known >= waited {
                    gaps[index] = known - 1;
                    if known > count.free {
                        count.free = index as u8;
                        count.gaps += 1;
                    }
                }
            }
            counts[end] = count;
        }
    }

    /// All events of each thread.
    pub(crate) fn all(&self) -> Lanes {
        self.ends
    }

    #[inline]
    fn before(&self, thread: usize, index: usize) -> Lanes {
        Lanes::from_le_bytes(self.before.at(thread, index))
    }

    /// The first `count` events of `thread`, and what has to come before them.
    pub(crate) fn closed(&self, thread: usize, count: usize) -> Lanes {
        match count {
            0 => 0,
            count => self.before(thread, count - 1) + of_thread(thread, 1),
        }
    }

    /// All that has to come before some events, and these.
    pub(crate) fn closure(&self, part: Lanes) -> Lanes {
        (0..self.threads).fold(part, |all, thread| {
            union(all, self.closed(thread, lane(part, thread)))
        })
    }

    /// No linearisation of a part has fewer preemptions than this.
    pub(crate) fn at_least(&self, part: Lanes) -> u32 {
        let count = |thread| self.counts.at(thread, lane(part, thread)).gaps;
        (0..self.threads)
            .map(|thread| u32::from(count(thread)))
            .sum()
    }

    /// Whether there is a further gap if event `index` of `thread` comes after other threads that come after its first `known` events.
    pub(crate) fn gap_follows(&self, thread: usize, index: usize, known: usize) -> bool {
        known > usize::from(self.counts.at(thread, index).free)
    }

    /// Whether `thread` can take its next step.
    #[inline]
    fn ready(&self, done: Lanes, thread: usize) -> bool {
        let at = lane(done, thread);
        at < lane(self.ends, thread) && covers(done, self.before(thread, at))
    }

    /// Lets `thread` go on as far as it gets.
    #[inline]
    fn run(&self, mut done: Lanes, thread: usize) -> Lanes {
        let own = self.before.of(thread);
        let end = lane(self.ends, thread);
        let step = of_thread(thread, 1);
        let mut at = lane(done, thread);
        while at < end && covers(done, Lanes::from_le_bytes(own[at % EVENTS])) {
            at += 1;
            done += step;
        }
        done
    }

    /// What it costs to leave `thread`, which can go on no further.
    #[inline]
    fn price(&self, done: Lanes, thread: usize) -> u32 {
        let at = lane(done, thread);
        let waits = thread == 0 && self.joins >> (at % EVENTS) & 1 != 0;
        u32::from(at < lane(self.ends, thread) && !waits)
    }

    /// Whether `budget` preemptions are enough.
    pub(crate) fn is_within(&mut self, budget: u32) -> bool {
        let least = self.at_least(self.ends);
        if least > budget {
            return false;
        }
        self.count_needed();
        self.failed.clear();
        (least..=budget).any(|budget| self.complete(0, 0, budget))
    }

    fn count_needed(&mut self) {
        for thread in 0..self.threads {
            let end = lane(self.ends, thread) % EVENTS;
            let gaps = self.gaps.of(thread);
            let needed = self.needed.of_mut(thread);
            // Gaps that end later begin later.
            let mut filled = end + 1;
            let mut count = 0;
            for index in (0..end).rev() {
                if gaps[index] == NONE {
                    continue;
                }
                let begin = usize::from(gaps[index]);
                needed[begin + 1..filled].fill(count);
                filled = begin + 1;
                count = 1 + needed[index];
            }
            needed[..filled].fill(count);
        }
    }

    /// Whether `budget` preemptions are enough for the rest if `running` goes on first.
    fn complete(&mut self, done: Lanes, running: usize, budget: u32) -> bool {
        let done = self.run(done, running);
        if done == self.ends {
            return true;
        }
        let Some(rest) = budget.checked_sub(self.price(done, running)) else {
            return false;
        };
        // What is counted has not begun, so leaving the running thread now is none of it.
        let needed = |thread| self.needed.at(thread, lane(done, thread));
        let least: u32 = (0..self.threads)
            .map(|thread| u32::from(needed(thread)))
            .sum();
        if least > rest {
            return false;
        }
        let key = (done, running as u8);
        let failed = match self.failed.is_empty() {
            true => None,
            false => self.failed.get(&key),
        };
        if failed.is_some_and(|&failed| budget <= failed) {
            return false;
        }
        for thread in 0..self.threads {
            if thread != running && self.ready(done, thread) && self.complete(done, thread, rest) {
                return true;
            }
        }
        self.failed.insert(key, budget);
        false
    }
}

/// Whether there are operations on other objects than memory.
pub(crate) fn has_objects(graph: &Graph) -> bool {
    graph.locations().iter().any(|&location| {
        let first = graph.reads(location).first();
        let op = first.map(|&read| graph.event(read).op);
        matches!(
            op,
            Some(Op::Update {
                function: Function::Object(_),
                ..
            })
        )
    })
}
