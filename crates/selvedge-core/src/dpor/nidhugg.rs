//! Nidhugg-DPOR (Algorithm 5): Source-DPOR, but a reversal must be started by a thread that the
//! racing step depends on, which gives persistent sets. That set is never empty, so the document's
//! second case does not arise. The recursion takes `Sleep'`; the print says `Sleep`.

use super::Algorithm;
use super::explore::State;
use super::source::{Initials, SourceDpor};
use crate::ids::ThreadId;

pub(super) struct NidhuggDpor;

impl Algorithm for NidhuggDpor {
    fn arrive(&mut self, state: &mut State) {
        if state.awake(false).next().is_none() {
            state.branch_for_waiting(Initials::Persistent);
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        SourceDpor.begin(state)
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let next = *state.next(thread).expect("it is about to be explored");
        state.branch_for_races(&next, Initials::Persistent);
    }
}
