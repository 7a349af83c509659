//! The sites, events and threads that searches have met.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::doing::Doing;
use super::histories::Histories;
use crate::ids::{Location, Site, ThreadId};

/// A thread's place in the spawn tree: its parent, and which of its children it is.
pub type EventPlace = (ThreadId, u32);

/// The sites, events and threads that were met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Log {
    /// The operations at each site.
    pub(super) sites: FxHashMap<Site, Doing>,
    /// The sites of operations on what another thread touches too, if one of them writes it.
    #[serde(default)]
    pub(super) shared: FxHashSet<Site>,
    /// The threads that accessed each location. Both parts of a conflict happen in one execution, so this need not be kept.
    #[serde(skip)]
    touched: FxHashMap<Location, Touched>,
    /// Of each thread, for each counted event, its site, `None` if there were several.
    pub(super) events: Vec<Vec<Option<Site>>>,
    /// The threads met, in that order, with their places.
    pub(super) threads: Vec<(ThreadId, EventPlace)>,
    /// The least number of a counted event with which an iteration began that only waited, of each
    /// thread. Iterations without counted events do not matter.
    pub(super) spins: Vec<Option<u32>>,
    /// The events of each thread.
    #[serde(default)]
    pub(super) histories: Vec<Histories>,
}

/// The threads that accessed a location, in any execution.
#[derive(Clone, Debug)]
struct Touched {
    first: ThreadId,
    several: bool,
    written: bool,
    sites: Vec<Site>,
}

impl Log {
    /// Notes an operation on `at`.
    pub(super) fn touch(&mut self, thread: ThreadId, at: Location, writes: bool, site: Site) {
        let touched = self.touched.entry(at).or_insert(Touched {
            first: thread,
            several: false,
            written: false,
            sites: Vec::new(),
        });
        touched.several |= touched.first != thread;
        touched.written |= writes;
        if !touched.sites.contains(&site) {
            touched.sites.push(site);
        }
        if touched.several && touched.written {
            self.shared.extend(touched.sites.drain(..));
        }
    }

    /// Adds what threads did in another search.
    pub(super) fn add_histories(&mut self, others: &[Histories]) {
        if self.histories.len() < others.len() {
            self.histories.resize(others.len(), Histories::default());
        }
        for (known, other) in self.histories.iter_mut().zip(others) {
            known.merge(other);
        }
    }

    /// Adds what another search met.
    pub(super) fn merge(&mut self, other: Log) {
        for (site, doing) in other.sites {
            let known = self.sites.entry(site).or_insert(doing);
            *known = known.or(doing);
        }
        self.shared.extend(other.shared);
        for (thread, events) in other.events.into_iter().enumerate() {
            if self.events.len() <= thread {
                self.events.resize(thread + 1, Vec::new());
            }
            let known = &mut self.events[thread];
            for (number, site) in events.into_iter().enumerate() {
                match known.get_mut(number) {
                    None => known.push(site),
                    Some(known) if *known != site => *known = None,
                    Some(_) => {}
                }
            }
        }
        for thread in other.threads {
            if !self.threads.contains(&thread) {
                self.threads.push(thread);
            }
        }
        for (thread, spin) in other.spins.into_iter().enumerate() {
            if self.spins.len() <= thread {
                self.spins.resize(thread + 1, None);
            }
            let known = &mut self.spins[thread];
            *known = known.iter().copied().chain(spin).min();
        }
        self.add_histories(&other.histories);
    }
}
