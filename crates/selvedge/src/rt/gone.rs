//! The ends of objects: dropping one, or freeing the memory it is in, is a write to it, and every
//! later use is a failure.

use std::cell::Cell;
use std::panic::RefUnwindSafe;

use selvedge_core::failure::Other;
use selvedge_core::{Failure, FailureKind, Location, Site, ThreadId};

use super::call_stack::{frames, program_place, std_arcs_being_dropped};
use super::engine::{host, in_execution, stop};
use super::race::{AccessKind, CellId};
use super::state::State;
use super::stop::{fail, is_current, refuse};

/// The reference of a type of the interface to an object of the checker.
///
/// Freed memory is overwritten, so a handle in it has no valid stamp. A handle that is found in
/// memory when that is freed tells which objects end with it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Handle {
    stamp: u64,
    number: u32,
    of: Of,
    /// Where the object was when it was last accessed; it may have been moved since.
    home: Cell<usize>,
}

/// The kind of object that a handle belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Of {
    Place = 1,
    Cell = 2,
    /// A place that stands for a static, and never ends.
    Static = 3,
}

// SAFETY: all threads of a model run on one OS thread; elsewhere a handle is of no use.
unsafe impl Sync for Handle {}

// As for the atomics of `std`: a panic leaves nothing half done.
impl RefUnwindSafe for Handle {}

/// How an object came to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    end: End,
    how: How,
}

/// The end of a block or of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) thread: ThreadId,
    pub(super) site: Site,
    /// The meaning of the site, if it is not where the end happened.
    pub(super) when: &'static str,
}

impl End {
    pub(super) fn describe(&self, noun: &str) -> Other {
        Other {
            thread: self.thread,
            site: self.site,
            what: format!("{noun}{}", self.when),
            events: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Dropped,
    /// An object that was moved out before can go on elsewhere.
    Freed,
}

impl How {
    fn noun(self) -> &'static str {
        match self {
            How::Dropped => "drop",
            How::Freed => "free",
        }
    }
}

impl Handle {
    pub(super) fn of_place(stamp: u64, at: Location) -> Handle {
        Handle::new(stamp, at.0, Of::Place)
    }

    pub(super) fn of_static(stamp: u64, at: Location) -> Handle {
        Handle::new(stamp, at.0, Of::Static)
    }

    pub(super) fn of_cell(id: CellId) -> Handle {
        Handle::new(id.stamp, id.index, Of::Cell)
    }

    fn new(stamp: u64, number: u32, of: Of) -> Handle {
        let home = Cell::new(0);
        Handle {
            stamp,
            number,
            of,
            home,
        }
    }

    /// The location of a place; ends the execution if it belongs to another one.
    #[inline(always)]
    #[track_caller]
    pub(super) fn location(&self, site: Site) -> Location {
        self.find(site);
        Location(self.number)
    }

    /// The cell; ends the execution if it belongs to another one.
    #[inline(always)]
    #[track_caller]
    pub(super) fn cell(&self, site: Site) -> CellId {
        self.find(site);
        CellId {
            stamp: self.stamp,
            index: self.number,
        }
    }

    #[inline(always)]
    #[track_caller]
    fn find(&self, site: Site) {
        let here = std::ptr::from_ref(self).addr();
        if !is_current(self.stamp) {
            invalid(here, site);
        }
        if self.home.get() != here && self.of != Of::Static {
            self.home.set(here);
            host(|state| state.moved(self.of, self.number));
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !in_execution() {
            return;
        }
        if is_current(self.stamp) {
            if self.of != Of::Static {
                ends(|state, last_owner| {
                    state.end_object(self.of, self.number, How::Dropped, last_owner)
                });
            }
            return;
        }
        let here = std::ptr::from_ref(self).addr();
        let last = |state: &mut State| state.use_of_freed(here, state.threads[state.running].site);
        if let Some(failure) = host(last) {
            stop(|state| state.fail_late(failure));
        }
    }
}

/// Something ends; it is a failure if an access is not ordered before.
pub(super) fn ends(end: impl Fn(&mut State, bool) -> Result<(), Failure>) {
    if host(|state| state.looks_closer) {
        let place = frames(program_place);
        host(|state| {
            let site = place.map(|place| state.panic_site(Some(place)));
            state.current().ending = site;
        });
    }
    let ended = host(|state| {
        let site = state.current().ending;
        end(state, false).map_err(|failure| (failure, site))
    });
    let Err((failure, site)) = ended else {
        return;
    };
    let drops_std_arc = match std_arcs_being_dropped() {
        Some(dropped) => dropped > host(|state| state.current().destructors.len()),
        None => refuse(
            "an object ends that another thread has used, and this program has no symbols that would tell whether the \
             last owner of a std::sync::Arc drops it: build it without `strip`",
        ),
    };
    if !drops_std_arc {
        fail(failure);
    }
    let ended = host(|state| {
        state.note_owners();
        state.current().ending = site;
        end(state, true)
    });
    match ended {
        Ok(()) => {}
        Err(failure) if cfg!(feature = "allocator") => fail(failure),
        Err(_) => refuse(
            "an object ends that another thread has used, in a std::sync::Arc whose owners are not known without the \
             feature `allocator`: use selvedge::sync::Arc",
        ),
    }
}

/// The memory at `here` does not hold a handle of this execution.
#[cold]
#[inline(never)]
fn invalid(here: usize, site: Site) -> ! {
    if !in_execution() {
        stop(|_| {});
    }
    if let Some(failure) = host(|state| state.use_of_freed(here, site)) {
        stop(|state| state.fail_late(failure));
    }
    refuse(
        "an atomic, a lock or a cell of an earlier execution is used again: the model must create everything \
         it shares anew each time it runs (a static, or something the closure captured, was left over)",
    )
}

impl State {
    fn gone(&mut self, of: Of, number: u32) -> Option<&mut Option<Gone>> {
        let number = number as usize;
        match of {
            Of::Cell => self.cells.get_mut(number).map(|cell| &mut cell.gone),
            Of::Place | Of::Static => self.places.get_mut(number).map(|place| &mut place.gone),
        }
    }

