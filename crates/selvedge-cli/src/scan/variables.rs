//! Where a function's local variables are, as the debug information tells.
//!
//! An address that is handed out gives access to the variable it points into and to no other. Where the
//! debug information says nothing, it may give access to everything from there on.

use std::collections::HashMap;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, Operation, Unit, UnitOffset, constants,
};
use object::{File, SectionIndex};

use super::lines::{self, Slice};

type Entry = DebuggingInformationEntry<Slice>;

/// A local variable; offsets are relative to the stack pointer at the function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    /// Where it begins.
    pub(super) start: i64,
    /// Where it ends.
    pub(super) end: i64,
    /// Whether it is a structure or an array.
    pub(super) aggregate: bool,
}

/// The variables of a file's functions, by the functions' places.
pub(super) struct Variables {
    functions: HashMap<u64, Vec<Variable>>,
    bases: HashMap<SectionIndex, u64>,
}

impl Variables {
    /// Reads the debug information of `file`, if it has any that can be read.
    pub(super) fn read(file: &File<'_>) -> Option<Variables> {
        let (dwarf, bases) = lines::dwarf(file)?;
        let mut functions = HashMap::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next().ok()? {
            let unit = dwarf.unit(header).ok()?;
            read_unit(&dwarf, &unit, &mut functions).ok()?;
        }
        Some(Variables { functions, bases })
    }

    /// The variables of the function at `offset` in `section`.
    pub(super) fn of(&self, section: SectionIndex, offset: u64) -> &[Variable] {
        let list = self.bases.get(&section).map(|base| base + offset);
        let list = list.and_then(|address| self.functions.get(&address));
        list.map_or(&[], Vec::as_slice)
    }
}

