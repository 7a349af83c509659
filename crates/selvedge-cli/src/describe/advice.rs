//! Changes of orders and fences in the words of the source, and which accesses are the program's own.

use std::cell::RefCell;
use std::collections::HashMap;

use selvedge_core::repair::{Change, Effect, Repair, Way};
use selvedge_core::{Machine as _, Op, Site, ThreadId};
use selvedge_runtime::NativeMachine;

use super::binary::Binary;
use super::names::Names;
use crate::args::Model;
use crate::report::{Advice, Means, Place, Remedy};
use selvedge_core::words::{self, ObjectKind};

/// Where accesses stand in the program's own source.
///
/// `std::atomic` is a layer of functions over the access itself: whoever calls these is the
/// one that writes the order. Accesses that other functions of libraries make are nobody's to change.
pub(crate) struct Accesses<'a> {
    binary: &'a Binary,
    known: RefCell<HashMap<u64, Owner>>,
}

/// Whose an address is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Program,
    /// `std::atomic`: ask the caller.
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
        let calls = machine.backtrace(thread);
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
            let frames = Names::new(self.binary, machine).frames(Site(address));
            let mut frames = frames.iter().filter(|frame| !is_atomic(frame));
            match frames.next() {
                None => Owner::Caller,
                Some(frame) if frame.is_users() => Owner::Program,
                Some(_) => Owner::Library,
            }
        })
    }
}

/// Whether a frame is a function of `<atomic>`.
fn is_atomic(frame: &Place) -> bool {
    let prefixes = ["std::atomic", "std::__atomic", "std::operator&"];
    let function = frame.function.as_deref().unwrap_or_default();
    prefixes.iter().any(|prefix| function.contains(prefix)) && !frame.is_users()
}

/// Describes what can be done about a bug, in whose failing state `machine` must be.
pub(crate) fn advice(
    binary: &Binary,
    machine: &NativeMachine,
    model: Model,
    repair: &Repair,
) -> Advice {
    let names = Names::new(binary, machine);
    let (outcome, executions) = match repair {
        Repair::Sequential | Repair::Strong => (Remedy::Sequential, None),
        Repair::Unknown => (Remedy::Unknown, None),
        Repair::Changes { effect, .. } => match *effect {
            Effect::Removes { executions, others } => match others {
                false => (Remedy::Removes, Some(executions)),
                true => (Remedy::RemovesThisOne, Some(executions)),
            },
            Effect::Unconfirmed => (Remedy::Unconfirmed, None),
            Effect::Remains => (Remedy::Remains, None),
        },
    };
    let changes = match repair {
        Repair::Changes { changes, .. } => &changes[..],
        _ => &[],
    };
    let mut changes: Vec<Means> = changes.iter().map(|change| means(&names, change)).collect();
    changes.sort_by_key(|means| (means.place.file.clone(), means.place.line));
    Advice {
        outcome,
        model,
        executions,
        changes,
    }
}

fn means(names: &Names<'_>, change: &Change) -> Means {
    let order = |op: &Op| words::order(op, ObjectKind::Memory);
    let (from, to) = match change.way {
        Way::Order(_) => (order(&change.op), order(&change.after())),
        Way::Fence(order_) => (None, order(&Op::Fence { order: order_ })),
    };
    let also_failing = match (change.op, change.after()) {
        (Op::Update { failure, .. }, Op::Update { failure: after, .. }) => {
            words::operation(&change.op, ObjectKind::Memory) == "compare-exchange"
                && failure != after
        }
        _ => false,
    };
    Means {
        place: names.place(change.site, &[]),
        operation: words::operation(&change.op, ObjectKind::Memory).to_owned(),
        object: names.accessed(&change.op).map(|found| found.name),
        from,
        to: to.unwrap_or_default(),
        also_failing,
    }
}
