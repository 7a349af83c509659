//! Operations of constructors, which are performed at once.

use selvedge_core::{Effect, Location, Op, Outcome, Site};

use super::refuse;
use crate::access::Access;
use crate::memory;
use crate::problem::report;
use crate::runtime::with;
use crate::shadow::Kind;

/// While constructors run there is one thread, and memory is what it says.
pub(super) fn perform_natively(op: Op, site: Site) -> Outcome {
    let at = |location: Location| {
        let entry = with(|runtime| *runtime.locations.entry(location));
        let kind = match op {
            Op::Load { .. } => Kind::AtomicRead,
            _ => Kind::AtomicWrite,
        };
        let access = Access {
            address: entry.address,
            size: entry.width.into(),
            kind,
            site: site.0 as usize,
        };
        if let Err(problem) = with(|runtime| runtime.check_early(access)) {
            report(problem, access);
        }
        entry
    };
    match op {
        Op::Load { at: location, .. } => {
            let entry = at(location);
            Outcome {
                read: memory::read(entry.address, entry.width),
                wrote: None,
            }
        }
        Op::Store {
            at: location,
            value,
            ..
        } => {
            let entry = at(location);
            memory::write(entry.address, entry.width, value);
            Outcome::default()
        }
        Op::Update {
            at: location,
            function,
            ..
        } => {
            let entry = at(location);
            let read = memory::read(entry.address, entry.width);
            let wrote = match function.apply(read) {
                Effect::Write(value) => Some(value),
                Effect::Keep => None,
                Effect::Choose(_) => Some(function.choose(read, 0)),
                Effect::Block => refuse("waiting before `main`".to_owned(), site),
            };
            if let Some(value) = wrote {
                memory::write(entry.address, entry.width, value);
            }
            Outcome { read, wrote }
        }
        Op::Fence { .. } | Op::JoinAll => Outcome::default(),
        Op::Create { .. } | Op::Join { .. } => refuse("threads before `main`".to_owned(), site),
        Op::Choose { .. } => refuse("choices before `main`".to_owned(), site),
    }
}
