//! The coordinator's state as a fold over answers, without the broker they come from.

use std::collections::HashMap;

use selvedge_core::report::Counts;
use selvedge_core::trust::UnitId;

use super::messages::{Answer, Job, Key, Trouble, key};
use crate::pool::State;
use crate::worker::orders::Budget;

/// A search, and the units that are queued.
pub(super) struct Fold {
    pub(super) state: State,
    open: HashMap<Key, UnitId>,
}

/// The effect of an answer.
#[derive(Debug)]
pub(super) enum Step {
    /// None: its unit is not open any more, or it cannot be read.
    Ignored,
    /// The rest of its unit is to be queued.
    Next,
    /// Of the units that are queued, some are of no interest any more.
    Requeue,
    /// A worker could not explore the unit.
    Trouble(Trouble),
}

impl Fold {
    pub(super) fn new(state: State) -> Fold {
        Fold {
            state,
            open: HashMap::new(),
        }
    }

    /// Takes up an answer. The first one for a unit counts.
    pub(super) fn answer(&mut self, bytes: &[u8]) -> Step {
        // The unit of an answer that cannot be read is queued again after a while.
        let Ok(answer) = postcard::from_bytes::<Answer>(bytes) else {
            return Step::Ignored;
        };
        let key = answer.key;
        let Some(&unit) = self.open.get(&key) else {
            return Step::Ignored;
        };
        match answer.outcome() {
            Ok(Ok(sliced)) => {
                self.open.remove(&key);
                let ended = sliced.ending.clone().of_search().is_some();
                match self.state.answer(unit, sliced) || ended {
                    true => Step::Requeue,
                    false => Step::Next,
                }
            }
            Ok(Err(trouble)) => Step::Trouble(trouble),
            Err(_) => Step::Ignored,
        }
    }

    /// Nothing is queued.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.state.work.give_back_all();
    }

    /// The next unit to be queued, as a message.
    pub(super) fn next(&mut self, (budget, pieces): (Budget, u64)) -> Option<Vec<u8>> {
        let work = &mut self.state.work;
        let (id, unit) = work.take()?;
        let key = key(work.epoch(), &unit);
        let job = Job {
            key,
            unit,
            known: work.known_before(id),
            learned: work.learned().to_vec(),
            budget,
            pieces,
        };
        self.open.insert(key, id);
        Some(postcard::to_stdvec(&job).expect("a unit can be serialised"))
    }

    /// How many units are queued or explored.
    pub(super) fn open(&self) -> u64 {
        self.open.len() as u64
    }

    pub(super) fn counts(&self) -> Counts {
        self.state.work.counts()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::{Duration, Instant};

    use selvedge_core::report::Ending;

    use super::*;
    use crate::worker::orders::{Noticed, Piece, Sliced};

    /// The answer to a job: some executions, and units of so many bytes.
    fn answer(job: &[u8], executions: u64, rest: &[(u64, f64)], bytes: usize) -> Vec<u8> {
        let job: Job = postcard::from_bytes(job).expect("a job");
        let piece = |&(number, share): &(u64, f64)| {
            let mut unit = vec![7; bytes];
            unit[..8].copy_from_slice(&number.to_le_bytes());
            Piece { unit, share }
        };
        let sliced = Sliced {
            ending: Ending::Stopped,
            counts: Counts {
                executions,
                ..Counts::default()
            },
            bugs: Vec::new(),
            first_bug: None,
            beyond: None,
            origins: Vec::new(),
            unrolled: false,
            rest: rest.iter().map(piece).collect(),
            relied: Vec::new(),
            learned: Vec::new(),
            misjudged: false,
            noticed: Noticed::default(),
            processor: Duration::ZERO,
            forecast: None,
        };
        postcard::to_stdvec(&Answer::new(job.key, Ok(sliced))).expect("it can be serialised")
    }

    const WHOLE: (Budget, u64) = (
        Budget {
            time: None,
            executions: None,
        },
        1,
    );

    #[test]
    fn the_first_answer_for_a_unit_counts() {
        let mut fold = Fold::new(State::new());
        let root = fold.next(WHOLE).expect("the root");
        assert!(fold.next(WHOLE).is_none(), "there is only one unit");
        let first = answer(&root, 5, &[(1, 0.25), (2, 0.5)], 8);
        // Another worker divided its slice otherwise.
        let second = answer(&root, 3, &[(3, 0.75)], 8);
        assert!(matches!(fold.answer(&first), Step::Next));
        let units = [fold.next(WHOLE), fold.next(WHOLE)].map(|unit| unit.expect("two units"));
        for again in [&second, &first] {
            assert!(matches!(fold.answer(again), Step::Ignored));
        }
        assert_eq!((fold.counts().executions, fold.open()), (5, 2));
        for unit in &units {
            assert!(matches!(fold.answer(&answer(unit, 2, &[], 8)), Step::Next));
            assert!(matches!(
                fold.answer(&answer(unit, 9, &[], 8)),
                Step::Ignored
            ));
        }
        assert_eq!(fold.counts().executions, 9);
        assert!(fold.state.work.is_done());
    }

    #[test]
    fn an_answer_that_cannot_be_read_leaves_its_unit_open() {
        let mut fold = Fold::new(State::new());
        let root = fold.next(WHOLE).expect("the root");
        let good = answer(&root, 1, &[], 8);
        for length in 0..good.len() {
            assert!(matches!(fold.answer(&good[..length]), Step::Ignored));
        }
        assert!(matches!(fold.answer(&good), Step::Next));
        assert!(fold.state.work.is_done());
    }

    /// How many answers a second a coordinator takes up: it reads an answer, queues the unit that is left, and does
    /// nothing else here.
    #[test]
    #[ignore = "measures"]
    fn measure_answers() {
        for (open, bytes) in [
            (4_000, 1_000),
            (4_000, 4_000),
            (20_000, 1_000),
            (1_000_000, 1_000),
        ] {
            let mut fold = Fold::new(State::new());
            let root = fold.next(WHOLE).expect("the root");
            let share = |n: u64| (1.0 + n as f64) / (open * open) as f64;
            let units: Vec<_> = (0..open).map(|n| (n, share(n))).collect();
            fold.answer(&answer(&root, 1, &units, bytes));
            let mut jobs: VecDeque<_> = std::iter::from_fn(|| fold.next(WHOLE))
                .take(open.min(20_000) as usize)
                .collect();
            let (mut spent, mut answers) = (Duration::ZERO, 0);
            while spent < Duration::from_secs(2) {
                let job = jobs.pop_front().expect("a unit");
                let answer = answer(&job, 100, &[(open + answers, share(0))], bytes);
                let begun = Instant::now();
                assert!(matches!(fold.answer(&answer), Step::Next));
                jobs.push_back(fold.next(WHOLE).expect("the unit that is left"));
                spent += begun.elapsed();
                answers += 1;
            }
            let rate = answers as f64 / spent.as_secs_f64();
            let size = jobs[0].len();
            println!(
                "{open} open units of {bytes} bytes ({size} in the queue): {rate:.0} per second"
            );
            drop((jobs, units));
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let memory = status.lines().find(|line| line.starts_with("VmRSS:"));
            println!("memory: {}", memory.unwrap_or("unknown"));
        }
    }
}
