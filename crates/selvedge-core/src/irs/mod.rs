//! Proves schedules of a program safe, as a set of waits that a run time can enforce: the verifier of iteratively
//! relaxed scheduling (Metzler, Saissi, Bokor and Suri, "Safe Execution of Concurrent Programs by Enforcement of
//! Scheduling Constraints").
//!
//! [`verify`] finds one execution that ends well, and adds demands that exclude all others. Then it
//! takes demands back one at a time, each after all executions that the demand excluded have been
//! explored (`relax.rs`). So the present demands are proven to suffice at any moment. For a program
//! without bugs no demand is left in the end. For a program with bugs the remaining demands exclude
//! the bugs, and the bug that each of them excludes is known.
//!
//! Deviations from the document:
//! * A set of waits is enforced, not a prefix of a trace; the waits that the document's prefixes
//!   stand for are among the sets that this verifier passes through. So there is no need for events
//!   that are not in the prefix to wait for it (the proof of Theorem 1 needs that; Definition 3
//!   does not ask for it).
//! * Safety and progress are explored, not argued: the program with its waits is checked as a
//!   program of its own, and an execution in which the waits make threads wait for ever counts as a
//!   failure.
//! * The initial trace is checked like everything else.

mod attempt;
mod constrained;
mod demands;
mod doing;
mod found;
mod histories;
mod initial;
mod log;
mod part;
mod plan;
mod relax;
mod reversal;
mod saved;
mod strip;
mod trace;

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;

pub use demands::{Demand, Demands};
pub use doing::Doing;
pub use histories::{Happening, History};
pub use initial::{LONGEST, Order};
pub use log::EventPlace;
pub use part::{Explored, Part, help};
pub use relax::{Kept, Reason, Relaxed, Watcher};
pub use saved::Saved;

use crate::ids::{Site, ThreadId};
use crate::machine::{Machine, Portable};
use crate::report::{Bug, Ending};
use attempt::Attempt;
use relax::{Context, StepResult};

/// The proof.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// For each input what is demanded.
    pub inputs: Vec<Relaxed>,
    /// The sites whose events are counted.
    pub counted: FxHashSet<Site>,
    /// The bugs that demands keep away.
    pub bugs: Vec<Bug>,
    /// How many demands there were at first.
    pub initial: usize,
    /// The attempt at the step that was interrupted, if one was.
    attempts: Vec<Attempt>,
}

/// Why there is nothing to enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The program does something that is not modelled.
    Refused(String),
    /// No execution was found that ends well, for an input.
    NoTrace(Vec<u32>),
    /// No execution ends within [`LONGEST`] steps.
    Endless,
    /// There are more inputs than can be dealt with.
    TooManyInputs(u64),
    /// The saved proof does not belong to this program.
    Changed,
    /// The search of the initial traces ended like this.
    Ended(Ending),
}

/// How the verification came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to be proven: what is demanded now has to stay.
    Done,
    /// It was stopped, or could not go on.
    Ended(Ending),
}

/// The most inputs there may be.
pub const MAX_INPUTS: u64 = 4096;

impl Verified {
    /// How many waits there are.
    pub fn demands(&self) -> usize {
        self.inputs.iter().map(|input| input.demands.len()).sum()
    }

    /// How many traces are proven.
    pub fn traces(&self) -> u64 {
        self.inputs.iter().map(|input| input.traces).sum()
    }

    /// Whether every schedule is proven.
    pub fn complete(&self) -> bool {
        self.demands() == 0
    }
}

impl Relaxed {
    /// The threads that were met, main first, parents before children, and their places. Later ones
    /// come behind those that were known before.
    pub fn threads(&self) -> Vec<(ThreadId, Option<EventPlace>)> {
        let places = self.trace.places.iter().enumerate();
        let known = places.filter_map(|(thread, place)| Some((ThreadId(thread as u32), (*place)?)));
        let mut threads: Vec<(ThreadId, EventPlace)> = known.collect();
        for &(thread, place) in &self.log.threads {
            if !threads.iter().any(|&(other, _)| other == thread) {
                threads.push((thread, place));
            }
        }
        let main = (ThreadId::MAIN, None);
        let others = threads
            .into_iter()
            .map(|(thread, place)| (thread, Some(place)));
        std::iter::once(main).chain(others).collect()
    }

