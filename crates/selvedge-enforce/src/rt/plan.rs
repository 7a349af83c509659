//! A prefix as the threads follow it: for each thread the places of its events, and what each event
//! waits for.
//!
//! Plans are built once, are never changed, and are never given back, because a thread may be
//! looking at an old one at any time.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::arena::memory;
use super::composed::{
    self, COUNTED, EventWords, HEAD, HistoryWords, PartWords, PlaceWord, RepeatWords, TRACKED,
    WaitWords,
};
use super::image;
use super::sys;

/// An event of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The place in the program that it comes from, as an address that a call returns to; [`ANY`]
    /// if that varies.
    pub(crate) site: usize,
    /// Its waits: the first among the plan's waits, and how many.
    waits: (u32, u32),
    /// Whether another event waits for it.
    pub(crate) awaited: bool,
}

/// Stands for every counted place.
pub(crate) const ANY: usize = 0;

/// A place that the verifier knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whether what is done there is counted.
    pub(crate) counted: bool,
    /// Whether what is done there is part of the thread's history.
    pub(crate) tracked: bool,
}

/// The events of a thread.
#[derive(Clone, Copy)]
pub(crate) struct List(&'static [EventWords]);

impl List {
    /// How many they are.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// One of them.
    #[inline]
    pub(crate) fn get(self, number: usize) -> Option<Event> {
        self.0.get(number).map(event)
    }

    /// The events from a number on.
    pub(crate) fn from(self, number: usize) -> impl Iterator<Item = Event> {
        self.0.get(number..).unwrap_or_default().iter().map(event)
    }
}

#[inline]
fn event(&[site, first, how]: &EventWords) -> Event {
    Event {
        site: match site {
            composed::ANY => ANY,
            _ => image::base() + site as usize,
        },
        waits: (first, how >> 1),
        awaited: how & 1 != 0,
    }
}

/// A prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// By thread number.
    parts: &'static [PartWords],
    /// All events, thread by thread.
    events: &'static [EventWords],
    /// All waits.
    waits: &'static [WaitWords],
    /// The places that were reached, sorted.
    places: &'static [PlaceWord],
    /// The possible histories of threads.
    histories: &'static [HistoryWords],
    repeats: &'static [RepeatWords],
    /// How many threads there are, with whatever input.
    pub(crate) threads: u32,
    /// Whether visible operations at other places have not been verified.
    pub(crate) strict: bool,
    /// Whether the program's input is not known yet.
    pub(crate) undecided: bool,
    /// Whether plain accesses to shared memory are visible.
    pub(crate) plain_events: bool,
    /// Whether histories tell where threads may end.
    pub(crate) ends: bool,
    /// Whether threads run one at a time.
    pub(crate) serial: bool,
}

/// The plan that held before the program left what was verified.
static LEFT: AtomicPtr<Plan> = AtomicPtr::new((&raw const FREE).cast_mut());

/// From now on threads run one at a time.
pub(crate) fn leave() {
    if !present().serial {
        LEFT.store(PRESENT.load(Ordering::Acquire), Ordering::Release);
        publish(&SERIAL);
    }
}

/// The plan by which threads are numbered: the last one that was proven.
pub(crate) fn numbering() -> &'static Plan {
    match present() {
        // SAFETY: plans live for ever.
        plan if plan.serial => unsafe { &*LEFT.load(Ordering::Acquire) },
        plan => plan,
    }
}

/// Nothing is ordered.
pub(crate) static FREE: Plan = Plan {
    parts: &[],
    events: &[],
    waits: &[],
    places: &[],
    histories: &[],
    repeats: &[],
    threads: 0,
    strict: false,
    undecided: false,
    plain_events: false,
    ends: false,
    serial: false,
};

/// Nothing is ordered, but threads run one at a time.
pub(crate) static SERIAL: Plan = Plan {
    serial: true,
    ..FREE
};

/// The plan that holds now.
static PRESENT: AtomicPtr<Plan> = AtomicPtr::new((&raw const FREE).cast_mut());

/// Whether nothing is ordered now: there is no proof at hand, or the program has left it.
pub(crate) fn is_free() -> bool {
    !present().strict
}

/// The plan that holds now.
#[inline]
pub(crate) fn present() -> &'static Plan {
    // SAFETY: plans are published complete, and live for ever.
    unsafe { &*PRESENT.load(Ordering::Acquire) }
}

/// Makes `plan` the one that holds.
pub(crate) fn publish(plan: &'static Plan) {
    PRESENT.store((&raw const *plan).cast_mut(), Ordering::Release);
    wake_everybody();
}

