//! Plain and volatile scalars, announced before they are accessed.
//!
//! An announced read that is an event stops the thread, and the value that the explorer chose is
//! put into memory before the program reads it. An announced write that is an event cannot stop the
//! thread yet, because its value is not known: the bytes are saved, the program writes, and then
//! [`super::settle`] takes the value, puts the old bytes back, and performs the store.
//!
//! An access that overlaps visible locations of other extents accesses each of them.

use selvedge_core::{Location, MemoryOrder, Op, Site, Value, Width};

use crate::abi::{Entry, Export};
use crate::access::{Access, Problem, Step};
use crate::current;
use crate::gate::gate;
use crate::locations::Kind as LocationKind;
use crate::memory;
use crate::problem::report;
use crate::protection::Protection;
use crate::runtime::{Deferred, Runtime, with};
use crate::shadow::Kind;
use crate::states;
use crate::tsan::settle;

/// A plain read of `width` bytes that the program is about to make.
#[inline(always)]
fn read(address: usize, width: u8) {
    let site = current::site();
    let (size, kind) = (usize::from(width), Kind::PlainRead);
    match judge(address, size, kind, site) {
        Step::Go => {}
        Step::Event => event_read(address, width, MemoryOrder::Plain, site),
        Step::Parts => range(address, size, false, site, By::Program),
        Step::Stop(problem) => report(problem, access(address, size, kind, site)),
    }
}

/// A plain write of `width` bytes that the program is about to make.
#[inline(always)]
fn write(address: usize, width: u8) {
    let site = current::site();
    let (size, kind) = (usize::from(width), Kind::PlainWrite);
    match judge(address, size, kind, site) {
        Step::Go => {}
        Step::Event => defer(access(address, size, kind, site), MemoryOrder::Plain),
        Step::Parts => range(address, size, true, site, By::Program),
        Step::Stop(problem) => report(problem, access(address, size, kind, site)),
    }
}

/// The result of such an access. All that is known of it is passed in registers: what was just
/// written to memory in parts cannot be read as a whole without waiting for it.
#[inline(never)]
fn judge(address: usize, size: usize, kind: Kind, site: Site) -> Step {
    with(|runtime| runtime.plain(access(address, size, kind, site)))
}

#[inline(always)]
fn access(address: usize, size: usize, kind: Kind, site: Site) -> Access {
    Access {
        address,
        size,
        kind,
        site: site.0 as usize,
    }
}

/// A read followed by a write of the same bytes.
fn read_write(address: usize, width: u8) {
    read(address, width);
    write(address, width);
}

fn volatile_read(address: usize, width: u8) {
    if current::booting() {
        return read(address, width);
    }
    event_read(address, width, MemoryOrder::Relaxed, current::site());
}

fn volatile_write(address: usize, width: u8) {
    if current::booting() {
        return write(address, width);
    }
    let (size, site) = (usize::from(width), current::site());
    let access = access(address, size, Kind::AtomicWrite, site);
    defer(access, MemoryOrder::Relaxed);
}

/// Lets the explorer choose what the program will read.
#[inline(never)]
fn event_read(address: usize, width: u8, order: MemoryOrder, site: Site) {
    let at = current::location(address, Width(width));
    let chosen = current::perform(Op::Load { at, order }, site).read;
    put(at, address, width, chosen);
}

/// Puts the value that a read of `at` is to find into memory.
#[inline(always)]
fn put(at: Location, address: usize, width: u8, chosen: Value) {
    if memory::read(address, width) != chosen {
        with(|runtime| {
            runtime.undo.bytes(address, width.into());
            runtime.locations.holds(at, chosen);
        });
        memory::write(address, width, chosen);
    }
}

/// Remembers a write whose value is not known yet.
#[inline(never)]
fn defer(access: Access, order: MemoryOrder) {
    if let Err(problem) = with(|runtime| runtime.check_address(access.address, access.size, true)) {
        report(problem, access);
    }
    if states::in_use() {
        return states::announce(access);
    }
    let store = Deferred {
        access,
        order,
        old: memory::read(access.address, access.size as u8),
        object: None,
    };
    with(|runtime| runtime.undo.bytes(access.address, access.size));
    settle::announce(store, all(access.size));
}

