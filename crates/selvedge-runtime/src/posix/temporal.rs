//! Propositions and progress marks, which a program tells for formulas of temporal logic.
//!
//! Each of them is a store to a byte of its own inside of the program, so that the values are part
//! of its state and no change of them is lost. A proposition that no formula asks about is no operation.

use std::ffi::c_int;

use selvedge_core::ltl::Atom;
use selvedge_core::{MemoryOrder, Op, Value, Width};

use super::program::text;
use crate::arena::pointer;
use crate::current;
use crate::machine::NativeMachine;
use crate::memory;
use crate::runtime::{Runtime, with};

entry_points![selvedge_prop(2), selvedge_progress(0)];

/// The byte of the progress marks; those of propositions follow in the order in which they are
/// asked about.
const MARK: usize = 0;

extern "C" fn selvedge_prop(name: usize, holds: c_int) {
    let known = {
        let name = text(name);
        let asked = |atom: &Atom| matches!(atom, Atom::Named(asked) if *asked == name);
        with(|runtime| runtime.settings.propositions.iter().position(asked))
    };
    if let Some(place) = known {
        tell(1 + place, (holds != 0).into());
    }
}

extern "C" fn selvedge_progress() {
    if with(|runtime| runtime.settings.progress) {
        tell(MARK, 0);
    }
}

fn tell(byte: usize, value: Value) {
    let site = current::site();
    let address = with(|runtime| runtime.image.told.start + byte);
    let at = current::location(address, Width(1));
    let order = MemoryOrder::SeqCst;
    current::perform(Op::Store { at, value, order }, site);
}

impl Runtime {
    /// Whether `op` is a progress mark.
    pub(crate) fn is_progress_mark(&self, op: Op) -> bool {
        let Op::Store { at, .. } = op else {
            return false;
        };
        self.locations.entry(at).address == self.image.told.start + MARK
    }

    /// The proposition that is told at `address`.
    pub(crate) fn told_at(&self, address: usize) -> Option<String> {
        if !self.image.told.contains(address) {
            return None;
        }
        let place = (address - self.image.told.start).checked_sub(1 + MARK);
        let atom = place.map(|place| self.settings.propositions.get(place));
        Some(match atom {
            None => "progress".to_owned(),
            Some(atom) => atom.map(Atom::to_string).unwrap_or_default(),
        })
    }
}

/// Whether the proposition with this number holds in the present state.
pub(crate) fn holds(place: usize) -> bool {
    /// Where the answer is.
    enum Answer {
        Byte(usize),
        Function(usize),
        Nowhere,
    }
    let answer = with(|runtime| match runtime.settings.propositions.get(place) {
        Some(Atom::Named(_)) => Answer::Byte(runtime.image.told.start + 1 + place),
        Some(Atom::Expression(_)) => {
            let all = &runtime.settings.propositions[..place];
            let before = all
                .iter()
                .filter(|atom| matches!(atom, Atom::Expression(_)));
            let function = runtime.image.expressions.get(before.count());
            function.map_or(Answer::Nowhere, |&function| Answer::Function(function))
        }
        _ => Answer::Nowhere,
    });
    match answer {
        Answer::Byte(address) => memory::read(address, 1) != 0,
        Answer::Function(address) => {
            // SAFETY: the command line compiled this function into the program; it takes nothing,
            // returns an `int` and only reads. No thread of the program runs.
            let function: extern "C" fn() -> c_int =
                unsafe { std::mem::transmute(pointer::<()>(address)) };
            function() != 0
        }
        Answer::Nowhere => false,
    }
}

impl NativeMachine {
    /// The proposition whose value lies at `address`, or `progress` where the marks lie.
    pub fn told_at(&self, address: u64) -> Option<String> {
        with(|runtime| runtime.told_at(address as usize))
    }

    /// Whether `op` is a progress mark.
    pub fn is_progress_mark(&self, op: &Op) -> bool {
        with(|runtime| runtime.is_progress_mark(*op))
    }
}