    /// The site of each counted event of `thread`, `None` where it varies.
    pub fn events(&self, thread: ThreadId) -> &[Option<Site>] {
        self.log
            .events
            .get(thread.index())
            .map_or(&[], Vec::as_slice)
    }

    /// The sequences of events that `thread` performed, the empty one first, parents before children.
    pub fn histories(&self, thread: ThreadId) -> &[History] {
        let histories = self.log.histories.get(thread.index());
        histories.map_or(&[], |histories| histories.nodes())
    }

    /// The sites of operations on what another thread touches too, in a way that matters.
    pub fn shared(&self) -> impl Iterator<Item = Site> + '_ {
        self.log.shared.iter().copied()
    }

    /// The operations at each site.
    pub fn sites(&self) -> impl Iterator<Item = (Site, Doing)> + '_ {
        self.log.sites.iter().map(|(&site, &doing)| (site, doing))
    }

    /// The schedule of the initial trace.
    pub fn schedule(&self) -> &[(ThreadId, u32)] {
        &self.trace.schedule
    }

    /// The site of the event that waits and that of the event it waits for, in the initial trace.
    pub fn ends(&self, demand: &Demand) -> (Site, Site) {
        let (later, earlier) = self.trace.ends(demand);
        (self.trace.steps[later].site, self.trace.steps[earlier].site)
    }
}

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The order of the initial trace; without one, that under which the fewest threads wait.
    pub order: Option<Order>,
    /// A step that takes more executions than this, and more than were proven before, is taken in
    /// smaller ones where that is possible: so that what is proven can be put to use, and is not
    /// lost if the verifier ends.
    pub patience: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            order: None,
            patience: 10_000,
        }
    }
}

/// Proves as much as `watcher` allows for, from the beginning or on top of what is `saved`.
pub fn verify<M: Portable, W: Watcher<M>>(
    machine: &mut M,
    settings: Settings,
    saved: Option<Saved>,
    watcher: &mut W,
) -> Result<(Verified, Outcome), Impossible> {
    let mut verified = match saved {
        Some(saved) => saved.restore(machine)?,
        None => begin(machine, settings, watcher)?,
    };
    let outcome = relax(machine, settings, &mut verified, watcher);
    Ok((verified, outcome))
}

/// Every combination of the choices that main makes before it creates a thread.
fn all_inputs<M: Machine>(machine: &mut M) -> Result<Vec<Vec<u32>>, Impossible> {
    let mut all = Vec::new();
    let mut inputs: Vec<u32> = Vec::new();
    loop {
        let alternatives = initial::choices(machine, &inputs).map_err(Impossible::Refused)?;
        inputs.resize(alternatives.len(), 0);
        all.push(inputs.clone());
        if all.len() as u64 > MAX_INPUTS {
            return Err(Impossible::TooManyInputs(MAX_INPUTS));
        }
        // The next one, last choice first; how many choices follow may depend on it.
        let more = |&at: &usize| inputs[at] + 1 < alternatives[at];
        let Some(last) = (0..inputs.len()).rev().find(more) else {
            return Ok(all);
        };
        inputs.truncate(last + 1);
        inputs[last] += 1;
    }
}

/// Finds and proves an initial trace for each input.
fn begin<M: Portable, W: Watcher<M>>(
    machine: &mut M,
    settings: Settings,
    watcher: &mut W,
) -> Result<Verified, Impossible> {
    let mut candidates = Vec::new();
    for inputs in all_inputs(machine)? {
        let mut found = initial::candidates(machine, &inputs, settings.order)?;
        if found.is_empty() {
            found.extend(found::search(machine, &inputs, watcher).map_err(Impossible::Ended)?);
        }
        // Under the best of them the fewest threads wait, and seldom; among equals the threads that
        // are created later wait for earlier ones. It comes last.
        found.reverse();
        found.sort_by_cached_key(|trace| {
            let mut trace = trace.clone();
            trace.number_dependent();
            let demands = trace.demands();
            // Waiting for a thread that is created later takes longest.
            let backwards = demands
                .iter()
                .filter(|demand| demand.thread < demand.source);
            std::cmp::Reverse((demands.waiting_threads(), backwards.count(), demands.len()))
        });
        candidates.push((inputs, found));
    }
    let mut bugs = Vec::new();
    'again: loop {
        let mut chosen = Vec::new();
        for (inputs, found) in &candidates {
            let Some(trace) = found.last() else {
                return Err(Impossible::NoTrace(inputs.clone()));
            };
            chosen.push(Relaxed::new(inputs.clone(), trace.clone()));
        }
        let mut verified = Verified::of(chosen);
        verified.bugs = std::mem::take(&mut bugs);
        for (index, (_, found)) in candidates.iter_mut().enumerate() {
            match prove(machine, &mut verified, index, watcher) {
                ControlFlow::Continue(true) => {}
                ControlFlow::Continue(false) => {
                    bugs = verified.bugs;
                    found.pop();
                    continue 'again;
                }
                ControlFlow::Break(ending) => return Err(Impossible::Ended(ending)),
            }
        }
        return Ok(verified);
    }
}

