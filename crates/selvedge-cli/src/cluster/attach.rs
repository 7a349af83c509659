//! `selvedge attach`: follows a run, and continues it if it has no coordinator.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::Pid;
use selvedge_cluster::Run;

use super::coordinate::Coordinator;
use super::messages::{Record, RunState, Snapshot};
use super::status::Follower;
use super::{STATE, connect, explorer, identity, program, refused, subject};
use crate::args;
use crate::interrupt;
use crate::pool::State;
use crate::pool::checkpoint::Saved;
use crate::problem::{Problem, Status, note};
use crate::verify::{self, Search};

/// A run whose record does not change for so long has no coordinator.
const ABANDONED: Duration = Duration::from_secs(5);

/// Follows the run to its end, as its coordinator if there is no other one.
pub(crate) fn attach(attach: &args::Attach) -> Result<Status, Problem> {
    let (url, name) = split(&attach.run)?;
    let cluster = connect(url, &attach.broker)?;
    let run = cluster.run(name);
    let Some((record, revision)) = wait(&run, attach)? else {
        return Err(Problem::interrupted(
            "stopped following the run, which goes on",
        ));
    };
    if let Some(why) = record.mismatch() {
        return Err(refused(&run, &why));
    }
    let subject = subject(&run)?;
    let mut verify = subject.verify(&subject.program);
    verify.format = attach.format;
    verify.trace_out = attach.trace_out.clone();
    verify.search.timeout = attach.timeout;
    let (image, _scratch) = program(&run, &record)?;
    let state = saved(&run)?;
    let explorer = explorer(&verify)?;
    let coordinator = Coordinator::new(run, &subject, (record, revision), state);
    let search = Search {
        elsewhere: Some(&coordinator),
        ..Search::new(&verify, &image, &explorer)
    };
    let resume = format!("selvedge attach {}", attach.run);
    verify::conclude(search, &subject.program, None, Some(resume))
}

/// The broker and the name of the run.
fn split(run: &str) -> Result<(&str, &str), Problem> {
    let parts = run.rsplit_once('/');
    parts
        .filter(|(url, name)| url.contains("://") && !url.ends_with('/') && !name.is_empty())
        .ok_or_else(|| {
            Problem::request(format!("{run} is not the name of a run")).help(
                "runs are named like nats://host:4222/queue-3f9a2c; selvedge runs URL lists them",
            )
        })
}

/// Whether a coordinator was a process of this machine that has ended.
fn is_dead(coordinator: &str) -> bool {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let Some((machine, process)) = coordinator.rsplit_once(':') else {
        return false;
    };
    let process = process.parse().map(Pid::from_raw);
    let gone = |process| nix::sys::signal::kill(process, None) == Err(Errno::ESRCH);
    machine == host.to_string_lossy() && process.is_ok_and(gone)
}

/// The newest saved state, and the number of the last answer in it.
fn saved(run: &Run) -> Result<(State, u64), Problem> {
    let Some(bytes) = run.get(STATE)? else {
        return Ok((State::new(), 0));
    };
    let snapshot: Snapshot = postcard::from_bytes(&bytes)
        .map_err(|_| Problem::request(format!("the state of {} is damaged", run.name())))?;
    let saved = Saved::decode(run.name(), &snapshot.checkpoint)?;
    Ok((saved.state, snapshot.answer))
}

/// Waits until the run is done, or until this process is its coordinator. `None` if the user or the
/// limit on time stopped that.
fn wait(run: &Run, attach: &args::Attach) -> Result<Option<(Record, u64)>, Problem> {
    let start = Instant::now();
    let mut follower = Follower::new();
    let mut seen = (0, Instant::now());
    let mut first = true;
    loop {
        let unknown = || {
            Problem::request(format!("there is no run {}", run.name()))
                .help("selvedge runs URL lists them")
        };
        match run.entry() {
            Ok(entry) => {
                let entry = entry.ok_or_else(unknown)?;
                let record = Record::decode(&entry.record)?;
                if record.state == RunState::Done {
                    return Ok(Some((record, entry.revision)));
                }
                if entry.revision != seen.0 {
                    seen = (entry.revision, Instant::now());
                }
                let alone = seen.1.elapsed() >= ABANDONED || is_dead(&record.coordinator);
                if alone || record.state == RunState::Stopped {
                    let record = Record {
                        state: RunState::Searching,
                        coordinator: identity(),
                        ..record.clone()
                    };
                    if let Some(revision) = run.update(record.encode(), entry.revision)? {
                        return Ok(Some((record, revision)));
                    }
                }
                follower.show(&record);
            }
            // The broker may come back.
            Err(error) if first => return Err(error.into()),
            Err(_) => seen.1 = Instant::now(),
        }
        if first {
            note("waiting for the coordinator of the run, if it has one");
        }
        first = false;
        let late = attach.timeout.is_some_and(|limit| start.elapsed() >= limit);
        if interrupt::requests() > 0 || late {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(500));
    }
}
