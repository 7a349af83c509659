//! Addresses by name: `count`, `queue.head`, `block #2 +8`, `stack of T1`.

use std::cell::RefCell;

use selvedge_core::{Function, Machine as _, Op, Site, ThreadId, Value, Width};
use selvedge_runtime::{HeapBlock, NativeMachine};

use super::binary::Binary;
use super::variables::{Encoding, Found};
use crate::args::SystemHeaders;
use crate::report::{Block, Datum, Party, Place};

/// Names what a loaded program's addresses stand for, in the state it is in.
pub(super) struct Names<'a> {
    binary: &'a Binary,
    machine: &'a NativeMachine,
    /// The heap blocks named so far, numbered in that order.
    blocks: RefCell<Vec<HeapBlock>>,
}

/// The heap blocks that were named, numbered in that order.
pub(super) type Blocks = Vec<HeapBlock>;

impl selvedge_page::Names for Names<'_> {
    fn object(&self, op: &Op) -> Option<String> {
        match op {
            Op::Create { child } | Op::Join { child } => Some(child.to_string()),
            _ => Some(self.accessed(op)?.name),
        }
    }

    fn contents(&self, op: &Op, value: Value) -> Datum {
        let (_, width, offset) = self.range(op).unwrap_or((0, 8, 0));
        let part = Width(width).truncate(value >> (8 * u32::from(offset)));
        let encoding = self.accessed(op).map(|found| found.encoding);
        self.value(part, width, &encoding.unwrap_or_default())
    }
}

