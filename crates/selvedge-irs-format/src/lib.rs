//! The prefix file: which schedules of a program are proven, as a running program needs to know it.
//!
//! The verifier writes it, the enforcement library reads it, and nothing else passes between them.
//! `docs/irs-format.md` is the contract in prose; this crate is the same in code. It needs no
//! allocation to read a file ([`View`]) and no standard library at all.
//!
//! A file holds, for each declared input, the threads of the program by their places in the spawn
//! tree and, for each thread, what its n-th *counted event* has to wait for. A counted event is the
//! performance of an operation at a *counted site*: the sites are listed, and those that are not
//! counted do not wait. It also holds the sequences of events that each thread can perform, so that a program
//! that does something else is noticed ([`Branch`]). Files of one [lineage](View::lineage) agree on what
//! is counted, and later ones only ask for less: every wait of a later file is also in the earlier
//! one, or implied by one that is ([`weaker`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod layout;
mod meaning;
mod view;
mod weaker;
mod write;

pub use meaning::{Class, Flags, Kind, MAGIC, NONE, VERSION};
pub use view::{Branch, Damage, Event, Input, Site, Thread, View, Wait};
pub use weaker::{NotWeaker, weaker};
pub use write::{Contents, InputPart, SiteEntry, ThreadPart, seal};
