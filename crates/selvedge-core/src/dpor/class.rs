//! Names for the classes of equivalent sequences.

use super::trace::Trace;
use crate::graph::{INIT, Slot};
use crate::random::mix;

/// A class: a number that depends on program order, reads-from and coherence of a sequence only.
/// Two classes have the same one with a probability of 2⁻¹²⁸.
pub(super) type Class = u128;

/// The classes of the present sequence and of its prefixes.
#[derive(Default)]
pub(super) struct Classes(Vec<Class>);

impl Classes {
    /// The class of `trace`, which has one step more than at some earlier call, or none.
    pub(super) fn of(&mut self, trace: &Trace) -> Class {
        let steps = trace.len();
        self.0.truncate(steps);
        let class = match self.0.last() {
            Some(before) => before.wrapping_add(last_step(trace)),
            None => 0,
        };
        self.0.push(class);
        class
    }
}

/// A number for what the last step is and what it reads or overwrites. Their sum does not depend on the
/// order.
fn last_step(trace: &Trace) -> Class {
    let step = trace.step(trace.len() - 1);
    let graph = &trace.graph;
    let event = graph.event(step.last);
    let seen = match event.op.location() {
        Some(location) if event.kind.writes() => {
            graph.write_at(location, graph.position(location, step.last) - 1)
        }
        Some(_) => event.source,
        None => INIT,
    };
    let name = |slot: Slot| match slot {
        INIT => u64::MAX,
        slot => {
            let id = graph.event(slot).id;
            u64::from(id.thread.0) << 32 | u64::from(id.index)
        }
    };
    let words = [name(step.last), name(seen), u64::from(step.act.choice)];
    let hash = |seed: u64| words.iter().fold(seed, |hash, &word| mix(mix(hash) ^ word));
    Class::from(hash(1)) << 64 | Class::from(hash(2))
}