/// The bits of this many bytes.
fn all(bytes: usize) -> u32 {
    ((1_u64 << bytes) - 1) as u32
}

/// The code that accesses a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The program, after it was told to go on.
    Program,
    /// The runtime, before that.
    Runtime,
    /// A library function of the runtime, which has already looked at what it reads: that is right
    /// only where events find it as it is.
    Library,
}

/// A plain access to a range of bytes that is about to be made. Visible locations inside of it are
/// accessed by events of their own.
pub(crate) fn range(address: usize, size: usize, write: bool, site: Site, by: By) {
    if write && by != By::Program && Protection::Library.is_off() {
        return;
    }
    let kind = if write {
        Kind::PlainWrite
    } else {
        Kind::PlainRead
    };
    let access = Access {
        address,
        size,
        kind,
        site: site.0 as usize,
    };
    if states::in_use() {
        return states::range(access, by);
    }
    let visible = with(|runtime| {
        runtime.range(access)?;
        runtime.current().open_range = (write && by == By::Program).then_some(access);
        if runtime.parts.is_empty() {
            return Ok(false);
        }
        let Runtime {
            threads,
            parts,
            running,
            ..
        } = runtime;
        threads[*running].parts.clone_from(parts);
        Ok(true)
    });
    match visible {
        Ok(false) => {}
        Ok(true) => range_parts(access, by),
        Err(problem) => report(problem, access),
    }
}

/// Accesses the visible locations in a range. They are kept with the thread: its steps may be taken back while
/// it waits here, so nothing on its stack may own memory.
#[cold]
fn range_parts(access: Access, by: By) {
    let site = Site(access.site as u64);
    let writes = access.kind.writes();
    let range = access.address..access.address + access.size;
    let part = |number: usize| {
        with(|runtime| {
            let &part = runtime.current().parts.get(number)?;
            let part = runtime
                .locations
                .within(&runtime.shadow, part, range.clone());
            let entry = *runtime.locations.entry(part);
            let start = range.start.max(entry.address) - entry.address;
            let end = range.end.min(entry.address + usize::from(entry.width));
            let bytes = all(end - entry.address) & !all(start);
            Some((part, entry, bytes))
        })
    };
    let count = with(|runtime| runtime.current().parts.len());
    // All reads come first: other threads run meanwhile, and a write of this thread must not be owed then.
    for (part, entry, bytes) in (0..count).map_while(part) {
        // The rest of a location that is written in part has to be known.
        if !writes || bytes != all(entry.width.into()) {
            let old = memory::read(entry.address, entry.width);
            current::forget_entry();
            let op = Op::Load {
                at: part,
                order: MemoryOrder::Plain,
            };
            let chosen = current::perform(op, site).read;
            if chosen != old && by == By::Library {
                report(Problem::Aggregate, access);
            }
            put(part, entry.address, entry.width, chosen);
        }
    }
    let written = if writes { 0..count } else { 0..0 };
    for (part, entry, bytes) in written.map_while(part) {
        with(|runtime| runtime.undo.bytes(entry.address, entry.width.into()));
        let store = Deferred {
            access: Access {
                address: entry.address,
                size: entry.width.into(),
                ..access
            },
            order: MemoryOrder::Plain,
            old: memory::read(entry.address, entry.width),
            object: (entry.kind == LocationKind::Object).then_some(part),
        };
        match by {
            By::Program => settle::announce(store, bytes),
            By::Runtime | By::Library => owe(store),
        }
    }
    with(|runtime| runtime.current().parts.clear());
}

/// Remembers a write that the runtime is about to make.
fn owe(store: Deferred) {
    with(|runtime| {
        // The program may have announced it as well.
        runtime.take_over(&store);
        runtime.owed.push(store);
    });
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).attention = 1 };
}

/// The gate's data belong to the entry that is still to come. Not so where states are kept:
/// nothing is put off there, and the entry tells which call of the program is going on.
fn forget_foreign_entry() {
    if !states::in_use() {
        current::forget_entry();
    }
}

