//! Words a wrong access as a failure.

use selvedge_core::failure::Other;
use selvedge_core::{FailureKind, Site, ThreadId};

use crate::access::{Access, FreeProblem, Problem};
use crate::current;
use crate::heap::HeapBlock;
use crate::runtime::{Runtime, with};
use crate::shadow::{Kind, Record};
use crate::signals;

/// Stops the running thread because of `problem` with `access`.
#[cold]
#[inline(never)]
pub(crate) fn report(problem: Problem, access: Access) -> ! {
    let site = Site(access.site as u64);
    let place = PLACE;
    let what = describe(access.kind, access.size);
    let block = with(|runtime| runtime.block_near(access.address));
    with(|runtime| runtime.failure_place = access.address);
    match problem {
        Problem::Null => {
            let message = format!(
                "{what} through a null pointer (address {:#x})",
                access.address
            );
            current::fail(FailureKind::NullDereference, message, site)
        }
        Problem::Wild => {
            let message = format!(
                "{what} at address {:#x}, which may not be accessed",
                access.address
            );
            current::fail(FailureKind::WildAccess, message, site)
        }
        Problem::Ended(owner) => {
            let message = format!("{what} in {place}, which has ended");
            let other = Some(last_stop(owner, "end of the thread"));
            current::fail_with(FailureKind::WildAccess, message, site, other)
        }
        Problem::Returned(owner) => {
            let message = format!("{what} in {place}, in a function that has returned");
            let other = Some(last_stop(owner, "step after the return"));
            current::fail_with(FailureKind::WildAccess, message, site, other)
        }
        Problem::InUse(record) => {
            let other = party(record);
            let message = format!(
                "a function or thread ends whose variables, {place}, are in use: nothing orders {} \
                 before it",
                other.what
            );
            current::fail_with(FailureKind::WildAccess, message, site, Some(other))
        }
        Problem::Freed => {
            let message = format!("{what} in {place}, which has been freed");
            let other = block
                .and_then(|block| block.freed)
                .map(|(thread, site)| Other {
                    thread,
                    site,
                    what: "free".to_owned(),
                    events: None,
                });
            current::fail_with(FailureKind::UseAfterFree, message, site, other)
        }
        Problem::Overflow => {
            let message = format!("{what} {}", beyond(access, block));
            let other = block.map(|block| Other {
                thread: block.thread,
                site: block.site,
                what: format!("allocation of {} bytes", block.size),
                events: None,
            });
            current::fail_with(FailureKind::HeapOverflow, message, site, other)
        }
        Problem::Race(record) => {
            let other = party(record);
            let message = format!("{what} and {} of {place} are not ordered", other.what);
            current::fail_with(FailureKind::DataRace, message, site, Some(other))
        }
        Problem::Unordered(record) => {
            let other = party(record);
            let message = format!(
                "{what} of {place}, an aggregate, and {} by {} that nothing orders: with plain \
                 accesses as events, aggregates are not",
                other.what, other.thread
            );
            current::refuse(message, site)
        }
        Problem::Endless => {
            let message = format!(
                "{}: it only reads, {place} among others, and does not let others run; what they \
                 are to change has to be atomic",
                signals::endless()
            );
            current::fail(FailureKind::EndlessLoop, message, site)
        }
        Problem::Lost => {
            let message = format!("{what} of {place}, whose instruction cannot be found");
            current::refuse(message, site)
        }
        Problem::Aggregate => {
            let message = format!(
                "{what}, as a whole, of {place}, which is also accessed by atomic or visible \
                 operations"
            );
            current::refuse(message, site)
        }
        Problem::Mixed(record) => {
            let other = party(record);
            let message = format!(
                "mixed-size accesses: {what} of {place}, which is accessed with another size, too, \
                 and {} by {} that nothing orders",
                other.what, other.thread
            );
            current::refuse(message, site)
        }
        Problem::Unseen => {
            let message = format!(
                "{what} of {place}, which was changed by something that Selvedge does not see"
            );
            current::refuse(message, site)
        }
    }
}

/// Stops the running thread because it frees what it must not free.
#[cold]
#[inline(never)]
pub(crate) fn report_free(problem: FreeProblem, address: usize, site: Site) -> ! {
    with(|runtime| runtime.failure_place = address);
    match problem {
        FreeProblem::NotHeap => {
            let message = format!("free of {PLACE}, which was not allocated");
            current::fail(FailureKind::BadFree, message, site)
        }
        FreeProblem::NotStart => {
            let message = format!("free of {PLACE}, which is not the start of a heap block");
            current::fail(FailureKind::BadFree, message, site)
        }
        FreeProblem::Twice(first) => {
            let other = first.map(|(thread, site)| Other {
                thread,
                site,
                what: "free".to_owned(),
                events: None,
            });
            let message = format!("{PLACE} is freed twice");
            current::fail_with(FailureKind::DoubleFree, message, site, other)
        }
        FreeProblem::Unseen(place) => {
            with(|runtime| runtime.failure_place = place);
            let message = format!(
                "free of {PLACE}, which was changed by something that Selvedge does not see"
            );
            current::refuse(message, site)
        }
        FreeProblem::InUse(record) => {
            let other = party(record);
            let message = format!("free of {PLACE}: nothing orders {} before it", other.what);
            current::fail_with(FailureKind::UseAfterFree, message, site, Some(other))
        }
    }
}

/// Stands for the place in a message until it is looked up, outside of the program.
pub(crate) const PLACE: &str = "{place}";

/// Memory that differs from its known contents, where no access is to blame.
pub(crate) const UNSEEN: &str =
    "{place}, which was changed by something that Selvedge does not see";

fn describe(kind: Kind, size: usize) -> String {
    let kind = match kind {
        Kind::PlainRead => "read",
        Kind::PlainWrite => "write",
        Kind::AtomicRead => "atomic read",
        Kind::AtomicWrite => "atomic write",
    };
    format!("{kind} of {size} byte{}", if size == 1 { "" } else { "s" })
}

/// The other side of a race.
pub(crate) fn party(record: Record) -> Other {
    let base = with(|runtime| runtime.image.base);
    Other {
        thread: ThreadId(record.thread.into()),
        site: Site(base as u64 + u64::from(record.site)),
        what: describe(record.kind, record.mask.count_ones() as usize),
        events: Some(record.epoch),
    }
}

/// Where another thread stands.
fn last_stop(thread: usize, what: &str) -> Other {
    Other {
        thread: ThreadId(thread as u32),
        site: Site(with(|runtime| runtime.threads[thread].site) as u64),
        what: what.to_owned(),
        events: None,
    }
}

/// Where an access outside of all blocks lies.
fn beyond(access: Access, block: Option<HeapBlock>) -> String {
    match block {
        Some(block) => {
            let end = block.start + block.size;
            match (access.address as u64).checked_sub(end) {
                None => format!("across the end of a block of {} bytes", block.size),
                Some(0) => format!("just past the end of a block of {} bytes", block.size),
                Some(distance) => {
                    format!(
                        "{distance} bytes past the end of a block of {} bytes",
                        block.size
                    )
                }
            }
        }
        None => format!(
            "at {:#x}, before the first block of the heap",
            access.address
        ),
    }
}

impl Runtime {
    /// The block that contains `address`, or the one before it.
    pub(crate) fn block_near(&self, address: usize) -> Option<HeapBlock> {
        let owner = self.layout.heap_owner(address)?;
        self.threads.get(owner)?.heap.find(address).copied()
    }
}
