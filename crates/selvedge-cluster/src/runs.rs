//! The runs of a cluster: a record for each, and a store for its program and its state.

use std::time::Duration;

use async_nats::jetstream::consumer::AckPolicy;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use futures_util::StreamExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::queue::{CONSUMER, REDELIVERY};
use crate::{Cluster, Error};

/// How long an object may take to be read.
const TRANSFER: Duration = Duration::from_secs(60);

/// The record of a run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the run.
    pub name: String,
    /// Grows with every change.
    pub revision: u64,
    /// The record that was written.
    pub record: Vec<u8>,
}

/// A run: its names in the broker.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) cluster: Cluster,
    name: String,
}

impl Cluster {
    /// The records of all runs.
    pub fn runs(&self) -> Result<Vec<Entry>, Error> {
        let failed = |why: &dyn std::fmt::Display| Error::new("cannot list the runs", why);
        self.block(async {
            let records = self.records().await?;
            // A consumer of all keys waits for ever if a record is replaced while it lists them.
            let all = format!("{}>", records.prefix);
            let listed = records.stream.info_with_subjects(all).await;
            let mut subjects = listed.map_err(|error| failed(&error))?;
            let mut entries = Vec::new();
            while let Some(subject) = subjects.next().await {
                let (subject, _) = subject.map_err(|error| failed(&error))?;
                if let Some(name) = subject.strip_prefix(&records.prefix) {
                    entries.extend(entry(&records, name).await?);
                }
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
    }

    /// The run of this name, which may not exist.
    pub fn run(&self, name: &str) -> Run {
        Run {
            cluster: self.clone(),
            name: name.to_owned(),
        }
    }

    async fn records(&self) -> Result<Store, Error> {
        let bucket = format!("{}-runs", self.inner.prefix);
        if let Ok(store) = self.context().get_key_value(&bucket).await {
            return Ok(store);
        }
        // As the client would, which asks older brokers for more than they tell.
        let config = Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..Config::default()
        };
        let failed = |why: &dyn std::fmt::Display| Error::new("the broker keeps no records", why);
        let created = self.context().get_or_create_stream(config).await;
        created.map_err(|error| failed(&error))?;
        let store = self.context().get_key_value(&bucket).await;
        store.map_err(|error| failed(&error))
    }
}

async fn entry(records: &Store, name: &str) -> Result<Option<Entry>, Error> {
    let found = records.entry(name).await;
    let found = found.map_err(|error| Error::new("cannot read a record", error))?;
    let found = found.filter(|entry| entry.operation == kv::Operation::Put);
    Ok(found.map(|entry| Entry {
        name: name.to_owned(),
        revision: entry.revision,
        record: entry.value.to_vec(),
    }))
}

impl Run {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The subject of its units, answers or reports.
    pub(crate) fn subject(&self, what: &str) -> String {
        format!("{}.{}.{what}", self.cluster.inner.prefix, self.name)
    }

    /// The stream of its units or answers.
    pub(crate) fn stream(&self, what: &str) -> String {
        format!("{}-{}-{what}", self.cluster.inner.prefix, self.name)
    }

    fn bucket(&self) -> String {
        format!("{}-{}", self.cluster.inner.prefix, self.name)
    }

    /// Creates its streams and its store.
    pub fn create(&self) -> Result<(), Error> {
        let context = self.cluster.context();
        let failed = |why: &dyn std::fmt::Display| Error::new("cannot create the run", why);
        self.cluster.block(async {
            let units = Config {
                name: self.stream("units"),
                subjects: vec![self.subject("unit")],
                retention: RetentionPolicy::WorkQueue,
                ..Config::default()
            };
            let units = context.get_or_create_stream(units).await;
            let consumer = pull::Config {
                durable_name: Some(CONSUMER.to_owned()),
                ack_policy: AckPolicy::Explicit,
                ack_wait: REDELIVERY,
                // Each worker has a unit and a request for the next one.
                max_ack_pending: 1 << 20,
                max_waiting: 1 << 16,
                ..pull::Config::default()
            };
            let units = units.map_err(|error| failed(&error))?;
            let created = units.get_or_create_consumer(CONSUMER, consumer).await;
            created.map_err(|error| failed(&error))?;
            let answers = Config {
                name: self.stream("answers"),
                subjects: vec![self.subject("answer")],
                ..Config::default()
            };
            let answers = context.get_or_create_stream(answers).await;
            answers.map_err(|error| failed(&error))?;
            let store = object_store::Config {
                bucket: self.bucket(),
                ..object_store::Config::default()
            };
            let store = context.create_object_store(store).await;
            store.map(drop).map_err(|error| failed(&error))
        })
    }

    /// Removes its streams: there is nothing left to explore.
    pub fn close(&self) {
        let context = self.cluster.context();
        self.cluster.block(async {
            for what in ["units", "answers"] {
                let _ = context.delete_stream(self.stream(what)).await;
            }
        });
    }

    /// Removes all of it.
    pub fn remove(&self) -> Result<(), Error> {
        self.close();
        let context = self.cluster.context();
        self.cluster.block(async {
            let _ = context.delete_object_store(self.bucket()).await;
            let removed = self.cluster.records().await?.purge(&self.name).await;
            removed.map_err(|error| Error::new("cannot remove the run", error))
        })
    }

    /// Its record.
    pub fn entry(&self) -> Result<Option<Entry>, Error> {
        self.cluster
            .block(async { entry(&self.cluster.records().await?, &self.name).await })
    }

    /// Writes its record for the first time. Returns the revision.
    pub fn announce(&self, record: Vec<u8>) -> Result<u64, Error> {
        self.cluster.block(async {
            let records = self.cluster.records().await?;
            let created = records.create(&self.name, record.into()).await;
            created.map_err(|error| Error::new("cannot announce the run", error))
        })
    }

    /// Replaces its record if it is still the one with this `revision`. Returns the new revision, or
    /// `None` if somebody else has written it.
    pub fn update(&self, record: Vec<u8>, revision: u64) -> Result<Option<u64>, Error> {
        self.cluster.block(async {
            let records = self.cluster.records().await?;
            match records.update(&self.name, record.into(), revision).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(Error::new("cannot update the record of the run", error)),
            }
        })
    }

    async fn store(&self) -> Result<ObjectStore, Error> {
        let store = self.cluster.context().get_object_store(self.bucket()).await;
        store.map_err(|error| Error::new("the run has no store", error))
    }

    /// Keeps `bytes` under this name. What was there before stays until the end of the call.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.cluster.block(self.put_object(name, bytes))
    }

    pub(crate) async fn put_object(&self, name: &str, mut bytes: &[u8]) -> Result<(), Error> {
        let stored = self.store().await?.put(name, &mut bytes).await;
        let stored = stored.map_err(|error| Error::new("the broker cannot store this", error));
        stored.map(drop)
    }

    /// The object with this name. The broker's client compares it with its checksum.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.cluster.block(async {
            let got = timeout(TRANSFER, self.get_object(name)).await;
            got.unwrap_or_else(|_| Err(Error::new("cannot read from the store", "no answer")))
        })
    }

    pub(crate) async fn get_object(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let mut object = match self.store().await?.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new("cannot read from the store", error)),
        };
        let mut bytes = Vec::with_capacity(object.info().size);
        let read = object.read_to_end(&mut bytes).await;
        read.map_err(|error| Error::new("cannot read from the store", error))?;
        Ok(Some(bytes))
    }

    pub(crate) async fn delete_object(&self, name: &str) {
        if let Ok(store) = self.store().await {
            let _ = store.delete(name).await;
        }
    }
}
