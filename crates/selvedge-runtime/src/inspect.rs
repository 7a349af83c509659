//! Answers questions of reports and other processes about a machine.

use std::io;

use selvedge_core::{Location, Pending, Site, Stop, ThreadId, Value};

use crate::heap::HeapBlock;
use crate::machine::NativeMachine;
use crate::overlooked::Overlooked;
use crate::runtime::with;
use crate::watch::Fate;
use crate::{abi, arena, gate, memory};

impl NativeMachine {
    /// The address and width of a location.
    pub fn range_of(&self, location: Location) -> (u64, u8) {
        with(|runtime| {
            let entry = runtime.locations.entry(location);
            (entry.address as u64, entry.width)
        })
    }

    /// The call stack of `thread`, innermost first: where it stands, then where its calls return to.
    pub fn backtrace(&self, thread: ThreadId) -> Vec<u64> {
        with(|runtime| match runtime.threads.get(thread.index()) {
            Some(known) if known.run == runtime.run => {
                let calls = known.frames.return_addresses();
                std::iter::once(known.site)
                    .chain(calls)
                    .filter(|&address| runtime.image.whole.contains(address))
                    .map(|address| address as u64)
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    /// The same for when `thread` passed `site` last, one of the places of the failure that
    /// [`watch`](selvedge_core::Machine::watch) was told of.
    pub fn backtrace_at(&self, thread: ThreadId, site: Site) -> Option<Vec<u64>> {
        with(|runtime| {
            let calls = runtime.watch.calls(thread, site.0 as usize)?;
            let calls = calls.iter().copied();
            let inside = calls.filter(|&address| runtime.image.whole.contains(address));
            let inside = inside.map(|address| address as u64);
            Some(std::iter::once(site.0).chain(inside).collect())
        })
    }

    /// The calls in which `block` was allocated and, if it was, freed, where they are known: in the run
    /// that [`watch`](selvedge_core::Machine::watch) was told of.
    pub fn block_calls(&self, block: &HeapBlock) -> [Vec<u64>; 2] {
        with(|runtime| {
            let calls = |fate| {
                let calls = runtime.watch.block(block.start as usize, fate).iter();
                let inside = calls.filter(|&&address| runtime.image.whole.contains(address));
                inside.map(|&address| address as u64).collect()
            };
            [calls(Fate::Allocated), calls(Fate::Freed)]
        })
    }

    /// The stack pointer with which `thread` is suspended, see [`selvedge_fiber::Context`]. A thread that has ended
    /// is not, and one that failed only if it called the runtime.
    pub fn suspended_at(&self, thread: ThreadId) -> Option<u64> {
        with(|runtime| {
            let known = runtime.threads.get(thread.index())?;
            let suspended = match known.pending {
                Pending::Op(_) => true,
                Pending::Stopped(Stop::Failed) => runtime.kept == Some(thread.index()),
                Pending::Stopped(_) | Pending::Absent => false,
            };
            (suspended && known.run == runtime.run).then(|| known.context.stack_pointer() as u64)
        })
    }

    /// Where the stack area begins, and the address space that each thread has of it, in the order of their
    /// numbers.
    pub fn stack_area(&self) -> (u64, u64) {
        with(|runtime| {
            let [first, second] = [0, 1].map(|thread| runtime.layout.slot(thread).start as u64);
            (first, second - first)
        })
    }

    /// The value of `width` bytes of the program's global variables.
    pub fn global(&self, address: u64, width: u8) -> Option<Value> {
        let (first, last) = (address as usize, address as usize + usize::from(width) - 1);
        let inside = with(|runtime| {
            let data = &runtime.image.whole;
            data.contains(first) && data.contains(last)
        });
        inside.then(|| memory::read(first, width))
    }

    /// The words on the stack of `thread`, from the deepest point that is known of to its beginning.
    pub fn stack_words(&self, thread: ThreadId) -> Vec<u64> {
        with(|runtime| match runtime.threads.get(thread.index()) {
            Some(known) if known.run == runtime.run => {
                let stack = known.slot.stack_low..known.slot.stack_top;
                // SAFETY: the gate is mapped while a program is loaded.
                let entered = unsafe { (*gate::gate()).stack_pointer };
                let deepest = match stack.contains(&entered) {
                    true => known.lowest.min(entered),
                    false => known.lowest,
                };
                (deepest.next_multiple_of(8)..stack.end)
                    .step_by(8)
                    // SAFETY: aligned words of the stack of a thread that exists, which is mapped.
                    .map(|word| unsafe { arena::pointer::<u64>(word).read_volatile() })
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    /// The address that the failure is about, and what its message calls it.
    pub fn failure_place(&self) -> Option<(u64, String)> {
        with(|runtime| match runtime.failure_place {
            0 => None,
            address => Some((address as u64, runtime.name(address))),
        })
    }

    /// The visible operation that a thread passed most often, in one frame of one execution, in the
    /// search so far: its site, the calls that it was in, innermost first, and how often.
    pub fn hottest_loop(&self) -> Option<(Site, Vec<u64>, u32)> {
        with(|runtime| {
            let hottest = &runtime.hottest;
            let calls = hottest.calls.iter();
            let inside = calls.filter(|&&address| runtime.image.whole.contains(address));
            let calls = inside.map(|&address| address as u64).collect();
            (hottest.count > 0).then_some((Site(hottest.site as u64), calls, hottest.count))
        })
    }

    /// Behaviour of the program in the search so far that only an option explores in full.
    pub fn overlooked(&self) -> Overlooked {
        with(|runtime| runtime.overlooked)
    }

    /// From now on it is known where accesses were no events.
    pub fn note_eventless(&mut self) {
        with(|runtime| {
            let size = runtime.image.whole.end - runtime.image.whole.start;
            runtime.eventless = vec![0; size.div_ceil(64)];
            runtime.parted = runtime.eventless.clone();
        });
    }

    /// Whether an access at `site` was no event, in some execution since
    /// [`note_eventless`](Self::note_eventless).
    pub fn was_eventless(&self, site: Site) -> bool {
        with(|runtime| {
            let place = runtime.image.relative(site.0 as usize) as usize;
            has(&runtime.eventless, place)
        })
    }

    /// Whether the settings are not those that the program was loaded with, or its calls lead elsewhere: it has
    /// written into the memory of the runtime, and nothing that the runtime says means anything any more.
    pub fn was_modified(&self) -> bool {
        let targets = gate::targets();
        let settings = with(|runtime| runtime.settings.fingerprint());
        settings != targets.settings || !abi::is_as_filled(targets)
    }

    /// Where accesses were no event, and where they were several, for another process: the words that are not
    /// zero, with their numbers.
    pub fn uncommon_accesses(&self) -> [Vec<(usize, u64)>; 2] {
        with(|runtime| {
            [&runtime.eventless, &runtime.parted].map(|words| {
                let words = words.iter().copied().enumerate();
                words.filter(|&(_, word)| word != 0).collect()
            })
        })
    }

    /// Takes over what another process noted.
    pub fn add_uncommon_accesses(&self, noted: &[Vec<(usize, u64)>; 2]) {
        with(|runtime| {
            for (words, noted) in [&mut runtime.eventless, &mut runtime.parted]
                .into_iter()
                .zip(noted)
            {
                for &(number, word) in noted {
                    if let Some(own) = words.get_mut(number) {
                        *own |= word;
                    }
                }
            }
        });
    }

    /// Whether an access at `site` was several events, since it overlapped locations of other sizes, in some
    /// execution since [`note_eventless`](Self::note_eventless).
    pub fn was_parted(&self, site: Site) -> bool {
        with(|runtime| {
            let place = runtime.image.relative(site.0 as usize) as usize;
            has(&runtime.parted, place)
        })
    }

    /// The heap block of this execution that contains `address`, or the last one before it.
    pub fn heap_block(&self, address: u64) -> Option<HeapBlock> {
        with(|runtime| runtime.block_near(address as usize))
    }

    /// The thread whose stack or thread-local variables `address` belongs to.
    pub fn stack_owner(&self, address: u64) -> Option<ThreadId> {
        let owner = with(|runtime| runtime.layout.stack_owner(address as usize))?;
        Some(ThreadId(owner as u32))
    }

    /// The thread whose thread-local variables `address` belongs to, and how far behind their beginning
    /// it lies.
    pub fn thread_local(&self, address: u64) -> Option<(ThreadId, u64)> {
        let owner = self.stack_owner(address)?;
        with(|runtime| {
            let locals = runtime.layout.slot(owner.index()).locals as u64;
            let offset = address.checked_sub(locals)?;
            let size = runtime.image.thread_locals.size as u64;
            (offset < size).then_some((owner, offset))
        })
    }

    /// Notes which of the instructions at these addresses are reached from now on.
    pub fn watch_lines(&mut self, addresses: Vec<u64>) -> io::Result<()> {
        let addresses = addresses.into_iter().map(|at| at as usize).collect();
        with(|runtime| runtime.watch_lines(addresses))
    }

    /// The lines that were reached.
    pub fn reached_lines(&self) -> Vec<u64> {
        with(|runtime| runtime.lines.reached().map(|at| at as u64).collect())
    }

    /// The address the program was loaded at: sites minus this are addresses in its file.
    pub fn load_base(&self) -> u64 {
        with(|runtime| runtime.image.base as u64)
    }
}

/// Whether a bit is set.
fn has(bits: &[u64], place: usize) -> bool {
    let word = bits.get(place / 64);
    word.is_some_and(|word| word >> (place % 64) & 1 != 0)
}
