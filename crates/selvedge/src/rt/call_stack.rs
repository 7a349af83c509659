//! Reads the call stack of the running thread: where in the program it is, and whether it is dropping values of
//! `std::sync::Arc`s.
//!
//! Names are found from the symbols of the test program, which takes milliseconds, so the results are kept for each
//! call stack.

use std::backtrace::Backtrace;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::engine::host;
use super::memory::{self, Owner};

/// How many values of `std::sync::Arc`s are being dropped in each call stack, which is given by its return
/// addresses. `None` where there are no symbols.
pub(super) type CallStacks = FxHashMap<Vec<usize>, Option<usize>>;

/// The calls of each call stack, which is given by its return addresses.
pub(super) type Recorded = FxHashMap<Vec<usize>, Arc<Backtrace>>;

/// The most call stacks that are recorded: finding the names of one takes about a millisecond.
const MOST: usize = 2_000;

/// The calls that the running thread is in, unless too many others are recorded.
#[cold]
pub(super) fn recorded() -> Option<Arc<Backtrace>> {
    let addresses = return_addresses();
    let (known, full) = host(|state| {
        let known = state.recorded.get(&addresses).cloned();
        (known, state.recorded.len() >= MOST)
    });
    if known.is_some() || full {
        return known;
    }
    let calls = Arc::new(Backtrace::force_capture());
    host(|state| state.recorded.insert(addresses.clone(), Arc::clone(&calls)));
    Some(calls)
}

/// How many values of `std::sync::Arc`s the running thread is dropping, those inside of this crate's own
/// `Arc`s included. `None` if the program has no symbols.
///
/// The last owner of such a value is ordered after what the other owners did (see [`owners`](super::owners)).
#[cold]
pub(super) fn std_arcs_being_dropped() -> Option<usize> {
    let owner = memory::allocate_for(Owner::Checker);
    let addresses = return_addresses();
    let known = host(|state| state.call_stacks.get(&addresses).copied());
    let dropped = known.unwrap_or_else(|| {
        let dropped = frames(drops_of_std_arcs);
        host(|state| state.call_stacks.insert(addresses.clone(), dropped));
        dropped
    });
    drop(addresses);
    memory::allocate_for(owner);
    dropped
}

unsafe extern "C-unwind" {
    // Of the unwinder that the standard library is linked with.
    fn _Unwind_Backtrace(
        visit: extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

/// The return addresses of the running thread, the innermost first.
fn return_addresses() -> Vec<usize> {
    extern "C-unwind" fn visit(frame: *mut c_void, found: *mut c_void) -> c_int {
        // SAFETY: `found` is the vector below, and the unwinder passes a frame of its own.
        unsafe { (*found.cast::<Vec<usize>>()).push(_Unwind_GetIP(frame)) };
        0
    }
    let mut found: Vec<usize> = Vec::new();
    // SAFETY: `visit` is given the vector, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    found
}

/// The frames of the running thread, each with its name and its place.
#[cold]
#[inline(never)]
pub(super) fn frames<R>(look: impl FnOnce(&[String]) -> R) -> R {
    let owner = memory::allocate_for(Owner::Checker);
    let frames = split_frames(&Backtrace::force_capture().to_string());
    let found = look(&frames);
    drop(frames);
    memory::allocate_for(owner);
    found
}

fn split_frames(trace: &str) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for line in trace.lines() {
        let number = line.trim_start().split(':').next().unwrap_or_default();
        match frames.last_mut() {
            Some(frame) if number.parse::<u32>().is_err() => frame.push_str(line),
            _ => frames.push(line.to_owned()),
        }
    }
    frames
}

/// How many of the frames drop the value of a `std::sync::Arc`. `None` if they have no names.
fn drops_of_std_arcs(frames: &[String]) -> Option<usize> {
    let name = |frame: &String| {
        let name = frame.split_once(": ").map_or("", |(_, name)| name);
        name.trim_start_matches('<').to_owned()
    };
    // The standard library has that function outlined, also where it is optimised.
    let drops = |frame: &&String| {
        let name = name(frame);
        let of_arc = name.starts_with("alloc::sync::Arc<") || frame.contains("alloc/src/sync.rs");
        of_arc && name.contains("drop_slow")
    };
    // The first frame is that of `frames`. How it is called depends on what the compiler wrote down.
    let first = frames.first().map(name).unwrap_or_default();
    let named = !first.is_empty() && !first.starts_with("unknown>");
    let dropped = frames.iter().filter(drops).count();
    named.then_some(dropped)
}

/// The file of a frame, below the directory of this crate's sources.
fn own_file(frame: &str) -> Option<PathBuf> {
    let file = frame.split(" at ").nth(1)?.trim();
    let file = file.rsplitn(3, ':').last()?;
    let path = Path::new(file);
    let path = match path.strip_prefix(".") {
        Ok(path) => std::env::current_dir().ok()?.join(path),
        Err(_) => path.to_owned(),
    };
    let below = path
        .strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
        .ok()?;
    Some(below.to_owned())
}

/// The place in the program where the running thread is: the first frame that belongs neither to
/// this crate nor to the standard library.
pub(super) fn program_place(frames: &[String]) -> Option<(String, u32, u32)> {
    let foreign = |frame: &&String| own_file(frame).is_none() && !frame.contains("/rustc/");
    let places = frames
        .iter()
        .filter(foreign)
        .filter_map(|frame| frame.split(" at ").nth(1));
    let parse = |place: &str| {
        let (rest, column) = place.trim().rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let file = file.strip_prefix("./").unwrap_or(file).to_owned();
        Some((file, line.parse().ok()?, column.parse().ok()?))
    };
    places.filter_map(parse).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: &str = concat!(
        "   1: selvedge::rt::call_stack::frames\n             at /a/selvedge/src/rt/call_stack.rs:7:8\n",
        "   2: alloc::sync::Arc<T,A>::drop_slow\n             at /rustc/1/library/alloc/src/sync.rs:1:2\n",
        "   3: <selvedge::sync::arc::Arc<T> as core::ops::drop::Drop>::drop\n             at ",
        env!("CARGO_MANIFEST_DIR"),
        "/src/sync/arc.rs:7:8\n   4: main\n             at ./main.rs:12:5\n"
    );

    #[test]
    fn frames_tell_where_a_thread_is() {
        let place = program_place(&split_frames(FRAMES)[2..]);
        assert_eq!(place, Some(("main.rs".to_owned(), 12, 5)));
    }

    #[test]
    fn frames_tell_whose_values_are_dropped() {
        let drops = |text: &str| drops_of_std_arcs(&split_frames(text));
        assert_eq!(drops(FRAMES), Some(1));
        assert_eq!(drops(&format!("{FRAMES}{FRAMES}")), Some(2));
        let of_rc = FRAMES.replace("sync::Arc<T,A>", "rc::Rc<alloc::sync::Arc<T>>");
        assert_eq!(drops(&of_rc.replace("src/sync.rs", "src/rc.rs")), Some(0));
        let newer = FRAMES.replace("alloc::sync::Arc<T,A>::", "<alloc::sync::Arc<T>>::");
        assert_eq!(drops(&newer), Some(1));
        let short = FRAMES.replace("selvedge::rt::call_stack::frames", "frames<usize, fn()>");
        assert_eq!(drops(&short), Some(1));
        assert_eq!(drops("   1: <unknown>\n   2: <unknown>\n"), None);
        assert_eq!(drops(""), None);
    }
}
