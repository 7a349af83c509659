//! The calendar functions whose results are larger than a word. Those that return a buffer which
//! their next call overwrites have it in a variable of the shim: two threads that use one race.

use selvedge_core::{FailureKind, Site};

use super::program;
use crate::current;

entry_points![
    selvedge_calendar(4),
    selvedge_asctime(3),
    asctime_r(2),
    ctime_r(2),
];

/// The parts of a moment, as `struct tm` has them.
type Parts = [u64; 7];
/// The text that `asctime` makes of them.
type Text = [u8; 26];

/// `gmtime` or `localtime` of the moment at `time`; none if its year is no `int`.
fn parts_of(time: usize, local: bool, site: Site) -> Option<Parts> {
    let time: libc::time_t = program::read(time, site);
    let mut parts: Parts = [0; 7];
    let to = (&raw mut parts).cast();
    // SAFETY: two locals, the second of the size of `struct tm`.
    let result = unsafe {
        match local {
            false => libc::gmtime_r(&raw const time, to),
            true => libc::localtime_r(&raw const time, to),
        }
    };
    if result.is_null() {
        program::error(libc::EOVERFLOW);
    }
    (!result.is_null()).then_some(parts)
}

/// Writes what `asctime` makes of `parts`.
fn write_text(parts: &Parts, text: usize, site: Site) -> usize {
    let mut made = [0_u8; 64];
    // SAFETY: a copy of the program's `struct tm`, and more room than any number of years takes.
    let result = unsafe { libc::asctime_r((&raw const *parts).cast(), made.as_mut_ptr().cast()) };
    if result.is_null() {
        program::error(libc::EOVERFLOW);
        return 0;
    }
    let Some(made) = made.first_chunk().filter(|made: &&Text| made[25] == 0) else {
        let what = "asctime makes more than the 26 bytes that its buffer has";
        current::fail(FailureKind::WildAccess, what.to_owned(), site);
    };
    program::write(text, *made, site);
    text
}

/// `gmtime` or `localtime`, into `parts`.
extern "C" fn selvedge_calendar(time: usize, parts: usize, local: usize, site: usize) -> usize {
    let site = Site(site as u64);
    let Some(made) = parts_of(time, local != 0, site) else {
        return 0;
    };
    program::write(parts, made, site);
    parts
}

/// `asctime`, into `text`.
extern "C" fn selvedge_asctime(parts: usize, text: usize, site: usize) -> usize {
    let site = Site(site as u64);
    write_text(&program::read(parts, site), text, site)
}

extern "C" fn asctime_r(parts: usize, text: usize) -> usize {
    let site = current::site();
    write_text(&program::read(parts, site), text, site)
}

extern "C" fn ctime_r(time: usize, text: usize) -> usize {
    let site = current::site();
    parts_of(time, true, site).map_or(0, |parts| write_text(&parts, text, site))
}