impl<'a> Names<'a> {
    pub(super) fn new(binary: &'a Binary, machine: &'a NativeMachine) -> Names<'a> {
        Names {
            binary,
            machine,
            blocks: RefCell::default(),
        }
    }

    /// Goes on numbering heap blocks behind those in `blocks`.
    pub(super) fn after(self, blocks: Blocks) -> Names<'a> {
        Names {
            blocks: RefCell::new(blocks),
            ..self
        }
    }

    /// The blocks that have numbers now.
    pub(super) fn into_blocks(self) -> Blocks {
        self.blocks.into_inner()
    }

    /// The calls that `site`, a return address, lies in; more than one where functions are inlined.
    pub(super) fn frames(&self, site: Site) -> Vec<Place> {
        match site.0.checked_sub(self.machine.load_base()) {
            Some(address) => self.binary.frames(address.saturating_sub(1)),
            None => vec![Place::default()],
        }
    }

    /// The source of `site`, which is reached through `calls`, if these are known.
    pub(super) fn place(&self, site: Site, calls: &[u64]) -> Place {
        let callers = calls.iter().flat_map(|&call| self.frames(Site(call)));
        let place = Place::nearest(self.frames(site).into_iter().chain(callers).collect());
        Place {
            library: place.library.filter(|_| self.shows_libraries()),
            ..place
        }
    }

    /// Whether lines of installed libraries are shown.
    pub(super) fn shows_libraries(&self) -> bool {
        self.binary.shown.system_headers == SystemHeaders::Show
    }

    /// The memory that `op` accesses: its address, its width, and its first byte in the location.
    fn range(&self, op: &Op) -> Option<(u64, u8, u8)> {
        let (address, all) = self.machine.range_of(op.location()?);
        let (offset, width) = match op {
            Op::Update {
                function: Function::Memory { offset, width, .. },
                ..
            } => (*offset, width.0),
            _ => (0, all),
        };
        Some((address + u64::from(offset), width, offset))
    }

    /// The name of the memory that `op` accesses, and how its contents are written.
    pub(super) fn accessed(&self, op: &Op) -> Option<Found> {
        let (address, width, _) = self.range(op)?;
        let found = self.memory(address, u64::from(width));
        Some(found.unwrap_or_else(|| Found {
            name: format!("{address:#x}"),
            encoding: Encoding::Unknown,
        }))
    }

    /// The name of `width` bytes at `address`, if they are the program's.
    pub(super) fn memory(&self, address: u64, width: u64) -> Option<Found> {
        let unknown = |name: String| {
            Some(Found {
                name,
                encoding: Encoding::Unknown,
            })
        };
        if let Some(block) = self.machine.heap_block(address) {
            let number = self.number(block);
            return match address.checked_sub(block.start) {
                Some(0) => unknown(format!("block #{number}")),
                Some(offset) => unknown(format!("block #{number} +{offset}")),
                None => unknown(format!("block #{number} -{}", block.start - address)),
            };
        }
        if let Some((thread, offset)) = self.machine.thread_local(address)
            && let Some(found) = self.binary.thread_local(offset, width)
        {
            return Some(Found {
                name: format!("{} of {thread}", found.name),
                ..found
            });
        }
        if let Some(thread) = self.machine.stack_owner(address) {
            return unknown(format!("stack of {thread}"));
        }
        if let Some(name) = self.machine.told_at(address) {
            let encoding = Encoding::Boolean;
            return Some(Found { name, encoding });
        }
        let offset = address.checked_sub(self.machine.load_base())?;
        self.binary.variable(offset, width)
    }

    fn number(&self, block: HeapBlock) -> usize {
        let mut blocks = self.blocks.borrow_mut();
        match blocks.iter().position(|known| known.start == block.start) {
            Some(known) => known + 1,
            None => {
                blocks.push(block);
                blocks.len()
            }
        }
    }

    /// The heap blocks that names given so far refer to.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let blocks = self.blocks.borrow();
        let describe = |(n, block): (usize, &HeapBlock)| {
            let [allocated, freed] = self.machine.block_calls(block);
            Block {
                number: n as u32 + 1,
                size: block.size,
                thread: block.thread.0,
                place: self.place(block.site, &allocated),
                freed: block.freed.map(|(thread, site)| Party {
                    thread: thread.0,
                    what: "free".to_owned(),
                    place: self.place(site, &freed),
                    after: None,
                    frames: Vec::new(),
                }),
            }
        };
        blocks.iter().enumerate().map(describe).collect()
    }

    /// `value` of a location as the source would write it.
    pub(super) fn value(&self, value: Value, width: u8, encoding: &Encoding) -> Datum {
        let signed = Width(width).sign_extend(value);
        match encoding {
            Encoding::Boolean => Datum::Text((value != 0).to_string()),
            Encoding::Pointer => self.pointer(value),
            Encoding::Enumeration(names) => {
                match i64::try_from(signed).ok().and_then(|n| names.get(&n)) {
                    Some(name) => Datum::Text(name.clone()),
                    None => number(signed),
                }
            }
            Encoding::Signed => number(signed),
            Encoding::Unsigned => unsigned(value),
            // A pointer that a plain word holds is still best written as what it points to; a
            // small negative number is likelier than a huge one.
            Encoding::Unknown if width == 8 && self.points(value).is_some() => self.pointer(value),
            Encoding::Unknown if (-4096..0).contains(&signed) => number(signed),
            Encoding::Unknown => unsigned(value),
        }
    }

    fn pointer(&self, value: Value) -> Datum {
        if value == 0 {
            return Datum::Text("NULL".to_owned());
        }
        Datum::Text(self.points(value).unwrap_or_else(|| format!("{value:#x}")))
    }

    fn points(&self, value: Value) -> Option<String> {
        let address = u64::try_from(value)
            .ok()
            .filter(|&address| address >= 4096)?;
        let function = address
            .checked_sub(self.machine.load_base())
            .and_then(|address| self.binary.function(address));
        if function.is_some() {
            return function;
        }
        Some(format!("&{}", self.memory(address, 0)?.name))
    }

    /// The addresses that the calls `thread` is in return to, innermost first.
    ///
    /// The runtime knows of instrumented functions only. Where the thread stands in a function of
    /// a library, such as `std::thread::join`, the call to that is looked up on its stack. So are calls of
    /// small functions that compilers do not instrument, such as one that consists of inline assembly.
    pub(super) fn calls(&self, thread: ThreadId) -> Vec<u64> {
        let mut calls = self.machine.backtrace(thread);
        let site = self.machine.site(thread);
        if self.frames(site).iter().any(Place::is_users) {
            return calls;
        }
        let words = self.machine.stack_words(thread);
        let base = self.machine.load_base();
        if self.add_bare_calls(&mut calls, &words) {
            return calls;
        }
        let returns = |word: &&u64| {
            let address = word.checked_sub(base);
            address.is_some_and(|address| self.binary.returns_from_library(address))
        };
        // Copies of the site lie below the place that it really returns from.
        let entry = words.iter().rposition(|&word| word == site.0);
        let caller = entry.and_then(|entry| words[entry + 1..].iter().find(returns));
        if let Some(&caller) = caller.filter(|&caller| !calls.contains(caller)) {
            calls.insert(calls.len().min(1), caller);
        }
        calls
    }

    /// Adds the callers of the innermost functions that have no calls in `calls`, which the runtime
    /// knows of; says whether the call that follows the innermost one is certain.
    fn add_bare_calls(&self, calls: &mut Vec<u64>, words: &[u64]) -> bool {
        /// Functions without instrumentation call few others.
        const DEEPEST: usize = 8;
        let base = self.machine.load_base();
        let returns = |inner: u64, word: u64| {
            let addresses = (inner.checked_sub(base + 1), word.checked_sub(base));
            matches!(addresses, (Some(inner), Some(word)) if self.binary.returns_from(inner, word))
        };
        for n in 0..DEEPEST {
            let Some(&inner) = calls.get(n) else {
                return n > 0;
            };
            if calls.get(n + 1).is_some_and(|&outer| returns(inner, outer)) {
                return true;
            }
            let from = words.iter().rposition(|&word| word == inner);
            let mut above = words[from.map_or(words.len(), |from| from + 1)..].iter();
            match above.find(|&&word| returns(inner, word)) {
                Some(&outer) if !calls.contains(&outer) => calls.insert(n + 1, outer),
                _ => return n > 0,
            }
        }
        true
    }

    /// The same in terms of the source.
    pub(super) fn stack(&self, thread: ThreadId) -> Vec<Place> {
        self.sources(self.calls(thread))
    }

    /// The places of `calls`, which are return addresses.
    pub(super) fn sources(&self, calls: Vec<u64>) -> Vec<Place> {
        let frames = calls.into_iter().flat_map(|call| self.frames(Site(call)));
        let known = frames.filter(|frame| *frame != Place::default());
        let frames: Vec<Place> = known.collect();
        if self.shows_libraries() {
            return frames;
        }
        // Of libraries, what the program calls.
        let called = |n: usize| frames.get(n + 1).is_none_or(Place::is_users);
        let shown = frames.iter().enumerate();
        let shown = shown.filter(|(n, frame)| !frame.is_library() || called(*n));
        shown.map(|(_, frame)| frame.clone()).collect()
    }

    /// Gives the variable that a message is about its full name, with members and indices.
    pub(super) fn in_words(&self, message: &str) -> String {
        let better = self.machine.failure_place().and_then(|(address, called)| {
            if let Some((thread, offset)) = self.machine.thread_local(address) {
                let found = self.binary.thread_local(offset, 0)?;
                return Some((called, format!("`{}` of {thread}", found.name)));
            }
            let offset = address.checked_sub(self.machine.load_base())?;
            let found = self.binary.variable(offset, 0)?;
            Some((called, format!("`{}`", found.name)))
        });
        match better {
            Some((called, name)) => message.replace(&called, &name),
            None => message.to_owned(),
        }
    }
}

fn number(value: i128) -> Datum {
    match i64::try_from(value) {
        Ok(small) => Datum::Signed(small),
        Err(_) => Datum::Text(value.to_string()),
    }
}

fn unsigned(value: Value) -> Datum {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(small), _) => Datum::Signed(small),
        (_, Ok(large)) => Datum::Unsigned(large),
        _ => Datum::Text(format!("{value:#x}")),
    }
}
