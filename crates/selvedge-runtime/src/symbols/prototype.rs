//! Reads the rows of [`super::table`].

use super::{Argument, Class, Direction, Extent, Function, How, Memory};

/// The suffixes of a family of functions, and what `real` means in each.
const FAMILY: [(&str, Class); 3] = [
    ("f", Class::Float),
    ("", Class::Double),
    ("l", Class::LongDouble),
];

/// All functions of the rows in `text`.
pub(super) fn functions(text: &'static str, how: How) -> Vec<Function> {
    let rows = text.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.flat_map(|row| read(row, how)).collect()
}

fn read(row: &'static str, how: How) -> Vec<Function> {
    let Some((names, prototype)) = row.split_once(" = ") else {
        let plain = |name| function(name, Class::Word, Vec::new(), None, how);
        return row.split_whitespace().map(plain).collect();
    };
    let members: &[(&str, Class)] = match prototype.contains("real") {
        true => &FAMILY,
        false => &[("", Class::Word)],
    };
    let member = |name: &'static str| {
        let of = move |&(suffix, real): &(&str, Class)| {
            let (result, arguments) = split(prototype);
            let fixed = arguments.iter().position(|&argument| argument == "...");
            let arguments = arguments.iter().filter(|&&argument| argument != "...");
            let arguments = arguments.map(|argument| self::argument(argument, real));
            let result = class(result, real).unwrap_or(Class::Word);
            function(
                &suffixed(name, suffix),
                result,
                arguments.collect(),
                fixed,
                how,
            )
        };
        members.iter().map(of)
    };
    names.split_whitespace().flat_map(member).collect()
}

fn function(
    name: &str,
    result: Class,
    arguments: Vec<Argument>,
    fixed: Option<usize>,
    how: How,
) -> Function {
    Function {
        name: name.to_owned(),
        result,
        arguments,
        fixed,
        how,
    }
}

/// The member of a family: `sinf`, `lgammaf_r`.
fn suffixed(name: &str, suffix: &str) -> String {
    match name.strip_suffix("_r") {
        Some(stem) if !suffix.is_empty() => format!("{stem}{suffix}_r"),
        _ => format!("{name}{suffix}"),
    }
}

/// `result(argument, argument)`, split at its commas outside of parentheses.
fn split(prototype: &'static str) -> (&'static str, Vec<&'static str>) {
    let parts = prototype
        .strip_suffix(')')
        .and_then(|text| text.split_once('('));
    let (result, list) = parts.unwrap_or_else(|| panic!("{prototype} is malformed"));
    let (mut arguments, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(list[start..].trim());
    (result.trim(), arguments)
}

/// The class of a type by value.
fn class(text: &str, real: Class) -> Option<Class> {
    match text {
        "real" => Some(real),
        "float" => Some(Class::Float),
        "double" => Some(Class::Double),
        "long double" => Some(Class::LongDouble),
        "int" => Some(Class::Word),
        _ => None,
    }
}

fn argument(text: &'static str, real: Class) -> Argument {
    if let Some(class) = class(text, real) {
        let sample = if class == Class::Word { "1" } else { "1.5" };
        return Argument::Value { class, sample };
    }
    if let Some(sample) = text.strip_prefix("int=") {
        let class = Class::Word;
        return Argument::Value { class, sample };
    }
    let text = if text == "list" { "in list" } else { text };
    let memory = text
        .split_once(' ')
        .and_then(|(direction, extent)| memory(direction, self::extent(extent, real)?));
    Argument::Pointer(memory.unwrap_or_else(|| panic!("{text} is malformed")))
}

fn memory(direction: &str, extent: Extent) -> Option<Memory> {
    let (direction, null) = match direction.strip_suffix('?') {
        Some(direction) => (direction, true),
        None => (direction, false),
    };
    let direction = match direction {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        "object" => Direction::Object,
        _ => return None,
    };
    Some(Memory {
        direction,
        null,
        extent,
    })
}

fn extent(text: &'static str, real: Class) -> Option<Extent> {
    let (text, sample) = match text.split_once('=') {
        Some((text, sample)) => (text, sample.trim_matches('"')),
        None => (text, "12"),
    };
    let (text, room) = match text.split_once('/') {
        Some((text, room)) => (text, room.parse().ok()?),
        None => (text, sample.len() + 1),
    };
    if let Some((kind, rest)) = text.split_once('(') {
        let numbers = rest.strip_suffix(')')?.split(',');
        let numbers: Option<Vec<usize>> = numbers.map(|n| n.parse().ok()).collect();
        let numbers = numbers?;
        let first = numbers.first()? - 1;
        return Some(match kind {
            "bytes" => Extent::Bytes(first),
            "wides" => Extent::Wides(first),
            "pairs" => Extent::Pairs(first),
            "array" => Extent::Array(first, numbers.get(1)? - 1),
            "first" => Extent::First(first),
            "number" => Extent::Number(first),
            "text" => Extent::Text(first),
            _ => return None,
        });
    }
    Some(match text {
        "int" => Extent::Fixed(4),
        "long" => Extent::Fixed(8),
        "pointer" => Extent::Pointer,
        "list" => Extent::List,
        "real" => Extent::Fixed(real.size()),
        "string" => Extent::String { sample, room },
        "wstring" => Extent::WideString { sample },
        number => Extent::Fixed(number.parse().ok()?),
    })
}