/// Explores what keeps to the initial demands of an input. False if that is not safe.
fn prove<M: Portable, W: Watcher<M>>(
    machine: &mut M,
    verified: &mut Verified,
    index: usize,
    watcher: &mut W,
) -> ControlFlow<Ending, bool> {
    let explored = verified.traces();
    let mut context = Context {
        machine,
        watcher,
        counted: &verified.counted,
        bugs: &mut verified.bugs,
        explored,
        patience: u64::MAX,
        attempts: &mut verified.attempts,
    };
    let input = &mut verified.inputs[index];
    let mut explore = || context.explore(input, &input.demands, None, None);
    let step = loop {
        match explore() {
            StepResult::Paused => {}
            step => break step,
        }
    };
    context.attempts.clear();
    match step {
        StepResult::Safe { traces, log } => {
            input.traces = traces;
            input.log = log;
            ControlFlow::Continue(true)
        }
        StepResult::Unsafe(_) | StepResult::TooMany | StepResult::Paused => {
            ControlFlow::Continue(false)
        }
        StepResult::Ended(ending) => ControlFlow::Break(ending),
    }
}

/// Weakens what is demanded as far as possible.
fn relax<M: Portable, W: Watcher<M>>(
    machine: &mut M,
    settings: Settings,
    verified: &mut Verified,
    watcher: &mut W,
) -> Outcome {
    match try_relax(machine, settings, verified, watcher) {
        ControlFlow::Continue(()) => Outcome::Done,
        ControlFlow::Break(ending) => Outcome::Ended(ending),
    }
}

fn try_relax<M: Portable, W: Watcher<M>>(
    machine: &mut M,
    settings: Settings,
    verified: &mut Verified,
    watcher: &mut W,
) -> ControlFlow<Ending> {
    let told = |verified: &Verified, machine: &M, watcher: &mut W| match watcher
        .proven(verified, machine)
    {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(Ending::Stopped),
    };
    told(verified, machine, watcher)?;
    for index in 0..verified.inputs.len() {
        loop {
            let explored = verified.traces();
            let mut context = Context {
                machine: &mut *machine,
                watcher: &mut *watcher,
                counted: &verified.counted,
                bugs: &mut verified.bugs,
                explored,
                patience: settings.patience,
                attempts: &mut verified.attempts,
            };
            let input = &mut verified.inputs[index];
            let before = input.demands.clone();
            match input.next() {
                Some(demand) => input.weaken(demand, &mut context)?,
                None => {
                    input.leave_out_the_rest(&mut context)?;
                    if input.demands == before && verified.attempts.is_empty() {
                        break;
                    }
                }
            }
            told(verified, machine, watcher)?;
        }
    }
    ControlFlow::Continue(())
}

impl Verified {
    /// The first demands.
    fn of(mut inputs: Vec<Relaxed>) -> Verified {
        let mut counted = FxHashSet::default();
        for input in &inputs {
            input.trace.dependent_sites(&mut counted);
        }
        for input in &mut inputs {
            input.trace.number(&counted);
            input.demands = input.trace.demands();
        }
        let initial = inputs.iter().map(|input| input.demands.len()).sum();
        Verified {
            inputs,
            counted,
            bugs: Vec::new(),
            initial,
            attempts: Vec::new(),
        }
    }
}
