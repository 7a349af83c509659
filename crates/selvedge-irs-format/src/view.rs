//! Reads a file in place.

use core::fmt;

use crate::layout;
use crate::meaning::{Class, Flags, Kind, MAGIC, NONE, VERSION, checksum};

/// Why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It does not begin like a prefix file.
    Foreign,
    /// It has another version of the layout.
    Version(u32),
    /// It is shorter or longer than it says.
    Length,
    /// Its contents are not what was written.
    Checksum,
    /// Some table or index leads out of the file.
    Structure,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Foreign => f.write_str("not a prefix file"),
            Damage::Version(found) => write!(f, "prefix file of version {found}, not {VERSION}"),
            Damage::Length => f.write_str("truncated prefix file"),
            Damage::Checksum => f.write_str("damaged prefix file"),
            Damage::Structure => f.write_str("inconsistent prefix file"),
        }
    }
}

impl core::error::Error for Damage {}

/// A file that has been checked.
#[derive(Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
}

/// A call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'a> {
    /// The function it is in, as the symbol table names it.
    pub function: &'a str,
    /// Its number among the symbols of that name, in the order of their addresses.
    pub occurrence: u32,
    /// Return address of the call, from the beginning of the function.
    pub offset: u32,
    /// The source file, empty if unknown.
    pub file: &'a str,
    /// The line, zero if unknown.
    pub line: u32,
    /// The flags of the site.
    pub class: Class,
    /// The operation there.
    pub kind: Kind,
    /// Whether no other thread touches the same memory, in any proven execution, or all of them
    /// only read it.
    pub alone: bool,
    /// Whether what is done there is part of the threads' histories.
    pub tracked: bool,
}

/// A declared input: the values of the choices that main makes before it creates the first thread.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    view: View<'a>,
    record: usize,
}

/// A thread, by its place in the spawn tree. Main is the first one of each input.
#[derive(Clone, Copy)]
pub struct Thread<'a> {
    view: View<'a>,
    record: usize,
    /// The thread of the input that created it; [`NONE`] for main.
    pub parent: u32,
    /// Its number among its parent's children, from zero.
    pub child: u32,
    /// How many counted events of the thread matter: after this many it neither waits nor counts.
    pub limit: u32,
}

/// One thing that an event has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The number of the thread's counted event, from zero.
    pub event: u32,
    /// The thread of the input that it waits for.
    pub thread: u32,
    /// How many counted events that thread must have performed, or have ended.
    pub count: u32,
    /// Zero, or the number of the bug that it keeps away, from one.
    pub bug: u32,
}

/// A part of what a thread can do. *Histories* are sequences of events at tracked sites; they are numbered
/// from zero, the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// After the history `after` there can be an event at `site`: this is the next history.
    Event {
        /// The number of a history.
        after: u32,
        /// The index of a site.
        site: u32,
    },
    /// After the history `after` the thread can create or join a thread at `site`, or end if that is
    /// [`NONE`]: this is the next history.
    Thread {
        /// The number of a history.
        after: u32,
        /// The index of a site, or [`NONE`].
        site: u32,
    },
    /// A pure iteration of a loop ends here: everything that can follow `to` can follow `from` as well.
    Repeat {
        /// The number of a history.
        from: u32,
        /// The number of a shorter one.
        to: u32,
    },
    /// Not all that can follow this history is listed.
    Open {
        /// The number of a history.
        at: u32,
    },
}

/// The expectation at a counted event: the index of its site, `None` where it varies.
pub type Event = Option<u32>;

