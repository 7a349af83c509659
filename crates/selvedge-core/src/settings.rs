//! Settings that searches over executions share.

/// The settings of a search over executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether to go on after a bug and report all of them.
    pub keep_going: bool,
    /// The largest number of preemptions; executions with more are not explored.
    pub preemptions: Option<u32>,
}
