//! How far the search goes.

/// How much effort to make for programs with loops that only wait. Beyond the last two, executions
/// may come to nothing; none is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often to start over. Each time there is a loop of some thread less that nothing is known
    /// of.
    pub runs: u32,
    /// How much of what others could do to remember for each turn that a thread may leave to them,
    /// in operations.
    pub remembered: usize,
    /// In how many ways they may be imagined to help together before it is taken for granted that
    /// they do.
    pub imagined: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            runs: 10_000,
            remembered: 1_000_000,
            imagined: 1_000,
        }
    }
}