fn read_unit(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    functions: &mut HashMap<u64, Vec<Variable>>,
) -> Result<(), gimli::Error> {
    let mut sizes = HashMap::new();
    // The function that entries belong to: its depth, address, and where its frame begins.
    let mut current: Option<(isize, u64, i64)> = None;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if current.is_some_and(|(depth, ..)| entry.depth() <= depth) {
            current = None;
        }
        match entry.tag() {
            constants::DW_TAG_subprogram => {
                let address = entry.attr_value(constants::DW_AT_low_pc);
                let address = match address {
                    Some(address) => dwarf.attr_address(unit, address)?,
                    None => None,
                };
                if let Some(address) = address
                    && let Some(frame) = frame_base(unit, entry)
                {
                    functions.entry(address).or_default();
                    current = Some((entry.depth(), address, frame));
                }
            }
            constants::DW_TAG_variable | constants::DW_TAG_formal_parameter => {
                if let Some((_, address, frame)) = current
                    && let Some(offset) = frame_offset(unit, entry)
                    && let Some((size, aggregate)) = type_of(unit, entry, &mut sizes, 0)
                {
                    let start = frame + offset;
                    let end = start + size;
                    functions.entry(address).or_default().push(Variable {
                        start,
                        end,
                        aggregate,
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The only operation of a location.
fn operation(unit: &Unit<Slice>, entry: &Entry, name: constants::DwAt) -> Option<Operation<Slice>> {
    let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(name) else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    match operations.next() {
        Ok(None) => Some(first),
        _ => None,
    }
}

fn frame_base(unit: &Unit<Slice>, entry: &Entry) -> Option<i64> {
    const FRAME_POINTER: u16 = 6;
    match operation(unit, entry, constants::DW_AT_frame_base)? {
        // Above the return address.
        Operation::CallFrameCFA => Some(8),
        // Below it lies the caller's frame pointer, to which this function's points.
        Operation::Register { register } if register.0 == FRAME_POINTER => Some(-8),
        _ => None,
    }
}

fn frame_offset(unit: &Unit<Slice>, entry: &Entry) -> Option<i64> {
    match operation(unit, entry, constants::DW_AT_location)? {
        Operation::FrameOffset { offset } => Some(offset),
        _ => None,
    }
}

type Sizes = HashMap<UnitOffset<usize>, Option<(i64, bool)>>;

/// The size of an entry's type, and whether it is a structure or an array.
fn type_of(
    unit: &Unit<Slice>,
    entry: &Entry,
    sizes: &mut Sizes,
    depth: u32,
) -> Option<(i64, bool)> {
    let entry = match entry.attr_value(constants::DW_AT_type) {
        Some(AttributeValue::UnitRef(offset)) => return size(unit, offset, sizes, depth),
        Some(_) => return None,
        None => entry.attr_value(constants::DW_AT_abstract_origin)?,
    };
    match entry {
        AttributeValue::UnitRef(offset) if depth < 16 => {
            let origin = unit.entry(offset).ok()?;
            type_of(unit, &origin, sizes, depth + 1)
        }
        _ => None,
    }
}

fn size(
    unit: &Unit<Slice>,
    offset: UnitOffset<usize>,
    sizes: &mut Sizes,
    depth: u32,
) -> Option<(i64, bool)> {
    if let Some(&known) = sizes.get(&offset) {
        return known;
    }
    let entry = unit.entry(offset).ok()?;
    let bytes = entry
        .attr_value(constants::DW_AT_byte_size)
        .and_then(|value| value.udata_value())
        .map(|bytes| bytes as i64);
    let found = match entry.tag() {
        constants::DW_TAG_structure_type
        | constants::DW_TAG_class_type
        | constants::DW_TAG_union_type => bytes.map(|bytes| (bytes, true)),
        constants::DW_TAG_pointer_type
        | constants::DW_TAG_reference_type
        | constants::DW_TAG_rvalue_reference_type => Some((8, false)),
        constants::DW_TAG_array_type if depth < 16 => {
            let element = type_of(unit, &entry, sizes, depth + 1);
            let length = length(unit, offset);
            element
                .zip(length)
                .and_then(|((size, _), length)| Some((size.checked_mul(length)?, true)))
        }
        _ if bytes.is_some() => bytes.map(|bytes| (bytes, false)),
        _ if depth < 16 => type_of(unit, &entry, sizes, depth + 1),
        _ => None,
    };
    sizes.insert(offset, found);
    found
}

/// How many elements an array has.
fn length(unit: &Unit<Slice>, offset: UnitOffset<usize>) -> Option<i64> {
    let mut cursor = unit.entries_at_offset(offset).ok()?;
    let depth = cursor.next_dfs().ok()??.depth();
    let mut length = 1i64;
    while let Some(entry) = cursor.next_dfs().ok()? {
        if entry.depth() <= depth {
            break;
        }
        if entry.tag() == constants::DW_TAG_subrange_type {
            let number = |name| entry.attr_value(name)?.udata_value();
            let count = number(constants::DW_AT_count);
            let bound = number(constants::DW_AT_upper_bound);
            let count = count.or(bound.map(|bound| bound.wrapping_add(1)))?;
            length = length.checked_mul(count as i64)?;
        }
    }
    Some(length)
}

/// The parts of the frame that are exposed by the addresses that were handed out.
#[derive(Debug, Default)]
pub(super) struct Exposed {
    ranges: Vec<(i64, i64)>,
}

impl Exposed {
    /// Adds an address. If it is not `certain`, an unknown multiple of something is added to it.
    pub(super) fn add(&mut self, address: i64, certain: bool, variables: &[Variable]) {
        let everything = (i64::MIN, i64::MAX);
        let mut around = variables
            .iter()
            .filter(|v| (v.start..v.end).contains(&address))
            .peekable();
        let Some(&&first) = around.peek() else {
            // Something without a name; it ends where something with a name begins.
            let next = variables.iter().map(|v| v.start).filter(|&s| s > address);
            let end = next.min().unwrap_or(i64::MAX);
            self.ranges.push(match certain {
                true => (address, end),
                false => everything,
            });
            // The end of a variable is handed out to go backwards from there.
            let ends = variables.iter().filter(|v| v.end == address);
            self.ranges.extend(ends.map(|v| (v.start, v.end)));
            return;
        };
        let mut range = around.fold((first.start, first.end), |(start, end), v| {
            (start.min(v.start), end.max(v.end))
        });
        if !certain {
            if !first.aggregate {
                self.ranges.push(everything);
                return;
            }
            // The constant may stem from the index: then a neighbour is meant.
            for v in variables.iter().filter(|v| v.aggregate) {
                if (v.end <= range.0 && range.0 - v.end < 16)
                    || (v.start >= range.1 && v.start - range.1 < 16)
                {
                    self.ranges.push((v.start, v.end));
                }
            }
        } else if address == range.0 {
            let ends = variables.iter().filter(|v| v.end == address);
            self.ranges.extend(ends.map(|v| (v.start, v.end)));
        }
        range.1 = range.1.max(address + 1);
        self.ranges.push(range);
    }

    /// Whether the bytes from `start` on overlap with what is given away.
    pub(super) fn overlaps(&self, start: i64, bytes: i64) -> bool {
        let end = start.saturating_add(bytes.max(1));
        self.ranges.iter().any(|&(s, e)| s < end && start < e)
    }

    /// Whether something is in both.
    pub(super) fn meets(&self, other: &Exposed) -> bool {
        let meets = |&(start, end): &(i64, i64)| {
            let overlaps = |&(s, e): &(i64, i64)| s < end && start < e;
            self.ranges.iter().any(overlaps)
        };
        other.ranges.iter().any(meets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: [Variable; 3] = [
        Variable {
            start: -64,
            end: -32,
            aggregate: true,
        },
        Variable {
            start: -24,
            end: -20,
            aggregate: false,
        },
        Variable {
            start: -16,
            end: -8,
            aggregate: false,
        },
    ];

    fn exposed(address: i64, certain: bool) -> Exposed {
        let mut exposed = Exposed::default();
        exposed.add(address, certain, &VARIABLES);
        exposed
    }

    #[test]
    fn an_address_gives_away_its_variable() {
        let array = exposed(-48, true);
        assert!(array.overlaps(-64, 4) && array.overlaps(-36, 8));
        assert!(!array.overlaps(-24, 4));
        assert!(exposed(-24, true).overlaps(-24, 1));
    }

    #[test]
    fn an_index_stays_in_its_array_or_goes_anywhere() {
        let array = exposed(-64, false);
        assert!(array.overlaps(-40, 8) && !array.overlaps(-24, 4));
        let scalar = exposed(-24, false);
        assert!(scalar.overlaps(-64, 1) && scalar.overlaps(-16, 1));
    }

    #[test]
    fn what_has_no_name_ends_where_a_name_begins() {
        let nameless = exposed(-32, true);
        assert!(nameless.overlaps(-28, 4) && !nameless.overlaps(-24, 4));
        // And the array that ends there may be meant.
        assert!(nameless.overlaps(-64, 4));
        assert!(exposed(-100, false).overlaps(-16, 1));
    }
}
