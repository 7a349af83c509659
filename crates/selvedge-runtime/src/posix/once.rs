//! `pthread_once` and `call_once`.
//!
//! The routine itself is called by the shim, so that an exception that leaves it finds only C
//! frames on its way (see `shim.c`).

use std::ffi::c_int;

use selvedge_core::MemoryOrder::AcqRel;
use selvedge_core::Site;
use selvedge_core::objects::{DONE, FREE, ObjectFunction};

use super::object::Object;
use super::state::process;
use crate::current;

entry_points![
    selvedge_once_begin(2),
    selvedge_once_end(2),
    selvedge_once_abandon(2),
];

/// The once control at `address`.
pub(crate) fn once(address: usize, site: Site) -> Object {
    Object::used_at(address, 4, "once control", site)
}

/// Whether the caller has to run the routine.
pub(crate) fn begin(once: Object) -> bool {
    // An initialisation that a constructor has completed stays complete: no need for a visible
    // operation.
    if process(|process| process.settled.contains(&once.address)) {
        return false;
    }
    once.step(ObjectFunction::OnceBegin, AcqRel).wrote.is_some()
}

/// The routine has run.
pub(crate) fn end(once: Object) {
    once.store(DONE);
    if current::booting() {
        process(|process| process.settled.push(once.address));
    }
}

/// The routine was left by an exception: the next caller tries again.
pub(crate) fn abandon(once: Object) {
    once.store(FREE);
}

extern "C" fn selvedge_once_begin(address: usize, site: usize) -> c_int {
    begin(once(address, Site(site as u64))).into()
}

extern "C" fn selvedge_once_end(address: usize, site: usize) {
    end(once(address, Site(site as u64)));
}

extern "C" fn selvedge_once_abandon(address: usize, site: usize) {
    if current::enforced() {
        let what = "an exception leaves a routine of `call_once`, which cannot be enforced";
        current::refuse(what.to_owned(), Site(site as u64));
    }
    abandon(once(address, Site(site as u64)));
}
