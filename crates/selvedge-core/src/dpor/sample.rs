//! Searches that try some executions at random. Finding nothing proves nothing; a seed repeats the same
//! runs.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::act::Act;
use super::class::{Class, Classes};
use super::explore::State;
use super::{Algorithm, Completed};
use crate::ids::ThreadId;
use crate::random::Random;
use crate::report::Sampled;

/// How the next thread is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Strategy {
    /// Every thread that can go on is as likely as the others, at every step.
    Walk,
    /// Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010): threads have random
    /// priorities, and at `depth` − 1 random steps the running one falls behind all others. A bug
    /// that shows whenever `depth` steps come in a certain order is met with a probability of at
    /// least 1 / (n · k^(depth−1)) in each run of n threads and k steps.
    Pct {
        /// The depth of the bugs looked for, at least one.
        depth: u32,
    },
    /// Partial order sampling (Yuan, Yang and Gu, CAV 2018): each pending step has a random
    /// priority, and gets a new one when a step that it races with is taken. Spreads the runs more
    /// evenly over the classes than a walk.
    Pos,
}

/// A random search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How threads are picked.
    pub strategy: Strategy,
    /// Where the random numbers start.
    pub seed: u64,
    /// How many runs.
    pub runs: u64,
}

pub(super) struct Sampler {
    sample: Sample,
    random: Random,
    begun: u64,
    /// Of each thread, the larger the sooner it runs. None yet for zero.
    priorities: Vec<u64>,
    /// PCT: the steps before which the running thread falls behind.
    changes: Vec<u64>,
    /// The longest run and the most threads so far.
    steps: u64,
    threads: u64,
    /// How many ways the very first step has to go on.
    at_first: u32,
    picked: u32,
    classes: Classes,
    class: Class,
    completed: FxHashSet<Class>,
}

/// Priorities below this are those of threads that fell behind.
const BEHIND: u64 = 1 << 32;

impl Sampler {
    pub(super) fn new(sample: Sample) -> Sampler {
        Sampler {
            sample,
            random: Random::new(sample.seed),
            begun: 0,
            priorities: Vec::new(),
            changes: Vec::new(),
            steps: 0,
            threads: 0,
            at_first: 1,
            picked: 0,
            classes: Classes::default(),
            class: 0,
            completed: FxHashSet::default(),
        }
    }

    fn begin_run(&mut self) {
        self.begun += 1;
        self.priorities.clear();
        self.changes.clear();
        if let Strategy::Pct { depth } = self.sample.strategy {
            for _ in 1..depth {
                self.changes.push(self.random.below(self.steps.max(1)));
            }
        }
    }

    fn draw(&mut self) -> u64 {
        self.random.word() | BEHIND
    }

    /// Gives a priority to threads that have none.
    fn draw_missing(&mut self, state: &State) {
        self.priorities.resize(state.trace.graph.threads(), 0);
        for thread in 0..self.priorities.len() {
            let exists = state.next(ThreadId(thread as u32)).is_some();
            if self.priorities[thread] == 0 && exists {
                self.priorities[thread] = self.draw();
            }
        }
    }

    fn foremost(&self, state: &State) -> Option<ThreadId> {
        let enabled = state.node(state.trace.len()).enabled.iter();
        enabled.max_by_key(|thread| self.priorities.get(thread.index()).copied())
    }

    fn pick(&mut self, state: &State) -> Option<ThreadId> {
        let step = state.trace.len();
        match self.sample.strategy {
            Strategy::Walk => {
                let enabled = &state.node(step).enabled;
                let ways = enabled.iter().count().max(1) as u64;
                let nth = self.random.below(ways) as usize;
                enabled.iter().nth(nth)
            }
            Strategy::Pct { .. } => {
                self.draw_missing(state);
                for change in 0..self.changes.len() {
                    if self.changes[change] == step as u64
                        && let Some(thread) = self.foremost(state)
                    {
                        self.priorities[thread.index()] = change as u64 + 1;
                    }
                }
                self.foremost(state)
            }
            Strategy::Pos => {
                if step > 0 {
                    let last = state.trace.step(step - 1).act;
                    self.redraw(state, &last);
                }
                self.draw_missing(state);
                self.foremost(state)
            }
        }
    }

    /// New priorities for the steps that race with `last`, and for the thread that took it.
    fn redraw(&mut self, state: &State, last: &Act) {
        for (thread, priority) in self.priorities.iter_mut().enumerate() {
            let next = state.next(ThreadId(thread as u32));
            let races = next.is_some_and(|next| next.act.conflicts(last));
            if races || thread == last.thread.index() {
                *priority = 0;
            }
        }
    }
}

impl Algorithm for Sampler {
    fn arrive(&mut self, state: &mut State) {
        self.class = self.classes.of(&state.trace);
        self.steps = self.steps.max(state.trace.len() as u64);
        self.threads = self.threads.max(state.trace.graph.threads() as u64);
    }

    fn begin(&mut self, state: &mut State) -> bool {
        if state.trace.len() == 0 {
            let first = state.next(ThreadId::MAIN);
            self.at_first = first.map_or(1, |next| next.alternatives);
            return true;
        }
        if let Some(thread) = self.pick(state) {
            let ways = state.next(thread).map_or(1, |next| next.alternatives);
            self.picked = self.random.below(u64::from(ways.max(1))) as u32;
            state.here().back.insert(thread);
        }
        true
    }

    fn choose(&mut self, state: &mut State) -> Option<(ThreadId, Option<u32>)> {
        if state.trace.len() == 0 {
            if self.begun == self.sample.runs {
                return None;
            }
            self.begin_run();
            let ways = u64::from(self.at_first.max(1));
            return Some((ThreadId::MAIN, Some(self.random.below(ways) as u32)));
        }
        let node = state.here();
        let thread = node.untried()?;
        node.done.insert(thread);
        Some((thread, Some(self.picked)))
    }

    fn sleeps(&mut self, _state: &mut State, _act: &Act) -> bool {
        false
    }

    fn completed(&mut self, _state: &mut State) -> Completed {
        self.completed.insert(self.class);
        Completed::Within
    }

    fn sampled(&self) -> Option<Sampled> {
        Some(Sampled {
            runs: self.begun,
            distinct: self.completed.len() as u64,
            depth: match self.sample.strategy {
                Strategy::Pct { depth } => Some(depth),
                _ => None,
            },
            threads: self.threads,
            steps: self.steps,
        })
    }
}
