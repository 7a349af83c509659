//! Copies of the worker that explore parts of the steps of a proof.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::irs::{self, Explored, Part};
use selvedge_runtime::peers::Team;
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::journal::Watched;

/// A helper tells what it has after this time, so that nobody waits long for it.
const PART: Duration = Duration::from_millis(200);

/// Work is divided anew at most this often.
const SHORTEST: Duration = Duration::from_millis(5);

/// The answer of a helper.
#[derive(Serialize, Deserialize)]
struct Answer {
    explored: Explored,
    /// See [`NativeMachine::uncommon_accesses`](selvedge_runtime::NativeMachine::uncommon_accesses).
    uncommon: Uncommon,
}

type Uncommon = [Vec<(usize, u64)>; 2];

/// The helpers of the process with rank 0.
pub(super) struct Helpers {
    team: Option<Team>,
    /// When they were given what they explore now.
    asked: Option<Instant>,
    /// Where helpers saw accesses that were no event or several, since this was last asked.
    uncommon: Vec<Uncommon>,
}

impl Helpers {
    /// Makes `jobs` processes of this one. The copies help until the first one ends, and do not return.
    pub(super) fn begin(
        machine: &mut Watched<'_>,
        jobs: u32,
        counters: &Counters,
    ) -> Result<Helpers, String> {
        let team = machine.copies(jobs as usize);
        let team = team.map_err(|error| format!("cannot start more processes ({error})"))?;
        let Some(mut team) = team else {
            return Ok(Helpers::of(None));
        };
        selvedge_confine::alone();
        if team.rank() == 0 {
            return Ok(Helpers::of(Some(team)));
        }
        while help(machine, &mut team, counters).is_continue() {}
        // The one with rank 0 speaks for all.
        std::process::exit(0);
    }

    fn of(team: Option<Team>) -> Helpers {
        Helpers {
            team,
            asked: None,
            uncommon: Vec::new(),
        }
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.team.as_ref().map_or(0, |team| team.count() - 1)
    }

    /// Gives each of the first helpers a part.
    pub(super) fn ask(&mut self, parts: &[Part], counters: &Counters) {
        counters.part_done().store(0, Ordering::SeqCst);
        self.asked = Some(Instant::now());
        let parts = parts
            .iter()
            .map(|part| serde_json::to_vec(part).unwrap_or_default());
        let orders: Vec<Vec<u8>> = [Vec::new()].into_iter().chain(parts).collect();
        self.exchange(orders);
    }

    /// Whether one of them has nothing left to do.
    pub(super) fn is_idle(&self, counters: &Counters) -> bool {
        let asked = self.asked;
        asked.is_some_and(|asked| asked.elapsed() >= SHORTEST)
            && counters.part_done().load(Ordering::Relaxed) != 0
    }

    /// The findings of the helpers. Nothing of one that could not read its part.
    pub(super) fn answers(&mut self, counters: &Counters) -> Vec<Explored> {
        counters.part_done().store(1, Ordering::SeqCst);
        self.asked = None;
        let answers = self.exchange(Vec::new());
        let answers = answers.iter().filter(|answer| !answer.is_empty());
        let mut explored = Vec::new();
        for answer in answers {
            if let Ok(answer) = serde_json::from_slice::<Answer>(answer) {
                explored.push(answer.explored);
                self.uncommon.push(answer.uncommon);
            }
        }
        explored
    }

    /// Where they saw accesses that were no event or several, since this was last asked.
    pub(super) fn uncommon(&mut self) -> Vec<Uncommon> {
        std::mem::take(&mut self.uncommon)
    }

    fn exchange(&mut self, mut outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let Some(team) = &mut self.team else {
            return Vec::new();
        };
        outgoing.resize(team.count(), Vec::new());
        match team.exchange(&outgoing) {
            Ok(incoming) => incoming,
            Err(_) => {
                self.team = None;
                Vec::new()
            }
        }
    }
}

/// Waits for a part, explores it and answers.
fn help(machine: &mut Watched<'_>, team: &mut Team, counters: &Counters) -> ControlFlow<()> {
    let nothing = vec![Vec::new(); team.count()];
    let Ok(incoming) = team.exchange(&nothing) else {
        return ControlFlow::Break(());
    };
    let mut outgoing = nothing;
    if let Ok(part) = serde_json::from_slice(&incoming[0]) {
        let begin = Instant::now();
        let explored = irs::help(machine, part, &mut || {
            let (elapsed, order) = (begin.elapsed(), Ordering::Relaxed);
            let idle = elapsed >= SHORTEST && counters.part_done().load(order) != 0;
            elapsed >= PART || idle || counters.stop().load(order) != 0
        });
        counters.part_done().store(1, Ordering::SeqCst);
        let answer = Answer {
            explored,
            uncommon: machine.inner().uncommon_accesses(),
        };
        outgoing[0] = serde_json::to_vec(&answer).unwrap_or_default();
    }
    match team.exchange(&outgoing) {
        Ok(_) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}
