//! Writing a file.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::layout;
use crate::meaning::{Class, Flags, Kind, MAGIC, NONE, VERSION, checksum};
use crate::view::{Branch, Event, View, Wait};

/// The contents of a file, to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The program.
    pub fingerprint: [u8; 16],
    /// The initial trace.
    pub lineage: [u8; 16],
    /// Counts the files of the lineage.
    pub generation: u64,
    /// The flags of the whole program.
    pub flags: Flags,
    /// Traces proven safe.
    pub traces: u64,
    /// A guess of how many there are.
    pub estimate: Option<u64>,
    /// Waits of the first file of the lineage.
    pub initial_waits: u64,
    /// The sites that were reached.
    pub sites: Vec<SiteEntry>,
    /// The declared inputs.
    pub inputs: Vec<InputPart>,
    /// The verifier's data for its next start.
    pub resume: Vec<u8>,
}

/// A call site, see [`Site`](crate::Site).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteEntry {
    /// The function it is in.
    pub function: String,
    /// Its number among the symbols of that name.
    pub occurrence: u32,
    /// Return address of the call, from the beginning of the function.
    pub offset: u32,
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The flags of the site.
    pub class: Class,
    /// The operation there.
    pub kind: Kind,
    /// Whether no other thread is known to access the same memory in a way that matters.
    pub alone: bool,
    /// Whether what is done there is part of the threads' histories.
    pub tracked: bool,
}

/// An input and the prefix for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputPart {
    /// The values of the choices.
    pub values: Vec<u64>,
    /// The threads, main first, parents before children.
    pub threads: Vec<ThreadPart>,
}

/// A thread and what its events wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPart {
    /// The thread that created it; [`NONE`] for main.
    pub parent: u32,
    /// Its number among its parent's children.
    pub child: u32,
    /// How many of its counted events matter.
    pub limit: u32,
    /// The waits of its events, sorted by event.
    pub waits: Vec<Wait>,
    /// The expectations at its first counted events.
    pub events: Vec<Event>,
    /// Its possible histories.
    pub histories: Vec<Branch>,
}

