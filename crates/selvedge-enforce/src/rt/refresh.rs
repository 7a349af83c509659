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

/// A prefix file in memory.
#[derive(Clone, Copy)]
struct Mapped {
    bytes: &'static [u8],
    identity: (u64, u64, i64, i64),
}

/// Where the file is.
static mut PATH: [u8; 4096] = [0; 4096];
/// The file that the present plan is from; only touched by whoever holds [`LOOKING`].
static mut PRESENT: Mapped = Mapped {
    bytes: &[],
    identity: (0, 0, 0, 0),
};
/// Whether a thread is busy reading the file: others do not wait for it.
static LOOKING: AtomicBool = AtomicBool::new(true);
/// The picks of main's choices so far.
static PICKS: [AtomicU32; INPUTS] = [const { AtomicU32::new(0) }; INPUTS];
static PICKED: AtomicU32 = AtomicU32::new(0);
/// Whether the input is known: when main has created its first thread.
static DECIDED: AtomicBool = AtomicBool::new(false);
static ENVIRONMENT: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static PROCESSORS: AtomicU32 = AtomicU32::new(1);

/// How often it is worth to look again at once: with one processor, never.
#[inline]
pub(crate) fn spins(most: u32) -> u32 {
    match PROCESSORS.load(Ordering::Relaxed) {
        0 | 1 => 0,
        _ => most,
    }
}

/// Reads the prefix before main begins.
pub(crate) fn begin() {
    PROCESSORS.store(sys::processors(), Ordering::Relaxed);
    // SAFETY: the name ends with a zero; nobody changes the environment yet.
    let input = unsafe { sys::getenv(INPUT.as_ptr().cast()) };
    ENVIRONMENT.store(input.cast_mut(), Ordering::Relaxed);
    if !find_path() {
        return diverge::refuse(format_args!("the name of the prefix file is too long"));
    }
    let Some(mapped) = map() else {
        return diverge::refuse(format_args!(
            "cannot read the prefix file (PROGRAM.irs or $SELVEDGE_IRS)"
        ));
    };
    let view = match View::new(mapped.bytes) {
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
    unsafe { PRESENT = mapped };
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
    let mapped = unsafe { PRESENT };
    if let Ok(view) = View::new(mapped.bytes) {
        match chosen(view) {
            Some(input) if view.inputs().len() > 1 => take_up(view, input),
            Some(_) => {}
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
    // SAFETY: this thread has the flag.
    let present = unsafe { PRESENT };
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero and is not changed any more.
    let found = unsafe { sys::stat((&raw const PATH).cast(), &raw mut status) } == 0;
    if found
        && identity(&status) != present.identity
        && let Some(mapped) = map()
    {
        if replace(present, mapped) {
            // SAFETY: this thread has the flag, and plans are copies.
            unsafe {
                PRESENT = mapped;
                sys::munmap(
                    present.bytes.as_ptr().cast_mut().cast(),
                    present.bytes.len(),
                );
            }
        } else {
            // SAFETY: nobody else has seen this mapping. So that it is not looked at again:
            unsafe {
                PRESENT.identity = mapped.identity;
                sys::munmap(mapped.bytes.as_ptr().cast_mut().cast(), mapped.bytes.len());
            }
        }
    }
    LOOKING.store(false, Ordering::Release);
}

fn replace(present: Mapped, mapped: Mapped) -> bool {
    let (Ok(old), Ok(new)) = (View::new(present.bytes), View::new(mapped.bytes)) else {
        return false;
    };
    if weaker(old, new).is_err() || core::ptr::eq(plan::present(), &raw const plan::FREE) {
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

fn find_path() -> bool {
    let path = &raw mut PATH;
    // SAFETY: called once, before there are other threads; writes stay inside of the array.
    unsafe {
        let path: &mut [u8; 4096] = &mut *path;
        let named = sys::getenv(VARIABLE.as_ptr().cast());
        if !named.is_null() {
            for (at, byte) in path.iter_mut().enumerate() {
                *byte = named.add(at).read() as u8;
                if *byte == 0 {
                    return true;
                }
            }
            return false;
        }
        let room = path.len() - ENDING.len();
        let own = c"/proc/self/exe".as_ptr();
        let length = sys::readlink(own, path.as_mut_ptr().cast(), room);
        if length <= 0 || length as usize >= room {
            return false;
        }
        path[length as usize..][..ENDING.len()].copy_from_slice(ENDING);
    }
    true
}

fn identity(status: &Status) -> (u64, u64, i64, i64) {
    let modified = status.modified;
    let (seconds, nanoseconds) = (modified.seconds, modified.nanoseconds);
    (status.device, status.inode, seconds, nanoseconds)
}

/// Maps the file.
fn map() -> Option<Mapped> {
    const READ_ONLY_CLOSE_ON_EXEC: c_int = 0o2_000_000;
    const READ: c_int = 1;
    const PRIVATE_POPULATED: c_int = 0x2 | 0x8000;
    let mut status = Status::EMPTY;
    // SAFETY: the path ends with a zero; the file is mapped as long as it is, and replaced but never changed.
    unsafe {
        let file = sys::open((&raw const PATH).cast(), READ_ONLY_CLOSE_ON_EXEC);
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
        Some(Mapped {
            bytes: core::slice::from_raw_parts(start.cast(), size),
            identity: identity(&status),
        })
    }
}
