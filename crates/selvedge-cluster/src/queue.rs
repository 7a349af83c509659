//! The queue of work units.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::message::Acker;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{Error, PATIENCE, PAUSE, Run};

/// The name of the workers' consumer.
pub(crate) const CONSUMER: &str = "workers";
/// A worker that is silent for so long loses its unit to another one.
pub(crate) const REDELIVERY: Duration = Duration::from_secs(5);
/// How often a worker says that it is still at it.
const KEEP_ALIVE: Duration = Duration::from_millis(1500);
/// How many units are on their way to the broker at a time.
const BATCH: usize = 512;
/// The room for the headers of a message.
const HEADER: usize = 4096;

/// The first byte of a message: its contents follow, or the name of the object that holds them.
const INLINE: u8 = 0;
const STORED: u8 = 1;

impl Run {
    /// `bytes` as a message. What is too large for a message goes into the store.
    pub(crate) async fn pack(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let largest = self.cluster.inner.client.server_info().max_payload;
        if bytes.len() + HEADER <= largest {
            return Ok([&[INLINE], bytes].concat());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let inbox = self.cluster.inner.client.new_inbox();
        let name = format!("message-{}-{number}", inbox.replace('.', "-"));
        self.put_object(&name, bytes).await?;
        Ok([&[STORED], name.as_bytes()].concat())
    }

    /// The contents of a message.
    pub(crate) async fn unpack(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let missing = || Error::new("a message", "its contents are missing");
        match message.split_first() {
            Some((&INLINE, bytes)) => Ok(bytes.to_vec()),
            Some((&STORED, name)) => {
                let name = String::from_utf8_lossy(name);
                self.get_object(&name).await?.ok_or_else(missing)
            }
            _ => Err(missing()),
        }
    }

    /// Removes the object that holds the contents of a message, if one does.
    pub(crate) async fn discard(&self, message: &[u8]) {
        if let Some((&STORED, name)) = message.split_first() {
            self.delete_object(&String::from_utf8_lossy(name)).await;
        }
    }

    /// The coordinator's end of the queue.
    pub fn units(&self) -> Units {
        let (sender, orders) = mpsc::unbounded_channel();
        let publisher = self
            .cluster
            .inner
            .runtime
            .spawn(publish(self.clone(), orders));
        Units {
            run: self.clone(),
            sender: Some(sender),
            publisher: Some(publisher),
        }
    }

    /// A worker's end of the queue.
    pub fn queue(&self) -> Queue {
        Queue {
            run: self.clone(),
            consumer: Mutex::new(None),
        }
    }
}

enum Step {
    Add(Vec<u8>),
    Clear,
}

/// The coordinator's end of the queue. Units are sent in the background.
#[derive(Debug)]
pub struct Units {
    run: Run,
    sender: Option<UnboundedSender<Step>>,
    publisher: Option<JoinHandle<()>>,
}

impl Units {
    /// Adds a unit.
    pub fn add(&self, unit: Vec<u8>) {
        self.order(Step::Add(unit));
    }

    /// Removes all units that no worker has. Comes into effect before units that are added later.
    pub fn clear(&self) {
        self.order(Step::Clear);
    }

    fn order(&self, step: Step) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(step);
        }
    }

    /// Waits until the broker has done what it was asked for, but not for long.
    pub fn finish(mut self) {
        self.sender = None;
        if let Some(publisher) = self.publisher.take() {
            let _ = self
                .run
                .cluster
                .block(async { timeout(PATIENCE, publisher).await });
        }
    }

    /// How many units the broker holds: those that wait, and those that workers have.
    pub fn held(&self) -> Result<u64, Error> {
        let context = self.run.cluster.context();
        self.run.cluster.block(async {
            let stream = context.get_stream(self.run.stream("units")).await;
            let stream = stream.map_err(|error| Error::new("cannot see the queue", error))?;
            Ok(stream.cached_info().state.messages)
        })
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        if let Some(publisher) = &self.publisher {
            publisher.abort();
        }
    }
}

