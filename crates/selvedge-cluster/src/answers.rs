//! The answers of workers, in the order in which the broker has them; and what workers say besides.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::StreamExt as _;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::{Error, PAUSE, Run};

/// How many answers are read ahead.
const AHEAD: usize = 1024;
/// A reader that gets nothing for so many seconds begins anew: the broker may have forgotten it.
const SILENCE: u32 = 3;

/// An answer, and its number in the stream.
pub type Numbered = (u64, Vec<u8>);

/// The answers of a run.
#[derive(Debug)]
pub struct Answers {
    run: Run,
    received: Receiver<Numbered>,
    reader: JoinHandle<()>,
}

impl Run {
    /// The answers after the one with this number.
    pub fn answers(&self, after: u64) -> Answers {
        let (sender, received) = mpsc::sync_channel(AHEAD);
        let reader = read(self.clone(), after + 1, sender);
        Answers {
            run: self.clone(),
            received,
            reader: self.cluster.inner.runtime.spawn(reader),
        }
    }

    /// Tells the coordinator something that need not be kept.
    pub fn tell(&self, what: Vec<u8>) {
        let client = &self.cluster.inner.client;
        let _ = self
            .cluster
            .block(client.publish(self.subject("report"), what.into()));
    }

    /// The messages of workers from now on, besides their answers.
    pub fn reports(&self) -> Result<Receiver<Vec<u8>>, Error> {
        let client = self.cluster.inner.client.clone();
        let subject = self.subject("report");
        let (sender, received) = mpsc::sync_channel(AHEAD);
        let reports = self.cluster.block(client.subscribe(subject));
        let mut reports = reports.map_err(|error| Error::new("cannot hear of workers", error))?;
        self.cluster.inner.runtime.spawn(async move {
            while let Some(report) = reports.next().await {
                // One that does not fit is followed by another one.
                if let Err(mpsc::TrySendError::Disconnected(_)) =
                    sender.try_send(report.payload.to_vec())
                {
                    return;
                }
            }
        });
        Ok(received)
    }
}

impl Answers {
    /// The next answer; `None` if there is none for so long.
    pub fn next(&self, wait: Duration) -> Option<Numbered> {
        self.received.recv_timeout(wait).ok()
    }

    /// Removes the answers up to the one with this number from the broker.
    pub fn forget(&self, number: u64) -> Result<(), Error> {
        let failed = |why: &dyn std::fmt::Display| Error::new("cannot remove answers", why);
        let context = self.run.cluster.context();
        self.run.cluster.block(async {
            let stream = context.get_stream(self.run.stream("answers")).await;
            let stream = stream.map_err(|error| failed(&error))?;
            let purged = stream.purge().sequence(number + 1).await;
            purged.map(drop).map_err(|error| failed(&error))
        })
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(run: Run, mut next: u64, sender: SyncSender<Numbered>) {
    loop {
        if read_on(&run, &mut next, &sender).await.is_none() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Reads until something goes wrong. `None` if nobody listens any more.
async fn read_on(run: &Run, next: &mut u64, sender: &SyncSender<Numbered>) -> Option<()> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: *next,
        },
        ack_policy: AckPolicy::None,
        inactive_threshold: Duration::from_secs(30),
        ..pull::Config::default()
    };
    let context = run.cluster.context();
    let consumer = context.create_consumer_on_stream(config, run.stream("answers"));
    let Ok(consumer) = consumer.await else {
        return Some(());
    };
    // Earlier answers may be forgotten.
    let mut first = true;
    let mut silent = 0;
    while silent < SILENCE {
        silent += 1;
        let batch = consumer
            .batch()
            .max_messages(256)
            .expires(Duration::from_secs(1));
        let Ok(mut batch) = batch.messages().await else {
            return Some(());
        };
        while let Some(message) = batch.next().await {
            let Ok(message) = message else {
                return Some(());
            };
            let Ok(number) = message.info().map(|info| info.stream_sequence) else {
                return Some(());
            };
            // Answers that were lost on the way, with a connection, are read again.
            if number < *next || (number > *next && !first) {
                return Some(());
            }
            first = false;
            let Ok(bytes) = run.unpack(&message.payload).await else {
                return Some(());
            };
            silent = 0;
            *next = number + 1;
            let mut answer = (number, bytes);
            // A thread of the runtime must not block.
            loop {
                match sender.try_send(answer) {
                    Ok(()) => break,
                    Err(mpsc::TrySendError::Full(back)) => answer = back,
                    Err(mpsc::TrySendError::Disconnected(_)) => return None,
                }
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
    Some(())
}
