//! The memory of the program, as far as libc accesses it on the program's behalf.

use std::ffi::c_void;

use selvedge_core::{Location, MemoryOrder, Op, Site, ThreadId, Value, Width};

use super::perform;
use crate::access::{Access, Step};
use crate::arena::pointer;
use crate::locations::Kind;
use crate::memory;
use crate::problem::{report, report_free};
use crate::runtime::{Phase, with};
use crate::shadow::Kind as AccessKind;
use crate::states;
use crate::tsan::plain::{self, By};
use crate::watch::Fate;

/// The location of `width` bytes of memory at `address`.
pub(crate) fn location(address: usize, width: Width) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, width.0, Kind::Memory)
    })
}

/// The location of the synchronisation object at `address`. Its state before the first visible
/// operation is the number of `width` bytes (4: once, spin lock, static guard; 8: the others)
/// stored there.
pub(crate) fn object(address: usize, width: Width) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, width.0, Kind::Object)
    })
}

/// The queue of threads that wait for the word at `address`, which knows nothing of the queue: empty
/// at first.
pub(crate) fn queue(address: usize) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, 4, Kind::Queue)
    })
}

/// (Re)initialises the object at `address` with abstract state `value`: a plain write as far as
/// races are concerned, a visible store if the object was used before in this execution.
pub(crate) fn initialise_object(address: usize, width: Width, value: u64, site: Site) {
    let size = usize::from(width.0);
    let access = Access {
        address,
        size,
        kind: AccessKind::PlainWrite,
        site: site.0 as usize,
    };
    match with(|runtime| runtime.initialise(access)) {
        Step::Go => {
            // Where states are saved, nobody hears of memory that others cannot reach.
            with(|runtime| {
                if runtime.settings.stateful {
                    runtime.locations.forget_objects(address, size);
                }
                runtime.wrote(address, size);
            });
            memory::write(address, width.0, Value::from(value));
        }
        Step::Event if with(|runtime| runtime.settings.stateful) => {
            states::announce(access);
            memory::write(address, width.0, Value::from(value));
        }
        Step::Event | Step::Parts => {
            let (at, value) = (object(address, width), Value::from(value));
            perform(
                Op::Store {
                    at,
                    value,
                    order: MemoryOrder::Relaxed,
                },
                site,
            );
        }
        Step::Stop(problem) => report(problem, access),
    }
}

/// Whether the object at `address` was used before in this execution.
pub(crate) fn is_used_object(address: usize, width: Width) -> bool {
    with(|runtime| {
        if runtime.settings.stateful {
            let mut objects = runtime.locations.objects(runtime.run);
            return objects.any(|(_, entry)| entry.address == address);
        }
        runtime.has_visible_bytes(address, width.0.into())
    })
}

/// Whether `address` lies on the stack of a thread.
pub(crate) fn is_on_stack(address: usize) -> bool {
    with(|runtime| runtime.layout.stack_owner(address)).is_some()
}

/// Reports memory that may not be accessed.
pub(crate) fn check_range(address: usize, size: usize, site: Site) {
    let access = Access {
        address,
        size,
        kind: AccessKind::PlainWrite,
        site: site.0 as usize,
    };
    let checked = with(|runtime| match runtime.phase {
        Phase::Fiber => runtime.check_address(address, size, true),
        _ => runtime.check_early(access),
    });
    if let Err(problem) = checked {
        report(problem, access);
    }
}

/// A plain access of `size` bytes that the compiler did not announce (made by a libc function on
/// the program's behalf).
pub(crate) fn touch(address: usize, size: usize, write: bool, site: Site) {
    plain::range(address, size, write, site, By::Library);
}

/// A plain store of `width` bytes that the compiler did not announce: an event where a store in the
/// program would be one.
pub(crate) fn store(address: usize, width: Width, value: u64, site: Site) {
    plain::store(address, width.0, Value::from(value), site);
}

/// Allocates from the running thread's heap; `None` when the limit is reached.
pub(crate) fn allocate(size: usize, alignment: usize, site: Site) -> Option<*mut c_void> {
    with(|runtime| {
        let left = runtime
            .settings
            .heap_limit
            .saturating_sub(runtime.heap_used);
        if size > left {
            return None;
        }
        let index = runtime.running;
        let thread = &mut runtime.threads[index];
        thread.spin.effect();
        let by = (ThreadId(index as u32), site);
        if runtime.settings.stateful && runtime.phase == Phase::Fiber {
            runtime.states.changed(states::heap_of(index));
            let start = thread.heap.take_again(size, alignment, by)?;
            runtime.states.known.announce(start, size);
            runtime.note_block(start, Fate::Allocated);
            return Some(pointer(start));
        }
        let before = thread.heap.used();
        let start = thread.heap.take(size, alignment, by)?;
        runtime.heap_used += thread.heap.used() - before;
        runtime.note_block(start, Fate::Allocated);
        Some(pointer(start))
    })
}

/// The block of `size` bytes that the running thread freed last and was not given again since.
/// Constructors' blocks are not given again.
pub(crate) fn reusable(size: usize, alignment: usize) -> Option<usize> {
    let fits =
        |&&(address, known): &&(usize, usize)| known == size && address.is_multiple_of(alignment);
    with(|runtime| {
        let known = &runtime.threads[runtime.running].reusable;
        known.iter().rev().find(fits).map(|&(address, _)| address)
    })
}

/// Gives the running thread the block at `address` again, which is one of those.
pub(crate) fn reuse(address: usize, site: Site) {
    with(|runtime| {
        let by = (ThreadId(runtime.running as u32), site);
        let thread = runtime.current();
        thread.spin.effect();
        thread.reusable.retain(|&(known, _)| known != address);
        if let Some(owner) = runtime.layout.heap_owner(address) {
            runtime.threads[owner].heap.revive(address, by);
            runtime.note_block(address, Fate::Allocated);
        }
    });
}

/// Frees a block; reports double and bad frees, and accesses that nothing orders before it.
pub(crate) fn release(block: *mut c_void, site: Site) {
    if block.is_null() {
        return;
    }
    if let Some(size) = block_size(block).filter(|_| states::in_use()) {
        states::announce_free(Access {
            address: block.addr(),
            size,
            kind: AccessKind::PlainWrite,
            site: site.0 as usize,
        });
    }
    if let Err(problem) = with(|runtime| runtime.free(block.addr(), site)) {
        report_free(problem, block.addr(), site);
    }
}

/// The size of a live block, `None` if `block` is not the start of one.
pub(crate) fn block_size(block: *mut c_void) -> Option<usize> {
    with(|runtime| {
        let found = runtime.block_near(block.addr())?;
        let live = found.start as usize == block.addr() && found.freed.is_none();
        live.then_some(found.size as usize)
    })
}