impl<'a> View<'a> {
    /// Checks `bytes`. What passes can be read to the end without further ado.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Damage> {
        if bytes.len() < layout::HEADER {
            let begins = bytes.starts_with(&MAGIC) || MAGIC.starts_with(bytes);
            return Err(if begins {
                Damage::Length
            } else {
                Damage::Foreign
            });
        }
        let view = View { bytes };
        if bytes[..8] != MAGIC {
            return Err(Damage::Foreign);
        }
        match view.u32(layout::VERSION) {
            VERSION => {}
            other => return Err(Damage::Version(other)),
        }
        if view.u64(layout::LENGTH) != bytes.len() as u64 {
            return Err(Damage::Length);
        }
        if view.u64(layout::CHECKSUM) != checksum(bytes) {
            return Err(Damage::Checksum);
        }
        view.check().ok_or(Damage::Structure)?;
        Ok(view)
    }

    fn check(self) -> Option<()> {
        let len = self.bytes.len() as u64;
        for table in 0..layout::TABLE_COUNT {
            let (start, count) = self.table(table);
            let size = count.checked_mul(layout::RECORD[table] as u64)?;
            let end = start.checked_add(size)?;
            (start % 8 == 0 && end <= len && count < u64::from(NONE)).then_some(())?;
        }
        for index in 0..self.count(layout::SITES) {
            let at = self.at(layout::SITES, index);
            self.string(self.u32(at))?;
            self.string(self.u32(at + 4))?;
            Class::from_byte(self.bytes[at + 20])?;
            Kind::from_byte(self.bytes[at + 21])?;
        }
        let within = |first: u32, count: u32, table: usize| {
            (u64::from(first) + u64::from(count) <= self.count(table) as u64).then_some(())
        };
        for input in self.inputs() {
            let at = input.record;
            within(self.u32(at), self.u32(at + 4), layout::VALUES)?;
            within(self.u32(at + 8), self.u32(at + 12), layout::THREADS)?;
            let threads = self.u32(at + 12);
            for (number, thread) in input.threads().enumerate() {
                let at = thread.record;
                within(self.u32(at + 12), self.u32(at + 16), layout::WAITS)?;
                within(self.u32(at + 20), self.u32(at + 24), layout::EVENTS)?;
                within(self.u32(at + 28), self.u32(at + 32), layout::HISTORIES)?;
                let main = thread.parent == NONE;
                (main == (number == 0) && (main || thread.parent < number as u32)).then_some(())?;
                let mut last = 0;
                for wait in thread.waits() {
                    let known = wait.thread < threads && wait.thread != number as u32;
                    (known && wait.event >= last && wait.event < thread.limit).then_some(())?;
                    last = wait.event;
                }
                let sites = self.count(layout::SITES) as u32;
                let mut events = thread.events();
                events
                    .all(|site| site.is_none_or(|site| site < sites))
                    .then_some(())?;
                self.check_histories(thread, sites)?;
            }
        }
        Some(())
    }

    fn check_histories(self, thread: Thread<'_>, sites: u32) -> Option<()> {
        let mut known = 1;
        for index in 0..thread.histories().len() {
            let sound = match thread.branch(index)? {
                Branch::Event { after, site } => {
                    known += 1;
                    after < known - 1 && site < sites
                }
                Branch::Thread { after, site } => {
                    known += 1;
                    after < known - 1 && (site < sites || site == NONE)
                }
                Branch::Repeat { from, to } => from < known && to < known,
                Branch::Open { at } => at < known,
            };
            sound.then_some(())?;
        }
        Some(())
    }

    /// The program it was made for.
    pub fn fingerprint(self) -> [u8; 16] {
        self.array(layout::FINGERPRINT)
    }

    /// The lineage. Files with the same lineage may replace each other under a running program.
    pub fn lineage(self) -> [u8; 16] {
        self.array(layout::LINEAGE)
    }

    /// Counts the files of the lineage.
    pub fn generation(self) -> u64 {
        self.u64(layout::GENERATION)
    }

    /// The flags of the whole program.
    pub fn flags(self) -> Flags {
        Flags(self.u64(layout::FLAGS))
    }

    /// Traces proven safe.
    pub fn traces(self) -> u64 {
        self.u64(layout::TRACES)
    }

    /// A guess of how many traces there are in all.
    pub fn estimate(self) -> Option<u64> {
        Some(self.u64(layout::ESTIMATE)).filter(|&n| n > 0)
    }

    /// Waits of the first file of the lineage.
    pub fn initial_waits(self) -> u64 {
        self.u64(layout::INITIAL_WAITS)
    }

    /// The sites, in the order in which events name them.
    pub fn sites(self) -> impl ExactSizeIterator<Item = Site<'a>> {
        (0..self.count(layout::SITES)).map(move |index| self.site(index as u32))
    }

    /// One of the sites.
    pub fn site(self, index: u32) -> Site<'a> {
        let at = self.at(layout::SITES, index as usize);
        Site {
            function: self.string(self.u32(at)).unwrap_or_default(),
            file: self.string(self.u32(at + 4)).unwrap_or_default(),
            occurrence: self.u32(at + 8),
            offset: self.u32(at + 12),
            line: self.u32(at + 16),
            class: Class::from_byte(self.bytes[at + 20]).unwrap_or(Class::Counted),
            kind: Kind::from_byte(self.bytes[at + 21]).unwrap_or(Kind::Mixed),
            alone: self.bytes[at + 22] == 1,
            tracked: self.bytes[at + 23] == 1,
        }
    }

    /// The declared inputs; one without values if the program has none.
    pub fn inputs(self) -> impl ExactSizeIterator<Item = Input<'a>> {
        (0..self.count(layout::INPUTS)).map(move |index| Input {
            view: self,
            record: self.at(layout::INPUTS, index),
        })
    }

    /// The input with these values.
    pub fn input(self, values: &[u64]) -> Option<Input<'a>> {
        self.inputs()
            .find(|input| input.values().eq(values.iter().copied()))
    }

    /// The verifier's data for its next start.
    pub fn resume(self) -> &'a [u8] {
        let (start, count) = self.table(layout::RESUME);
        &self.bytes[start as usize..][..count as usize]
    }

    fn table(self, table: usize) -> (u64, u64) {
        let at = layout::TABLES + 16 * table;
        (self.u64(at), self.u64(at + 8))
    }

    fn count(self, table: usize) -> usize {
        self.table(table).1 as usize
    }

    fn at(self, table: usize, index: usize) -> usize {
        self.table(table).0 as usize + index * layout::RECORD[table]
    }

    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[at..at + N]);
        array
    }

    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    fn string(self, offset: u32) -> Option<&'a str> {
        let (start, count) = self.table(layout::STRINGS);
        let strings = &self.bytes[start as usize..][..count as usize];
        let rest = strings.get(offset as usize..)?;
        let (length, rest) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        core::str::from_utf8(rest.get(..length as usize)?).ok()
    }
}

