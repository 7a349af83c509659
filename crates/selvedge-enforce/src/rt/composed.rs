//! A prefix as the threads of one executable follow it, as a list of words that holds no address.
//!
//! `selvedge irs build` makes it ahead of time, so that a program need not read its prefix file as
//! long as that is the one that it was built with; a program that finds another one makes it
//! itself. Both use what is here.

use selvedge_irs_format::{Branch, Class, Flags, Input, NONE, Thread, View};

/// Where a function is in an executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Code {
    /// The [`hash`] of its name and of its number among those of that name.
    pub(crate) name: u64,
    /// Its address relative to the executable's beginning.
    pub(crate) start: u32,
    /// How many bytes it has.
    pub(crate) size: u32,
}

/// The hash of a function's name and of its number among those of that name.
pub(crate) fn hash(name: &[u8], occurrence: u32) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = name.iter().copied().fold(0xcbf2_9ce4_8422_2325, step);
    occurrence.to_le_bytes().into_iter().fold(hash, step)
}

/// The executable that a prefix is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executable<'a> {
    /// Its functions, sorted.
    pub(crate) functions: &'a [Code],
    /// The places whose callbacks were taken out, sorted; with [`UNCOUNTED`], those where a fence
    /// is left; with [`TOGETHER`], those of accesses that cannot be held apart.
    pub(crate) removed: &'a [u32],
}

/// Tells places where a fence is left from those where nothing is.
pub(crate) const UNCOUNTED: u32 = 1 << 31;

/// Tells places of accesses that are made after the library has been told of the next one as well.
pub(crate) const TOGETHER: u32 = 1 << 30;

/// Why a prefix cannot be used.
pub(crate) type Why = &'static str;

/// Words before the tables: how long each of them is, how many threads there are with any input,
/// and the flags.
pub(crate) const HEAD: usize = 8;
/// Whether plain accesses to shared memory are visible.
pub(crate) const PLAIN_EVENTS: u32 = 1;
/// Whether the program's input is not known yet.
pub(crate) const UNDECIDED: u32 = 2;
/// Whether histories tell where threads may end.
pub(crate) const ENDS: u32 = 4;

/// Tells that a thread is created or joined at a place from what else is done there. Without a place, the thread ends.
pub(crate) const THREAD: u32 = 1 << 31;

/// Of each thread: its creator, its number among the creator's children, its first event, and how many events it has.
/// One more follows in the table that is expected after them, and neither waits nor counts.
pub(crate) type PartWords = [u32; 4];
/// Of each event: its place ([`ANY`] if that varies), its first wait, and twice the number of its
/// waits, plus one if another event waits for it.
pub(crate) type EventWords = [u32; 3];
/// Of each wait: which thread must have performed how many events.
pub(crate) type WaitWords = [u32; 2];
/// Of each place: four times the address that the call returns to, plus [`COUNTED`] and [`TRACKED`]. They are
/// sorted.
pub(crate) type PlaceWord = u32;
/// Events at the place are counted.
pub(crate) const COUNTED: u32 = 1;
/// Events at the place are part of the thread's history.
pub(crate) const TRACKED: u32 = 2;
/// A history: the address of its last event, its first successor times four with [`REPEATS`] and [`OPEN`], the next
/// successor of the history before it, and that history. The first ones are those of threads that have not done
/// anything, so none of these succeeds another one, and zero stands for none.
pub(crate) type HistoryWords = [u32; 4];
/// A pure iteration ends with this history.
pub(crate) const REPEATS: u32 = 1;
/// Not all that can follow this history is known.
pub(crate) const OPEN: u32 = 2;
/// Two histories: what can follow the second can follow the first.
pub(crate) type RepeatWords = [u32; 2];

/// The history that follows another one by an event at this address, and how it goes on:
/// [`REPEATS`], [`OPEN`].
#[inline(always)]
pub(crate) fn after(table: &[HistoryWords], history: u32, address: u32) -> Option<(u32, u32)> {
    let mut next = table.get(history as usize)?[1] >> 2;
    while next != 0 {
        let &[of, how, sibling, _] = table.get(next as usize)?;
        if of == address {
            return Some((next, how & (REPEATS | OPEN)));
        }
        next = sibling;
    }
    None
}

