//! Several processes, or threads, that search together.

use std::ops::ControlFlow;

use super::queue::PackedStep;
use crate::report::Ending;

/// Goes on with a value, or ends the search.
pub(super) type Flow<T> = ControlFlow<Ending, T>;

/// The processes that search together, as seen by one of them. Each runs a copy of the same machine: the same
/// numbers stand for the same threads, and equal states are identified by the same bytes, in all of
/// them.
pub trait Peers {
    /// The number of this peer, from zero.
    fn rank(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// From how many states per peer in a round on they work apart. Before, each does the same as
    /// the others: that is quicker as long as there is little to do.
    fn enough(&self) -> usize {
        24
    }

    /// Sends `outgoing[r]` to the one with rank *r*, and returns what each of them sent to this
    /// one. All of them call it equally often; it returns when the messages of all have arrived.
    fn exchange(&mut self, outgoing: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String>;
}

impl<P: Peers> Peers for &mut P {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn count(&self) -> usize {
        (**self).count()
    }

    fn enough(&self) -> usize {
        (**self).enough()
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        (**self).exchange(outgoing)
    }
}

/// A search by one process.
pub struct Alone;

impl Peers for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        Ok(outgoing.to_vec())
    }
}

/// Sends a message to each peer, and returns theirs.
pub(super) fn exchange<P: Peers>(peers: &mut P, outgoing: &[Vec<u8>]) -> Flow<Vec<Vec<u8>>> {
    match peers.exchange(outgoing) {
        Ok(incoming) => ControlFlow::Continue(incoming),
        Err(why) => ControlFlow::Break(Ending::Refused(why)),
    }
}

/// A message that is read piece by piece.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("a whole message");
        self.0 = rest;
        *first
    }

    pub(super) fn byte(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    pub(super) fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(super) fn wide(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }

    pub(super) fn step(&mut self) -> PackedStep {
        PackedStep::from_bits(self.word())
    }

    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let length = self.word() as usize;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    pub(super) fn words(&mut self) -> Vec<u32> {
        let length = 4 * self.word() as usize;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        let (words, _) = bytes.as_chunks();
        words.iter().copied().map(u32::from_le_bytes).collect()
    }
}

pub(super) fn put_bytes(bytes: &[u8], into: &mut Vec<u8>) {
    into.extend((bytes.len() as u32).to_le_bytes());
    into.extend_from_slice(bytes);
}

pub(super) fn put_words(words: &[u32], into: &mut Vec<u8>) {
    into.extend((words.len() as u32).to_le_bytes());
    into.reserve(4 * words.len());
    for word in words {
        into.extend_from_slice(&word.to_le_bytes());
    }
}
