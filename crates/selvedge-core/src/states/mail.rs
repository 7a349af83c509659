//! States on their way to another peer.

use super::parts::{Contents, EMPTY};
use super::peers::{Reader, put_bytes};
use super::queue::{Entry, Node, Queue};
use super::space::Space;
use crate::saved::StateMachine;

/// The peers' knowledge of each other's numbers for contents of parts. Contents that the other
/// does not know goes along with it, once.
pub(super) struct Mail {
    /// Contents with lower numbers had them before peers worked apart, so that they mean the same
    /// to all.
    common: Contents,
    /// By peer: bit *n* says that it knows our contents *n* beyond those.
    sent: Vec<Vec<u64>>,
    /// By peer: our numbers for its contents beyond those; [`EMPTY`] for what was not received.
    received: Vec<Vec<Contents>>,
    packed: Vec<u8>,
}

impl Mail {
    pub(super) fn new(peers: usize, common: Contents) -> Mail {
        Mail {
            common,
            sent: vec![Vec::new(); peers],
            received: vec![Vec::new(); peers],
            packed: Vec::new(),
        }
    }

    /// Appends a state to a message for the peer `to`.
    pub(super) fn write<M: StateMachine>(
        &mut self,
        space: &mut Space<'_, M>,
        (entry, state): (Entry, &[Contents]),
        to: usize,
        into: &mut Vec<u8>,
    ) {
        into.extend(entry.step.bits().to_le_bytes());
        into.push(entry.only.into());
        into.extend((state.len() as u32).to_le_bytes());
        for (part, &number) in state.iter().enumerate() {
            let new = number >= self.common && self.note(to, number - self.common);
            into.extend((number << 1 | u32::from(new)).to_le_bytes());
            if new {
                self.packed.clear();
                let fingerprint = space.export(part, number, &mut self.packed);
                into.extend(fingerprint.to_le_bytes());
                put_bytes(&self.packed, into);
            }
        }
    }

    /// The peer knows our contents from now on; whether it did not before.
    fn note(&mut self, peer: usize, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let known = &mut self.sent[peer];
        if known.len() <= word {
            known.resize(word + 1, 0);
        }
        let new = known[word] & bit == 0;
        known[word] |= bit;
        new
    }

    /// Reads a state from a message of the peer `from` and puts it into `queue` as `node`.
    pub(super) fn read<M: StateMachine>(
        &mut self,
        space: &mut Space<'_, M>,
        reader: &mut Reader<'_>,
        from: usize,
        node: Node,
        queue: &mut Queue,
    ) {
        let (step, only) = (reader.step(), reader.byte() != 0);
        let parts = reader.word() as usize;
        let mut state = Vec::with_capacity(parts);
        for part in 0..parts {
            let word = reader.word();
            let number = word >> 1;
            if number < self.common {
                state.push(number);
                continue;
            }
            let place = (number - self.common) as usize;
            let known = &mut self.received[from];
            if word & 1 != 0 {
                if known.len() <= place {
                    known.resize(place + 1, EMPTY);
                }
                let (fingerprint, packed) = (reader.wide(), reader.bytes());
                known[place] = space.import(part, fingerprint, packed);
            }
            state.push(known[place]);
        }
        queue.push(&state, node, step, only);
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let sent = self.sent.iter().map(|list| list.capacity() * 8);
        let received = self.received.iter().map(|list| list.capacity() * 4);
        sent.chain(received).sum()
    }
}