/// Stands for every counted place.
pub(crate) const ANY: u32 = 0;

/// How long the tables of a composed prefix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) parts: usize,
    pub(crate) events: usize,
    pub(crate) waits: usize,
    pub(crate) places: usize,
    /// How many threads there are with any input.
    threads: usize,
    /// How many histories there are at most.
    slots: usize,
    repeats: usize,
    /// The most histories of a thread: room to compute them.
    scratch: usize,
}

impl Sizes {
    /// For the prefix of one input.
    pub(crate) fn of(view: View<'_>, input: Input<'_>) -> Sizes {
        let mut extent = Extent::default();
        input.threads().for_each(|thread| extent.add(thread));
        Sizes {
            parts: input.threads().len(),
            events: input.threads().map(|thread| listed(thread.limit)).sum(),
            waits: input.waits(),
            places: view.sites().len(),
            threads: threads(view),
            slots: extent.histories,
            repeats: extent.repeats,
            scratch: extent.largest,
        }
    }

    /// For what main does before its input is known.
    pub(crate) fn of_beginning(view: View<'_>) -> Sizes {
        let mut extent = Extent::default();
        mains(view).for_each(|main| extent.add(main));
        Sizes {
            parts: 1,
            events: listed(mains(view).map(|main| main.limit).max().unwrap_or(0)),
            waits: 0,
            places: view.sites().len(),
            threads: threads(view),
            slots: extent.histories,
            repeats: extent.repeats,
            scratch: extent.largest,
        }
    }

    /// How many words the whole takes.
    pub(crate) fn words(self) -> usize {
        let prefix = HEAD + 4 * self.parts + 3 * self.events + 2 * self.waits + self.places;
        prefix + 4 * self.slots + 2 * self.repeats + self.scratch
    }
}

/// The main threads of all inputs.
fn mains(view: View<'_>) -> impl Iterator<Item = Thread<'_>> {
    view.inputs().filter_map(|input| input.threads().next())
}

/// How much there is of the histories of some threads.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// The empty history and one for each entry are the most that there can be.
    histories: usize,
    repeats: usize,
    largest: usize,
}

impl Extent {
    #[inline(never)]
    fn add(&mut self, thread: Thread<'_>) {
        let histories = thread.histories().len() + 1;
        self.histories += histories;
        self.largest = self.largest.max(histories);
        for branch in thread.histories() {
            self.repeats += usize::from(matches!(branch, Branch::Repeat { .. }));
        }
    }
}

/// How many events the table has for a thread with this many.
fn listed(events: u32) -> usize {
    events as usize + 1
}

fn threads(view: View<'_>) -> usize {
    let threads = view.inputs().map(|input| input.threads().len());
    threads.max().unwrap_or(0)
}

/// The input of a program that has no choice.
pub(crate) fn only_input(view: View<'_>) -> Option<Input<'_>> {
    let mut inputs = view.inputs();
    let first = inputs.next()?;
    inputs.next().is_none().then_some(first)
}

/// The tables in their words.
struct Tables<'a> {
    parts: &'a mut [PartWords],
    events: &'a mut [EventWords],
    waits: &'a mut [WaitWords],
    places: &'a mut [PlaceWord],
    histories: &'a mut [HistoryWords],
    repeats: &'a mut [RepeatWords],
    /// How many of them are used.
    used: usize,
    /// The histories of the thread in hand, by number.
    numbered: &'a mut [u32],
}

