//! Searches on several machines, which meet at a broker.
//!
//! The coordinator is a fold over the stream of answers: from the same answers it always comes to the
//! same state. So it can be killed at any time; the next one begins with the state that was saved last,
//! reads the answers that came later, and queues all units again that are open then. A unit that is
//! explored twice is counted once, because only the first answer for an open unit counts.

mod attach;
mod coordinate;
mod fold;
mod messages;
mod runs;
mod serve;
mod site;
mod status;

use selvedge_cluster::{Access, Cluster, Run};

use crate::args;
use crate::compile::Image;
use crate::explorer::Explorer;
use crate::pool::checkpoint::Subject;
use crate::problem::{Problem, note};
use crate::scratch::Scratch;
use crate::worker::libraries::hexadecimal;
use crate::worker::protocol::Library;

pub(crate) use attach::attach;
pub(crate) use coordinate::Coordinator;
pub(crate) use runs::runs;
pub(crate) use serve::serve;

use messages::{Record, RunState};
use sha2::{Digest as _, Sha256};

/// The object that holds the linked program.
const PROGRAM: &str = "program";
/// The object that says what is searched.
const SUBJECT: &str = "subject";
/// The object that holds the newest saved state.
const STATE: &str = "state";

impl From<selvedge_cluster::Error> for Problem {
    fn from(error: selvedge_cluster::Error) -> Problem {
        Problem::internal(error.to_string()).help("is the broker (nats-server -js) running?")
    }
}

fn connect(url: &str, broker: &args::Broker) -> Result<Cluster, Problem> {
    let access = Access {
        url: url.to_owned(),
        credentials: broker.creds.clone(),
        authority: broker.tls_ca.clone(),
        certificate: broker.tls_cert.clone().zip(broker.tls_key.clone()),
        prefix: broker.prefix.clone(),
    };
    Ok(Cluster::connect(&access)?)
}

/// Something about this process that no other has.
fn identity() -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    format!("{}:{}", host.to_string_lossy(), std::process::id())
}

/// The identity of a program.
fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Begins a run: the program and what to do with it go to the broker.
pub(crate) fn begin(
    cluster: &args::Cluster,
    url: &str,
    subject: &Subject,
    image: &Image,
    libraries: Vec<Library>,
) -> Result<(Coordinator, String), Problem> {
    let connection = connect(url, &cluster.broker)?;
    let program = std::fs::read(&image.library)
        .map_err(|error| Problem::internal(format!("the program is gone: {error}")))?;
    let run = connection.run(&name(subject));
    run.create()?;
    run.put(PROGRAM, &program)?;
    let text = serde_json::to_vec(subject)
        .map_err(|error| Problem::internal(format!("a search cannot be sent: {error}")))?;
    run.put(SUBJECT, &text)?;
    let files = subject.program.files.iter();
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    let record = Record {
        state: RunState::Searching,
        files: files.join(" "),
        program: hash(&program),
        libraries,
        coordinator: identity(),
        ..Record::new()
    };
    let revision = run.announce(record.encode())?;
    let resume = format!("selvedge attach {}", address(url, run.name()));
    note(&format!(
        "`selvedge serve {url}` on other machines explores it, `{resume}` continues it"
    ));
    let work = crate::pool::State::new();
    let coordinator = Coordinator::new(run, subject, (record, revision), (work, 0));
    Ok((coordinator, resume))
}

/// How users name a run.
fn address(url: &str, name: &str) -> String {
    format!("{}/{name}", url.trim_end_matches('/'))
}

/// A name that tells people what is searched, and that no other run has.
fn name(subject: &Subject) -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let file = subject.program.files.first();
    let stem = file.and_then(|file| file.file_stem()).unwrap_or_default();
    let stem: String = stem
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let random = std::hash::RandomState::new().build_hasher().finish();
    format!("{stem}-{:06x}", random & 0xff_ffff)
}

/// The explorer that a subject asks for.
fn explorer(verify: &args::Verify) -> Result<Explorer, Problem> {
    Ok(Explorer::choose(&verify.search, &verify.machine)?.0)
}

/// Reads what a run is about.
fn subject(run: &Run) -> Result<Subject, Problem> {
    let missing = || Problem::request(format!("the run {} is incomplete", run.name()));
    let text = run.get(SUBJECT)?.ok_or_else(missing)?;
    serde_json::from_slice(&text).map_err(|error| {
        Problem::request(format!("the run {} cannot be read: {error}", run.name()))
    })
}

/// The program of a run, in a directory that is removed with the value beside it.
fn program(run: &Run, record: &Record) -> Result<(Image, Scratch), Problem> {
    let program = run.get(PROGRAM)?;
    let program = program.ok_or_else(|| refused(run, "it has no program"))?;
    if hash(&program) != record.program {
        return Err(refused(run, "its program is damaged"));
    }
    let failed = |error: std::io::Error| {
        Problem::internal(format!("cannot write a temporary file: {error}"))
    };
    let scratch = Scratch::new().map_err(failed)?;
    let image = Image {
        library: scratch.path().join("program.so"),
        scratch: scratch.path().to_owned(),
    };
    std::fs::write(&image.library, program).map_err(failed)?;
    Ok((image, scratch))
}

/// Why this machine does not take part in a run.
fn refused(run: &Run, why: &str) -> Problem {
    Problem::request(format!("run {}: {why}", run.name()))
}
