//! A run on a machine that serves: its program, and the exploration of its units.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use selvedge_cluster::{Queue, Run};

use super::messages::{Job, Record, Trouble};
use super::{explorer, program, refused, subject};
use crate::args::Verify;
use crate::compile::Image;
use crate::explorer::Explorer;
use crate::interrupt;
use crate::pool::seat::Seat;
use crate::problem::Problem;
use crate::scratch::Scratch;
use crate::verify::Search;
use crate::worker::orders::{Budget, Order, Sliced};
use crate::worker::process::Message;
use crate::worker::protocol::{Reply, Request, Rerun};
use crate::worker::supervise::{Cause, GRACE, TICK, patience};

/// A unit whose workers were killed from outside so often is given up.
const KILLED: u32 = 5;

/// A run that this machine takes part in.
pub(super) struct Site {
    pub(super) run: Run,
    pub(super) queue: Queue,
    /// Whether the run still goes on.
    pub(super) active: AtomicBool,
    verify: Verify,
    explorer: Explorer,
    image: Image,
    request: Request,
    _scratch: Scratch,
}

/// The limits of a machine for programs of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) memory_limit: u64,
    pub(super) allow_unconfined: bool,
}

/// A worker process, and what it says.
pub(super) struct Desk {
    run: String,
    seat: Seat,
    replies: Receiver<Message>,
}

/// How exploring a unit ended.
pub(super) enum End {
    /// With this answer.
    Answer(Box<Result<Sliced, Trouble>>),
    /// Without one: the unit is for somebody else.
    Nothing,
    /// This machine must not explore anything.
    Unconfined(String),
}

impl End {
    fn answer(outcome: Result<Sliced, Trouble>) -> End {
        End::Answer(Box::new(outcome))
    }
}

impl Site {
    /// Gets what the run needs. Refuses, with a reason, where the program would not be the same.
    pub(super) fn prepare(run: Run, record: &Record) -> Result<Site, Problem> {
        if let Some(why) = record.mismatch() {
            return Err(refused(&run, &why));
        }
        let subject = subject(&run)?;
        let (image, scratch) = program(&run, record)?;
        let mut verify = subject.verify(&subject.program);
        // The program is somebody else's.
        verify.machine.no_confinement = false;
        let explorer = explorer(&verify)?;
        let search = Search::new(&verify, &image, &explorer);
        if let Some(why) = record.differs(&search.libraries()?) {
            return Err(refused(&run, &why));
        }
        let request = search.slices();
        Ok(Site {
            queue: run.queue(),
            run,
            active: AtomicBool::new(true),
            verify,
            explorer,
            image,
            request,
            _scratch: scratch,
        })
    }

    /// Explores the unit of `job`. `desk` is the worker of before, with which `number` tells the
    /// workers of a machine apart.
    pub(super) fn explore(
        &self,
        job: Job,
        desk: &mut Option<Desk>,
        number: usize,
        terms: Terms,
    ) -> End {
        let order = Order {
            unit: job.unit,
            known: job.known,
            learned: job.learned,
            budget: job.budget,
            pieces: job.pieces,
            rerun: Rerun::No,
            forecast: Duration::ZERO,
        };
        let failed =
            |error: &dyn std::fmt::Display| End::answer(Err(Trouble::Failed(error.to_string())));
        let mut killed = 0;
        loop {
            let mut current = match desk.take().filter(|desk| desk.run == self.run.name()) {
                Some(desk) => desk,
                None => {
                    let (hear, replies) = mpsc::channel();
                    match Seat::start(&self.request, number, hear) {
                        Ok(seat) => Desk {
                            run: self.run.name().to_owned(),
                            seat,
                            replies,
                        },
                        Err(error) => return failed(&error),
                    }
                }
            };
            // Whether the worker takes it is seen by whether it answers.
            let _ = current.seat.order(0, &order, 0);
            match self.wait(&mut current, terms) {
                Heard::Sliced(sliced) => {
                    *desk = Some(current);
                    return End::answer(Ok(*sliced));
                }
                Heard::End(end) => return end,
                Heard::Nothing => {}
            }
            // Only a worker that has done nothing else shows in which run it happens.
            let (used, runs, counts) = (
                current.seat.used,
                current.seat.runs(),
                current.seat.counts(),
            );
            let status = match current.seat.end() {
                Ok(status) => status,
                Err(error) => return failed(&error),
            };
            let outside = status.signal() == Some(Signal::SIGKILL as i32);
            killed += u32::from(outside);
            if used || (outside && killed < KILLED) {
                continue;
            }
            let order = Order {
                budget: Budget::default(),
                rerun: Rerun::Run(runs),
                ..order
            };
            let search = Search::new(&self.verify, &self.image, &self.explorer);
            return match search.died_in_slice(order, status) {
                Ok(bug) => End::answer(Ok(Sliced::died(counts, bug))),
                Err(problem) => failed(&problem.message()),
            };
        }
    }

    /// Waits for what the worker finds.
    fn wait(&self, desk: &mut Desk, terms: Terms) -> Heard {
        let patience = patience(&self.request);
        let mut stopping: Option<Instant> = None;
        loop {
            match desk.replies.recv_timeout(TICK) {
                Ok((_, Some(Reply::Sliced(sliced)))) => {
                    desk.seat.answered();
                    return Heard::Sliced(sliced);
                }
                Ok((_, Some(Reply::Unloadable(why)))) => {
                    return Heard::End(End::answer(Err(Trouble::Unloadable(why))));
                }
                Ok((_, Some(Reply::Unconfined(why)))) if !terms.allow_unconfined => {
                    return Heard::End(End::Unconfined(why));
                }
                Ok((_, Some(_))) => {}
                Ok((_, None)) | Err(RecvTimeoutError::Disconnected) => return Heard::Nothing,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let trouble = if desk.seat.memory() > terms.memory_limit {
                Some(Cause::Memory(terms.memory_limit))
            } else if desk.seat.silence() > patience {
                Some(Cause::Hung)
            } else {
                None
            };
            if let Some(cause) = trouble {
                return Heard::End(End::answer(Err(Trouble::Stopped(cause))));
            }
            if !self.active.load(Ordering::Relaxed) {
                return Heard::End(End::Nothing);
            }
            if interrupt::requests() > 0 {
                desk.seat.stop(1);
                let since = *stopping.get_or_insert_with(Instant::now);
                if since.elapsed() > GRACE || interrupt::requests() > 1 {
                    return Heard::End(End::Nothing);
                }
            }
        }
    }
}

enum Heard {
    Sliced(Box<Sliced>),
    /// The worker has died.
    Nothing,
    End(End),
}