/// Divides `words`, which are all zero, into tables of these sizes.
fn divide(words: &mut [u32], sizes: Sizes, flags: u32) -> Option<Tables<'_>> {
    let (head, rest) = words.split_at_mut_checked(HEAD)?;
    let lengths = [
        sizes.parts,
        sizes.events,
        sizes.waits,
        sizes.places,
        sizes.threads,
        sizes.slots,
        sizes.repeats,
    ];
    for (word, length) in head.iter_mut().zip(lengths) {
        *word = length as u32;
    }
    head[HEAD - 1] = flags;
    let (parts, rest) = rest.split_at_mut_checked(4 * sizes.parts)?;
    let (events, rest) = rest.split_at_mut_checked(3 * sizes.events)?;
    let (waits, rest) = rest.split_at_mut_checked(2 * sizes.waits)?;
    let (places, rest) = rest.split_at_mut_checked(sizes.places)?;
    let (histories, rest) = rest.split_at_mut_checked(4 * sizes.slots)?;
    let (repeats, rest) = rest.split_at_mut_checked(2 * sizes.repeats)?;
    Some(Tables {
        parts: parts.as_chunks_mut().0,
        events: events.as_chunks_mut().0,
        waits: waits.as_chunks_mut().0,
        places,
        histories: histories.as_chunks_mut().0,
        repeats: repeats.as_chunks_mut().0,
        used: sizes.parts,
        numbered: rest,
    })
}

impl Tables<'_> {
    /// Enters what a thread with this number can do; returns how many repeats there are then.
    #[inline(never)]
    fn enter(&mut self, number: u32, thread: Thread<'_>, mut repeats: usize) -> Option<usize> {
        *self.numbered.first_mut()? = number;
        let mut known = 1;
        for branch in thread.histories() {
            let numbered = |number: u32| self.numbered.get(number as usize).copied();
            match branch {
                Branch::Event { after, site } | Branch::Thread { after, site } => {
                    let address = match site {
                        NONE => 0,
                        _ => self.places.get(site as usize)? >> 2,
                    };
                    let address = match branch {
                        Branch::Thread { .. } => address | THREAD,
                        _ => address,
                    };
                    let next = self.succeed(numbered(after)?, address)?;
                    *self.numbered.get_mut(known)? = next;
                    known += 1;
                }
                Branch::Repeat { from, to } => {
                    let (from, to) = (numbered(from)?, numbered(to)?);
                    self.histories.get_mut(from as usize)?[1] |= REPEATS;
                    *self.repeats.get_mut(repeats)? = [from, to];
                    repeats += 1;
                }
                Branch::Open { at } => {
                    let at = numbered(at)?;
                    self.histories.get_mut(at as usize)?[1] |= OPEN;
                }
            }
        }
        Some(repeats)
    }

    /// The history that follows another one by an event at this address. A new one is entered behind the other
    /// successors, because the successors that were explored first are met most.
    fn succeed(&mut self, history: u32, address: u32) -> Option<u32> {
        if let Some((known, _)) = after(self.histories, history, address) {
            return Some(known);
        }
        let new = self.used as u32;
        *self.histories.get_mut(self.used)? = [address, 0, 0, history];
        self.used += 1;
        let mut last = self.histories.get(history as usize)?[1] >> 2;
        if last == 0 {
            self.histories.get_mut(history as usize)?[1] |= new << 2;
            return Some(new);
        }
        while let sibling @ 1.. = self.histories.get(last as usize)?[2] {
            last = sibling;
        }
        self.histories.get_mut(last as usize)?[2] = new;
        Some(new)
    }
}

const NO_ROOM: Why = "no memory for the prefix";

/// Until main creates its first thread, its events are counted, and nothing more.
pub(crate) fn beginning(
    view: View<'_>,
    executable: Executable<'_>,
    words: &mut [u32],
) -> Result<(), Why> {
    let sizes = Sizes::of_beginning(view);
    let mut tables = divide(words, sizes, flags(view) | UNDECIDED).ok_or(NO_ROOM)?;
    for part in tables.parts.iter_mut() {
        *part = [NONE, 0, 0, sizes.events as u32 - 1];
    }
    tables.events.fill([ANY, 0, 0]);
    places(view, executable, tables.places)?;
    let mut repeats = 0;
    for main in mains(view) {
        repeats = tables.enter(0, main, repeats).ok_or(NO_ROOM)?;
    }
    tables.places.sort_unstable();
    Ok(())
}

