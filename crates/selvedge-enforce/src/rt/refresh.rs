//! Finds the prefix file, reads it, and notices when it is replaced by a weaker one.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use selvedge_irs_format::{Class, Flags, Input, View, weaker};

use super::diverge;
use super::hash::hash;
use super::image;
use super::plan::{self, ANY, Event, Part, Place, Plan, Wait, space};
use super::sys::{self, Status};

/// Names the prefix file; without it, it lies beside the executable with `.irs` behind its name.
const VARIABLE: &[u8] = b"SELVEDGE_IRS\0";
const ENDING: &[u8] = b".irs\0";
/// Names the picks of main's choices, with commas between them.
const INPUT: &[u8] = b"SELVEDGE_INPUT\0";
/// How many choices can be inputs.
const INPUTS: usize = 64;

/// What tells a file from the one that it replaces.
type Identity = (u64, u64, i64, i64);

/// Where the file is: a path that ends with a zero.
static PATH: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
/// The file that the present plan is from; only touched by whoever holds [`LOOKING`].
static mut PRESENT: &[u8] = &[];
/// Which file was looked at last; the same holds for it.
static mut SEEN: Identity = (0, 0, 0, 0);
/// Whether the present file is mapped. A small one that is found first is read, which is quicker.
static mut MAPPED: bool = false;
/// How large that may be.
const SMALL: usize = 16 << 10;

/// Whether a thread is busy reading the file: others do not wait for it.
static LOOKING: AtomicBool = AtomicBool::new(true);
/// The picks of main's choices so far.
static PICKS: [AtomicU32; INPUTS] = [const { AtomicU32::new(0) }; INPUTS];
static PICKED: AtomicU32 = AtomicU32::new(0);
/// Whether the input is known: when main has created its first thread.
static DECIDED: AtomicBool = AtomicBool::new(false);
static ENVIRONMENT: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
/// How many processors there are, once somebody asked.
static PROCESSORS: AtomicU32 = AtomicU32::new(0);

/// How often it is worth to look again at once: with one processor, never.
#[inline]
pub(crate) fn spins(most: u32) -> u32 {
    let mut processors = PROCESSORS.load(Ordering::Relaxed);
    if processors == 0 {
        processors = sys::processors();
        PROCESSORS.store(processors, Ordering::Relaxed);
    }
    if processors > 1 { most } else { 0 }
}

/// Reads the prefix before main begins.
pub(crate) fn begin() {
    // SAFETY: the name ends with a zero; nobody changes the environment yet.
    let input = unsafe { sys::getenv(INPUT.as_ptr().cast()) };
    ENVIRONMENT.store(input.cast_mut(), Ordering::Relaxed);
    let Some(bytes) = find() else {
        return diverge::refuse(format_args!(
            "cannot read the prefix file (PROGRAM.irs or $SELVEDGE_IRS)"
        ));
    };
    let view = match View::new(bytes) {
        Ok(view) => view,
        Err(damage) => return diverge::refuse(format_args!("{damage}")),
    };
    if view.fingerprint() != image::head().fingerprint {
        return diverge::refuse(format_args!("the prefix file is for another program"));
    }
    let most = view.inputs().map(|input| input.threads().len()).max();
    if !plan::make_counters(most.unwrap_or(0) as u32) {
        return diverge::refuse(format_args!("no memory for the prefix"));
    }
    // SAFETY: nobody else looks before the flag is given back.
    unsafe { PRESENT = bytes };
    // Main's events before its first thread are the same whatever the input is.
    if let Some(input) = view.inputs().next() {
        take_up(view, input);
    }
    LOOKING.store(false, Ordering::Release);
}

/// Main is about to create its first thread: its input is known now.
pub(crate) fn decide() {
    if DECIDED.swap(true, Ordering::AcqRel) || LOOKING.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: this thread has the flag.
    let present = unsafe { PRESENT };
    // Nothing to choose from, as a rule.
    let picked = PICKED.load(Ordering::Acquire) != 0;
    if picked && let Ok(view) = View::new(present) {
        match chosen(view) {
            Some(input) => take_up(view, input),
            None => diverge::refuse(format_args!("this input was not verified")),
        }
    }
    LOOKING.store(false, Ordering::Release);
}

