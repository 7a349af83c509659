//! Notes which places of the program's code were ever reached.
//!
//! Each place that is watched gets a trap in place of its first byte. The first thread that comes there
//! takes the trap, the byte is put back, and the thread goes on: a place costs one signal in a whole
//! search, and nothing when it is reached again.

use std::io;
use std::rc::Rc;

use libc::{PROT_EXEC, PROT_READ, PROT_WRITE};

use crate::arena::{PAGE, pointer};
use crate::runtime::Runtime;

/// The instruction `int3`.
const TRAP: u8 = 0xcc;

/// An address of the program's code, and the byte that belongs there.
pub(crate) type Covered = (usize, u8);

/// The places that are watched.
#[derive(Default)]
pub(crate) struct Lines {
    /// By address.
    places: Rc<[Covered]>,
    reached: Vec<bool>,
}

impl Lines {
    /// Puts the byte back if there is a trap of ours at `at`. Runs in a signal handler.
    pub(crate) fn reach(&mut self, at: usize) -> bool {
        let Ok(found) = self.places.binary_search_by_key(&at, |&(at, _)| at) else {
            return false;
        };
        self.reached[found] = true;
        put(at, self.places[found].1).is_ok()
    }

    /// The addresses that were reached.
    pub(crate) fn reached(&self) -> impl Iterator<Item = usize> {
        let places = self.places.iter().zip(&self.reached);
        places
            .filter(|(_, reached)| **reached)
            .map(|(place, _)| place.0)
    }
}

impl Runtime {
    /// Watches the instructions at these addresses, of which each is the first byte of one.
    pub(crate) fn watch_lines(&mut self, mut addresses: Vec<usize>) -> io::Result<()> {
        addresses.retain(|&at| self.image.whole.contains(at) && !self.image.stubs.contains(at));
        addresses.sort_unstable();
        addresses.dedup();
        // SAFETY: an address of the loaded program's code, which can be read.
        let place = |at: usize| (at, unsafe { pointer::<u8>(at).read_volatile() });
        self.lines.places = addresses.into_iter().map(place).collect();
        self.lines.reached = vec![false; self.lines.places.len()];
        self.liveness.covered = Rc::clone(&self.lines.places);
        self.lines
            .places
            .iter()
            .try_for_each(|&(at, _)| put(at, TRAP))
    }
}

/// Writes a byte of the program's code, which only this changes.
fn put(at: usize, byte: u8) -> io::Result<()> {
    let page = at & !(PAGE - 1);
    let protect = |protection| {
        // SAFETY: a page of the loaded program's code; the other bytes of the page stay.
        match unsafe { libc::mprotect(pointer(page), PAGE, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    protect(PROT_READ | PROT_WRITE | PROT_EXEC)?;
    // SAFETY: the page is writable now, and no other thread of this process runs the program.
    unsafe { pointer::<u8>(at).write_volatile(byte) };
    protect(PROT_READ | PROT_EXEC)
}
