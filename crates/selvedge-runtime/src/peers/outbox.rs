//! The messages of one process of several, in memory that all of them share.

use std::hint;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::arena::PAGE;

/// Address space for the messages of one exchange of one member; memory is taken as it is used.
const HALF: usize = 1 << 36;
/// In the place of a number of exchanges: there are no more.
const CLOSED: u32 = u32::MAX;
/// How long it sleeps before it looks whether the others are still there.
const NAP: Duration = Duration::from_millis(100);

/// Where a member puts its messages, in memory that all share. Messages of two exchanges have room:
/// no process begins with the second next one before all have read this one.
pub(super) struct Outbox {
    /// How many exchanges its owner has put its messages in for.
    filled: &'static AtomicU32,
    /// For even and odd exchanges, by receiver, where a message begins and ends.
    places: [&'static [AtomicU64]; 2],
    /// Their bytes, for even and odd exchanges.
    halves: [*mut u8; 2],
}

impl Outbox {
    pub(super) fn new(members: usize) -> io::Result<Outbox> {
        let words = PAGE / 8 + 4 * members;
        let start = (words * 8).next_multiple_of(PAGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let size = start + 2 * HALF;
        // SAFETY: asks for new memory wherever there is room.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let bytes = memory.cast::<u8>();
        // SAFETY: mapped above for good and zero; these parts of it are used as atomic words only.
        let (filled, places) = unsafe {
            let words = bytes.add(PAGE).cast::<AtomicU64>();
            let places = [0, 1]
                .map(|half| std::slice::from_raw_parts(words.add(half * 2 * members), 2 * members));
            (&*memory.cast::<AtomicU32>(), places)
        };
        // SAFETY: inside of the mapping.
        let halves = [0, 1].map(|half| unsafe { bytes.add(start + half * HALF) });
        Ok(Outbox {
            filled,
            places,
            halves,
        })
    }

    /// Puts the messages of an exchange in.
    pub(super) fn fill(&self, exchange: u32, outgoing: &[Vec<u8>]) -> io::Result<()> {
        let half = exchange as usize % 2;
        let mut begin = 0;
        for (receiver, message) in outgoing.iter().enumerate() {
            let end = begin + message.len();
            if end > HALF {
                return Err(io::Error::other("messages of a round are too large"));
            }
            // SAFETY: inside of the half, which is this process's to write to until it says that it
            // is filled.
            unsafe {
                let into = self.halves[half].add(begin);
                into.copy_from_nonoverlapping(message.as_ptr(), message.len());
            }
            let place = &self.places[half][2 * receiver..2 * receiver + 2];
            place[0].store(begin as u64, Ordering::Relaxed);
            place[1].store(end as u64, Ordering::Relaxed);
            begin = end;
        }
        self.wake(exchange + 1);
        Ok(())
    }

    /// Tells those that wait for messages how many exchanges its owner has put them in for.
    fn wake(&self, filled: u32) {
        self.filled.store(filled, Ordering::Release);
        // SAFETY: wakes the processes that wait for this word; needs nothing of it but its address.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.filled.as_ptr(),
                libc::FUTEX_WAKE,
                i32::MAX,
            )
        };
    }

    /// Waits until the messages of an exchange are there; tells whether it went to sleep. Asks from
    /// time to time whether it makes sense.
    pub(super) fn wait(
        &self,
        exchange: u32,
        patience: u32,
        alive: impl Fn() -> bool,
    ) -> io::Result<bool> {
        let (mut patience, mut slept) = (patience, false);
        loop {
            let filled = self.filled.load(Ordering::Acquire);
            if filled > exchange && filled != CLOSED {
                return Ok(slept);
            }
            if filled == CLOSED {
                return Err(gone());
            }
            if patience > 0 {
                patience -= 1;
                hint::spin_loop();
                continue;
            }
            let nap = libc::timespec {
                tv_sec: 0,
                tv_nsec: NAP.as_nanos() as libc::c_long,
            };
            slept = true;
            // SAFETY: sleeps while the word is as it was, or for that long.
            let woken = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.filled.as_ptr(),
                    libc::FUTEX_WAIT,
                    filled,
                    &raw const nap,
                )
            };
            if woken != 0 && !alive() && self.filled.load(Ordering::Acquire) <= exchange {
                return Err(gone());
            }
        }
    }

    /// The message of an exchange for a receiver.
    pub(super) fn read(&self, exchange: u32, receiver: usize) -> Vec<u8> {
        let half = exchange as usize % 2;
        let place = &self.places[half][2 * receiver..2 * receiver + 2];
        let [begin, end] = [0, 1].map(|end: usize| place[end].load(Ordering::Relaxed) as usize);
        // SAFETY: the owner has filled this part, and does not write to it until everybody has read it.
        unsafe { std::slice::from_raw_parts(self.halves[half].add(begin), end - begin) }.to_vec()
    }

    /// Tells its readers that there are no more messages.
    pub(super) fn close(&self) {
        self.wake(CLOSED);
    }

    /// Whether there are no more messages.
    pub(super) fn is_closed(&self) -> bool {
        self.filled.load(Ordering::Relaxed) == CLOSED
    }
}

fn gone() -> io::Error {
    let what = "a process that takes part in the search is gone";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}
