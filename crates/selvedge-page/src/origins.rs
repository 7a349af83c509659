//! Where executions come from: which source lines make the search explore one more execution.
//!
//! A search goes back to a branching point and takes another alternative there: a read reads from another write, or a
//! write comes at another place in the coherence order. Counting these events by line, the counts add up to the
//! number of executions minus one. A search over graphs tells the event. Of other searches, each execution
//! is compared with the one before: the first event in which they differ is counted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use selvedge_core::graph::{Graph, INIT, Slot};
use selvedge_core::{EventId, Site, ThreadId};
use serde::{Deserialize, Serialize};

use crate::Place;

/// Lines whose events are ordered or paired in several ways.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The line of the event that differs.
    pub place: Place,
    /// The line of the write that it reads from or follows now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Place>,
    /// How many executions differ from the one before in such an event.
    pub executions: u64,
}

impl Origin {
    /// The files of the program that it names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let places = [Some(&self.place), self.other.as_ref()];
        let users = places
            .into_iter()
            .flatten()
            .filter(|place| place.is_users());
        users.filter_map(|place| place.file.as_deref())
    }

    /// The sums of `origins` for each pair of lines, those with most executions first.
    pub fn sums(origins: impl IntoIterator<Item = Origin>) -> Vec<Origin> {
        let mut lines: HashMap<(String, Option<String>), Origin> = HashMap::new();
        for origin in origins {
            let other = origin.other.as_ref().map(Place::to_string);
            let executions = origin.executions;
            let line = lines.entry((origin.place.to_string(), other));
            line.and_modify(|line| line.executions = line.executions.saturating_add(executions))
                .or_insert(origin);
        }
        let mut all: Vec<_> = lines.into_iter().collect();
        all.sort_by(|one, other| {
            let by_count = other.1.executions.cmp(&one.1.executions);
            by_count.then_with(|| one.0.cmp(&other.0))
        });
        all.into_iter().map(|(_, origin)| origin).collect()
    }
}

/// The site of each event of the present execution, noted while the program runs.
#[derive(Debug, Default)]
pub struct Sites(Vec<Vec<Site>>);

impl Sites {
    /// `thread` is about to perform its event with number `count`, counted from one, at `site`.
    pub fn note(&mut self, thread: ThreadId, count: u32, site: Site) {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, Vec::new());
        }
        let sites = &mut self.0[thread.index()];
        if sites.len() < count as usize {
            sites.resize(count as usize, Site(0));
        }
        if let Some(last) = (count as usize).checked_sub(1) {
            sites[last] = site;
        }
    }

    /// Both halves of an update have one site, which is noted for the second.
    fn site(&self, event: EventId) -> Site {
        let sites = self.0.get(event.thread.index());
        let at = |index: usize| sites.and_then(|sites| sites.get(index)).copied();
        match at(event.index as usize) {
            Some(Site(0)) | None => at(event.index as usize + 1).unwrap_or(Site(0)),
            Some(site) => site,
        }
    }
}

/// The relations of an event: the write that it reads from or follows, and its alternative.
type Relation = (Option<EventId>, u32);

/// Counts the events that executions come from, if that is asked for.
#[derive(Debug, Default)]
pub struct Origins {
    /// Nothing is counted without.
    sites: Option<Rc<RefCell<Sites>>>,
    /// The event that the present execution begins to differ with, and what it is related to, if the search told it.
    told: Option<(EventId, Option<EventId>)>,
    /// The relations of the execution before.
    previous: HashMap<EventId, Relation>,
    counts: HashMap<(Site, Option<Site>), u64>,
}

impl Origins {
    /// No execution so far. The machine notes the sites, if they are to be counted.
    pub fn new(sites: Option<Rc<RefCell<Sites>>>) -> Origins {
        Origins {
            sites,
            ..Origins::default()
        }
    }

    /// The execution that comes next begins to differ in the event in `slot`.
    pub fn alternative(&mut self, graph: &Graph, slot: Slot) {
        if self.sites.is_some() {
            self.told = Some((graph.event(slot).id, relation(graph, slot)));
        }
    }

    /// A complete execution was reached.
    pub fn complete(&mut self, graph: &Graph) {
        if self.sites.is_none() {
            return;
        }
        if let Some(told) = self.told.take() {
            return self.count(told);
        }
        let events = (0..).zip(graph.events());
        let relations: Vec<(EventId, Relation)> = events
            .map(|(slot, event)| (event.id, (relation(graph, slot), event.choice)))
            .collect();
        let differs =
            |(id, relation): &&(EventId, Relation)| self.previous.get(id) != Some(relation);
        if let Some(&(id, (other, _))) = relations.iter().find(differs)
            && !self.previous.is_empty()
        {
            self.count((id, other));
        }
        self.previous.clear();
        self.previous.extend(relations);
    }

    fn count(&mut self, (event, other): (EventId, Option<EventId>)) {
        let Some(sites) = &self.sites else { return };
        let sites = sites.borrow();
        let other = other.map(|other| sites.site(other));
        *self.counts.entry((sites.site(event), other)).or_default() += 1;
    }

    /// The search starts over.
    pub fn restart(&mut self) {
        self.told = None;
        self.previous.clear();
        self.counts.clear();
    }

    /// The lines, those with most executions first; `None` if they are not counted.
    pub fn lines(&self, place: impl Fn(Site) -> Place) -> Option<Vec<Origin>> {
        self.sites.as_ref()?;
        let counts = self.counts.iter();
        let lines = counts.map(|(&(site, other), &executions)| Origin {
            place: place(site),
            other: other.map(&place),
            executions,
        });
        Some(Origin::sums(lines))
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