/// The prefix for one input.
pub(crate) fn whole(
    view: View<'_>,
    input: Input<'_>,
    executable: Executable<'_>,
    words: &mut [u32],
) -> Result<(), Why> {
    let sizes = Sizes::of(view, input);
    let mut tables = divide(words, sizes, flags(view)).ok_or(NO_ROOM)?;
    places(view, executable, tables.places)?;
    let mut repeats = 0;
    for (number, thread) in input.threads().enumerate() {
        let entered = tables.enter(number as u32, thread, repeats);
        repeats = entered.ok_or(NO_ROOM)?;
    }
    let (mut first, mut waiting) = (0, 0);
    for (part, thread) in tables.parts.iter_mut().zip(input.threads()) {
        *part = [thread.parent, thread.child, first as u32, thread.limit];
        let mine = &mut tables.events[first..first + listed(thread.limit)];
        for (event, site) in mine.iter_mut().zip(thread.events()) {
            event[0] = site.map_or(ANY, |site| tables.places[site as usize] >> 2);
        }
        for wait in thread.waits() {
            let event = &mut mine[wait.event as usize];
            if event[2] == 0 {
                event[1] = waiting as u32;
            }
            event[2] += 2;
            tables.waits[waiting] = [wait.thread, wait.count];
            waiting += 1;
        }
        first += listed(thread.limit);
    }
    for &[thread, count] in tables.waits.iter() {
        let [_, _, first, events] = tables.parts[thread as usize];
        if count > 0 && count <= events {
            tables.events[first as usize + count as usize - 1][2] |= 1;
        }
    }
    if tables
        .parts
        .iter()
        .any(|part| is_torn(part, tables.events, executable))
    {
        return Err(
            "the prefix has other threads act in the middle of a copy, which cannot be enforced",
        );
    }
    tables.places.sort_unstable();
    Ok(())
}

/// Whether the thread has accesses that cannot be held apart, one of which somebody waits for while
/// a later one waits itself: the thread could make neither.
fn is_torn(
    &[_, _, first, count]: &PartWords,
    events: &[EventWords],
    executable: Executable<'_>,
) -> bool {
    let first = first as usize;
    let mine = events
        .get(first..first + count as usize)
        .unwrap_or_default();
    let mark = |site: u32| executable.removed.binary_search(&(site | TOGETHER)).ok();
    let mut awaited = false;
    let mut before = None;
    for &[site, _, how] in mine {
        let marked = if site == ANY { None } else { mark(site) };
        // A copy's load, which is announced second, is made first.
        let follows = match (before, marked) {
            (Some(before), Some(marked)) => before == marked || before == marked + 1,
            _ => false,
        };
        if follows && awaited && how >> 1 > 0 {
            return true;
        }
        awaited = follows && awaited || how & 1 != 0;
        before = marked;
    }
    false
}

fn flags(view: View<'_>) -> u32 {
    let flag = |flag, how| if view.flags().contains(flag) { how } else { 0 };
    flag(Flags::PLAIN_EVENTS, PLAIN_EVENTS) | flag(Flags::ENDS, ENDS)
}

/// The places that the verifier knows, in the order of the file.
fn places(view: View<'_>, executable: Executable<'_>, places: &mut [PlaceWord]) -> Result<(), Why> {
    let plain_events = view.flags().contains(Flags::PLAIN_EVENTS);
    for (place, site) in places.iter_mut().zip(view.sites()) {
        let counted = site.class == Class::Counted;
        // Events after main belong to no function.
        if site.function.is_empty() && !counted {
            continue;
        }
        let ordered = counted || plain_events && !site.alone;
        let known = executable.address(site.function, site.occurrence, site.offset);
        let Some(address) = known else {
            return Err("the prefix file names a function that the program does not have");
        };
        let removed = |how| executable.removed.binary_search(&(address | how)).is_ok();
        if ordered && removed(0) || (counted || site.tracked) && removed(UNCOUNTED) {
            return Err("the prefix file needs what was taken out of the program: build it again");
        }
        let how = |is, how| if is { how } else { 0 };
        *place = address << 2 | how(counted, COUNTED) | how(site.tracked, TRACKED);
    }
    Ok(())
}

impl Executable<'_> {
    /// Where a place of the verifier's is.
    fn address(self, function: &str, occurrence: u32, offset: u32) -> Option<u32> {
        let name = hash(function.as_bytes(), occurrence);
        let found = self.functions.binary_search_by_key(&name, |code| code.name);
        let function = self.functions.get(found.ok()?)?;
        (offset <= function.size).then_some(function.start + offset)
    }
}
