//! Searches that are divided into work units: by several processes, or by one that saves what is left.
//!
//! A slice of a search is a pure function, from a unit and a budget to counts, bugs and further units. So
//! the result does not depend on which process explores which unit. The test explores alone at first. If that
//! takes long, its program is started again for this one test, and those processes explore the model from
//! its beginning: they are loaded at the same addresses, other than the test itself.

mod division;
mod pool;
mod slice;
mod wire;
mod worker;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use selvedge_core::Portable as _;
use selvedge_core::report::Counts;
use selvedge_core::trust::Budget;

pub(crate) use division::{Division, Searched};
use pool::Plan;
pub(crate) use slice::Search;
use wire::{Hello, Task};
use worker::Role;

use crate::checkpoint::Checkpoint;
use crate::clerk;
use crate::model::Report;
use crate::rt::{PROTECTED_RUNS, RustMachine};
use crate::watch::Watch;

/// A search that ends before has one process.
const ALONE: Duration = Duration::from_millis(50);
/// A slice of a search by one process ends after this time, so that the rest can be saved.
const SLICE: Duration = Duration::from_millis(500);

thread_local! {
    /// The results of this OS thread's models, as far as they are over.
    static REPORTS: RefCell<Vec<Option<Report>>> = const { RefCell::new(Vec::new()) };
}

/// A model of a test.
#[derive(Debug)]
pub(crate) struct Here {
    /// The name of the OS thread, which is that of the test if the test harness has started it.
    pub(crate) test: Option<String>,
    /// How many models the OS thread had before.
    pub(crate) number: usize,
}

/// The role of a model in a worker process.
pub(crate) enum Part {
    /// This process is no worker, or the model does not concern it.
    Explore,
    /// The model is known to have come to this.
    Known(Report),
    /// The units of this model are explored here.
    Serve(UnixStream),
}

impl Here {
    /// The model that begins on this OS thread.
    pub(crate) fn begin() -> Here {
        let number = REPORTS.with_borrow_mut(|reports| {
            reports.push(None);
            reports.len() - 1
        });
        let thread = std::thread::current();
        Here {
            test: thread
                .name()
                .filter(|&name| name != "main")
                .map(str::to_owned),
            number,
        }
    }

    /// The model has come to this.
    pub(crate) fn end(&self, report: &Report) {
        REPORTS.with_borrow_mut(|reports| reports[self.number] = Some(report.clone()));
    }

    /// Its role in this process.
    pub(crate) fn part(&self) -> Part {
        match worker::role(self.test.as_deref(), self.number) {
            Role::None => Part::Explore,
            Role::Before(report) => Part::Known(report),
            Role::Serve(socket) => Part::Serve(socket),
        }
    }
}

/// How many processes are to explore, if `asked` were asked for: a worker is one of several already.
pub(crate) fn processes(asked: usize) -> usize {
    match worker::is_worker() {
        true => 1,
        false => asked.max(1),
    }
}

/// The budget that `SELVEDGE_SLICE` asks for, for tests of slices.
pub(crate) fn forced_budget() -> Option<Budget> {
    let asked = std::env::var("SELVEDGE_SLICE").ok()?;
    Some(Budget::parse(&asked)).filter(|budget| *budget != Budget::default())
}

/// Explores units for the process that started this one, and ends.
pub(crate) fn serve(search: Search, machine: &mut RustMachine, socket: UnixStream) -> ! {
    worker::serve(search, machine, socket)
}

