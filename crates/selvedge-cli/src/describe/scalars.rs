//! The scalars in global variables.

use super::variables::{DEPTH, Type, Variables};

/// Larger variables are left out: tables rather than state.
const LARGEST: usize = 256;

/// The most scalars that are found.
const MOST: usize = 4096;

/// The places and widths of the scalars in variables with a fixed address. Members whose names are reserved for
/// the implementation, such as those of a mutex, are left out.
pub(super) fn scalars(variables: &Variables) -> Vec<(u64, u8)> {
    let mut all = Vec::new();
    for variable in &variables.variables {
        let mut found = Vec::new();
        let whole = collect(variables, variable.type_, variable.start, &mut found, DEPTH);
        if whole && all.len() + found.len() <= MOST {
            all.extend(found);
        }
    }
    // Members of a union lie at the same place.
    all.sort_unstable();
    all.dedup();
    all
}

/// Adds the scalars of a type at `at`, and tells whether there are not too many.
fn collect(
    variables: &Variables,
    type_: usize,
    at: u64,
    found: &mut Vec<(u64, u8)>,
    depth: usize,
) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return true;
    };
    match variables.types.get(&type_) {
        Some(Type::Alias { of }) => collect(variables, *of, at, found, depth),
        Some(Type::Plain { size, .. }) => {
            if let (1 | 2 | 4 | 8, Ok(width)) = (*size, u8::try_from(*size)) {
                found.push((at, width));
            }
            found.len() <= LARGEST
        }
        Some(Type::Array { of, counts }) => {
            let Some(size) = variables.size(*of, DEPTH).filter(|&size| size > 0) else {
                return true;
            };
            let count = counts.iter().product::<u64>();
            let before = found.len();
            // Where the first element has no scalar, the others have none either.
            (count == 0 || collect(variables, *of, at, found, depth))
                && (found.len() == before
                    || (1..count).all(|n| collect(variables, *of, at + n * size, found, depth)))
        }
        Some(Type::Structure { members, .. }) => members.iter().all(|member| {
            let name = member.name.as_deref().unwrap_or_default();
            let place = at + member.offset;
            name.starts_with('_') || collect(variables, member.type_, place, found, depth)
        }),
        None => true,
    }
}
