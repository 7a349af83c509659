//! Threads that search together.

use std::sync::mpsc::{Receiver, Sender, channel};

use selvedge_core::states::Peers;

/// One of several threads, each connected to each.
pub struct ThreadPeers {
    rank: usize,
    senders: Vec<Sender<Vec<u8>>>,
    receivers: Vec<Receiver<Vec<u8>>>,
}

impl ThreadPeers {
    /// Creates `count` peers.
    pub fn new(count: usize) -> Vec<ThreadPeers> {
        let mut all: Vec<ThreadPeers> = (0..count)
            .map(|rank| ThreadPeers {
                rank,
                senders: Vec::new(),
                receivers: Vec::new(),
            })
            .collect();
        for from in 0..count {
            for to in &mut all {
                let (sender, receiver) = channel();
                to.receivers.push(receiver);
                // Sorted out below: one sender for each receiver, by sender.
                to.senders.push(sender);
                debug_assert_eq!(to.receivers.len(), from + 1);
            }
        }
        let mut senders: Vec<Vec<Sender<Vec<u8>>>> = vec![Vec::new(); count];
        for to in &mut all {
            for (from, sender) in to.senders.drain(..).enumerate() {
                senders[from].push(sender);
            }
        }
        for (peer, senders) in all.iter_mut().zip(senders) {
            peer.senders = senders;
        }
        all
    }
}

impl Peers for ThreadPeers {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.senders.len()
    }

    fn enough(&self) -> usize {
        // Small searches are shared out as well.
        2
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        for (sender, message) in self.senders.iter().zip(outgoing) {
            sender.send(message.clone()).map_err(|_| "a peer is gone")?;
        }
        let gone = |_| "a peer is gone".to_owned();
        let incoming = self.receivers.iter();
        incoming
            .map(|receiver| receiver.recv().map_err(gone))
            .collect()
    }
}
