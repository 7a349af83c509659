//! Thrown objects that several threads refer to; see `shim.cc`.

use selvedge_core::MemoryOrder::AcqRel;
use selvedge_core::Site;
use selvedge_core::objects::ObjectFunction;

use crate::posix::entry_points;
use crate::posix::object::Object;
use crate::posix::state::local;

entry_points![selvedge_share_exception(1), selvedge_release_exception(3),];

/// Unused bytes of the header in front of a thrown object, behind its counter.
const ROOM: usize = 120;

/// The running thread has made a thrown object known to others.
extern "C" fn selvedge_share_exception(thrown: usize) {
    local(|local| local.shared_exceptions.push(thrown));
}

/// The running thread is about to give up a reference to a thrown object: what it did with it
/// happens before everything that other threads do after they give up theirs later.
extern "C" fn selvedge_release_exception(thrown: usize, rethrown: bool, site: usize) {
    if rethrown || local(|local| local.shared_exceptions.contains(&thrown)) {
        let references = Object::used_at(thrown - ROOM, 8, "exception", Site(site as u64));
        references.step(ObjectFunction::SemaphorePost, AcqRel);
    }
}