    /// An object is accessed at another place than before.
    fn moved(&mut self, of: Of, number: u32) {
        let gone = self.gone(of, number);
        if let Some(gone) = gone.filter(|gone| gone.is_some_and(|gone| gone.how == How::Freed)) {
            *gone = None;
        }
    }

    /// An object ends, unless an access to it is not ordered before. `last_owner` says that the running thread drops
    /// the value of a `std::sync::Arc`.
    fn end_object(
        &mut self,
        of: Of,
        number: u32,
        how: How,
        last_owner: bool,
    ) -> Result<(), Failure> {
        let (site, when) = self.ending();
        let access = self.access(site);
        let clock = last_owner.then(|| self.clock_of_last_owner());
        let mut view = self.view();
        if let Some(clock) = &clock {
            view.clock = clock;
        }
        let (clash, what) = match of {
            Of::Cell => {
                let cell = &self.cells[number as usize];
                let clash = cell.race.clash(AccessKind::Write, &view);
                (clash, "UnsafeCell")
            }
            Of::Place | Of::Static => {
                let place = &self.places[number as usize];
                (place.clash(AccessKind::Write, &view), place.what)
            }
        };
        let clash = clash.filter(|(other, _)| other.thread != access.thread);
        if let Some((other, kind)) = clash {
            let noun = how.noun();
            return Err(Failure {
                kind: FailureKind::UseAfterFree,
                message: format!(
                    "the {noun} of an {what}{when} is not ordered after a {} of it",
                    kind.noun()
                ),
                thread: self.running(),
                site,
                other: Some(Other {
                    thread: ThreadId(other.thread),
                    site: other.site,
                    what: kind.noun().to_owned(),
                    events: None,
                }),
            });
        }
        if let Some(gone) = self.gone(of, number) {
            let thread = ThreadId(access.thread);
            let end = End { thread, site, when };
            gone.get_or_insert(Gone { end, how });
        }
        Ok(())
    }

    /// The block of `size` bytes at `address` is freed, and what it contains.
    pub(super) fn end_block(
        &mut self,
        address: usize,
        size: usize,
        last_owner: bool,
    ) -> Result<(), Failure> {
        let stamp = self.stamp();
        let first = address.next_multiple_of(8);
        let last = (address + size).saturating_sub(size_of::<Handle>());
        for at in (first..=last).step_by(8) {
            let words = std::ptr::with_exposed_provenance::<u64>(at);
            // SAFETY: a handle fits between here and the end of the block, which is allocated; no
            // fiber runs.
            let [found, object, home] = unsafe { words.cast::<[u64; 3]>().read() };
            if found != stamp || home != at as u64 {
                continue;
            }
            let (number, of) = (object as u32, (object >> 32) as u32);
            let of = match of {
                1 => Of::Place,
                2 => Of::Cell,
                _ => continue,
            };
            if self.gone(of, number).is_some_and(|gone| gone.is_none()) {
                self.end_object(of, number, How::Freed, last_owner)?;
            }
        }
        Ok(())
    }

    /// Where the running thread ends something: there, or after its last operation.
    pub(super) fn ending(&mut self) -> (Site, &'static str) {
        let thread = self.current();
        match thread.ending.take() {
            Some(site) => (site, ""),
            None => (thread.site, ", after the operation"),
        }
    }

    /// The failure that using the object at `address` is, if that memory was freed.
    pub(super) fn use_of_freed(&self, address: usize, site: Site) -> Option<Failure> {
        let freed = self.memory.freed_at(address)?;
        Some(Failure {
            kind: FailureKind::UseAfterFree,
            message: "an object in memory that was freed is used".to_owned(),
            thread: self.running(),
            site,
            other: Some(freed.describe("free")),
        })
    }

    /// The failure that using an object at `site` is that is gone.
    pub(super) fn use_of_gone(&self, what: &str, gone: &Gone, site: Site) -> Failure {
        let noun = gone.how.noun();
        Failure {
            kind: FailureKind::UseAfterFree,
            message: format!("an {what} is used after its {noun}"),
            thread: self.running(),
            site,
            other: Some(gone.end.describe(noun)),
        }
    }

    /// Whether the running thread is the one that ended the object.
    pub(super) fn ended_itself(&self, gone: &Gone) -> bool {
        gone.end.thread == self.running()
    }
}