fn chosen(view: View<'static>) -> Option<Input<'static>> {
    let count = (PICKED.load(Ordering::Acquire) as usize).min(INPUTS);
    let picks = PICKS[..count].iter();
    let picks = picks.map(|pick| u64::from(pick.load(Ordering::Relaxed)));
    view.inputs().find(|input| input.values().eq(picks.clone()))
}

/// The pick of the program's next choice: as the environment says, or else the first alternative.
pub(crate) fn pick(alternatives: u32) -> u32 {
    let number = PICKED.load(Ordering::Relaxed);
    let pick = value(number).min(alternatives.saturating_sub(1));
    if !DECIDED.load(Ordering::Relaxed)
        && let Some(at) = PICKS.get(number as usize)
    {
        at.store(pick, Ordering::Relaxed);
        PICKED.store(number + 1, Ordering::Release);
    }
    pick
}

/// The number at a place of the list in the environment.
fn value(place: u32) -> u32 {
    let text = ENVIRONMENT.load(Ordering::Relaxed);
    if text.is_null() {
        return 0;
    }
    let (mut at, mut commas, mut number) = (text.cast_const(), 0, 0_u32);
    loop {
        // SAFETY: up to the zero at the end of the string.
        let byte = unsafe { at.read() } as u8;
        match byte {
            0 => break,
            b',' => commas += 1,
            b'0'..=b'9' if commas == place => {
                number = number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            }
            _ => {}
        }
        at = at.wrapping_add(1);
    }
    number
}

/// Takes up a newer prefix, if there is one and it is weaker.
#[cold]
pub(crate) fn look() {
    if !DECIDED.load(Ordering::Acquire) || LOOKING.swap(true, Ordering::Acquire) {
        return;
    }
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero and is not changed any more.
    let found = unsafe { sys::stat(PATH.load(Ordering::Relaxed), &raw mut status) } == 0;
    // SAFETY: this thread has the flag.
    let (present, seen) = unsafe { (PRESENT, SEEN) };
    if found
        && identity(&status) != seen
        && let Some((bytes, identity)) = map()
    {
        let superseded = match replace(present, bytes) {
            true => present,
            false => bytes,
        };
        // SAFETY: this thread has the flag, nobody else knows the new file, and plans are copies of the old one.
        unsafe {
            SEEN = identity;
            let replaced = core::ptr::eq(superseded, present);
            if MAPPED || !replaced {
                sys::munmap(superseded.as_ptr().cast_mut().cast(), superseded.len());
            }
            if replaced {
                PRESENT = bytes;
                MAPPED = true;
            }
        }
    }
    LOOKING.store(false, Ordering::Release);
}

fn replace(present: &'static [u8], bytes: &'static [u8]) -> bool {
    let (Ok(old), Ok(new)) = (View::new(present), View::new(bytes)) else {
        return false;
    };
    let free = core::ptr::eq(plan::present(), &raw const plan::FREE);
    if free || new.generation() == old.generation() || weaker(old, new).is_err() {
        return false;
    }
    match chosen(new) {
        Some(input) => take_up(new, input),
        None => return false,
    }
    true
}

/// Makes the prefix for `input` the one that holds.
fn take_up(view: View<'_>, input: Input<'_>) {
    match build(view, input) {
        Ok(plan) => plan::publish(plan),
        Err(why) => diverge::refuse(format_args!("{why}")),
    }
}

/// The prefix in the form that threads follow.
fn build(view: View<'_>, input: Input<'_>) -> Result<&'static Plan, &'static str> {
    let threads = input.threads();
    let events = threads.map(|thread| thread.limit as usize).sum();
    let empty = Part {
        place: (0, 0),
        events: (0, 0),
    };
    let parts = space(input.threads().len(), empty);
    let nothing = Event {
        site: ANY,
        waits: (0, 0),
        awaited: false,
    };
    let list = space(events, nothing);
    let none = Wait {
        thread: 0,
        count: 0,
    };
    let waits = space(input.waits(), none);
    let unknown = Place {
        site: 0,
        counted: false,
    };
    let places = space(view.sites().len(), unknown);
    let full = parts.len() == input.threads().len() && list.len() == events;
    if !full || waits.len() != input.waits() || places.len() != view.sites().len() {
        return Err("no memory for the prefix");
    }
    for (place, site) in places.iter_mut().zip(view.sites()) {
        let known = address(site.function, site.occurrence, site.offset);
        let counted = site.class == Class::Counted;
        let Some(site) = known else {
            return Err("the prefix file names a function that the program does not have");
        };
        if counted && is_removed(site) {
            return Err("the prefix file counts what was taken out of the program: build it again");
        }
        *place = Place { site, counted };
    }
    let (mut first, mut waiting) = (0, 0);
    for (part, thread) in parts.iter_mut().zip(input.threads()) {
        *part = Part {
            place: (thread.parent, thread.child),
            events: (first as u32, thread.limit),
        };
        let mine = &mut list[first..first + thread.limit as usize];
        for (event, site) in mine.iter_mut().zip(thread.events()) {
            event.site = site.map_or(ANY, |site| places[site as usize].site);
        }
        for wait in thread.waits() {
            let event = &mut mine[wait.event as usize];
            if event.waits.1 == 0 {
                event.waits.0 = waiting as u32;
            }
            event.waits.1 += 1;
            waits[waiting] = Wait {
                thread: wait.thread,
                count: wait.count,
            };
            waiting += 1;
        }
        first += thread.limit as usize;
    }
    for wait in waits.iter() {
        let part = parts[wait.thread as usize];
        if wait.count > 0 && wait.count <= part.events.1 {
            list[part.events.0 as usize + wait.count as usize - 1].awaited = true;
        }
    }
    places.sort_unstable();
    let plan = space(
        1,
        Plan {
            parts,
            events: list,
            waits,
            places,
            strict: true,
            plain_events: view.flags().contains(Flags::PLAIN_EVENTS),
        },
    );
    plan.first().ok_or("no memory for the prefix")
}

/// Where a place of the verifier's is in this executable.
fn address(function: &str, occurrence: u32, offset: u32) -> Option<usize> {
    let name = hash(function.as_bytes(), occurrence);
    let functions = image::functions();
    let found = functions.binary_search_by_key(&name, |function| function.name);
    let function = functions[found.ok()?];
    (offset <= function.size).then(|| image::base() + function.start as usize + offset as usize)
}

fn is_removed(site: usize) -> bool {
    let offset = (site - image::base()) as u32;
    image::removed().binary_search(&offset).is_ok()
}

/// Finds the file and reads it; before there are other threads.
fn find() -> Option<&'static [u8]> {
    // SAFETY: the name ends with a zero, and so does what it is given.
    let named = unsafe { sys::getenv(VARIABLE.as_ptr().cast()) };
    if !named.is_null() {
        return (set_path(named, b"\0")).then(open_first).flatten();
    }
    // What the program was started as is known for nothing.
    const EXECUTED_AS: usize = 31;
    // SAFETY: the kernel passes a string, or nothing.
    let started = unsafe { sys::getauxval(EXECUTED_AS) };
    let started = core::ptr::with_exposed_provenance::<c_char>(started);
    if !started.is_null()
        && set_path(started, ENDING)
        && let Some(bytes) = open_first()
    {
        return Some(bytes);
    }
    let mut own = [0; 4000];
    // SAFETY: there is so much room, and a zero behind it.
    let length = unsafe {
        let name = c"/proc/self/exe".as_ptr();
        sys::readlink(name, own.as_mut_ptr(), own.len() - 1)
    };
    (length > 0 && set_path(own.as_ptr(), ENDING))
        .then(open_first)
        .flatten()
}

