//! Values that registers hold, as sums of things that are not known further.
//!
//! Two values that are equal here are equal whenever the code runs, as long as both were made since
//! the last place where control flow joins unpredictably: see [`super::accesses`].

use std::collections::HashMap;

use object::{SectionIndex, SymbolIndex};

/// A thing that is not known further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Atom {
    /// The stack pointer at the function's entry.
    Frame,
    /// The distance from there to a part of the frame that is aligned, or of a size not known.
    Shift(u32),
    /// The first argument of the function.
    First,
    /// Where a section begins.
    Section(usize),
    /// The address of a symbol that is defined elsewhere.
    Symbol(usize),
    /// A class's table of virtual functions.
    Table(u32),
    /// The result of an instruction on other values.
    Made(u32),
    /// A value from memory, a call, or several places.
    Fresh(u32),
}

/// A sum of atoms without a constant; a place in [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Base(u32);

/// No atom at all.
const NOTHING: Base = Base(0);

/// A sum of atoms and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    /// The atoms.
    pub(super) base: Base,
    /// The constant.
    pub(super) offset: i64,
}

impl Value {
    /// A known number.
    pub(super) fn number(offset: i64) -> Value {
        let base = NOTHING;
        Value { base, offset }
    }

    /// The number, if it is known.
    pub(super) fn as_number(self) -> Option<i64> {
        (self.base == NOTHING).then_some(self.offset)
    }

    /// The value plus a constant.
    pub(super) fn plus(self, offset: i64) -> Value {
        Value {
            base: self.base,
            offset: self.offset.wrapping_add(offset),
        }
    }
}

/// Where a value points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// To a certain place in the function's frame.
    Frame,
    /// Somewhere in the function's frame.
    SomewhereInFrame,
    /// To a section of the file.
    Section(SectionIndex),
    /// To something constant.
    Constant,
    /// Where the function's first argument points.
    First,
    /// Anywhere else.
    Anywhere,
}

type Terms = Vec<(Atom, i64)>;

/// The operation of an instruction, its operands, and a constant.
type Work = (u32, Vec<Value>, u64);

/// All values of a function.
pub(super) struct Values {
    sums: Vec<Terms>,
    places: HashMap<Terms, Base>,
    made: HashMap<Work, u32>,
    fresh: u32,
}

impl Values {
    pub(super) fn new() -> Values {
        Values {
            sums: vec![Vec::new()],
            places: HashMap::from([(Vec::new(), NOTHING)]),
            made: HashMap::new(),
            fresh: 0,
        }
    }

    /// A single atom.
    pub(super) fn atom(&mut self, atom: Atom) -> Value {
        let base = self.base(vec![(atom, 1)]);
        Value { base, offset: 0 }
    }

    /// Something not seen before.
    pub(super) fn fresh(&mut self) -> Value {
        self.fresh += 1;
        self.atom(Atom::Fresh(self.fresh))
    }

    /// A class's table that was not seen before.
    pub(super) fn table(&mut self) -> Value {
        self.fresh += 1;
        self.atom(Atom::Table(self.fresh))
    }

    /// Another part of the frame.
    pub(super) fn shifted_frame(&mut self) -> Value {
        self.fresh += 1;
        let base = self.base(vec![(Atom::Frame, 1), (Atom::Shift(self.fresh), 1)]);
        Value { base, offset: 0 }
    }

    /// The address of a symbol.
    pub(super) fn symbol(&mut self, symbol: SymbolIndex, addend: i64) -> Value {
        self.atom(Atom::Symbol(symbol.0)).plus(addend)
    }

    /// An address in a section.
    pub(super) fn section(&mut self, section: SectionIndex, offset: i64) -> Value {
        self.atom(Atom::Section(section.0)).plus(offset)
    }

    /// The result of `work` on `operands`: the same each time.
    pub(super) fn make(&mut self, work: u32, operands: Vec<Value>, constant: u64) -> Value {
        let next = self.made.len() as u32;
        let made = *self.made.entry((work, operands, constant)).or_insert(next);
        self.atom(Atom::Made(made))
    }

