//! Finds accesses to a function's own frame that other threads may see.
//!
//! Other threads can see the variables whose address was handed out: to a function, to memory outside
//! of the frame, or where the analysis does not follow it.

use std::collections::HashMap;
use std::mem;

use super::accesses::{Analysis, STACK_POINTER, Surroundings, Unannounced};
use super::values::{Atom, Base, Region, Value};
use super::variables::Exposed;

/// An access to the frame that was not announced.
pub(super) struct InFrame {
    /// The access.
    pub(super) unannounced: Unannounced,
    /// Where it goes.
    pub(super) address: Value,
}

impl<S: Surroundings> Analysis<'_, S> {
    /// Notes that a value was handed out, in case it is an address in the frame.
    pub(super) fn escape(&mut self, value: Option<Value>) {
        if let Some(value) = value
            && matches!(
                self.values.region(value),
                Region::Frame | Region::SomewhereInFrame
            )
        {
            self.escaped.insert(value);
        }
    }

    /// Addresses on top of the stack may be further arguments.
    pub(super) fn escape_arguments(&mut self) {
        let top = self.register(STACK_POINTER);
        let near = (top.base, top.offset, 0)..(top.base, top.offset.wrapping_add(128), 0);
        let values: Vec<Value> = self.state.slots.range(near).map(|(_, &v)| v).collect();
        for value in values {
            self.escape(Some(value));
        }
    }

    /// The accesses to what is given away of the frame.
    pub(super) fn shared_frame(&mut self) -> Vec<Unannounced> {
        let accesses = mem::take(&mut self.in_frame);
        if self.continued {
            // The addresses that were handed out before are not known.
            return accesses
                .into_iter()
                .map(|access| access.unannounced)
                .collect();
        }
        if self.all_kept_escape {
            self.escaped.extend(&self.kept);
        }
        if self.escaped.is_empty() && self.held.is_empty() || accesses.is_empty() {
            return Vec::new();
        }
        let frame = self.values.atom(Atom::Frame).base;
        let variables = self.surroundings.variables();
        // The parts of the frame: the one that variables are told of, and those beside it.
        let mut exposed: HashMap<Base, Exposed> = HashMap::new();
        let mut open: Vec<Value> = self.escaped.iter().copied().collect();
        let mut held = mem::take(&mut self.held);
        loop {
            held.retain(|&(slot, address)| {
                let part = exposed.get(&slot.base);
                let lost = self.lost.contains(&slot)
                    || part.is_some_and(|exposed| exposed.overlaps(slot.offset, 8));
                if lost {
                    open.push(address);
                }
                !lost
            });
            if open.is_empty() {
                break;
            }
            for value in open.drain(..) {
                let (base, certain) = self.values.frame_part(value);
                let known = if base == frame { variables } else { &[] };
                let part = exposed.entry(base).or_default();
                part.add(value.offset, certain, known);
            }
        }
        let given_away = |access: &InFrame| {
            let (base, certain) = self.values.frame_part(access.address);
            let Some(exposed) = exposed.get(&base) else {
                return false;
            };
            let offset = access.address.offset;
            let bytes = i64::from(access.unannounced.operand.bytes);
            let returns = base == frame && (0..8).contains(&offset);
            match certain && !access.unannounced.operand.repeated {
                true => !returns && exposed.overlaps(offset, bytes),
                false => {
                    let mut reached = Exposed::default();
                    reached.add(offset, false, if base == frame { variables } else { &[] });
                    exposed.meets(&reached)
                }
            }
        };
        let shared = accesses.into_iter().filter(given_away);
        shared.map(|access| access.unannounced).collect()
    }
}
