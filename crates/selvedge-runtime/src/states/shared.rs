//! The part of a state that threads share: globals, synchronisation objects, and the C library's
//! knowledge of the process.

use selvedge_core::{Location, Value};
use serde::{Deserialize, Serialize};

use super::{bytes, push, put};
use crate::access;
use crate::locations::Entry;
use crate::posix::state::{self, Shared};
use crate::runtime::Runtime;

/// Globals are compared with their initial contents in pieces of this size, and in larger ones first.
const PIECE: usize = 32;
const LARGE: usize = 512;

/// Everything that is shared.
#[derive(Serialize, Deserialize)]
pub(super) struct Image {
    /// Where globals differ from their initial contents, and how.
    globals: Box<[(usize, Box<[u8]>)]>,
    objects: Box<[(Location, Value)]>,
    process: Shared,
}

impl Image {
    /// How much memory it takes, but for what the C library knows.
    pub(super) fn bytes(&self) -> usize {
        let globals = self.globals.iter();
        let globals: usize = globals
            .map(|(_, bytes)| bytes.len() + size_of::<(usize, Box<[u8]>)>())
            .sum();
        size_of::<Image>() + globals + size_of_val(&*self.objects)
    }
}

impl Runtime {
    pub(super) fn identify_shared(&self, into: &mut Vec<u8>) {
        self.different_globals(|at, bytes| {
            push(into, at);
            into.extend_from_slice(bytes);
        });
        push(into, 0);
        for (_, entry) in self.live_objects() {
            push(into, entry.address << 2 | entry.kind as usize);
            into.extend_from_slice(&entry.held().to_le_bytes());
        }
        push(into, 0);
        state::identify_shared(into);
    }

    /// Calls `found` for the pieces of globals that are not as they were at the start.
    fn different_globals(&self, mut found: impl FnMut(usize, &[u8])) {
        for (range, initial) in self.snapshot.changing() {
            let now = bytes(range.start, range.end);
            for (large, (now, initial)) in now.chunks(LARGE).zip(initial.chunks(LARGE)).enumerate()
            {
                if now == initial {
                    continue;
                }
                let pieces = now.chunks(PIECE).zip(initial.chunks(PIECE));
                for (piece, (now, initial)) in pieces.enumerate() {
                    if now != initial {
                        found(range.start + large * LARGE + piece * PIECE, now);
                    }
                }
            }
        }
    }

    /// The objects that hold something, except those whose memory is gone.
    fn live_objects(&self) -> impl Iterator<Item = (Location, &Entry)> {
        self.locations
            .objects(self.run)
            .filter(|(_, entry)| self.is_live(entry.address))
    }

    fn is_live(&self, address: usize) -> bool {
        if let Some(owner) = self.layout.stack_owner(address) {
            let Some(thread) = self.threads.get(owner) else {
                return false;
            };
            return self.exists(owner) && address >= thread.live_stack();
        }
        if self.layout.heap_owner(address).is_some() {
            return !matches!(access::liveness(address), 0 | access::FREED);
        }
        true
    }

    pub(super) fn save_shared(&self) -> Image {
        let mut globals = Vec::new();
        self.different_globals(|at, bytes| globals.push((at, bytes.into())));
        let objects = self.live_objects();
        Image {
            globals: globals.into(),
            objects: objects
                .map(|(location, entry)| (location, entry.held()))
                .collect(),
            process: state::save_shared(),
        }
    }

    pub(super) fn restore_shared(&mut self, number: usize) {
        let image = &self.states.shared[number];
        self.snapshot.restore();
        for (at, bytes) in &image.globals {
            put(*at, bytes);
        }
        self.locations.forget_all_objects();
        for &(location, value) in &image.objects {
            self.locations.set_object(location, value, self.run);
        }
        state::restore_shared(&image.process);
    }
}
