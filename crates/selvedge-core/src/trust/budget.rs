//! Decides when a slice of a search stops by itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The clock is looked at once in this many executions.
const GLANCE: u64 = 16;

/// When a slice stops by itself; never if nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// After so much time.
    pub time: Option<Duration>,
    /// After this many executions.
    pub executions: Option<u64>,
}

impl Budget {
    /// The budget that a text asks for: `10` executions or `10ms`.
    pub fn parse(text: &str) -> Budget {
        let time = text.strip_suffix("ms").and_then(|time| time.parse().ok());
        Budget {
            time: time.map(Duration::from_millis),
            executions: text.parse().ok(),
        }
    }

    /// Whether a slice with this many executions is to stop. `elapsed` tells how long it has taken.
    pub fn is_spent(&self, executions: u64, elapsed: impl FnOnce() -> Duration) -> bool {
        let late = |limit| executions.is_multiple_of(GLANCE) && elapsed() >= limit;
        self.executions.is_some_and(|limit| executions >= limit) || self.time.is_some_and(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_executions_or_time() {
        let never = || Duration::ZERO;
        let ten = Budget::parse("10");
        assert!(!ten.is_spent(9, never) && ten.is_spent(10, never));
        let time = Budget::parse("20ms");
        assert!(!time.is_spent(16, || Duration::from_millis(19)));
        assert!(time.is_spent(16, || Duration::from_millis(20)));
        assert_eq!(Budget::parse("soon"), Budget::default());
        assert!(!Budget::default().is_spent(u64::MAX, || Duration::MAX));
    }
}
