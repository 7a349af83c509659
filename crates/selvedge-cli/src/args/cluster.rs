//! Options of searches on several machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{Format, TextOrJson, seconds};

/// Credentials for the broker.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Broker {
    /// NATS credentials for the broker
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) creds: Option<PathBuf>,

    /// Certificates of the authority that signed the broker's certificate
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// Client certificate, for a broker that asks for one; needs --tls-key
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Cluster"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Key of the client certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Cluster"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// Prefix of all names in the broker
    #[arg(
        long,
        value_name = "NAME",
        default_value = "selvedge",
        help_heading = "Cluster"
    )]
    pub(crate) prefix: String,
}

/// Where a search is explored.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// Explore by the workers that `selvedge serve URL` starts on other machines
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["jobs", "checkpoint"],
        help_heading = "Cluster"
    )]
    pub(crate) cluster: Option<String>,

    #[command(flatten)]
    pub(crate) broker: Broker,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The broker, such as nats://host:4222 or tls://host:4222
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Worker processes [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// The most memory that one worker may have, in bytes; K, M and G are understood [default: half of
    /// the machine's, divided by the number of workers]
    #[arg(long, value_name = "BYTES", value_parser = super::values::bytes)]
    pub(crate) memory_limit: Option<usize>,

    /// Explore although this system cannot confine the programs, which come from others
    #[arg(long)]
    pub(crate) allow_unconfined: bool,

    #[command(flatten)]
    pub(crate) broker: Broker,
}

#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// The broker, such as nats://host:4222 or tls://host:4222
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Remove this run and all that is kept of it
    #[arg(long, value_name = "RUN")]
    pub(crate) remove: Option<String>,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human)]
    pub(crate) format: TextOrJson,

    #[command(flatten)]
    pub(crate) broker: Broker,
}

#[derive(Args, Debug)]
pub(crate) struct Attach {
    /// The run, as `selvedge verify --cluster` names it: nats://host:4222/NAME
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Stop after this many more seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    /// Write the failing schedule to FILE, for `selvedge replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) broker: Broker,
}
