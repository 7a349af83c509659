//! A search that is divided into work units: what is left of it, and what was found.
//!
//! The result does not depend on which process explores which unit, or when. A reason to start the search
//! over is kept with its place in the search tree: one search would have come to the first such place only.

use selvedge_core::Fact;
use selvedge_core::report::{Counts, Ending};
use selvedge_core::trust::{Found, Frontier, Unit, UnitId};
use selvedge_page::{BugPage, Origin};
use serde::{Deserialize, Serialize};

use super::slice::{KnownBug, Sliced};
use crate::model::Failure;

/// A divided search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Division {
    pub(super) work: Frontier<Option<Unit>, KnownBug>,
    /// The knowledge that the search is to start over with, for each end of a slice that asks for
    /// it.
    again: Vec<Vec<(Fact, Fact)>>,
    ran_out_of_time: bool,
    #[serde(default)]
    unprotected: bool,
    differs: Option<String>,
    /// Where executions come from, if that is recorded from the beginning.
    #[serde(default)]
    origins: Option<Vec<Origin>>,
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Searched {
    pub(crate) counts: Counts,
    pub(crate) ending: Ending,
    pub(crate) failure: Option<(Failure, BugPage)>,
    /// How the program did something else when it was run again.
    pub(crate) differs: Option<String>,
    /// Whether executions were left out because a thread had timed out as often as it may.
    pub(crate) ran_out_of_time: bool,
    /// Whether memory was freed that was not protected.
    pub(crate) unprotected: bool,
    /// Where executions come from, if that is known.
    pub(crate) origins: Option<Vec<Origin>>,
}

impl Division {
    /// A search that has not begun, with what is known of the program.
    pub(crate) fn new(learned: &[(Fact, Fact)]) -> Division {
        let mut work = Frontier::new(None);
        work.learn(&[], learned);
        Division {
            work,
            again: Vec::new(),
            ran_out_of_time: false,
            unprotected: false,
            differs: None,
            origins: Some(Vec::new()),
        }
    }

    /// Takes up what became of a unit. True if the search starts over because of that.
    pub(super) fn answer(&mut self, id: UnitId, sliced: Sliced) -> bool {
        if !self.work.wants(id) {
            return false;
        }
        self.ran_out_of_time |= sliced.ran_out_of_time;
        self.unprotected |= sliced.unprotected;
        self.origins = match (self.origins.take(), sliced.origins) {
            (Some(all), Some(more)) => Some(Origin::sums(all.into_iter().chain(more))),
            _ => None,
        };
        let ending = match sliced.again {
            Some(learned) => {
                self.again.push(learned);
                Some(Ending::Refused(format!("{AGAIN}{}", self.again.len() - 1)))
            }
            None => sliced.ending.of_search(),
        };
        if matches!(ending, Some(Ending::Nondeterministic(_))) {
            self.differs = sliced.differs.or(self.differs.take());
        }
        let found = Found {
            counts: sliced.counts,
            bugs: sliced.bug.into_iter().collect(),
            first_bug: sliced.first_bug,
            ending,
            ..Found::default()
        };
        let rest = sliced.rest.into_iter();
        let rest = rest.map(|unit| {
            let share = unit.share();
            (Some(unit), share)
        });
        self.work.answer(id, found, rest.collect());
        self.start_over()
    }

    /// Starts over if that is what the search has come to.
    fn start_over(&mut self) -> bool {
        if !self.work.is_done() {
            return false;
        }
        let Some(Ending::Refused(why)) = self.work.found().ending else {
            return false;
        };
        let number = why
            .strip_prefix(AGAIN)
            .and_then(|number| number.parse::<usize>().ok());
        let Some(learned) = number.and_then(|number| self.again.get(number).cloned()) else {
            return false;
        };
        self.work.learn(&[], &learned);
        self.work.start_over();
        self.again.clear();
        (self.ran_out_of_time, self.differs) = (false, None);
        self.origins = Some(Vec::new());
        true
    }

    /// Forgets where executions come from if a bug has ended the search: which others several processes had
    /// explored by then is a matter of time.
    pub(super) fn forget_chance(&mut self) {
        if !self.work.found().bugs.is_empty() {
            self.origins = None;
        }
    }

    /// The result of the search so far.
    pub(crate) fn searched(&self) -> Searched {
        let found = self.work.found();
        let ending = match (found.ending, self.work.is_done()) {
            (Some(Ending::Refused(why)), false) if why.starts_with(AGAIN) => Ending::Stopped,
            (Some(ending), _) => ending,
            (None, true) => Ending::Complete,
            (None, false) => Ending::Stopped,
        };
        let bug = found.bugs.into_iter().next();
        Searched {
            counts: found.counts,
            differs: self
                .differs
                .clone()
                .filter(|_| matches!(ending, Ending::Nondeterministic(_))),
            ending,
            failure: bug.map(|bug| (bug.failure, bug.page)),
            ran_out_of_time: self.ran_out_of_time,
            unprotected: self.unprotected,
            origins: self.origins.clone(),
        }
    }
}

/// How the end of a slice begins after which the search starts over.
const AGAIN: &str = "the search starts over with ";
