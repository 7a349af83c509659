//! Where executions come from: which source lines make the search explore one more execution.
//!
//! A search over graphs or interleavings goes back to a branching point and takes another
//! alternative there, so an execution and the one before it agree up to that point. The first event
//! in which they differ is the read that reads from another write, or the write that comes at another
//! place in the coherence order. Counting these events by line, the counts add up to the number of
//! executions minus one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use selvedge_core::graph::{Graph, INIT, Slot};
use selvedge_core::{EventId, Site, ThreadId};
pub(crate) use selvedge_page::Origin;
use selvedge_runtime::NativeMachine;

use crate::describe::{self, Accesses, Binary};
use crate::report::Place;

/// So many pairs of lines are told.
const TOLD: usize = 200;

/// The site of each event of the present execution, noted while the program runs.
pub(super) struct Sites<'a> {
    accesses: Accesses<'a>,
    of: Vec<Vec<Site>>,
}

impl<'a> Sites<'a> {
    pub(super) fn new(binary: &'a Binary) -> Sites<'a> {
        Sites {
            accesses: Accesses::new(binary),
            of: Vec::new(),
        }
    }

    /// `thread` is about to perform its event with number `count`, counted from one.
    pub(super) fn note(&mut self, machine: &NativeMachine, thread: ThreadId, count: u32) {
        if self.of.len() <= thread.index() {
            self.of.resize(thread.index() + 1, Vec::new());
        }
        let sites = &mut self.of[thread.index()];
        if sites.len() < count as usize {
            sites.resize(count as usize, Site(0));
        }
        if let Some(last) = (count as usize).checked_sub(1) {
            sites[last] = self.accesses.site(machine, thread);
        }
    }

    /// Both halves of an update have one site, which is noted for the second.
    fn site(&self, event: EventId) -> Site {
        let sites = self.of.get(event.thread.index());
        let at = |index: usize| sites.and_then(|sites| sites.get(index)).copied();
        match at(event.index as usize) {
            Some(Site(0)) | None => at(event.index as usize + 1).unwrap_or(Site(0)),
            Some(site) => site,
        }
    }
}

/// What an event is related to: the write that it reads from or follows, and its alternative.
type Relation = (Option<EventId>, u32);

/// Compares each execution with the one before.
pub(super) struct Origins<'a> {
    sites: Rc<RefCell<Sites<'a>>>,
    previous: HashMap<EventId, Relation>,
    counts: HashMap<(Site, Option<Site>), u64>,
}

impl<'a> Origins<'a> {
    pub(super) fn new(sites: Rc<RefCell<Sites<'a>>>) -> Origins<'a> {
        Origins {
            sites,
            previous: HashMap::new(),
            counts: HashMap::new(),
        }
    }

    /// A complete execution was reached.
    pub(super) fn complete(&mut self, graph: &Graph) {
        let events = (0..).zip(graph.events());
        let relations: Vec<(EventId, Relation)> = events
            .map(|(slot, event)| (event.id, (relation(graph, slot), event.choice)))
            .collect();
        let differs =
            |(id, relation): &&(EventId, Relation)| self.previous.get(id) != Some(relation);
        if let Some(&(id, (other, _))) = relations.iter().find(differs)
            && !self.previous.is_empty()
        {
            let sites = self.sites.borrow();
            let other = other.map(|other| sites.site(other));
            *self.counts.entry((sites.site(id), other)).or_default() += 1;
        }
        self.previous.clear();
        self.previous.extend(relations);
    }

    /// The lines, those with most executions first.
    pub(super) fn told(&self, binary: &Binary, machine: &NativeMachine) -> Vec<Origin> {
        let place = |site: Site| describe::place(binary, machine, site, &[]);
        let mut lines: HashMap<(String, Option<String>), Origin> = HashMap::new();
        for (&(site, other), &executions) in &self.counts {
            let (place, other) = (place(site), other.map(place));
            let key = (place.to_string(), other.as_ref().map(Place::to_string));
            let origin = lines.entry(key).or_insert(Origin {
                place,
                other,
                executions: 0,
            });
            origin.executions += executions;
        }
        let mut all: Vec<_> = lines.into_iter().collect();
        all.sort_by(|one, other| {
            let by_count = other.1.executions.cmp(&one.1.executions);
            by_count.then_with(|| one.0.cmp(&other.0))
        });
        all.truncate(TOLD);
        all.into_iter().map(|(_, origin)| origin).collect()
    }
}

/// The write that the event at `slot` reads from; for a write, the one before it in coherence order
/// among those that were there when it was added.
fn relation(graph: &Graph, slot: Slot) -> Option<EventId> {
    let event = graph.event(slot);
    let id = |slot: Slot| (slot != INIT).then(|| graph.event(slot).id);
    if event.kind.reads() {
        return id(event.source);
    }
    let location = event.op.location().filter(|_| event.kind.writes())?;
    let position = graph.position(location, slot);
    let earlier = &graph.coherence(location)[..position.saturating_sub(1)];
    let before = earlier.iter().rev().find(|&&write| write < slot);
    before.and_then(|&write| id(write))
}
