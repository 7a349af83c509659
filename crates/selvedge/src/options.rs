//! The options of a model.

use std::fmt;
use std::str::FromStr;

pub use selvedge_core::model::MemoryModel;

/// The equivalence by which executions count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Equivalence {
    /// Same program order, reads-from and coherence order.
    #[default]
    Mazurkiewicz,
    /// Same program order and reads-from. Under [`MemoryModel::Sc`] and [`MemoryModel::Ra`] only.
    ReadsFrom,
}

/// How a random search picks the next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Every thread that can go on is as likely as the others, at every step.
    Walk,
    /// Probabilistic concurrency testing: random priorities that change at `depth` − 1 random steps.
    Pct {
        /// The depth of the bugs looked for.
        depth: u32,
    },
    /// Partial order sampling: random priorities of steps, which change when steps race.
    Pos,
}

/// A random search: some executions instead of all, under sequential consistency. Finding nothing
/// proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// How the next thread is picked.
    pub strategy: Strategy,
    /// Where the random numbers start; the same seed repeats the same runs.
    pub seed: u64,
    /// How many runs.
    pub runs: u64,
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        match name {
            "walk" => Ok(Strategy::Walk),
            "pct" => Ok(Strategy::Pct { depth: 3 }),
            "pos" => Ok(Strategy::Pos),
            _ => Err(format!(
                "there is no random search `{name}`, only walk, pct and pos"
            )),
        }
    }
}

/// Events that may happen to a thread without a cause in the program, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpuriousEvents {
    /// A wait on a condition variable, or a park, may end, once in each thread.
    pub(crate) wakeups: bool,
    /// A weak compare-exchange may fail, once in each thread.
    pub(crate) failures: bool,
    /// The most timed waits of each thread that may time out.
    pub(crate) timeouts: usize,
    /// A thread is given blocks again that it freed.
    pub(crate) reuse: bool,
}

impl Default for SpuriousEvents {
    fn default() -> SpuriousEvents {
        SpuriousEvents {
            wakeups: false,
            failures: false,
            timeouts: 1,
            reuse: false,
        }
    }
}

impl SpuriousEvents {
    /// Takes in a word that [`Display`](fmt::Display) wrote; false if it is none.
    pub(crate) fn read(&mut self, word: &str) -> bool {
        let timeouts = word.strip_prefix("timeouts:").map(str::parse);
        match (word, timeouts) {
            ("wakeups", _) => self.wakeups = true,
            ("failures", _) => self.failures = true,
            ("reuse", _) => self.reuse = true,
            (_, Some(Ok(timeouts))) => self.timeouts = timeouts,
            _ => return false,
        }
        true
    }
}

impl fmt::Display for SpuriousEvents {
    /// A word, with a space before it, for each that is not as usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.wakeups, " wakeups"),
            (self.failures, " failures"),
            (self.reuse, " reuse"),
        ];
        for (_, word) in words.iter().filter(|(said, _)| *said) {
            f.write_str(word)?;
        }
        match self.timeouts {
            1 => Ok(()),
            timeouts => write!(f, " timeouts:{timeouts}"),
        }
    }
}

/// Whether one of these variables is set.
pub(crate) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// The value of the first of these variables that is set.
pub(crate) fn environment<T: FromStr>(names: &[&str]) -> Option<T> {
    let name = names.iter().find(|name| std::env::var_os(name).is_some())?;
    let value = std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok());
    match value {
        Some(value) => Some(value),
        None => panic!("{name} has a value that is not understood"),
    }
}

impl FromStr for Equivalence {
    type Err = String;

    fn from_str(name: &str) -> Result<Equivalence, String> {
        match name {
            "mazurkiewicz" => Ok(Equivalence::Mazurkiewicz),
            "reads-from" => Ok(Equivalence::ReadsFrom),
            _ => Err(format!(
                "there is no equivalence `{name}`, only mazurkiewicz and reads-from"
            )),
        }
    }
}
