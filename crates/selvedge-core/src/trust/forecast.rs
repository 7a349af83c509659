//! Estimates the number of executions from random descents.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Descent;
use crate::ids::Site;

/// With fewer descents there is no telling how much they differ.
const FEWEST: u64 = 3;

/// The result of descents.
#[derive(Debug, Default)]
pub struct Descents {
    /// How many graphs the last descent told apart.
    kinds: u64,
    /// Over the descents that told so many apart,
    finest: Moments,
    /// and over those that told the next smaller number apart.
    coarser: Moments,
    /// How many alternatives begin where.
    pub alternatives: HashMap<Site, f64>,
}

/// Sums over descents.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    descents: u64,
    executions: f64,
    squares: f64,
}

impl Descents {
    /// Adds a descent.
    pub fn add(&mut self, descent: &Descent) {
        if descent.kinds > self.kinds {
            self.kinds = descent.kinds;
            self.coarser = std::mem::take(&mut self.finest);
        }
        self.finest.descents += 1;
        self.finest.executions += descent.executions;
        self.finest.squares += descent.executions * descent.executions;
        for &(site, number) in &descent.alternatives {
            *self.alternatives.entry(site).or_default() += number;
        }
    }

    /// The descents that count: the finest ones, unless there are few of them.
    fn moments(&self) -> Moments {
        let Moments {
            descents,
            executions,
            squares,
        } = self.finest;
        match descents < FEWEST {
            true => Moments {
                descents: descents + self.coarser.descents,
                executions: executions + self.coarser.executions,
                squares: squares + self.coarser.squares,
            },
            false => self.finest,
        }
    }

    /// The estimate of the number of executions, if there was a descent.
    pub fn forecast(&self) -> Option<Forecast> {
        let counted = self.moments();
        let number = counted.descents as f64;
        let mean = counted.executions / number;
        let variance = (counted.squares / number - mean * mean).max(0.0);
        let deviation = match counted.descents < FEWEST {
            // How much they differ is not known.
            true => mean / 2.0,
            false => (variance / (number - 1.0)).sqrt(),
        };
        (counted.descents > 0).then_some(Forecast { mean, deviation })
    }

    /// How many descents that is.
    pub fn counted(&self) -> u64 {
        self.moments().descents
    }
}

/// The estimate of random descents for the number of executions of the whole search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The mean of their estimates,
    pub mean: f64,
    /// and the standard deviation of that.
    pub deviation: f64,
}

impl Forecast {
    /// The exact number, once everything was explored.
    pub fn exact(executions: u64) -> Forecast {
        Forecast {
            mean: executions as f64,
            deviation: 0.0,
        }
    }
}

/// How many executions a search is expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// How many there are, about.
    pub executions: u64,
    /// With a confidence of 95%, there are at least so many,
    pub low: u64,
    /// and at most so many.
    pub high: u64,
    /// How long the rest takes, about.
    pub seconds_left: f64,
}

impl Estimate {
    /// The estimate of `forecast` for a search that has had `executions` after `elapsed`. `None` if it had more than
    /// that allows.
    pub fn of(forecast: Forecast, executions: u64, elapsed: Duration) -> Option<Estimate> {
        let Forecast { mean, deviation } = forecast;
        let (low, high) = (mean - 2.0 * deviation, mean + 2.0 * deviation);
        let so_far = executions as f64;
        (so_far > 0.0 && so_far <= high).then(|| {
            let all = mean.max(so_far);
            Estimate {
                executions: all.round() as u64,
                low: low.max(so_far).round() as u64,
                high: high.round() as u64,
                seconds_left: elapsed.as_secs_f64() * (all - so_far) / so_far,
            }
        })
    }

    /// The part of the search that is done, after so many executions.
    pub fn done(&self, executions: u64) -> f64 {
        executions as f64 / self.executions.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_that_was_exceeded_is_dropped() {
        let forecast = Forecast {
            mean: 1000.0,
            deviation: 100.0,
        };
        let after = |executions| Estimate::of(forecast, executions, Duration::from_secs(10));
        let estimate = after(500).unwrap();
        assert_eq!((estimate.executions, estimate.seconds_left), (1000, 10.0));
        assert_eq!((estimate.low, estimate.high), (800, 1200));
        assert_eq!(estimate.done(500), 0.5);
        let estimate = after(1100).unwrap();
        assert_eq!((estimate.executions, estimate.low), (1100, 1100));
        assert_eq!(after(1201), None);
    }
}
