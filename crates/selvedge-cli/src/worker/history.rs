//! The progress of a search over time, in a bounded number of samples.

use std::time::Duration;

use serde::Serialize;

use super::progress::Now;
use crate::pool::estimate::Estimate;

/// When there are more samples than that, every second one is dropped.
const MOST: usize = 240;

/// The progress of a search at some moment. The names are part of what `--format jsonl` prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since it began.
    pub(crate) seconds: f64,
    /// Complete executions.
    pub(crate) executions: u64,
    /// Blocked ones.
    pub(crate) blocked: u64,
    /// States, if it is about states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) states: Option<u64>,
    /// The most memory that it has had, in bytes.
    pub(crate) memory: u64,
    /// The part of the search tree that is done, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<f64>,
    /// How many executions there are, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) estimate: Option<Estimate>,
}

impl Sample {
    pub(super) fn new(elapsed: Duration, now: &Now) -> Sample {
        Sample {
            seconds: elapsed.as_secs_f64(),
            executions: now.counts.executions,
            blocked: now.counts.blocked,
            states: now.states.map(|states| states.states),
            memory: now.memory,
            progress: now.done,
            estimate: now.estimate,
        }
    }
}

/// Samples at equal distances, which double when there are too many.
#[derive(Debug)]
pub(super) struct History {
    samples: Vec<Sample>,
    distance: f64,
}

impl Default for History {
    fn default() -> History {
        History {
            samples: Vec::new(),
            distance: 0.05,
        }
    }
}

impl History {
    pub(super) fn record(&mut self, sample: Sample) {
        let due = |last: &Sample| sample.seconds >= last.seconds + self.distance;
        if !self.samples.last().is_none_or(due) {
            return;
        }
        self.samples.push(sample);
        if self.samples.len() > MOST {
            let mut n = 0;
            self.samples.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.distance *= 2.0;
        }
    }

    /// All samples, the last one included.
    pub(super) fn finish(mut self, last: Sample) -> Vec<Sample> {
        self.samples.push(last);
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_search_has_few_samples_all_along() {
        let mut history = History::default();
        let sample = |n: u64| Sample {
            seconds: n as f64 / 10.0,
            executions: n,
            blocked: 0,
            states: None,
            memory: 0,
            progress: None,
            estimate: None,
        };
        (0..100_000).for_each(|n| history.record(sample(n)));
        let samples = history.finish(sample(100_000));
        assert!((MOST / 2..=MOST + 1).contains(&samples.len()));
        assert_eq!(samples[0].executions, 0);
        let gaps = samples
            .windows(2)
            .map(|two| two[1].seconds - two[0].seconds);
        assert!(gaps.fold(0.0, f64::max) < 200.0);
    }
}
