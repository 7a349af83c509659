//! Optimal-DPOR (Abdulla et al., POPL 2014 and JACM 2017): wakeup trees in place of backtrack sets.
//! Races are reversed at the end of each execution, with everything that does not depend on the
//! step left behind; so no exploration ever finds all of its threads asleep.
//!
//! An alternative of a data choice is a step of its own here: a tree may ask for one alternative and
//! not for the others.

use super::Algorithm;
use super::act::{Act, Next};
use super::explore::State;
use super::trace::StepIndex;
use crate::ids::ThreadId;

#[derive(Default)]
pub(super) struct OptimalDpor {
    /// `wut(E)` for each node on the way: the branches still to be explored.
    trees: Vec<Vec<Branch>>,
    /// The subtree of the branch taken last, for the node it leads to.
    handed: Vec<Branch>,
    /// For each step on the way, the steps it races with, as seen before it was taken.
    races: Vec<(StepIndex, StepIndex)>,
    v: Vec<Act>,
}

/// A branch of a wakeup tree.
struct Branch {
    act: Act,
    subtree: Vec<Branch>,
}

impl Algorithm for OptimalDpor {
    fn arrive(&mut self, state: &mut State) {
        self.trees.truncate(state.trace.len());
        self.trees.push(std::mem::take(&mut self.handed));
        if state.here().enabled.is_empty() {
            self.reverse_races(state);
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        let here = state.trace.len();
        if !self.trees[here].is_empty() {
            return true;
        }
        let node = state.node(here);
        for thread in node.enabled.iter() {
            let next = state.next(thread).expect("it is enabled");
            let acts = (0..next.alternatives).map(|choice| Act { choice, ..next.act });
            let asleep = |act: &Act| {
                let mut sleep = node.sleep.iter();
                sleep.any(|other| (other.thread, other.choice) == (thread, act.choice))
            };
            let leaves = acts.filter(|act| !asleep(act)).map(Branch::leaf);
            self.trees[here].extend(leaves);
            if !self.trees[here].is_empty() {
                return true;
            }
        }
        false
    }

    fn choose(&mut self, state: &mut State) -> Option<(ThreadId, Option<u32>)> {
        let tree = &mut self.trees[state.trace.len()];
        if tree.is_empty() {
            return None;
        }
        let Branch { act, subtree } = tree.remove(0);
        self.handed = subtree;
        Some((act.thread, Some(act.choice)))
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let here = state.trace.len();
        while self.races.last().is_some_and(|&(k, _)| k >= here) {
            self.races.pop();
        }
        let next = *state.next(thread).expect("it is about to be explored");
        state.trace.races(&next, &mut state.places);
        self.races.extend(state.places.iter().map(|&i| (here, i)));
    }
}

impl OptimalDpor {
    /// At the end of an execution: every race, also of the threads that wait.
    fn reverse_races(&mut self, state: &mut State) {
        let end = state.trace.len();
        for index in 0..self.races.len() {
            let (k, i) = self.races[index];
            if k < end {
                let step = state.trace.step(k);
                let next = Next {
                    op: step.op,
                    act: step.act,
                    alternatives: 1,
                    value: step.before,
                };
                self.wake_up(state, i, &next, Some(k));
            }
        }
        let mut places = std::mem::take(&mut state.places);
        for index in 0..state.trace.graph.threads() as u32 {
            if let Some(&next) = state.next(ThreadId(index))
                && next.waits_for_value()
            {
                state.trace.races(&next, &mut places);
                for &i in &places {
                    self.wake_up(state, i, &next, None);
                }
            }
        }
        state.places = places;
    }

    /// Sees to it that the reversal is explored from the node `i`, unless that was done before. The
    /// moved step may have other alternatives there than where it was taken.
    fn wake_up(&mut self, state: &State, i: StepIndex, next: &Next, taken: Option<StepIndex>) {
        let v = &mut self.v;
        let sleep = &state.node(i).sleep;
        for choice in 0..next.alternatives_at(state.trace.step(i).before) {
            state.trace.reversal(i, next, taken, v);
            if let Some(last) = v.last_mut() {
                last.choice = choice;
            }
            if !sleep.iter().any(|act| weak_initial(act, v)) {
                insert(&mut self.trees[i], v);
            }
        }
    }
}

impl Branch {
    fn leaf(act: Act) -> Branch {
        Branch {
            act,
            subtree: Vec::new(),
        }
    }
}

/// Whether `act` can come first in a sequence equivalent to `v`, or one that `v` begins.
fn weak_initial(act: &Act, v: &[Act]) -> bool {
    match v.iter().position(|other| other.thread == act.thread) {
        Some(at) => {
            let earlier = &v[..at];
            v[at].choice == act.choice && !earlier.iter().any(|other| other.conflicts(&v[at]))
        }
        None => !v.iter().any(|other| other.conflicts(act)),
    }
}

fn insert(mut tree: &mut Vec<Branch>, v: &mut Vec<Act>) {
    loop {
        let Some(at) = tree.iter().position(|child| weak_initial(&child.act, v)) else {
            let mut rest = v.drain(..).rev();
            if let Some(last) = rest.next() {
                let leaf = Branch::leaf(last);
                let branch = rest.fold(leaf, |below, act| Branch {
                    act,
                    subtree: vec![below],
                });
                tree.push(branch);
            }
            return;
        };
        let child = &mut tree[at];
        let thread = child.act.thread;
        if let Some(own) = v.iter().position(|act| act.thread == thread) {
            v.remove(own);
        }
        if child.subtree.is_empty() {
            return;
        }
        tree = &mut child.subtree;
    }
}
