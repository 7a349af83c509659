//! Searches on several machines: a thin layer over NATS JetStream that knows nothing about searches.
//!
//! A *run* is one search. Its coordinator puts work units into a queue, workers take them from there,
//! and their answers form a stream that the coordinator reads in order. A record in a key-value store
//! says how each run is getting on, and an object store keeps its program and its saved state.
//!
//! Everything here may happen twice: a unit may be delivered twice, and an answer may be stored twice.
//! So the reader of the answers has to count the first answer for a unit only. Nothing that was
//! acknowledged gets lost as long as the broker keeps its files; a coordinator that misses an answer
//! queues the unit once more.
//!
//! The calls block. The asynchronous client and its runtime stay inside this crate.
#![forbid(unsafe_code)]

mod answers;
mod queue;
mod runs;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};
use tokio::runtime::{Builder, Runtime};

pub use answers::{Answers, Numbered};
pub use queue::{Delivery, Queue, Units};
pub use runs::{Entry, Run};

/// How long the broker may take to answer a request.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Why the broker did not do what it was asked for.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    fn new(what: &str, why: impl fmt::Display) -> Error {
        Error(format!("{what}: {why}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Where the broker is, and how to be admitted.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address: `nats://host:4222`, or `tls://host:4222`. It may name a user and a password.
    pub url: String,
    /// A file with NATS credentials.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates of the authority that the broker's certificate comes from.
    pub authority: Option<PathBuf>,
    /// A certificate and its key, for brokers that ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The prefix of the names of all subjects, streams and buckets.
    pub prefix: String,
}

/// A connection to the broker. It comes back by itself when the broker does.
#[derive(Clone, Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: &'static Runtime,
    client: Client,
    context: Context,
    prefix: String,
}

impl Cluster {
    /// Connects.
    pub fn connect(access: &Access) -> Result<Cluster, Error> {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if access.prefix.is_empty() || !access.prefix.chars().all(valid) {
            let why = "a prefix consists of letters, digits, - and _";
            return Err(Error::new(&access.prefix, why));
        }
        let runtime = runtime()?;
        let client = runtime.block_on(connect(access))?;
        let context = jetstream::context::ContextBuilder::new()
            .timeout(PATIENCE)
            .ack_timeout(PATIENCE);
        let context = runtime.block_on(async { context.build(client.clone()) });
        Ok(Cluster {
            inner: Arc::new(Inner {
                runtime,
                client,
                context,
                prefix: access.prefix.clone(),
            }),
        })
    }

    fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.inner.runtime.block_on(future)
    }

    fn context(&self) -> &Context {
        &self.inner.context
    }
}

/// The runtime of this process. It never ends, since its own tasks could be the last to need it.
fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Error::new("cannot start threads", error))?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

async fn connect(access: &Access) -> Result<Client, Error> {
    let failed = |error: &dyn fmt::Display| {
        // No password in messages.
        let shown = access.url.rsplit('@').next().unwrap_or_default();
        Error::new(&format!("cannot connect to {shown}"), error)
    };
    let mut options = ConnectOptions::new()
        .name("selvedge")
        .connection_timeout(PATIENCE)
        .reconnect_delay_callback(|attempts| Duration::from_millis(50 * attempts.min(20) as u64));
    if let Some(path) = &access.credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(|error| Error::new(&path.display().to_string(), error))?;
    }
    if let Some(path) = &access.authority {
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &access.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let address: ServerAddr = access.url.parse().map_err(|error| failed(&error))?;
    if let (Some(user), Some(password)) = (address.username(), address.password()) {
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if access.url.starts_with("tls:") {
        options = options.require_tls(true);
    }
    let client = options.connect(address).await;
    client.map_err(|error| failed(&error))
}
