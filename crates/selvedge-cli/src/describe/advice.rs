//! Changes of orders and fences in the words of the source, and which accesses are the program's own.

use std::cell::RefCell;
use std::collections::HashMap;

use selvedge_core::repair::{Change, Repair};
use selvedge_core::{Machine as _, Site, ThreadId};
use selvedge_runtime::NativeMachine;

use super::Calls;
use super::binary::Binary;
use super::names::Names;
use crate::args::Model;
use crate::report::{Advice, Means, Place, Step};
use crate::worker::protocol::FoundBug;

/// Where accesses stand in the program's own source.
///
/// `std::atomic` is a layer of functions over the access itself: its caller writes the order. Installed
/// libraries write orders as the program does; with `--system-headers hide`, and in the standard
/// library, accesses are nobody's to change.
pub(crate) struct Accesses<'a> {
    binary: &'a Binary,
    known: RefCell<HashMap<u64, Owner>>,
}

/// The owner of an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The program, or a library whose lines are shown.
    Program,
    /// A layer over the access itself: ask the caller.
    Caller,
    Library,
}

impl<'a> Accesses<'a> {
    pub(crate) fn new(binary: &'a Binary) -> Accesses<'a> {
        Accesses {
            binary,
            known: RefCell::default(),
        }
    }

    /// Where the access that `thread` is about to make stands in the program's own source; else
    /// where it stands in a library.
    pub(crate) fn site(&self, machine: &NativeMachine, thread: ThreadId) -> Site {
        let site = machine.site(thread);
        if self.owner(machine, site.0) != Owner::Caller {
            return site;
        }
        let calls = Names::new(self.binary, machine).calls(thread);
        let mut callers = calls.into_iter().filter(|&call| call != site.0);
        let caller = callers.find(|&call| self.owner(machine, call) != Owner::Caller);
        caller.map_or(site, Site)
    }

    /// Whether an access at `site`, as [`Accesses::site`] tells it, is the program's own.
    pub(crate) fn is_own(&self, site: Site) -> bool {
        self.known.borrow().get(&site.0) == Some(&Owner::Program)
    }

    fn owner(&self, machine: &NativeMachine, address: u64) -> Owner {
        let mut known = self.known.borrow_mut();
        *known.entry(address).or_insert_with(|| {
            let names = Names::new(self.binary, machine);
            let frames = names.frames(Site(address));
            let mut frames = frames.iter().filter(|frame| !frame.is_atomic_layer());
            match frames.next() {
                None => Owner::Caller,
                Some(frame) if frame.is_users() => Owner::Program,
                Some(frame) if frame.is_library() && names.shows_libraries() => Owner::Program,
                Some(_) => Owner::Library,
            }
        })
    }
}

/// Describes what can be done about a bug, in whose failing state `machine` must be.
pub(crate) fn advice(
    binary: &Binary,
    machine: &NativeMachine,
    model: Model,
    repair: &Repair,
    bug: &FoundBug,
) -> Advice {
    let names = Names::new(binary, machine);
    // Heap blocks get the numbers that they have in the schedule: it is described first.
    super::described(&names, machine, &bug.raw, &Calls::default());
    let schedule = &bug.described.trace;
    Advice::new(repair, model, |change| means(&names, change, schedule))
}

/// The line that has the order of the access at `site`.
fn written_at(names: &Names<'_>, site: Site) -> Place {
    let frames = names.frames(site);
    let mut written = frames.into_iter().filter(|frame| !frame.is_atomic_layer());
    written.next().unwrap_or_else(|| names.place(site, &[]))
}

fn means(names: &Names<'_>, change: &Change, schedule: &[Step]) -> Means {
    let place = written_at(names, change.site);
    // The program's line that leads there.
    let called_at = schedule.iter().find_map(|step| {
        let library = step.place.library.as_deref()?;
        (*library == place).then(|| Place {
            library: None,
            ..step.place.clone()
        })
    });
    let object = names.accessed(&change.op).map(|found| found.name);
    Means {
        called_at,
        ..Means::new(change, place, object)
    }
}
