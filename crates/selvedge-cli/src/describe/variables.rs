//! Global and thread-local variables by address, with their members, from the debug information.

use std::collections::HashMap;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Operation, Reader as _,
    Unit, UnitOffset,
};

use super::binary::Slice;

/// How deep types may nest before a name stops getting longer.
pub(super) const DEPTH: usize = 16;

/// How a value is written in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As a number; the type is not known, so small negative numbers are guessed.
    #[default]
    Unknown,
    /// As a number with a sign.
    Signed,
    /// As a number without one.
    Unsigned,
    /// `true` or `false`.
    Boolean,
    /// As a pointer.
    Pointer,
    /// As an enumerator.
    Enumeration(HashMap<i64, String>),
}

/// A variable, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its name with members and indices.
    pub(super) name: String,
    /// How its value is written.
    pub(super) encoding: Encoding,
}

/// Every variable with a fixed address, and every thread-local one.
#[derive(Default)]
pub(super) struct Variables {
    pub(super) variables: Vec<Variable>,
    /// Their addresses are offsets in the block that each thread has of them.
    thread_locals: Vec<Variable>,
    pub(super) types: HashMap<usize, Type>,
}

pub(super) struct Variable {
    pub(super) start: u64,
    name: String,
    pub(super) type_: usize,
}

/// A type by its place in the debug information.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Plain {
        size: u64,
        encoding: Encoding,
    },
    /// `const`, `volatile`, `_Atomic`, typedef.
    Alias {
        of: usize,
    },
    Array {
        of: usize,
        counts: Vec<u64>,
    },
    Structure {
        size: u64,
        members: Vec<Member>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Base classes have none.
    pub(super) name: Option<String>,
    pub(super) offset: u64,
    pub(super) type_: usize,
}

impl Variables {
    /// Reads all of it; what cannot be read is left out.
    pub(super) fn read(dwarf: &Dwarf<Slice>) -> Variables {
        let mut found = Variables::default();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            if let Ok(unit) = dwarf.unit(header) {
                let _ = Collector {
                    dwarf,
                    unit: &unit,
                    found: &mut found,
                }
                .run();
            }
        }
        found.variables.sort_by_key(|variable| variable.start);
        found.thread_locals.sort_by_key(|variable| variable.start);
        found
    }

    /// The variable that covers `address`, down to the part of `width` bytes there, or to what a
    /// pointer would point to if that is zero.
    pub(super) fn find(&self, address: u64, width: u64) -> Option<Found> {
        self.find_among(&self.variables, address, width)
    }

    /// The same for a thread-local variable at `offset` of a thread's block.
    pub(super) fn find_thread_local(&self, offset: u64, width: u64) -> Option<Found> {
        self.find_among(&self.thread_locals, offset, width)
    }

    fn find_among(&self, variables: &[Variable], address: u64, width: u64) -> Option<Found> {
        let after = variables.partition_point(|variable| variable.start <= address);
        let variable = variables[..after].last()?;
        let offset = address - variable.start;
        if offset >= self.size(variable.type_, DEPTH)?.max(1) {
            return None;
        }
        let mut found = Found {
            name: variable.name.clone(),
            encoding: Encoding::Unknown,
        };
        self.descend(variable.type_, offset, width, &mut found, DEPTH);
        Some(found)
    }

    pub(super) fn size(&self, type_: usize, depth: usize) -> Option<u64> {
        match self.types.get(&type_)? {
            Type::Plain { size, .. } | Type::Structure { size, .. } => Some(*size),
            Type::Alias { of } => self.size(*of, depth.checked_sub(1)?),
            Type::Array { of, counts } => {
                Some(self.size(*of, depth.checked_sub(1)?)? * counts.iter().product::<u64>())
            }
        }
    }

    /// Adds members and indices to the name until the part fits. Names that are reserved for the
    /// implementation (`_M_i` of an atomic, `__data` of a mutex) tell the user nothing.
    fn descend(&self, type_: usize, offset: u64, width: u64, found: &mut Found, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match self.types.get(&type_) {
            Some(Type::Alias { of }) => self.descend(*of, offset, width, found, depth),
            Some(Type::Plain { size, encoding }) => {
                if offset == 0 && *size == width {
                    found.encoding = encoding.clone();
                } else if offset > 0 {
                    found.name.push_str(&format!(" +{offset}"));
                }
            }
            Some(Type::Array { of, counts }) => {
                let Some(element) = self.size(*of, DEPTH).filter(|&size| size > 0) else {
                    return;
                };
                let (mut index, rest) = (offset / element, offset % element);
                let mut indices = Vec::with_capacity(counts.len());
                for count in counts.iter().rev() {
                    let count = (*count).max(1);
                    indices.push(index % count);
                    index /= count;
                }
                for index in indices.iter().rev() {
                    found.name.push_str(&format!("[{index}]"));
                }
                self.descend(*of, rest, width, found, depth);
            }
            // A pointer to a structure is not one to its first member.
            Some(Type::Structure { .. }) if width == 0 && offset == 0 => {}
            Some(Type::Structure { members, .. }) => {
                let covering = || self.covering(members, offset);
                // A union has several: what is accessed is the one that has such a part.
                let fits = |member: &&Member| {
                    self.has_part(member.type_, offset - member.offset, width, depth)
                };
                let Some(member) = covering().find(fits).or_else(|| covering().next()) else {
                    return;
                };
                let before = found.name.clone();
                if let Some(name) = &member.name {
                    found.name.push('.');
                    found.name.push_str(name);
                }
                self.descend(member.type_, offset - member.offset, width, found, depth);
                let reserved = |name: &String| name.starts_with('_');
                if member.name.as_ref().is_some_and(reserved) {
                    found.name = before;
                }
            }
            None => {}
        }
    }
}