pub(super) fn perform_store(
    address: usize,
    width: u8,
    value: Value,
    order: MemoryOrder,
    site: Site,
) {
    forget_foreign_entry();
    let at = current::location(address, Width(width));
    current::perform(Op::Store { at, value, order }, site);
}

/// A plain store that the runtime makes on the program's behalf.
pub(crate) fn store(address: usize, width: u8, value: Value, site: Site) {
    if Protection::Library.is_off() {
        return memory::write(address, width, value);
    }
    let kind = Kind::PlainWrite;
    let access = Access {
        address,
        size: usize::from(width),
        kind,
        site: site.0 as usize,
    };
    match with(|runtime| runtime.plain(access)) {
        Step::Go => memory::write(address, width, value),
        Step::Event => perform_store(address, width, value, MemoryOrder::Plain, site),
        Step::Parts => {
            range(address, usize::from(width), true, site, By::Runtime);
            // It may have been stopped in between.
            with(|runtime| runtime.undo.bytes(address, width.into()));
            memory::write(address, width, value);
        }
        Step::Stop(problem) => report(problem, access),
    }
}

/// A plain load that the runtime makes on the program's behalf.
pub(crate) fn load(address: usize, width: u8, site: Site) -> Value {
    let kind = Kind::PlainRead;
    let access = Access {
        address,
        size: usize::from(width),
        kind,
        site: site.0 as usize,
    };
    match with(|runtime| runtime.plain(access)) {
        Step::Go => memory::read(address, width),
        Step::Event => {
            forget_foreign_entry();
            let at = current::location(address, Width(width));
            current::perform(
                Op::Load {
                    at,
                    order: MemoryOrder::Plain,
                },
                site,
            )
            .read
        }
        Step::Parts => {
            range(address, usize::from(width), false, site, By::Runtime);
            memory::read(address, width)
        }
        Step::Stop(problem) => report(problem, access),
    }
}

/// The callbacks of one width.
macro_rules! callbacks {
    ($all:ident, $bytes:literal) => {
        for (name, function) in [
            ("", callbacks!(@function read $bytes)),
            ("unaligned_", callbacks!(@function read $bytes)),
        ] {
            $all.push(export(format!("__tsan_{name}read{}", $bytes), function, Entry::Full));
        }
        for (name, function) in [
            ("", callbacks!(@function write $bytes)),
            ("unaligned_", callbacks!(@function write $bytes)),
        ] {
            $all.push(export(format!("__tsan_{name}write{}", $bytes), function, Entry::Full));
        }
        for prefix in ["", "unaligned_"] {
            let read = callbacks!(@function volatile_read $bytes);
            let write = callbacks!(@function volatile_write $bytes);
            let both = callbacks!(@function read_write $bytes);
            let name = |what| format!("__tsan_{prefix}{what}{}", $bytes);
            $all.push(export(name("volatile_read"), read, Entry::Full));
            $all.push(export(name("volatile_write"), write, Entry::Full));
            $all.push(export(name("read_write"), both, Entry::Full));
        }
    };
    (@function $name:ident $bytes:literal) => {{
        extern "C" fn callback(address: usize) {
            $name(address, $bytes);
        }
        callback as *const () as usize
    }};
}

fn export(name: String, function: usize, entry: Entry) -> Export {
    Export {
        name: name.into(),
        function,
        entry,
    }
}

/// The virtual-table pointer of an object under construction or destruction is about to change.
extern "C" fn vptr_update(address: usize, _new: usize) {
    write(address, 8);
}

extern "C" fn vptr_read(address: usize) {
    read(address, 8);
}

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let mut all = Vec::new();
    callbacks!(all, 1);
    callbacks!(all, 2);
    callbacks!(all, 4);
    callbacks!(all, 8);
    callbacks!(all, 16);
    let (update, read) = (
        vptr_update as *const () as usize,
        vptr_read as *const () as usize,
    );
    all.push(export("__tsan_vptr_update".to_owned(), update, Entry::Full));
    all.push(export("__tsan_vptr_read".to_owned(), read, Entry::Full));
    all
}