    /// `a + factor * b`.
    pub(super) fn sum(&mut self, a: Value, b: Value, factor: i64) -> Value {
        let offset = a.offset.wrapping_add(b.offset.wrapping_mul(factor));
        if b.base == NOTHING {
            return Value {
                base: a.base,
                offset,
            };
        }
        let mut terms = self.sums[a.base.0 as usize].clone();
        for &(atom, times) in &self.sums[b.base.0 as usize] {
            let times = times.wrapping_mul(factor);
            match terms.binary_search_by_key(&atom, |term| term.0) {
                Ok(at) => {
                    terms[at].1 = terms[at].1.wrapping_add(times);
                    if terms[at].1 == 0 {
                        terms.remove(at);
                    }
                }
                Err(at) => terms.insert(at, (atom, times)),
            }
        }
        let base = self.base(terms);
        Value { base, offset }
    }

    /// Where `value` points.
    pub(super) fn region(&self, value: Value) -> Region {
        let terms = &self.sums[value.base.0 as usize];
        let Some(&(atom, _)) = terms.iter().find(|(atom, times)| {
            *times == 1 && !matches!(atom, Atom::Made(_) | Atom::Fresh(_) | Atom::Shift(_))
        }) else {
            return Region::Anywhere;
        };
        match atom {
            Atom::Frame => {
                let certain =
                    |(atom, _): &(Atom, i64)| matches!(atom, Atom::Frame | Atom::Shift(_));
                match terms.iter().all(certain) {
                    true => Region::Frame,
                    false => Region::SomewhereInFrame,
                }
            }
            Atom::First => Region::First,
            Atom::Section(index) => Region::Section(SectionIndex(index)),
            Atom::Table(_) => Region::Constant,
            _ => Region::Anywhere,
        }
    }

    /// The part of the frame that `value` points to, and whether its offset there is certain.
    pub(super) fn frame_part(&mut self, value: Value) -> (Base, bool) {
        let terms = &self.sums[value.base.0 as usize];
        let part: Terms = terms
            .iter()
            .copied()
            .filter(|(atom, _)| matches!(atom, Atom::Frame | Atom::Shift(_)))
            .collect();
        let certain = part.len() == terms.len();
        (self.base(part), certain)
    }

    /// Whether `value` may be `start` and something more.
    pub(super) fn extends(&self, value: Value, start: Value) -> bool {
        let terms = &self.sums[value.base.0 as usize];
        let mut parts = self.sums[start.base.0 as usize].iter();
        start.base != NOTHING && parts.all(|part| terms.contains(part))
    }

    fn base(&mut self, terms: Terms) -> Base {
        if let Some(&base) = self.places.get(&terms) {
            return base;
        }
        let base = Base(self.sums.len() as u32);
        self.sums.push(terms.clone());
        self.places.insert(terms, base);
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_order() {
        let mut values = Values::new();
        let (a, b) = (values.fresh(), values.fresh());
        let one = values.sum(a.plus(3), b, 4);
        let other = values.sum(b, a, 1);
        let other = values.sum(other, b, 3).plus(3);
        assert_eq!(one, other);
        assert_eq!(values.sum(one, one, -1), Value::number(0));
    }

    #[test]
    fn the_same_work_makes_the_same_value() {
        let mut values = Values::new();
        let a = values.fresh();
        assert_eq!(values.make(1, vec![a], 2), values.make(1, vec![a], 2));
        assert_ne!(values.make(1, vec![a], 2), values.make(1, vec![a], 3));
    }

    #[test]
    fn a_frame_with_an_unknown_index_is_still_the_frame() {
        let mut values = Values::new();
        let frame = values.atom(Atom::Frame).plus(-8);
        let index = values.fresh();
        assert_eq!(values.region(frame), Region::Frame);
        let element = values.sum(frame, index, 4);
        assert_eq!(values.region(element), Region::SomewhereInFrame);
        assert_eq!(values.region(index), Region::Anywhere);
    }
}