impl Variables {
    /// The members that have a byte at `offset`, the last one first.
    fn covering<'a>(
        &'a self,
        members: &'a [Member],
        offset: u64,
    ) -> impl Iterator<Item = &'a Member> {
        members.iter().rev().filter(move |member| {
            let size = self.size(member.type_, DEPTH).unwrap_or(0);
            (member.offset..member.offset + size.max(1)).contains(&offset)
        })
    }

    /// Whether a type has a scalar of `width` bytes at `offset`.
    fn has_part(&self, type_: usize, offset: u64, width: u64, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        match self.types.get(&type_) {
            Some(Type::Alias { of }) => self.has_part(*of, offset, width, depth),
            Some(Type::Plain { size, .. }) => offset == 0 && *size == width,
            Some(Type::Array { of, .. }) => match self.size(*of, DEPTH) {
                Some(element) if element > 0 => self.has_part(*of, offset % element, width, depth),
                _ => false,
            },
            Some(Type::Structure { members, .. }) => {
                let mut parts = self.covering(members, offset);
                parts.any(|part| self.has_part(part.type_, offset - part.offset, width, depth))
            }
            None => false,
        }
    }
}

struct Collector<'a> {
    dwarf: &'a Dwarf<Slice>,
    unit: &'a Unit<Slice>,
    found: &'a mut Variables,
}

type Entry = DebuggingInformationEntry<Slice>;