/// Notes where the file is: the path that ends with a zero at `first`, and `ending`.
fn set_path(first: *const c_char, ending: &[u8]) -> bool {
    let mut length = 0;
    // SAFETY: the string is read up to its zero.
    while unsafe { first.add(length).read() } != 0 {
        length += 1;
    }
    // SAFETY: so many bytes are there.
    let first = unsafe { core::slice::from_raw_parts(first.cast::<u8>(), length) };
    let path = space(length + ending.len(), 0_u8);
    for (to, from) in path.iter_mut().zip(first.iter().chain(ending)) {
        *to = *from;
    }
    PATH.store(path.as_mut_ptr().cast(), Ordering::Relaxed);
    !path.is_empty()
}

/// Reads the file for the first time.
fn open_first() -> Option<&'static [u8]> {
    // SAFETY: the path ends with a zero; there are no other threads that could know the memory.
    unsafe {
        let file = sys::open(PATH.load(Ordering::Relaxed), READ_ONLY_CLOSE_ON_EXEC);
        if file < 0 {
            return None;
        }
        let room = plan::room(SMALL);
        let size = sys::read(file, room.as_mut_ptr().cast(), room.len());
        sys::close(file);
        let size = usize::try_from(size).ok()?;
        if size < room.len() {
            plan::use_room(size);
            return room.get(..size);
        }
        let (bytes, identity) = map()?;
        SEEN = identity;
        MAPPED = true;
        Some(bytes)
    }
}

fn identity(status: &Status) -> Identity {
    let modified = status.modified;
    let (seconds, nanoseconds) = (modified.seconds, modified.nanoseconds);
    (status.device, status.inode, seconds, nanoseconds)
}

const READ_ONLY_CLOSE_ON_EXEC: c_int = 0o2_000_000;

/// Maps the file.
fn map() -> Option<(&'static [u8], Identity)> {
    const READ: c_int = 1;
    const PRIVATE_POPULATED: c_int = 0x2 | 0x8000;
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero; the file is mapped as long as it is, and replaced but never changed.
    unsafe {
        let file = sys::open(PATH.load(Ordering::Relaxed), READ_ONLY_CLOSE_ON_EXEC);
        if file < 0 {
            return None;
        }
        let known = sys::fstat(file, &raw mut status) == 0 && status.size > 0;
        let size = status.size as usize;
        let start = match known {
            true => sys::mmap(
                core::ptr::null_mut(),
                size,
                READ,
                PRIVATE_POPULATED,
                file,
                0,
            ),
            false => core::ptr::without_provenance_mut(usize::MAX),
        };
        sys::close(file);
        if start.addr() == usize::MAX {
            return None;
        }
        let bytes = core::slice::from_raw_parts(start.cast(), size);
        Some((bytes, identity(&status)))
    }
}
