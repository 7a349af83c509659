//! The memory models, written down as their papers do, over relations computed from scratch.
//!
//! Threads have an event for their beginning and one for their end here; a creation comes before the
//! beginning, an end before the join. Each location has an initial write.

use selvedge_core::MemoryOrder;

use crate::relation::{Relation, Set};

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axioms {
    /// Sequential consistency.
    Sc,
    /// Total store order, the model of x86.
    Tso,
    /// Release-acquire.
    Ra,
    /// Repaired C11.
    Rc11,
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Reads a location.
    Read,
    /// Writes a location.
    Write,
    /// A fence.
    Fence,
    /// Creates or joins threads, begins or ends one.
    Thread,
    /// Nothing that others can see.
    Nothing,
}

/// An event of a candidate.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The thread that performs it; `None` for initial writes.
    pub thread: Option<u32>,
    /// Its effect.
    pub does: Does,
    /// To which location.
    pub location: Option<u32>,
    /// With which order.
    pub order: MemoryOrder,
    /// Whether it is part of an update.
    pub update: bool,
}

/// An execution that may or may not be consistent.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its events.
    pub events: Vec<Event>,
    /// Program order, transitive.
    pub po: Relation,
    /// From creations to beginnings, from ends to joins.
    pub asw: Relation,
    /// Reads-from.
    pub rf: Relation,
    /// Coherence, transitive, initial writes first.
    pub co: Relation,
    /// From the read to the write of an update.
    pub rmw: Relation,
}

impl Candidate {
    fn size(&self) -> usize {
        self.events.len()
    }

    fn set(&self, holds: impl Fn(&Event) -> bool) -> Set {
        let events = self.events.iter().enumerate();
        events.filter(|(_, e)| holds(e)).map(|(i, _)| 1 << i).sum()
    }

    fn does(&self, does: Does) -> Set {
        self.set(|event| event.does == does)
    }

    fn same_location(&self) -> Relation {
        let location = |event: usize| self.events[event].location;
        Relation::new(self.size(), |a, b| {
            location(a).is_some() && location(a) == location(b)
        })
    }

    fn fr(&self) -> Relation {
        self.rf.inverse().then(&self.co)
    }

    /// Whether nothing comes between the two halves of an update.
    fn is_atomic(&self) -> bool {
        self.rmw.and(&self.fr().then(&self.co)).is_empty()
    }

    /// Initial writes come before everything.
    fn init(&self) -> Relation {
        Relation::new(self.size(), |a, b| {
            self.events[a].thread.is_none() && self.events[b].thread.is_some()
        })
    }

    /// Whether `model` allows it.
    pub fn is_consistent(&self, model: Axioms) -> bool {
        self.is_atomic()
            && match model {
                Axioms::Sc => self.is_sc(),
                Axioms::Tso => self.is_tso(),
                Axioms::Ra => self.is_ra(),
                Axioms::Rc11 => self.is_rc11(),
            }
    }

    fn is_sc(&self) -> bool {
        let order = self.po.or(&self.asw).or(&self.rf);
        order.or(&self.co).or(&self.fr()).is_acyclic()
    }

    /// Lahav, Giannarakis and Vafeiadis, "Taming release-acquire consistency".
    fn is_ra(&self) -> bool {
        let causality = self.po.or(&self.asw).or(&self.rf).or(&self.init());
        let mut initial = self.events.iter().filter(|event| event.thread.is_none());
        initial.all(|initial| {
            let at = self.set(|event| event.location == initial.location);
            let order = self.co.or(&self.fr()).between(at, at);
            causality.or(&order).is_acyclic()
        })
    }

    /// Alglave, Maranget and Tautschnig, "Herding cats", §4.5 and herd's x86tso.cat. Fences with order
    /// `seq_cst` and whatever creates or joins threads are full fences; so are updates, also those
    /// that fail, and stores with order `seq_cst`, which compilers make updates of.
    fn is_tso(&self) -> bool {
        let (reads, writes) = (self.does(Does::Read), self.does(Does::Write));
        let memory = reads | writes;
        let exchange =
            |event: &Event| event.does == Does::Write && event.order == MemoryOrder::SeqCst;
        let updates = self.set(|event| event.update || exchange(event));
        let full = self.does(Does::Thread)
            | self.set(|event| event.does == Does::Fence && event.order == MemoryOrder::SeqCst);
        let (po, fr) = (&self.po, self.fr());

        let communication = self.rf.or(&self.co).or(&fr);
        let po_loc = po.and(&self.same_location());
        let uniproc = po_loc.or(&communication).is_acyclic();

        let preserved = po.between(reads, memory).or(&po.between(writes, writes));
        let implied = po
            .between(writes, reads & updates)
            .or(&po.between(writes & updates, reads));
        let fences = po.between(full, !0).or(&po.between(!0, full));
        let fences = fences.between(memory | full, memory | full);
        let internal = Relation::new(self.size(), |a, b| {
            self.events[a].thread == self.events[b].thread
        });
        let rfe = self.rf.minus(&internal);
        let global = preserved.or(&implied).or(&fences).or(&self.asw);
        uniproc && global.or(&rfe).or(&self.co).or(&fr).is_acyclic()
    }

    /// Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency in C/C++11",
    /// Definition 1, with the release sequences of C++20.
    fn is_rc11(&self) -> bool {
        use MemoryOrder as M;
        let size = self.size();
        let fences = self.does(Does::Fence);
        let reads = self.does(Does::Read);
        let writes = self.does(Does::Write);
        let at_least = |orders: &[M]| self.set(|event| orders.contains(&event.order));
        let release = at_least(&[M::Release, M::AcqRel, M::SeqCst]) & (writes | fences);
        let acquire = at_least(&[M::Acquire, M::AcqRel, M::SeqCst]) & (reads | fences);
        let sc = at_least(&[M::SeqCst]) & (reads | writes | fences);
        let (sc, sc_fences) = (sc & self.set(|event| event.thread.is_some()), sc & fences);
        let (sb, rf, co, fr) = (&self.po, &self.rf, &self.co, self.fr());
        let on = |set: Set| Relation::on(size, set);

        let rs = on(writes).then(&rf.then(&self.rmw).star());
        let sw = on(release)
            .then(&on(fences).then(sb).maybe())
            .then(&rs)
            .then(rf)
            .then(&sb.then(&on(fences)).maybe())
            .then(&on(acquire));
        let hb = sb.or(&sw).or(&self.asw).or(&self.init()).plus();
        let eco = rf.or(co).or(&fr).plus();
        let coherence = hb.then(&eco.maybe()).is_irreflexive();

        let elsewhere = sb.minus(&self.same_location());
        let scb = sb
            .or(&elsewhere.then(&hb).then(&elsewhere))
            .or(&hb.and(&self.same_location()))
            .or(co)
            .or(&fr);
        let psc_base = on(sc)
            .or(&on(sc_fences).then(&hb.maybe()))
            .then(&scb)
            .then(&on(sc).or(&hb.maybe().then(&on(sc_fences))));
        let psc_f = hb
            .or(&hb.then(&eco).then(&hb))
            .between(sc_fences, sc_fences);
        let porf = sb.or(&self.asw).or(rf);
        coherence && psc_base.or(&psc_f).is_acyclic() && porf.is_acyclic()
    }
}