impl Collector<'_> {
    fn run(&mut self) -> gimli::Result<()> {
        let mut entries = self.unit.entries();
        // The structure or array that members and dimensions at this depth belong to.
        let mut owners: Vec<(isize, usize)> = Vec::new();
        let mut namespaces: Vec<(isize, String)> = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            owners.retain(|&(owner, _)| owner < depth);
            namespaces.retain(|&(owner, _)| owner < depth);
            match entry.tag() {
                gimli::DW_TAG_namespace => {
                    if let Some(name) = self.name(entry) {
                        namespaces.push((depth, name));
                    }
                }
                gimli::DW_TAG_variable => self.variable(entry, &namespaces),
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance => {
                    let owner = owners.last().map(|&(_, owner)| owner);
                    self.member(entry, owner);
                }
                gimli::DW_TAG_subrange_type => {
                    let owner = owners.last().map(|&(_, owner)| owner);
                    self.dimension(entry, owner);
                }
                gimli::DW_TAG_enumerator => {
                    let owner = owners.last().map(|&(_, owner)| owner);
                    self.enumerator(entry, owner);
                }
                _ => {
                    if let Some(type_) = self.type_(entry) {
                        let at = self.global(entry.offset());
                        self.found.types.insert(at, type_);
                        owners.push((depth, at));
                    }
                }
            }
        }
        Ok(())
    }

    fn variable(&mut self, entry: &Entry, namespaces: &[(isize, String)]) {
        let Some((start, is_thread_local)) = self.address(entry) else {
            return;
        };
        // A definition outside of its class or namespace refers to the declaration.
        let declared = self.reference(entry, gimli::DW_AT_specification);
        let declaration = declared.and_then(|at| {
            let offset = DebugInfoOffset(at).to_unit_offset(&self.unit.header)?;
            self.unit.entry(offset).ok()
        });
        let name = self
            .name(entry)
            .or_else(|| self.name(declaration.as_ref()?));
        let type_ = self
            .reference(entry, gimli::DW_AT_type)
            .or_else(|| self.reference(declaration.as_ref()?, gimli::DW_AT_type));
        if let (Some(name), Some(type_)) = (name, type_) {
            let scopes = namespaces.iter().map(|(_, scope)| scope.as_str());
            let name = scopes.chain([name.as_str()]).collect::<Vec<_>>().join("::");
            let variables = match is_thread_local {
                true => &mut self.found.thread_locals,
                false => &mut self.found.variables,
            };
            variables.push(Variable { start, name, type_ });
        }
    }

    /// The address, and whether it is an offset among the thread-local variables.
    fn address(&self, entry: &Entry) -> Option<(u64, bool)> {
        let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else {
            return None;
        };
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        let is_thread_local = operations.next().ok()? == Some(Operation::TLS);
        let address = match first {
            Operation::Address { address } => Some(address),
            Operation::UnsignedConstant { value } if is_thread_local => Some(value),
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok(),
            Operation::ConstantIndex { index } if is_thread_local => {
                self.dwarf.address(self.unit, index).ok()
            }
            _ => None,
        };
        Some((address?, is_thread_local))
    }

    fn type_(&self, entry: &Entry) -> Option<Type> {
        let size = self.number(entry, gimli::DW_AT_byte_size);
        let of = self.reference(entry, gimli::DW_AT_type);
        let plain = |encoding| {
            Some(Type::Plain {
                size: size.unwrap_or(8),
                encoding,
            })
        };
        match entry.tag() {
            gimli::DW_TAG_base_type => {
                let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
                    Some(AttributeValue::Encoding(encoding)) => match encoding {
                        gimli::DW_ATE_boolean => Encoding::Boolean,
                        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Encoding::Signed,
                        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char => Encoding::Unsigned,
                        _ => Encoding::Unknown,
                    },
                    _ => Encoding::Unknown,
                };
                plain(encoding)
            }
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => plain(Encoding::Pointer),
            gimli::DW_TAG_enumeration_type => plain(Encoding::Enumeration(HashMap::new())),
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_typedef => Some(Type::Alias { of: of? }),
            gimli::DW_TAG_array_type => Some(Type::Array {
                of: of?,
                counts: Vec::new(),
            }),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                Some(Type::Structure {
                    size: size?,
                    members: Vec::new(),
                })
            }
            _ => None,
        }
    }

    fn member(&mut self, entry: &Entry, owner: Option<usize>) {
        let Some(type_) = self.reference(entry, gimli::DW_AT_type) else {
            return;
        };
        // Static members have no offset in the object.
        let bits = || self.number(entry, gimli::DW_AT_data_bit_offset);
        let offset = self.number(entry, gimli::DW_AT_data_member_location);
        let offset = offset.or_else(|| Some(bits()? / 8));
        if entry.attr_value(gimli::DW_AT_external).is_some() {
            return;
        }
        let (name, offset) = (self.name(entry), offset.unwrap_or(0));
        if let Some(Type::Structure { members, .. }) =
            owner.and_then(|owner| self.found.types.get_mut(&owner))
        {
            members.push(Member {
                name,
                offset,
                type_,
            });
        }
    }

    fn dimension(&mut self, entry: &Entry, owner: Option<usize>) {
        let count = self.number(entry, gimli::DW_AT_count).or_else(|| {
            Some(
                self.number(entry, gimli::DW_AT_upper_bound)?
                    .wrapping_add(1),
            )
        });
        if let Some(Type::Array { counts, .. }) =
            owner.and_then(|owner| self.found.types.get_mut(&owner))
        {
            counts.push(count.unwrap_or(0));
        }
    }

    fn enumerator(&mut self, entry: &Entry, owner: Option<usize>) {
        let value = match entry.attr_value(gimli::DW_AT_const_value) {
            Some(value) => value
                .sdata_value()
                .or_else(|| value.udata_value().map(|v| v as i64)),
            None => None,
        };
        let name = self.name(entry);
        if let (Some(value), Some(name)) = (value, name)
            && let Some(Type::Plain {
                encoding: Encoding::Enumeration(names),
                ..
            }) = owner.and_then(|owner| self.found.types.get_mut(&owner))
        {
            names.insert(value, name);
        }
    }

    fn name(&self, entry: &Entry) -> Option<String> {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(name.to_string_lossy().ok()?.into_owned())
    }

    fn number(&self, entry: &Entry, at: gimli::DwAt) -> Option<u64> {
        entry.attr_value(at)?.udata_value()
    }

    fn reference(&self, entry: &Entry, at: gimli::DwAt) -> Option<usize> {
        match entry.attr_value(at)? {
            AttributeValue::UnitRef(offset) => Some(self.global(offset)),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => Some(offset),
            _ => None,
        }
    }

    /// Units number their entries each from zero; the types of all of them are kept together.
    fn global(&self, offset: UnitOffset) -> usize {
        offset
            .to_debug_info_offset(&self.unit.header)
            .map_or(usize::MAX, |offset| offset.0)
    }
}