impl<'a> Input<'a> {
    /// The values of the choices, in order.
    pub fn values(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        let (first, count) = (self.field(0), self.field(4));
        let view = self.view;
        (first..first + count).map(move |index| view.u64(view.at(layout::VALUES, index)))
    }

    /// The threads, parents before children.
    pub fn threads(self) -> impl ExactSizeIterator<Item = Thread<'a>> {
        let (first, count) = (self.field(8), self.field(12));
        let view = self.view;
        (first..first + count).map(move |index| {
            let record = view.at(layout::THREADS, index);
            Thread {
                view,
                record,
                parent: view.u32(record),
                child: view.u32(record + 4),
                limit: view.u32(record + 8),
            }
        })
    }

    /// How many waits there are in all.
    pub fn waits(self) -> usize {
        self.threads().map(|thread| thread.waits().len()).sum()
    }

    fn field(self, at: usize) -> usize {
        self.view.u32(self.record + at) as usize
    }
}

impl<'a> Thread<'a> {
    /// The waits of its events, sorted by event.
    pub fn waits(self) -> impl ExactSizeIterator<Item = Wait> + 'a {
        let view = self.view;
        let (first, count) = (view.u32(self.record + 12), view.u32(self.record + 16));
        (0..count).map(move |index| {
            let at = view.at(layout::WAITS, first as usize + index as usize);
            Wait {
                event: view.u32(at),
                thread: view.u32(at + 4),
                count: view.u32(at + 8),
                bug: view.u32(at + 12),
            }
        })
    }

    /// The expectations at its first counted events.
    pub fn events(self) -> impl ExactSizeIterator<Item = Event> + 'a {
        let view = self.view;
        let (first, count) = (view.u32(self.record + 20), view.u32(self.record + 24));
        (0..count).map(move |index| {
            let site = view.u32(view.at(layout::EVENTS, first as usize + index as usize));
            Some(site).filter(|&site| site != NONE)
        })
    }

    /// Its possible histories.
    pub fn histories(self) -> impl ExactSizeIterator<Item = Branch> + 'a {
        let count = self.view.u32(self.record + 32) as usize;
        (0..count).map(move |index| self.branch(index).unwrap_or(Branch::Open { at: 0 }))
    }

    fn branch(self, index: usize) -> Option<Branch> {
        let first = self.view.u32(self.record + 28) as usize;
        let at = self.view.at(layout::HISTORIES, first + index);
        let [what, from, to] = [0, 4, 8].map(|offset| self.view.u32(at + offset));
        match what {
            0 => Some(Branch::Event {
                after: from,
                site: to,
            }),
            1 => Some(Branch::Repeat { from, to }),
            2 => Some(Branch::Open { at: from }),
            3 => Some(Branch::Thread {
                after: from,
                site: to,
            }),
            _ => None,
        }
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("generation", &self.generation())
            .field("flags", &self.flags())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
