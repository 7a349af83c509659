//! The estimate of a search that a limit ended, for the HTML report.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use selvedge_core::report::{Counts, Observer};
use selvedge_core::trust::{self, Descents, Estimate};
use selvedge_core::with_model;

use crate::model::Builder;
use crate::rt::RustMachine;

/// Random descents take so long: the test waits for them.
const TIME: Duration = Duration::from_secs(1);
/// The first one may take so much longer. Without any, there is no estimate.
const FIRST: u32 = 4;

struct Clock(Instant);

impl Clock {
    fn look(&self) -> ControlFlow<()> {
        match Instant::now() >= self.0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Observer<RustMachine> for Clock {
    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        self.look()
    }
}

/// The estimate by random descents for the search of `builder`'s model, which has had `executions` and was ended after
/// `elapsed`.
pub(crate) fn estimate(
    builder: &Builder,
    machine: &mut RustMachine,
    executions: u64,
    elapsed: Duration,
) -> Option<Estimate> {
    let begin = Instant::now();
    let (enough, mut limit) = (Clock(begin + TIME), Clock(begin + FIRST * TIME));
    let mut descents = Descents::default();
    with_model!(builder.model, C => {
        trust::descend::<C, _>(machine, builder.bound(), 0, &mut limit, &mut |descent| {
            descents.add(descent);
            enough.look()
        })
    });
    Estimate::of(descents.forecast()?, executions, elapsed)
}
