//! A proof in progress as a value, to be continued later.

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::demands::Demands;
use super::initial;
use super::log::Log;
use super::relax::{Kept, Relaxed};
use super::{Impossible, Verified};
use crate::ids::ThreadId;
use crate::machine::Machine;
use crate::report::Bug;

/// Everything that cannot be found out again by running the initial traces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    inputs: Vec<SavedInput>,
    bugs: Vec<Bug>,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedInput {
    inputs: Vec<u32>,
    schedule: Vec<(ThreadId, u32)>,
    demands: Demands,
    kept: Vec<Kept>,
    traces: u64,
    log: Log,
}

impl Verified {
    /// The part of it to keep.
    pub fn save(&self) -> Saved {
        let input = |input: &Relaxed| SavedInput {
            inputs: input.inputs.clone(),
            schedule: input.schedule().to_vec(),
            demands: input.demands.clone(),
            kept: input.kept.clone(),
            traces: input.traces,
            log: input.log.clone(),
        };
        Saved {
            inputs: self.inputs.iter().map(input).collect(),
            bugs: self.bugs.clone(),
            attempts: self.attempts.clone(),
        }
    }
}

impl Saved {
    /// Brings `machine`, which has run nothing yet, to where it gives the same numbers to threads,
    /// and takes the proof up.
    pub(super) fn restore<M: Machine>(self, machine: &mut M) -> Result<Verified, Impossible> {
        let mut inputs = Vec::new();
        for saved in &self.inputs {
            let trace = initial::repeat(machine, &saved.inputs, &saved.schedule);
            let trace = trace.ok_or(Impossible::Changed)?;
            inputs.push(Relaxed::new(saved.inputs.clone(), trace));
        }
        let mut verified = Verified::of(inputs);
        verified.bugs = self.bugs;
        verified.attempts = self.attempts;
        for (input, saved) in verified.inputs.iter_mut().zip(self.inputs) {
            let weaker = saved
                .demands
                .iter()
                .all(|demand| input.demands.implies(demand));
            if !weaker {
                return Err(Impossible::Changed);
            }
            input.demands = saved.demands;
            input.kept = saved.kept;
            input.traces = saved.traces;
            input.log = saved.log;
        }
        Ok(verified)
    }
}
