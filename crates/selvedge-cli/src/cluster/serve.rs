//! `selvedge serve`: explores units of a broker's runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use selvedge_cluster::Cluster;

use super::messages::{Alive, Answer, Job, Record, RunState};
use super::site::{Desk, End, Site, Terms};
use super::{connect, identity};
use crate::args;
use crate::interrupt;
use crate::problem::{Problem, Status, note, warn};
use crate::worker::process::memory_limit;

/// How often the list of runs is read.
const LOOK: Duration = Duration::from_secs(1);
/// How long a worker waits for a unit before it looks at another run.
const WAIT: Duration = Duration::from_millis(500);
/// A worker that cannot reach the broker waits so long.
const PAUSE: Duration = Duration::from_millis(200);
/// An answer that the broker does not take is given up after so long.
const UNDELIVERED: Duration = Duration::from_secs(60);

/// Data that the workers of this machine share.
struct Shared {
    sites: Mutex<Vec<Arc<Site>>>,
    terms: Terms,
    /// Why nothing can be explored here.
    unconfined: Mutex<Option<String>>,
    units: AtomicU64,
    executions: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Explores units until it is interrupted.
pub(crate) fn serve(serve: &args::Serve) -> Result<Status, Problem> {
    let cluster = connect(&serve.url, &serve.broker)?;
    let processors = || thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let jobs = serve.jobs.unwrap_or_else(processors);
    let share = memory_limit() / u64::from(jobs);
    let shared = Shared {
        sites: Mutex::default(),
        terms: Terms {
            memory_limit: serve.memory_limit.map_or(share, |limit| limit as u64),
            allow_unconfined: serve.allow_unconfined,
        },
        unconfined: Mutex::default(),
        units: AtomicU64::new(0),
        executions: AtomicU64::new(0),
    };
    note(&format!("{jobs} workers explore what {} has", serve.url));
    thread::scope(|scope| {
        for number in 0..jobs {
            let shared = &shared;
            scope.spawn(move || work(shared, number as usize));
        }
        look(&cluster, &shared, jobs);
    });
    let (units, executions) = (&shared.units, &shared.executions);
    note(&format!(
        "{} units explored, {} executions",
        units.load(Ordering::Relaxed),
        executions.load(Ordering::Relaxed)
    ));
    match lock(&shared.unconfined).take() {
        None => Ok(Status::Verified),
        Some(why) => Err(Problem::internal(format!(
            "this system cannot confine programs ({why}), and they come from others"
        ))
        .help("--allow-unconfined explores them nevertheless")),
    }
}

/// Keeps the list of runs up to date, and tells their coordinators that this machine is there.
fn look(cluster: &Cluster, shared: &Shared, jobs: u32) {
    let mut refused: HashMap<String, String> = HashMap::new();
    while interrupt::requests() == 0 && lock(&shared.unconfined).is_none() {
        let begun = Instant::now();
        if let Ok(entries) = cluster.runs() {
            let searching = entries.iter().filter_map(|entry| {
                let record = Record::decode(&entry.record).ok()?;
                (record.state == RunState::Searching).then_some((&entry.name, record))
            });
            let searching: HashMap<&String, Record> = searching.collect();
            lock(&shared.sites).retain(|site| {
                let goes_on = searching.contains_key(&site.run.name().to_owned());
                site.active.store(goes_on, Ordering::Relaxed);
                goes_on
            });
            for (name, record) in searching {
                let known = lock(&shared.sites)
                    .iter()
                    .any(|site| site.run.name() == name);
                let run = cluster.run(name);
                if !known && !refused.contains_key(name) {
                    match Site::prepare(run.clone(), &record) {
                        Ok(site) => lock(&shared.sites).push(Arc::new(site)),
                        Err(problem) if problem.status == Status::Request => {
                            warn(problem.message());
                            refused.insert(name.clone(), problem.message().to_owned());
                        }
                        // The broker may be busy: another time.
                        Err(problem) => warn(problem.message()),
                    }
                }
                let refuses = refused.get(name).cloned();
                let alive = Alive {
                    machine: identity(),
                    jobs: if refuses.is_some() { 0 } else { jobs },
                    refuses,
                };
                run.tell(serde_json::to_vec(&alive).unwrap_or_default());
            }
        }
        while begun.elapsed() < LOOK && interrupt::requests() == 0 {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// One worker.
fn work(shared: &Shared, number: usize) {
    let mut desk: Option<Desk> = None;
    let mut turn = 0;
    while interrupt::requests() == 0 && lock(&shared.unconfined).is_none() {
        let sites = lock(&shared.sites).clone();
        let Some(site) = (!sites.is_empty()).then(|| &sites[turn % sites.len()]) else {
            // Workers of runs that are over are not needed.
            desk = None;
            thread::sleep(PAUSE);
            continue;
        };
        let delivery = match site.queue.take(WAIT) {
            Ok(Some(delivery)) => delivery,
            Ok(None) => {
                turn += 1;
                continue;
            }
            Err(_) => {
                turn += 1;
                thread::sleep(PAUSE);
                continue;
            }
        };
        let Ok(job) = postcard::from_bytes::<Job>(&delivery.unit) else {
            continue;
        };
        let key = job.key;
        let outcome = match site.explore(job, &mut desk, number, shared.terms) {
            End::Answer(outcome) => *outcome,
            End::Nothing => {
                delivery.give_back();
                continue;
            }
            End::Unconfined(why) => {
                delivery.give_back();
                *lock(&shared.unconfined) = Some(why);
                return;
            }
        };
        if let Ok(sliced) = &outcome {
            shared.units.fetch_add(1, Ordering::Relaxed);
            let executions = sliced.counts.executions;
            shared.executions.fetch_add(executions, Ordering::Relaxed);
        }
        let answer = postcard::to_stdvec(&Answer::new(key, outcome));
        let answer = answer.expect("an answer can be serialised");
        let begun = Instant::now();
        while delivery.answer(&answer).is_err()
            && site.active.load(Ordering::Relaxed)
            && begun.elapsed() < UNDELIVERED
            && interrupt::requests() < 2
        {
            thread::sleep(PAUSE);
        }
    }
}