impl Plan {
    /// A prefix that was composed.
    pub(crate) fn new(words: &'static [u32]) -> Option<Plan> {
        let (&[parts, events, waits, places, threads, slots, repeats, flags], rest) =
            words.split_first_chunk::<HEAD>()?;
        let (parts, rest) = rest.split_at_checked(4 * parts as usize)?;
        let (events, rest) = rest.split_at_checked(3 * events as usize)?;
        let (waits, rest) = rest.split_at_checked(2 * waits as usize)?;
        let (places, rest) = rest.split_at_checked(places as usize)?;
        let (histories, rest) = rest.split_at_checked(4 * slots as usize)?;
        let repeats = rest.get(..2 * repeats as usize)?;
        Some(Plan {
            parts: parts.as_chunks().0,
            events: events.as_chunks().0,
            waits: waits.as_chunks().0,
            places,
            histories: histories.as_chunks().0,
            repeats: repeats.as_chunks().0,
            threads,
            strict: true,
            undecided: flags & composed::UNDECIDED != 0,
            plain_events: flags & composed::PLAIN_EVENTS != 0,
            ends: flags & composed::ENDS != 0,
            serial: false,
        })
    }

    /// The event that is expected of a thread after the one with this number, be that counted or
    /// not.
    pub(crate) fn expected_after(&self, thread: u32, number: usize) -> Option<Event> {
        let &[_, _, first, count] = self.parts.get(thread as usize)?;
        let next = (number < count as usize).then_some(first as usize + number + 1)?;
        self.events.get(next).map(event)
    }

    /// The events of a thread.
    #[inline]
    pub(crate) fn list(&self, thread: u32) -> List {
        let Some(&[_, _, first, count]) = self.parts.get(thread as usize) else {
            return List(&[]);
        };
        let (first, count) = (first as usize, count as usize);
        List(self.events.get(first..first + count).unwrap_or_default())
    }

    /// The waits of an event: threads, and how many events each must have performed.
    #[inline]
    pub(crate) fn waits_of(&self, event: &Event) -> &'static [WaitWords] {
        let (first, count) = (event.waits.0 as usize, event.waits.1 as usize);
        self.waits.get(first..first + count).unwrap_or_default()
    }

    /// The facts about a place.
    pub(crate) fn place(&self, site: usize) -> Option<Place> {
        let address = site.wrapping_sub(image::base()) as u32;
        let found = self.places.binary_search_by_key(&address, |word| word >> 2);
        let word = self.places.get(found.ok()?)?;
        Some(Place {
            counted: word & COUNTED != 0,
            tracked: word & TRACKED != 0,
        })
    }

    /// Whether threads are compared with histories.
    pub(crate) fn tracks(&self) -> bool {
        !self.histories.is_empty()
    }

    /// The history of a thread that has not done anything.
    pub(crate) fn beginning(&self, thread: u32) -> Option<u32> {
        ((thread as usize) < self.parts.len()).then_some(thread)
    }

    /// The history that follows another one by an event at this address, and how it goes on.
    #[inline(always)]
    pub(crate) fn after(&self, history: u32, address: u32) -> Option<(u32, u32)> {
        composed::after(self.histories, history, address)
    }

    /// How a history goes on.
    pub(crate) fn how(&self, history: u32) -> u32 {
        let words = self.histories.get(history as usize);
        words.map_or(0, |words| words[1] & (composed::REPEATS | composed::OPEN))
    }

    /// The histories that led to the state in which a thread is after this one.
    pub(crate) fn repeats(&self, history: u32) -> impl Iterator<Item = u32> {
        let all = self.repeats.iter();
        all.filter(move |&&[from, _]| from == history)
            .map(|&[_, to]| to)
    }

    /// The history of this plan that is the same as one of an earlier plan.
    #[cold]
    pub(crate) fn translate(&self, earlier: &Plan, history: u32) -> Option<u32> {
        let parent = |history: u32| {
            let &[address, _, _, parent] = earlier.histories.get(history as usize)?;
            let begun = history as usize >= earlier.parts.len();
            begun.then_some((parent, address))
        };
        // How many events lead there; then event by event, for there is no room to note them.
        let (mut length, mut at) = (0, history);
        while let Some((parent, _)) = parent(at) {
            (length, at) = (length + 1, parent);
        }
        let mut translated = self.beginning(at)?;
        for rest in (0..length).rev() {
            let mut at = history;
            for _ in 0..rest {
                at = parent(at)?.0;
            }
            translated = self.after(translated, parent(at)?.1)?.0;
        }
        Some(translated)
    }

    /// Whether earlier threads wait for later ones, as a rule: the schedule that was proven first has the last one first.
    pub(crate) fn is_descending(&self) -> bool {
        let mut balance = 0;
        for (number, _) in self.parts.iter().enumerate().skip(1) {
            for event in self.list(number as u32).from(0) {
                let waits = self.waits_of(&event).iter().filter(|wait| wait[0] != 0);
                for wait in waits {
                    balance += if wait[0] as usize > number { 1 } else { -1 };
                }
            }
        }
        balance > 0
    }

    /// The number of the `nth` child of `parent`.
    pub(crate) fn child(&self, parent: u32, nth: u32) -> Option<u32> {
        let at = |part: &PartWords| part[..2] == [parent, nth];
        let found = self.parts.iter().skip(1).position(at);
        found.map(|position| position as u32 + 1)
    }

    /// A thread has ended, so nobody needs to wait for it any more, nor for those that it might
    /// have created after its first `children`.
    pub(crate) fn ends(&self, thread: u32, children: u32) {
        if let Some(counter) = counter(thread) {
            counter.reach(u32::MAX);
        }
        for (number, &[parent, child, _, _]) in self.parts.iter().enumerate() {
            if parent == thread && child >= children && number > 0 {
                self.ends(number as u32, 0);
            }
        }
    }
}

