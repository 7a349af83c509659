//! The orders and fences that would have forbidden a bug of weak memory, for the HTML report.

use std::time::{Duration, Instant};

use selvedge_core::repair::{self, Repair};
use selvedge_core::report::Bug;
use selvedge_core::with_model;
use selvedge_page::{Advice, Means};

use crate::model::MemoryModel;
use crate::report;
use crate::rt::RustMachine;

/// After so long the search for advice is given up: the test waits for it.
const TIME: Duration = Duration::from_secs(2);

/// The advice about `bug`, found under `model`; `None` if orders have nothing to do with it.
pub(crate) fn advise(machine: &mut RustMachine, bug: &Bug, model: MemoryModel) -> Option<Advice> {
    let place_of = machine.places();
    let own = |site| !selvedge_page::is_system(&place_of(site).file);
    let end = Instant::now() + TIME;
    let mut go_on = || Instant::now() < end;
    let repair = match model {
        MemoryModel::Sc => Repair::Strong,
        model => {
            with_model!(model, C => repair::repair::<C, _>(machine, bug, &own, &mut go_on))
        }
    };
    (repair != Repair::Strong).then(|| {
        Advice::new(&repair, model, |change| {
            let place = report::place(&place_of(change.site));
            Means::new(change, place, report::object(machine, &change.op))
        })
    })
}
