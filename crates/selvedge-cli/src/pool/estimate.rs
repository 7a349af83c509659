//! How much of a search is left.
//!
//! Once a search takes long, a worker makes random descents, which tell how many executions there are. Until
//! then, and if there are more than they allow, the estimate comes from the search itself. Each unit carries its
//! part of the search tree, where the alternatives of a choice count alike. What slices finished of the tree, with
//! the executions they found there, gives the number of executions of all of it, and the spread between slices
//! tells how much that is worth.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use selvedge_core::trust::Estimate;

/// With fewer slices there is no telling how much they differ.
const FEWEST: u64 = 4;

/// Sums over the slices so far: of shares, executions, and their products.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Slices {
    number: u64,
    share: f64,
    executions: f64,
    share_squared: f64,
    executions_squared: f64,
    product: f64,
}

impl Slices {
    /// A slice finished so much of the tree, and found this many executions there.
    pub(super) fn add(&mut self, share: f64, executions: u64) {
        let executions = executions as f64;
        self.number += 1;
        self.share += share;
        self.executions += executions;
        self.share_squared += share * share;
        self.executions_squared += executions * executions;
        self.product += share * executions;
    }

    /// Whether there were any.
    pub(super) fn any(&self) -> bool {
        self.number > 0
    }

    /// The estimate for the whole tree, of which the part `done` is explored after `elapsed`.
    pub(super) fn estimate(&self, done: f64, elapsed: Duration) -> Option<Estimate> {
        if self.number < FEWEST || self.share <= 0.0 {
            return None;
        }
        let ratio = self.executions / self.share;
        let spread = self.executions_squared - 2.0 * ratio * self.product
            + ratio * ratio * self.share_squared;
        let number = self.number as f64;
        let variance = spread.max(0.0) * number / (number - 1.0);
        let error = 2.0 * variance.sqrt() / self.share * (1.0 - done).max(0.0).sqrt();
        Some(Estimate {
            executions: ratio.round() as u64,
            low: (ratio - error).max(self.executions).round() as u64,
            high: (ratio + error).round() as u64,
            seconds_left: elapsed.as_secs_f64() * (1.0 - done).max(0.0) / done.max(1e-9),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_slices_leave_no_doubt() {
        let mut slices = Slices::default();
        (0..5).for_each(|_| slices.add(0.1, 100));
        let estimate = slices.estimate(0.5, Duration::from_secs(10)).unwrap();
        assert_eq!((estimate.low, estimate.high), (1000, 1000));
        assert_eq!((estimate.executions, estimate.seconds_left), (1000, 10.0));
    }

    #[test]
    fn unequal_slices_leave_some() {
        let mut slices = Slices::default();
        (0..10).for_each(|n| slices.add(0.05, if n % 2 == 0 { 10 } else { 90 }));
        let estimate = slices.estimate(0.5, Duration::from_secs(10)).unwrap();
        assert_eq!(estimate.executions, 1000);
        assert!(estimate.low < 800 && estimate.high > 1200, "{estimate:?}");
    }
}