/// Explores by this process alone, as far as the limits allow or until `pauses` says so. An error tells why
/// the rest cannot be saved.
fn explore_here(
    search: Search,
    machine: &mut RustMachine,
    division: &mut Division,
    (watch, mut checkpoint): (&mut Watch, Option<&mut Checkpoint>),
    pauses: &dyn Fn(&Counts) -> bool,
) -> Result<(), String> {
    let budget = forced_budget().unwrap_or(Budget {
        time: checkpoint.as_ref().map(|_| SLICE),
        executions: None,
    });
    while let Some((id, unit)) = division.work.take_first() {
        let before = division.work.counts();
        let mut ends = false;
        let mut seen = |counts: &Counts| {
            let mut all = before;
            all += *counts;
            ends = watch.is_over(&all) || pauses(&all);
            match ends {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let sliced = slice::explore(search, machine, unit, (budget, 1), &mut seen);
        let starts_over = division.answer(id, sliced);
        if starts_over {
            machine.forget_first();
        }
        if let Some(checkpoint) = &mut checkpoint {
            // With other knowledge, the first execution may be another one.
            let first = || machine.first_execution();
            checkpoint.first = (!starts_over).then(|| checkpoint.first.unwrap_or_else(first));
            if !division.work.is_done() && (ends || checkpoint.is_due()) {
                checkpoint.write(division)?;
            }
        }
        if ends {
            break;
        }
    }
    Ok(())
}

/// Explores a model as units: by `jobs` processes once that pays off, and with a checkpoint if there is one.
/// An error tells why that cannot be done.
pub(crate) fn explore(
    search: Search,
    machine: &mut RustMachine,
    watch: &mut Watch,
    (here, jobs): (&Here, usize),
    saved: Option<(Checkpoint, Option<Division>)>,
) -> Result<Searched, String> {
    let (mut checkpoint, continued) = saved.unzip();
    let mut division = match continued.flatten() {
        Some(division) => {
            continue_with(search, machine, &division, checkpoint.as_ref())?;
            // Limits are those of this run.
            if let Some(most) = &mut watch.executions {
                *most = most.saturating_add(division.work.counts().executions as usize);
            }
            division
        }
        // A limit on the number of executions means the first ones.
        None if jobs > 1 && watch.executions.is_none() => {
            let mut division = Division::new(&[]);
            let start = Instant::now();
            // The executions in which freed memory is protected are explored here.
            let wait = forced_budget().map_or((ALONE, PROTECTED_RUNS), |_| (Duration::ZERO, 0));
            let late =
                |counts: &Counts| start.elapsed() >= wait.0 && counts.all() >= u64::from(wait.1);
            explore_here(search, machine, &mut division, (watch, None), &late)?;
            let over = division.work.is_done() || watch.is_over(&division.work.counts());
            match over {
                true => return saved_at_end(checkpoint, division),
                false => Division::new(&machine.learned()),
            }
        }
        None => Division::new(&[]),
    };
    if jobs > 1 && watch.executions.is_none() {
        let plan = Plan {
            task: Task {
                test: here.test.clone().unwrap_or_default(),
                model: here.number,
            },
            hello: Hello {
                before: REPORTS.with_borrow(|reports| reports[..here.number].to_vec()),
            },
            jobs,
            budget: forced_budget().unwrap_or_default(),
            until: watch.until,
            first: machine.first_execution(),
            origins: machine.sites().is_some(),
        };
        let progress = std::mem::take(&mut watch.progress);
        let pool = clerk::have(move || {
            std::thread::spawn(move || pool::run(plan, division, checkpoint, progress))
        });
        let Ok((explored, saved, progress, result)) = pool.join() else {
            return Err("the threads that watch workers have panicked".to_owned());
        };
        (division, checkpoint, watch.progress) = (explored, saved, progress);
        division.forget_chance();
        result?;
    } else {
        let watching = (&mut *watch, checkpoint.as_mut());
        explore_here(search, machine, &mut division, watching, &|_| false)?;
    }
    saved_at_end(checkpoint, division)
}

/// The result of the search. Its rest is saved, if there is one.
fn saved_at_end(checkpoint: Option<Checkpoint>, division: Division) -> Result<Searched, String> {
    if let Some(mut checkpoint) = checkpoint {
        match division.work.is_done() {
            true => checkpoint.remove(),
            false => checkpoint.write(&division)?,
        }
    }
    Ok(division.searched())
}

/// Takes up a search that another process has begun.
fn continue_with(
    search: Search,
    machine: &mut RustMachine,
    division: &Division,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), String> {
    machine.learn(division.work.learned());
    slice::first_execution(search, machine);
    let expected = checkpoint.and_then(|checkpoint| checkpoint.first);
    match expected.is_none_or(|first| first == machine.first_execution()) {
        true => Ok(()),
        false => Err(pool::DIFFERS.to_owned()),
    }
}