async fn publish(run: Run, mut orders: UnboundedReceiver<Step>) {
    let mut steps = Vec::with_capacity(BATCH);
    while orders.recv_many(&mut steps, BATCH).await > 0 {
        let mut units = Vec::new();
        for step in steps.drain(..) {
            match step {
                Step::Add(unit) => units.push(unit),
                Step::Clear => {
                    // They would have been cleared.
                    units.clear();
                    clear(&run).await;
                }
            }
        }
        let sent = join_all(units.iter().map(|unit| store(&run, "unit", unit))).await;
        for (unit, sent) in units.iter().zip(sent) {
            let mut stored = sent.is_ok();
            while !stored {
                sleep(PAUSE).await;
                stored = store(&run, "unit", unit).await.is_ok();
            }
        }
    }
}

async fn clear(run: &Run) {
    loop {
        let stream = run.cluster.context().get_stream(run.stream("units")).await;
        if let Ok(stream) = stream
            && stream.purge().await.is_ok()
        {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Has the broker keep a message, and waits until it does.
async fn store(run: &Run, what: &str, bytes: &[u8]) -> Result<(), Error> {
    let failed =
        |why: &dyn std::fmt::Display| Error::new("the broker does not take a message", why);
    let message = run.pack(bytes).await?;
    let sent = run
        .cluster
        .context()
        .publish(run.subject(what), message.into());
    let acknowledgement = sent.await.map_err(|error| failed(&error))?;
    let acknowledged = acknowledgement.await;
    acknowledged.map(drop).map_err(|error| failed(&error))
}

/// A worker's end of the queue.
#[derive(Debug)]
pub struct Queue {
    run: Run,
    consumer: Mutex<Option<Consumer<pull::Config>>>,
}

impl Queue {
    /// Takes a unit from the queue; `None` if there is none for so long.
    pub fn take(&self, wait: Duration) -> Result<Option<Delivery>, Error> {
        let known = self.consumer.lock().map_or(None, |known| known.clone());
        let taken = self.run.cluster.block(async {
            let consumer = match known {
                Some(consumer) => consumer,
                None => self.consumer().await?,
            };
            if let Ok(mut known) = self.consumer.lock() {
                *known = Some(consumer.clone());
            }
            self.next(&consumer, wait).await
        });
        if taken.is_err()
            && let Ok(mut known) = self.consumer.lock()
        {
            *known = None;
        }
        taken
    }

    async fn consumer(&self) -> Result<Consumer<pull::Config>, Error> {
        let context = self.run.cluster.context();
        let consumer = context
            .get_consumer_from_stream(CONSUMER, self.run.stream("units"))
            .await;
        consumer.map_err(|error| Error::new("cannot see the queue", error))
    }

    async fn next(
        &self,
        consumer: &Consumer<pull::Config>,
        wait: Duration,
    ) -> Result<Option<Delivery>, Error> {
        let failed = |why: &dyn std::fmt::Display| Error::new("cannot take a unit", why);
        let batch = consumer
            .batch()
            .max_messages(1)
            .expires(wait)
            .messages()
            .await;
        let mut batch = batch.map_err(|error| failed(&error))?;
        let message = match batch.next().await {
            None => return Ok(None),
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(failed(&error)),
        };
        let (message, acker) = message.split();
        let unit = self.run.unpack(&message.payload).await?;
        let acker = Arc::new(acker);
        let alive = Arc::clone(&acker);
        let keep_alive = self.run.cluster.inner.runtime.spawn(async move {
            loop {
                sleep(KEEP_ALIVE).await;
                let _ = alive.ack_with(AckKind::Progress).await;
            }
        });
        Ok(Some(Delivery {
            run: self.run.clone(),
            unit,
            message: message.payload.to_vec(),
            acker,
            keep_alive,
        }))
    }
}

/// A unit that this worker has. The broker is told so for as long as this value exists; a unit that is
/// dropped without an answer goes to another worker after a while.
pub struct Delivery {
    run: Run,
    /// The unit.
    pub unit: Vec<u8>,
    message: Vec<u8>,
    acker: Arc<Acker>,
    keep_alive: JoinHandle<()>,
}

impl Delivery {
    /// Answers it. The unit leaves the queue once the broker has the answer.
    pub fn answer(&self, bytes: &[u8]) -> Result<(), Error> {
        self.run.cluster.block(async {
            store(&self.run, "answer", bytes).await?;
            let _ = self.acker.ack().await;
            self.run.discard(&self.message).await;
            Ok(())
        })
    }

    /// Gives it back, for another worker to take.
    pub fn give_back(&self) {
        let _ = self
            .run
            .cluster
            .block(self.acker.ack_with(AckKind::Nak(None)));
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.keep_alive.abort();
    }
}
