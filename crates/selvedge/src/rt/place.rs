//! Atomics and synchronisation objects.

use selvedge_core::{Function, Location, MemoryOrder, Op, Outcome, Site, Value};

use super::gone::{Gone, Handle};
use super::race::{Access, AccessKind, Race, View};
use super::{engine, stop};

/// The state of a location in an execution.
pub(super) struct Place {
    /// The execution that it was last created in.
    pub(super) run: u32,
    /// Its description, in the words of the source.
    pub(super) what: &'static str,
    /// Where it was created.
    pub(super) site: Site,
    /// Whether its values stand for pointers.
    pub(super) pointers: bool,
    pub(super) initial: Value,
    /// The value of the last write that was performed. If writes are unordered, that need not be
    /// the last one in the coherence order.
    pub(super) current: Value,
    /// Whether each write so far happened before the next.
    chained: bool,
    last_write: Option<Access>,
    /// The last atomic access of each thread, and the last one that wrote.
    accesses: Vec<Access>,
    writes: Vec<Access>,
    /// Its creation, and accesses through an exclusive reference.
    plain: Race,
    pub(super) gone: Option<Gone>,
}

impl Place {
    pub(super) fn new() -> Place {
        Place {
            run: 0,
            what: "",
            site: Site(0),
            pointers: false,
            initial: 0,
            current: 0,
            chained: true,
            last_write: None,
            accesses: Vec::new(),
            writes: Vec::new(),
            plain: Race::default(),
            gone: None,
        }
    }

    /// Begins its life in execution `run`.
    pub(super) fn begin(&mut self, run: u32, new: &New, creation: Option<Access>) {
        self.run = run;
        self.what = new.what;
        self.site = new.site;
        self.pointers = new.pointers;
        self.initial = new.initial;
        self.current = new.initial;
        self.chained = true;
        self.last_write = creation;
        self.accesses.clear();
        self.writes.clear();
        self.plain.clear();
        self.gone = None;
        if let Some(creation) = creation {
            self.plain.note(AccessKind::Write, creation);
        }
    }

    /// An atomic access was performed. Returns a plain one that it is unordered with.
    pub(super) fn performed(
        &mut self,
        wrote: Option<Value>,
        access: Access,
        view: &View<'_>,
    ) -> Option<(Access, AccessKind)> {
        let kind = match wrote {
            Some(_) => AccessKind::Write,
            None => AccessKind::Read,
        };
        if let Some(value) = wrote {
            let after = |last: &Access| last.thread == access.thread || view.knows(last);
            self.chained &= self.last_write.as_ref().is_none_or(after);
            self.last_write = Some(access);
            self.current = value;
            keep_last(&mut self.writes, access);
        }
        keep_last(&mut self.accesses, access);
        self.plain.clash(kind, view)
    }

    /// An access that is not atomic. Returns another one that it is unordered with.
    pub(super) fn plain(
        &mut self,
        kind: AccessKind,
        access: Access,
        view: &View<'_>,
    ) -> Option<(Access, AccessKind)> {
        let clash = self.clash(kind, view);
        self.plain.note(kind, access);
        clash
    }

    /// The access that one of this `kind` which is not atomic is unordered with.
    pub(super) fn clash(&self, kind: AccessKind, view: &View<'_>) -> Option<(Access, AccessKind)> {
        let others = match kind {
            AccessKind::Read => &self.writes,
            AccessKind::Write => &self.accesses,
        };
        let unordered = others.iter().find(|other| !view.knows(other));
        if let Some(&other) = unordered {
            let wrote = self.writes.iter().any(|write| write.thread == other.thread);
            return Some((
                other,
                if wrote {
                    AccessKind::Write
                } else {
                    AccessKind::Read
                },
            ));
        }
        self.plain.clash(kind, view)
    }

    /// Its value, if that is certain without asking the memory model.
    pub(super) fn settled(&self) -> Option<Value> {
        self.chained.then_some(self.current)
    }
}

fn keep_last(accesses: &mut Vec<Access>, access: Access) {
    let known = accesses
        .iter_mut()
        .find(|known| known.thread == access.thread);
    match known {
        Some(known) => *known = access,
        None => accesses.push(access),
    }
}

/// A location to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(super) what: &'static str,
    pub(super) site: Site,
    pub(super) initial: Value,
    pub(super) pointers: bool,
}

/// An atomic or a synchronisation object, as the types of the interface hold it.
#[derive(Debug)]
pub(crate) struct Object(Handle);

impl Object {
    /// The next object of the running thread.
    pub(crate) fn new(what: &'static str, initial: Value, site: Site) -> Object {
        let new = New {
            what,
            site,
            initial,
            pointers: false,
        };
        let (stamp, at) = engine::host(|state| state.create(new));
        Object(Handle::of_place(stamp, at))
    }

    /// The same for an atomic pointer.
    pub(crate) fn of_pointer(what: &'static str, address: usize, site: Site) -> Object {
        let (stamp, at) = engine::host(|state| {
            let initial = state.memory.value_of(address);
            state.create(New {
                what,
                site,
                initial,
                pointers: true,
            })
        });
        Object(Handle::of_place(stamp, at))
    }

    /// The object that stands for the static at `address`.
    pub(crate) fn of_static(what: &'static str, address: usize, site: Site) -> Object {
        let new = New {
            what,
            site,
            initial: 0,
            pointers: false,
        };
        let (stamp, at) = engine::host(|state| state.create_static(address, new));
        Object(Handle::of_static(stamp, at))
    }

    /// Its location; ends the execution if it belongs to another one.
    #[inline(always)]
    fn location(&self, site: Site) -> Location {
        self.0.location(site)
    }

    /// Loads it.
    #[inline(always)]
    pub(crate) fn load(&self, order: MemoryOrder, site: Site) -> Value {
        let at = self.location(site);
        engine::visible(Op::Load { at, order }, site).read
    }

    /// Stores to it.
    #[inline(always)]
    pub(crate) fn store(&self, value: Value, order: MemoryOrder, site: Site) {
        let at = self.location(site);
        engine::visible(Op::Store { at, value, order }, site);
    }

    /// Updates it.
    #[inline(always)]
    pub(crate) fn update(
        &self,
        function: Function,
        order: MemoryOrder,
        failure: MemoryOrder,
        site: Site,
    ) -> Outcome {
        let at = self.location(site);
        let op = Op::Update {
            at,
            function,
            order,
            failure,
        };
        engine::visible(op, site)
    }

    /// Accesses it as if it were no atomic: nobody else may do so at the same time. Returns what it
    /// holds.
    pub(crate) fn plain(&self, kind: AccessKind, site: Site) -> Value {
        let at = self.location(site);
        let settled = stop::plain(|state| state.plain_access(at, kind, site));
        match settled {
            Some(value) => value,
            None => self.load(MemoryOrder::Relaxed, site),
        }
    }

    /// It holds `value` before anything else is done to it.
    #[cold]
    pub(crate) fn begin_with(&self, value: Value, site: Site) {
        let at = self.location(site);
        engine::host(|state| {
            let place = &mut state.places[at.index()];
            (place.initial, place.current) = (value, value);
        });
    }

    /// Overwrites it with what was computed from the value that [`plain`](Object::plain) returned.
    pub(crate) fn replace(&self, value: Value, site: Site) {
        self.store(value, MemoryOrder::Relaxed, site);
    }
}
