//! Takes up the prefix, chooses the part for the program's input, and notices when the file is
//! replaced by a weaker one.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use selvedge_irs_format::{Input, View, weaker};

use super::compose;
use super::composed::{Why, only_input};
use super::diverge;
use super::file::{self, Contents, First};
use super::image::{self, Identity};
use super::plan::{self, Plan};
use super::sys;
use super::thread::{self, COUNTING};

/// Names the picks of main's choices, with commas between them.
const INPUT: &[u8] = b"SELVEDGE_INPUT\0";
/// How many choices can be inputs.
const INPUTS: usize = 64;

/// The file that the present plan is from, and which file was looked at last; only touched by
/// the thread that holds [`LOOKING`].
static mut PRESENT: Contents = Contents::NONE;
static mut SEEN: Option<Identity> = None;
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
    let (first, identity) = file::find();
    let contents = match first {
        First::BuiltIn(contents) => {
            take_up(compose::plan(image::composed()).and_then(counted));
            contents
        }
        First::Other(contents) => match read(contents) {
            true => contents,
            false => return,
        },
        First::Missing => {
            return diverge::refuse(format_args!(
                "cannot read the prefix file (PROGRAM.irs or $SELVEDGE_IRS)"
            ));
        }
    };
    // SAFETY: nobody else looks before the flag is given back.
    unsafe { (PRESENT, SEEN) = (contents, identity) };
    LOOKING.store(false, Ordering::Release);
}

/// Takes up a prefix that is not part of the program; whether there is one.
#[cold]
fn read(contents: Contents) -> bool {
    let view = match View::new(contents.bytes) {
        Ok(view) => view,
        Err(damage) => {
            diverge::refuse(format_args!("{damage}"));
            return false;
        }
    };
    if view.fingerprint() != image::head().fingerprint {
        diverge::refuse(format_args!("the prefix file is for another program"));
        return false;
    }
    let plan = match only_input(view) {
        Some(input) => compose::whole(view, input),
        None => compose::beginning(view),
    };
    take_up(plan.and_then(counted));
    true
}

/// A plan, if there are counters for its threads.
fn counted(plan: &'static Plan) -> Result<&'static Plan, Why> {
    match plan::make_counters(plan.threads) {
        true => Ok(plan),
        false => Err(compose::NO_MEMORY),
    }
}

/// Main is about to create its first thread: its input is known now.
pub(crate) fn decide() {
    if DECIDED.swap(true, Ordering::AcqRel) || LOOKING.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: this thread has the flag.
    let present = unsafe { PRESENT };
    // As a rule there is nothing to choose from.
    let any = PICKED.load(Ordering::Acquire) != 0 || plan::present().undecided;
    if any
        && !plan::is_free()
        && let Ok(view) = View::new(present.bytes)
    {
        match chosen(view) {
            Some(input) => take_up(compose::whole(view, input)),
            None => diverge::refuse(format_args!("this input was not verified")),
        }
        let me = thread::current();
        let more = plan::present().list(me.index).len() > me.next as usize;
        me.active &= !COUNTING;
        me.active |= if more { COUNTING } else { 0 };
    }
    LOOKING.store(false, Ordering::Release);
}

fn chosen(view: View<'static>) -> Option<Input<'static>> {
    let count = (PICKED.load(Ordering::Acquire) as usize).min(INPUTS);
    let picks = PICKS[..count].iter();
    let picks = picks.map(|pick| u64::from(pick.load(Ordering::Relaxed)));
    view.inputs().find(|input| input.values().eq(picks.clone()))
}

/// The pick of the program's next choice: as the environment says, or else the first alternative. A
/// pick that is none of the alternatives is an input that was not declared.
pub(crate) fn pick(alternatives: u32) -> u32 {
    let number = PICKED.load(Ordering::Relaxed);
    let input = !DECIDED.load(Ordering::Relaxed);
    let last = alternatives.saturating_sub(1);
    let pick = match value(number) {
        Some(pick) if pick <= last || !input => pick.min(last),
        None if !input => 0,
        wrong => {
            refuse_input(number, alternatives, wrong);
            0
        }
    };
    if input && let Some(at) = PICKS.get(number as usize) {
        at.store(pick, Ordering::Relaxed);
        PICKED.store(number + 1, Ordering::Release);
    }
    pick
}

#[cold]
fn refuse_input(number: u32, alternatives: u32, wrong: Option<u32>) {
    let number = number + 1;
    match wrong {
        Some(wrong) => diverge::refuse(format_args!(
            "this input was not verified: number {number} of SELVEDGE_INPUT is {wrong}, and there are {alternatives} alternatives"
        )),
        None => diverge::refuse(format_args!(
            "this input was not verified: number {number} of SELVEDGE_INPUT cannot be read"
        )),
    }
}

/// The number at a place of the list in the environment, zero if the list is not that long; nothing
/// if something else is there.
fn value(place: u32) -> Option<u32> {
    let text = ENVIRONMENT.load(Ordering::Relaxed);
    if text.is_null() {
        return Some(0);
    }
    let (mut at, mut commas, mut number) = (text.cast_const(), 0, 0_u32);
    loop {
        // SAFETY: up to the zero at the end of the string.
        let byte = unsafe { at.read() } as u8;
        match byte {
            0 => return Some(number),
            b',' => commas += 1,
            b'0'..=b'9' if commas == place => {
                number = number
                    .checked_mul(10)?
                    .checked_add(u32::from(byte - b'0'))?;
            }
            b' ' => {}
            _ if commas == place => return None,
            _ => {}
        }
        at = at.wrapping_add(1);
    }
}

/// Takes up a newer prefix, if there is one and it is weaker.
#[cold]
pub(crate) fn look() {
    if !DECIDED.load(Ordering::Acquire) || LOOKING.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: this thread has the flag.
    let (present, seen) = unsafe { (PRESENT, SEEN) };
    let found = file::present();
    if found.is_some()
        && found != seen
        && let Some((contents, identity)) = file::map()
    {
        let replaced = replace(present.bytes, contents.bytes);
        let (kept, superseded) = match replaced {
            true => (contents, present),
            false => (present, contents),
        };
        // SAFETY: this thread has the flag.
        unsafe { (PRESENT, SEEN) = (kept, Some(identity)) };
        superseded.forget();
    }
    LOOKING.store(false, Ordering::Release);
}

fn replace(present: &'static [u8], bytes: &'static [u8]) -> bool {
    let (Ok(old), Ok(new)) = (View::new(present), View::new(bytes)) else {
        return false;
    };
    let free = plan::is_free();
    if free || new.generation() == old.generation() || weaker(old, new).is_err() {
        return false;
    }
    // A file that does not fit the program leaves it with what it has.
    match chosen(new).map(|input| compose::whole(new, input)) {
        Some(Ok(plan)) => plan::publish(plan),
        _ => return false,
    }
    true
}

/// Makes a plan the one that holds.
fn take_up(plan: Result<&'static Plan, Why>) {
    match plan {
        Ok(plan) => plan::publish(plan),
        Err(why) => diverge::refuse(format_args!("{why}")),
    }
}
