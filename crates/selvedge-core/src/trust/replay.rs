//! Bringing the machine to where the graph is.

use std::ops::ControlFlow;

use super::{Ending, Search};
use crate::machine::SpinLoops;
use crate::model::Model;

impl<C: Model, M: SpinLoops, O: super::Observer<M>> Search<'_, C, M, O> {
    /// Brings the machine to the graph again, and finds a schedule if preemptions are bounded.
    pub(super) fn replay(&mut self) -> ControlFlow<Ending> {
        if let Some(bound) = self.settings.preemptions {
            self.hints.schedule.find(self.cursor.level(), bound);
        }
        self.bring_machine()
    }

    /// Brings the machine to another graph, of which a schedule was found already.
    pub(super) fn replay_as_scheduled(&mut self) -> ControlFlow<Ending> {
        self.hints.deferred.clear();
        self.bring_machine()
    }

    fn bring_machine(&mut self) -> ControlFlow<Ending> {
        self.failures.clear();
        let level = self.cursor.level();
        let (graph, model) = (&level.graph, &level.model);
        let clock = |slot| model.happens_before(graph, slot);
        let mismatch = self.machine.bring_to(graph, clock);
        // The new alternative, and a read that was revisited, may have led to something new.
        self.check_all()?;
        // A race may have been blamed on a thread that had gone on before.
        match mismatch {
            Err(mismatch) if !self.hopeless => {
                ControlFlow::Break(Ending::Nondeterministic(mismatch))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