impl Contents {
    /// Reads everything, to be changed and written again.
    pub fn read(view: View<'_>) -> Contents {
        let thread = |thread: crate::Thread<'_>| ThreadPart {
            parent: thread.parent,
            child: thread.child,
            limit: thread.limit,
            waits: thread.waits().collect(),
            events: thread.events().collect(),
            histories: thread.histories().collect(),
        };
        let input = |input: crate::Input<'_>| InputPart {
            values: input.values().collect(),
            threads: input.threads().map(thread).collect(),
        };
        Contents {
            fingerprint: view.fingerprint(),
            lineage: view.lineage(),
            generation: view.generation(),
            flags: view.flags(),
            traces: view.traces(),
            estimate: view.estimate(),
            initial_waits: view.initial_waits(),
            sites: view.sites().map(SiteEntry::from).collect(),
            inputs: view.inputs().map(input).collect(),
            resume: view.resume().into(),
        }
    }

    /// How many waits there are in all.
    pub fn waits(&self) -> usize {
        let threads = self.inputs.iter().flat_map(|input| &input.threads);
        threads.map(|thread| thread.waits.len()).sum()
    }

    /// The bytes of the file. Write them beside the old file and rename.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut tables: [(Vec<u8>, u64); layout::TABLE_COUNT] = Default::default();
        let mut strings = Strings::default();
        let mut put = |table: usize, record: &[u8]| {
            debug_assert_eq!(record.len(), layout::RECORD[table]);
            tables[table].0.extend_from_slice(record);
            tables[table].1 += 1;
        };
        for site in &self.sites {
            let words = [
                strings.offset(&site.function),
                strings.offset(&site.file),
                site.occurrence,
                site.offset,
                site.line,
            ];
            let mut record = [0; 32];
            write_words(&mut record, &words);
            record[20] = site.class as u8;
            record[21] = site.kind as u8;
            record[22] = site.alone.into();
            record[23] = site.tracked.into();
            put(layout::SITES, &record);
        }
        let (mut values, mut threads, mut waits, mut events, mut histories) = (0, 0, 0, 0, 0);
        for input in &self.inputs {
            let words = [
                values,
                input.values.len() as u32,
                threads,
                input.threads.len() as u32,
            ];
            let mut record = [0; 32];
            write_words(&mut record, &words);
            put(layout::INPUTS, &record);
            for value in &input.values {
                put(layout::VALUES, &value.to_le_bytes());
            }
            values += input.values.len() as u32;
            threads += input.threads.len() as u32;
            for thread in &input.threads {
                let words = [
                    thread.parent,
                    thread.child,
                    thread.limit,
                    waits,
                    thread.waits.len() as u32,
                    events,
                    thread.events.len() as u32,
                    histories,
                    thread.histories.len() as u32,
                ];
                let mut record = [0; 40];
                write_words(&mut record, &words);
                put(layout::THREADS, &record);
                for wait in &thread.waits {
                    let mut record = [0; 16];
                    write_words(
                        &mut record,
                        &[wait.event, wait.thread, wait.count, wait.bug],
                    );
                    put(layout::WAITS, &record);
                }
                for event in &thread.events {
                    put(layout::EVENTS, &event.unwrap_or(NONE).to_le_bytes());
                }
                for branch in &thread.histories {
                    let words = match *branch {
                        Branch::Event { after, site } => [0, after, site],
                        Branch::Repeat { from, to } => [1, from, to],
                        Branch::Open { at } => [2, at, 0],
                        Branch::Thread { after, site } => [3, after, site],
                    };
                    let mut record = [0; 12];
                    write_words(&mut record, &words);
                    put(layout::HISTORIES, &record);
                }
                histories += thread.histories.len() as u32;
                waits += thread.waits.len() as u32;
                events += thread.events.len() as u32;
            }
        }
        let strings = strings.bytes;
        tables[layout::STRINGS] = (strings.clone(), strings.len() as u64);
        tables[layout::RESUME] = (self.resume.clone(), self.resume.len() as u64);
        self.assemble(&tables)
    }

    fn assemble(&self, tables: &[(Vec<u8>, u64)]) -> Vec<u8> {
        let mut file = alloc::vec![0; layout::HEADER];
        for (index, (bytes, count)) in tables.iter().enumerate() {
            let at = layout::TABLES + 16 * index;
            let start = file.len() as u64;
            file[at..at + 8].copy_from_slice(&start.to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&count.to_le_bytes());
            file.extend_from_slice(bytes);
            file.resize(file.len().next_multiple_of(8), 0);
        }
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(layout::MAGIC, &MAGIC);
        put(layout::VERSION, &VERSION.to_le_bytes());
        put(layout::HEADER_SIZE, &(layout::HEADER as u32).to_le_bytes());
        put(layout::FINGERPRINT, &self.fingerprint);
        put(layout::LINEAGE, &self.lineage);
        put(layout::GENERATION, &self.generation.to_le_bytes());
        put(layout::FLAGS, &self.flags.0.to_le_bytes());
        put(layout::TRACES, &self.traces.to_le_bytes());
        let estimate = self.estimate.unwrap_or(0);
        put(layout::ESTIMATE, &estimate.to_le_bytes());
        put(layout::INITIAL_WAITS, &self.initial_waits.to_le_bytes());
        seal(&mut file);
        file
    }
}

/// Writes the length and the checksum of a file into its header. A file that is too short to have a
/// header stays as it is.
pub fn seal(file: &mut [u8]) {
    if file.len() < layout::HEADER {
        return;
    }
    let length = file.len() as u64;
    file[layout::LENGTH..][..8].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(file);
    file[layout::CHECKSUM..][..8].copy_from_slice(&sum.to_le_bytes());
}

impl From<crate::Site<'_>> for SiteEntry {
    fn from(site: crate::Site<'_>) -> SiteEntry {
        SiteEntry {
            function: site.function.into(),
            occurrence: site.occurrence,
            offset: site.offset,
            file: site.file.into(),
            line: site.line,
            class: site.class,
            kind: site.kind,
            alone: site.alone,
            tracked: site.tracked,
        }
    }
}

fn write_words(record: &mut [u8], words: &[u32]) {
    for (into, word) in record.chunks_exact_mut(4).zip(words) {
        into.copy_from_slice(&word.to_le_bytes());
    }
}

#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    known: BTreeMap<String, u32>,
}

impl Strings {
    fn offset(&mut self, text: &str) -> u32 {
        if let Some(&offset) = self.known.get(text) {
            return offset;
        }
        let offset = self.bytes.len() as u32;
        self.bytes
            .extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.known.insert(text.into(), offset);
        offset
    }
}
