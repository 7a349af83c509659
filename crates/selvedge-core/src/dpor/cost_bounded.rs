//! Searches with a bound on a cost that every switch has: delays (Emmi,
//! Qadeer and Rakamarić, "Delay-bounded scheduling", POPL 2011) and context switches (Qadeer and
//! Rehof, TACAS 2005).
//!
//! No reduction is sound under such bounds that does not know them, so there is none: every
//! sequence within the bound is tried, except that two equivalent prefixes with the same thread
//! running have the same future. Of those only the cheaper one is followed. That keeps one entry in
//! memory for each such pair.

use rustc_hash::{FxHashMap, FxHashSet};

use super::act::Act;
use super::class::{Class, Classes};
use super::explore::State;
use super::{Algorithm, Completed};
use crate::ids::ThreadId;

/// The cost that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Measure {
    /// The scheduler lets the running thread go on until it ends or has to wait, and then goes
    /// round to the next one by number that can go on. A delay makes it pass over the thread it was
    /// about to run.
    Delays,
    /// Every change of the running thread. Main runs first.
    Switches,
}

pub(super) struct CostBounded {
    measure: Measure,
    bound: u32,
    /// Of each prefix, what it cost.
    costs: Vec<u32>,
    classes: Classes,
    /// At what cost each class was reached, by the thread that ran last.
    visited: FxHashMap<(Class, ThreadId), u32>,
    completed: FxHashSet<Class>,
    class: Class,
}

impl CostBounded {
    pub(super) fn new(measure: Measure, bound: u32) -> CostBounded {
        CostBounded {
            measure,
            bound,
            costs: vec![0],
            classes: Classes::default(),
            visited: FxHashMap::default(),
            completed: FxHashSet::default(),
            class: 0,
        }
    }

    /// The cost of letting `thread` take the next step.
    fn price(&self, state: &State, thread: ThreadId) -> u32 {
        let running = state.trace.running();
        match self.measure {
            Measure::Switches => u32::from(thread != running),
            Measure::Delays => {
                let node = state.node(state.trace.len());
                let threads = state.trace.graph.threads() as u32;
                let turn = |other: ThreadId| (other.0 + threads - running.0) % threads;
                let earlier = |&other: &ThreadId| turn(other) < turn(thread);
                node.enabled.iter().filter(earlier).count() as u32
            }
        }
    }

    fn cost(&self, state: &State) -> u32 {
        self.costs[state.trace.len()]
    }
}

impl Algorithm for CostBounded {
    fn arrive(&mut self, state: &mut State) {
        self.class = self.classes.of(&state.trace);
    }

    fn begin(&mut self, state: &mut State) -> bool {
        let cost = self.cost(state);
        let known = self.visited.entry((self.class, state.trace.running()));
        let known = known.or_insert(u32::MAX);
        if *known > cost {
            *known = cost;
            let node = state.here();
            node.back = node.enabled.clone();
        }
        true
    }

    fn choose(&mut self, state: &mut State) -> Option<(ThreadId, Option<u32>)> {
        let node = state.node(state.trace.len());
        let untried = node
            .back
            .iter()
            .filter(|&thread| !node.done.contains(thread));
        let thread = untried.min_by_key(|&thread| self.price(state, thread))?;
        state.here().done.insert(thread);
        Some((thread, None))
    }

    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        self.cost(state) + self.price(state, thread) <= self.bound
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let cost = self.cost(state) + self.price(state, thread);
        self.costs.truncate(state.trace.len() + 1);
        self.costs.push(cost);
    }

    fn sleeps(&mut self, _state: &mut State, _act: &Act) -> bool {
        false
    }

    fn completed(&mut self, _state: &mut State) -> Completed {
        match self.completed.insert(self.class) {
            true => Completed::Within,
            false => Completed::Again,
        }
    }
}
