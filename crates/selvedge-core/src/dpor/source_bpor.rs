//! Source-BPOR (Algorithm 9, as printed): source sets for the branches at the step, and
//! conservative branches as in Nidhugg-BPOR. Loses executions for the reasons Nidhugg-BPOR does,
//! and without any sleep sets still others, because a source set within a bound must offer the
//! cheap start, not just any.

use super::nidhugg_bpor::NidhuggBpor;
use super::source::Initials;

/// Nidhugg-BPOR with source sets.
pub(super) fn source_bpor(bound: u32) -> NidhuggBpor {
    NidhuggBpor {
        initials: Initials::Source,
        ..NidhuggBpor::new(bound)
    }
}