/// How far a thread is: alone in its cache lines, because others look at it all the time.
#[repr(align(128))]
pub(crate) struct Counter {
    /// How many events of its plan it has performed; all that there can be once it has ended.
    done: AtomicU32,
    /// How many threads sleep on that.
    sleepers: AtomicU32,
}

impl Counter {
    /// How many events have been performed.
    #[inline(always)]
    pub(crate) fn done(&self) -> u32 {
        self.done.load(Ordering::Acquire)
    }

    /// Tells that `count` events have been performed, the last of which nobody waits for by the
    /// present plan.
    #[inline(always)]
    pub(crate) fn pass(&self, count: u32) {
        self.done.store(count, Ordering::Release);
    }

    /// Tells that `count` events have been performed, and wakes the threads that wait for that.
    #[inline]
    pub(crate) fn reach(&self, count: u32) {
        // Sequentially consistent, so that either the sleeper sees the count or this sees the sleeper.
        self.done.swap(count, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            sys::futex_wake_all(self.done.as_ptr());
        }
    }

    /// Sleeps until more than `done` events have been performed, or for a while.
    pub(crate) fn sleep(&self, done: u32, nanoseconds: i64) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        sys::futex_wait(self.done.as_ptr(), done, nanoseconds);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

static COUNTERS: AtomicPtr<Counter> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Makes counters for `threads` threads; before any of them runs.
pub(crate) fn make_counters(threads: u32) -> bool {
    let memory = memory(
        threads as usize * size_of::<Counter>(),
        align_of::<Counter>(),
    );
    let counters: *mut Counter = memory.cast();
    if !counters.is_null() {
        for thread in 0..threads as usize {
            let (done, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
            // SAFETY: inside of the memory, which is aligned, and nobody else knows it yet.
            unsafe { counters.add(thread).write(Counter { done, sleepers }) };
        }
    }
    COUNTERS.store(counters, Ordering::Release);
    COUNT.store(threads, Ordering::Release);
    !memory.is_null()
}

/// The counter of a thread that plans know.
#[inline(always)]
pub(crate) fn counter(thread: u32) -> Option<&'static Counter> {
    if thread >= COUNT.load(Ordering::Relaxed) {
        return None;
    }
    let first = COUNTERS.load(Ordering::Relaxed);
    // SAFETY: there are this many counters, and they stay.
    Some(unsafe { &*first.add(thread as usize) })
}

/// Wakes sleeping threads, which then look at the plan again.
fn wake_everybody() {
    for thread in 0..COUNT.load(Ordering::Acquire) {
        // One that is about to sleep sees the plan when it wakes for itself.
        if let Some(counter) = counter(thread)
            && counter.sleepers.load(Ordering::SeqCst) != 0
        {
            sys::futex_wake_all(counter.done.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_ends_is_not_waited_for_nor_are_those_it_did_not_create() {
        assert!(make_counters(5));
        // Main creates 1, 2 and 4; thread 2 creates 3.
        let parts = [(u32::MAX, 0), (0, 0), (0, 1), (2, 0), (0, 2)];
        let parts = parts.map(|(parent, child)| [parent, child, 0, 1]);
        let plan = Plan {
            parts: Box::leak(Box::new(parts)),
            events: &[[16, 0, 2]],
            waits: &[[1, 1]],
            ..FREE
        };
        let done = || [0, 1, 2, 3, 4].map(|thread| counter(thread).unwrap().done());
        assert_eq!(plan.child(0, 1), Some(2));
        assert_eq!(plan.child(0, 3), None);
        let event = plan.list(1).get(0).unwrap();
        assert_eq!((plan.waits_of(&event).len(), event.awaited), (1, false));
        counter(1).unwrap().reach(1);
        assert_eq!(done(), [0, 1, 0, 0, 0]);
        plan.ends(0, 1);
        assert_eq!(done(), [u32::MAX, 1, u32::MAX, u32::MAX, u32::MAX]);
        assert!(counter(5).is_none());
    }
}
