//! Pure iterations: the explorers' knowledge about loops that only wait.

use crate::graph::{Graph, Kind};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::SpinLoops;
use crate::op::Value;
use crate::rewind::Rewind;

/// How many values to remember.
const REMEMBERED: usize = 64;

/// Values that threads were seen to spin on, touching nothing else.
#[derive(Debug, Default)]
pub(crate) struct Spins(Vec<Spin>);

#[derive(Debug)]
struct Spin {
    site: Site,
    value: Value,
    /// False once a thread went on with it.
    always: bool,
}

impl Spins {
    /// A thread spins, having read `value` at `site`.
    pub(crate) fn note(&mut self, site: Site, value: Value) {
        if self.0.len() < REMEMBERED && self.find(site, value).is_none() {
            let always = true;
            self.0.push(Spin {
                site,
                value,
                always,
            });
        }
    }

    fn find(&self, site: Site, value: Value) -> Option<usize> {
        let mut spins = self.0.iter();
        spins.position(|spin| (spin.site, spin.value) == (site, value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a thread has spun after a read at `site`.
    pub(crate) fn knows(&self, site: Site) -> bool {
        self.0.iter().any(|spin| spin.site == site)
    }

    /// Whether a thread that reads `value` at `site` has always spun.
    pub(crate) fn expected(&self, site: Site, value: Value) -> bool {
        self.find(site, value).is_some_and(|at| self.0[at].always)
    }

    /// A thread that read `value` at `site` did not spin.
    pub(crate) fn went_on(&mut self, site: Site, value: Value) {
        if let Some(at) = self.find(site, value) {
            self.0[at].always = false;
        }
    }
}

/// Whether the iteration that `thread` has just completed, its events from `since` on, may be dropped: it
/// cannot take part in a race. What an iteration touches besides the location it waits for may yet be
/// freed, or be written by an access that it races with, by a thread that has not come to that.
pub(crate) fn may_drop_iteration<M: SpinLoops>(
    machine: &mut Rewind<'_, M>,
    graph: &Graph,
    thread: ThreadId,
    since: u32,
) -> bool {
    machine.quiet(thread)
        && (waits_for_one(graph, thread, since)
            || locations(graph, thread, since).all(|location| machine.never_races(location)))
}

/// Whether the iteration of `thread`, its events from `since` on, took mutexes and gave them back. An update
/// that leaves the value as it is, such as a failed test-and-set, takes nothing.
pub(crate) fn takes_locks(graph: &Graph, thread: ThreadId, since: u32) -> bool {
    let mut iteration = graph.thread(thread)[since as usize..].iter();
    iteration.any(|&slot| {
        let event = graph.event(slot);
        match event.kind {
            Kind::Write => true,
            Kind::WriteHalf => event.wrote != event.read,
            _ => false,
        }
    })
}

/// The locations of the events of `thread` from `since` on.
fn locations(graph: &Graph, thread: ThreadId, since: u32) -> impl Iterator<Item = Location> {
    let iteration = graph.thread(thread)[since as usize..].iter();
    iteration.filter_map(|&slot| graph.event(slot).op.location())
}

/// Whether they are all the same.
fn waits_for_one(graph: &Graph, thread: ThreadId, since: u32) -> bool {
    let mut locations = locations(graph, thread, since);
    let first = locations.next();
    locations.all(|location| Some(location) == first)
}
