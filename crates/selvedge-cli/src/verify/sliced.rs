//! Searches that are divided into work units.

use std::process::ExitStatus;

use selvedge_core::report::Ending;

use super::death::before_main;
use super::{Found, Search, found, hung};
use crate::compile::Program;
use crate::pool::checkpoint::{Checkpoint, State, Subject};
use crate::pool::{Client, Outcome, Plan, Pool};
use crate::problem::{Problem, warn};
use crate::report::human;
use crate::worker::orders::Order;
use crate::worker::protocol::{Again, FoundBug, HotLoop, Searched, Task};
use crate::worker::supervise::{Cause, End, Watch};

impl Search<'_> {
    /// Runs it in as many processes as are of use.
    pub(super) fn run_sliced(&self) -> Result<Found, Problem> {
        let task = Task::Slices(self.parameters(self.explorer, Again::No), None);
        let request = self.request(task);
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
        let warned = client.warned;
        if outcome.cause == Some(Cause::Hung) {
            return Err(hung());
        }
        self.found(outcome, warned)
    }

    /// Where the search is kept, if that is asked for.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, Problem> {
        let Some(path) = &self.verify.checkpoint else {
            return Ok(None);
        };
        let fingerprint = self.build.compiled.fingerprint()?;
        let subject = match self.resumed {
            Some(saved) if saved.fingerprint != fingerprint => {
                return Err(Problem::request(format!(
                    "{} is about another program: the source, the compiler or its flags have changed",
                    human::quoted(path)
                ))
                .help("start over: selvedge verify with another file"));
            }
            Some(saved) => saved.subject.clone(),
            None => Subject {
                program: Program {
                    directory: Some(std::env::current_dir().map_err(|error| {
                        Problem::internal(format!("the current directory is gone: {error}"))
                    })?),
                    ..self.verify.program()
                },
                search: self.verify.search.clone(),
                machine: self.verify.machine.clone(),
            },
        };
        Checkpoint::new(path, &subject, fingerprint).map(Some)
    }

    fn found(&self, outcome: Outcome, warned: Option<String>) -> Result<Found, Problem> {
        let mut bugs: Vec<FoundBug> = outcome.found.bugs.into_iter().map(|bug| bug.0).collect();
        let counts = outcome.found.counts;
        let loaded = outcome.unloadable.is_none();
        if let Some(why) = outcome.unloadable {
            bugs.push(before_main(why.failure()?));
        }
        let ending = match outcome.found.ending {
            Some(ending) => ending,
            None if outcome.left => Ending::Stopped,
            None => Ending::Complete,
        };
        let bound = self.verify.search.preemptions;
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
            memory: outcome.noticed.memory,
            processor_seconds: match &outcome.processor[..] {
                [_] => Vec::new(),
                several => several.iter().map(|time| time.as_secs_f64()).collect(),
            },
            origins: Vec::new(),
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
