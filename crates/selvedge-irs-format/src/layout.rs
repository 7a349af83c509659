//! Where things are: offsets of fields and sizes of records, for readers that do not use this crate.
//!
//! All numbers are little-endian, all tables begin at multiples of eight.

/// Size of the header.
pub const HEADER: usize = 256;
/// `[u8; 8]`, [`MAGIC`](crate::MAGIC).
pub const MAGIC: usize = 0;
/// `u32`, [`VERSION`](crate::VERSION).
pub const VERSION: usize = 8;
/// `u32`, [`HEADER`].
pub const HEADER_SIZE: usize = 12;
/// `u64`, length of the file.
pub const LENGTH: usize = 16;
/// `u64`, checksum of the file with this field taken as zero.
pub const CHECKSUM: usize = 24;
/// `[u8; 16]`, the program.
pub const FINGERPRINT: usize = 32;
/// `[u8; 16]`, the initial trace and everything that is fixed by it.
pub const LINEAGE: usize = 48;
/// `u64`, counts the files of a lineage, from one.
pub const GENERATION: usize = 64;
/// `u64`, see [`Flags`](crate::Flags).
pub const FLAGS: usize = 72;
/// `u64`, traces proven safe so far.
pub const TRACES: usize = 80;
/// `u64`, how many there are, as far as can be guessed; zero if it cannot.
pub const ESTIMATE: usize = 88;
/// `u64`, waits of the first file of the lineage.
pub const INITIAL_WAITS: usize = 96;
/// Table descriptors, each an offset and a number of records (`u64`, `u64`), in this order: sites,
/// inputs, values, threads, waits, events, strings (records of one byte), resume (one byte), histories.
pub const TABLES: usize = 104;
/// How many tables there are.
pub const TABLE_COUNT: usize = 9;
/// Record sizes of the tables.
pub const RECORD: [usize; TABLE_COUNT] = [32, 32, 8, 40, 16, 4, 1, 1, 12];

/// Index of the table of sites: `function: u32, file: u32` (offsets into strings), `occurrence: u32,
/// offset: u32, line: u32, class: u8, kind: u8, alone: u8, tracked: u8,
/// 8 bytes of zero`.
pub const SITES: usize = 0;
/// Index of the table of inputs: `first_value: u32, values: u32, first_thread: u32, threads: u32,
/// 16 bytes of zero`.
pub const INPUTS: usize = 1;
/// Index of the table of values: `u64` each.
pub const VALUES: usize = 2;
/// Index of the table of threads: `parent: u32, child: u32, limit: u32, first_wait: u32, waits: u32,
/// first_event: u32, events: u32, first_history: u32, histories: u32, 4 bytes of zero`.
pub const THREADS: usize = 3;
/// Index of the table of waits: `event: u32, thread: u32, count: u32, bug: u32`.
pub const WAITS: usize = 4;
/// Index of the table of events: `site: u32` each.
pub const EVENTS: usize = 5;
/// Index of the strings: `length: u32` and this many bytes of UTF-8 at each offset.
pub const STRINGS: usize = 6;
/// Index of what only the verifier understands.
pub const RESUME: usize = 7;
/// Index of the table of histories: `what: u32` (0 event, 1 repeat, 2 open, 3 thread), `from: u32, to: u32`.
pub const HISTORIES: usize = 8;
