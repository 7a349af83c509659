//! Searches that are divided into work units.

use std::process::ExitStatus;
use std::time::Instant;

use selvedge_core::report::{Ending, same_bug};
use sha2::{Digest as _, Sha256};

use super::death::before_main;
use super::{Found, Search, found, hung};
#[cfg(feature = "cluster")]
use crate::cluster::{self, Coordinator};
use crate::compile::Program;
use crate::describe::Binary;
use crate::pool::checkpoint::{Checkpoint, Subject};
use crate::pool::{Client, Outcome, Plan, Pool, State};
use crate::problem::{Problem, warn};
use crate::report::human;
use crate::worker::lines;
use crate::worker::orders::Order;
use crate::worker::protocol::{FoundBug, HotLoop, Library, Reply, Searched, Task};
use crate::worker::supervise::{Cause, End, Watch};

impl Search<'_> {
    /// Runs it in as many processes as are of use.
    pub(super) fn run_sliced(&self) -> Result<Found, Problem> {
        if let Some(elsewhere) = self.elsewhere {
            return self.found(elsewhere.explore(self.limits())?, None);
        }
        let request = self.slices();
        let mut client = Sliced {
            search: self,
            warned: None,
        };
        let plan = Plan::new(&self.verify.search);
        let begun = match self.resumed {
            Some(saved) => saved.state.clone(),
            None => State::new(),
        };
        let work = (begun, self.checkpoint()?);
        let pool = Pool::new(&request, self.limits(), plan, work, &mut client);
        let outcome = pool.run()?;
        self.found(outcome, client.warned)
    }

    /// The same for a bound of 0, 1, 2, … preemptions, until a bound leaves nothing out.
    pub(super) fn run_iterative(&self) -> Result<Found, Problem> {
        let start = Instant::now();
        let (mut bugs, mut ended, mut first_bug): (Vec<FoundBug>, _, _) = (Vec::new(), 0, None);
        let mut verify = self.verify.clone();
        verify.search.iterative = false;
        for bound in 0.. {
            verify.search.preemptions = Some(bound);
            let round = Search {
                label: self.label,
                machine: self.machine.clone(),
                spent: self.spent + start.elapsed(),
                ..Search::new(&verify, self.image, self.explorer)
            };
            let mut found = round.run_sliced()?;
            for bug in found.bugs {
                let known = |old: &FoundBug| same_bug(&old.raw.failure, &bug.raw.failure);
                if !bugs.iter().any(known) {
                    bugs.push(bug);
                }
            }
            let searched = found.searched.as_mut();
            let number = searched.as_ref().and_then(|searched| searched.first_bug);
            first_bug = first_bug.or(number.map(|number| ended + number));
            let goes_on = searched.is_some_and(|searched| {
                ended += searched.counts.all();
                searched.first_bug = first_bug;
                searched.ending == Ending::Complete && searched.bound.is_some()
            });
            if !goes_on {
                found.bugs = bugs;
                found.watch.elapsed = start.elapsed();
                return Ok(found);
            }
        }
        unreachable!("some bound is not exceeded")
    }

    /// Where the search is kept, if that is asked for.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, Problem> {
        let Some(path) = &self.verify.checkpoint else {
            return Ok(None);
        };
        let fingerprint = self.with_libraries(self.fingerprint.unwrap_or_default())?;
        let subject = match self.resumed {
            Some(saved) if saved.fingerprint != fingerprint => {
                return Err(Problem::request(format!(
                    "{} is about another program: the source, the compiler, its flags or a shared library have changed",
                    human::quoted(path)
                ))
                .help("start over: selvedge verify with another file"));
            }
            Some(saved) => saved.subject.clone(),
            None => self.subject()?,
        };
        Checkpoint::new(path, &subject, fingerprint).map(Some)
    }

    /// The program and the options of the search, for another process or machine.
    fn subject(&self) -> Result<Subject, Problem> {
        let directory = std::env::current_dir().map_err(|error| {
            Problem::internal(format!("the current directory is gone: {error}"))
        })?;
        Ok(Subject {
            program: Program {
                directory: Some(directory),
                ..self.verify.program()?
            },
            search: self.verify.search.clone(),
            machine: self.machine.clone(),
        })
    }

    /// The coordinator of other machines, if the user wants these to explore, and the command that
    /// continues the search.
    #[cfg(feature = "cluster")]
    pub(super) fn coordinator(&self) -> Result<Option<(Coordinator, String)>, Problem> {
        let Some(url) = &self.verify.cluster.cluster else {
            return Ok(None);
        };
        if !self.explorer.is_sliced(&self.verify.search) {
            let what = match self.verify.search.iterative {
                true => "--iterative",
                false => self.explorer.name(),
            };
            return Err(
                Problem::request(format!("--cluster cannot be combined with {what}"))
                    .help("trust supports it, without --iterative"),
            );
        }
        let subject = self.subject()?;
        cluster::begin(
            &self.verify.cluster,
            url,
            &subject,
            self.image,
            self.libraries()?,
        )
        .map(Some)
    }

    /// The fingerprint of a program together with the shared libraries that it loads.
    fn with_libraries(&self, program: [u8; 16]) -> Result<[u8; 16], Problem> {
        let mut hash = Sha256::new_with_prefix(program);
        for (name, version) in self.libraries()? {
            hash.update(format!("{name} {version}\n"));
        }
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&hash.finalize()[..16]);
        Ok(fingerprint)
    }

    /// The shared libraries that the program loads. A program that cannot be loaded has none.
    pub(crate) fn libraries(&self) -> Result<Vec<Library>, Problem> {
        let mut libraries = Vec::new();
        self.worker(Task::Libraries, |reply| {
            if let Reply::Libraries(found) = reply {
                libraries = found;
            }
        })?;
        Ok(libraries)
    }

    fn found(&self, outcome: Outcome, warned: Option<String>) -> Result<Found, Problem> {
        if outcome.cause == Some(Cause::Hung) {
            return Err(hung());
        }
        let mut bugs: Vec<FoundBug> = outcome.found.bugs.into_iter().map(|bug| bug.0).collect();
        // The simplest first. Equal ones stay in the order of the search tree.
        bugs.sort_by_key(|bug| bug.described.context_switches);
        let counts = outcome.found.counts;
        let loaded = outcome.unloadable.is_none();
        if let Some(why) = outcome.unloadable {
            bugs.push(before_main(why.failure()?));
        }
        // The number of executions that several workers had explored when a bug ended the search
        // depends on timing.
        let chance = outcome.processor.len() > 1 && outcome.found.ending == Some(Ending::FirstBug);
        let ending = match outcome.found.ending {
            Some(ending) => ending,
            None if outcome.left => Ending::Stopped,
            None => Ending::Complete,
        };
        let bound = self.verify.search.preemptions;
        let told = self.verify.report.is_some() && !outcome.noticed.unwatched;
        let unreached = told.then(|| {
            let binary = Binary::read(&self.image.library, self.machine.shown);
            lines::unreached(&binary, &outcome.noticed.reached)
        });
        let searched = Searched {
            first_bug: outcome.found.first_bug,
            beyond: outcome.found.beyond.map(|bug| Box::new(bug.0.described)),
            ending,
            counts,
            states: None,
            bound: bound.filter(|_| counts.over_bound > 0 || counts.bound_blocked > 0),
            unrolled: outcome.found.unrolled,
            limited: outcome.limited,
            hot_loop: outcome.noticed.hot_loop,
            weak_exchanges: outcome.noticed.weak_exchanges,
            freed_pointers: outcome.noticed.freed_pointers,
            status: outcome.noticed.status,
            threads: outcome.noticed.threads,
            mixed: outcome.noticed.mixed,
            memory: outcome.noticed.memory,
            processor_seconds: match &outcome.processor[..] {
                [_] => Vec::new(),
                several => several.iter().map(|time| time.as_secs_f64()).collect(),
            },
            origins: match chance {
                true => Vec::new(),
                false => outcome.origins,
            },
            unreached,
        };
        let watch = Watch {
            end: End::Finished,
            cause: outcome.cause,
            counts,
            states: None,
            runs: counts.all(),
            steps: 0,
            elapsed: outcome.elapsed,
            memory: outcome.noticed.memory,
            history: outcome.history,
        };
        Ok(Found {
            bugs,
            searched: loaded.then_some(searched),
            watch,
            warned,
            progress: Some((outcome.done, outcome.estimate)),
        })
    }
}

struct Sliced<'a> {
    search: &'a Search<'a>,
    warned: Option<String>,
}

impl Client for Sliced<'_> {
    fn hot_loop(&mut self, hot: HotLoop) {
        // Now, since the execution may have no end; and once.
        if self.warned.is_none() {
            self.warned = found::about_loop(&hot, &self.search.verify.machine);
            self.warned.iter().for_each(|warning| warn(warning));
        }
    }

    fn died(&mut self, order: Order, status: ExitStatus) -> Result<FoundBug, Problem> {
        self.search.died_in_slice(order, status)
    }
}
