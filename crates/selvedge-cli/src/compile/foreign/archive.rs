//! Static archives: their members, and which of them a program needs.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::{File, Object as _, ObjectSymbol as _};

/// A member of an archive.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The members of the archive at `path`, which has these bytes. `None` if it is none.
pub(crate) fn members(path: &Path, bytes: &[u8]) -> Option<Vec<Member>> {
    let archive = ArchiveFile::parse(bytes).ok()?;
    let member = |member: object::Result<object::read::archive::ArchiveMember<'_>>| {
        let member = member.ok()?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        // A thin archive holds names only, as they are seen from its own directory.
        let bytes = match member.is_thin() {
            true => std::fs::read(path.parent()?.join(&name)).ok()?,
            false => member.data(bytes).ok()?.to_vec(),
        };
        Some(Member { name, bytes })
    };
    archive.members().map(member).collect()
}

/// The `members` that a linker would take, given the names that a program needs and those it has, and the
/// names that they add to both.
pub(crate) fn needed(
    members: Vec<Member>,
    missing: &mut BTreeSet<String>,
    defined: &mut HashSet<String>,
) -> Vec<Member> {
    let mut left: Vec<(Member, Names)> = members
        .into_iter()
        .map(|member| {
            let names = Names::of(&member.bytes);
            (member, names)
        })
        .collect();
    let mut taken = Vec::new();
    let wanted = |names: &Names, missing: &BTreeSet<String>| {
        names.defined.iter().any(|name| missing.contains(name))
    };
    while let Some(at) = left.iter().position(|(_, names)| wanted(names, missing)) {
        let (member, names) = left.remove(at);
        defined.extend(names.defined);
        missing.extend(names.used);
        missing.retain(|name| !defined.contains(name));
        taken.push(member);
    }
    taken
}

/// The symbols that an object defines for others, and those it needs.
#[derive(Default)]
struct Names {
    defined: Vec<String>,
    used: Vec<String>,
}

impl Names {
    fn of(bytes: &[u8]) -> Names {
        let mut names = Names::default();
        let Ok(file) = File::parse(bytes) else {
            return names;
        };
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or_default().to_owned();
            if symbol.is_undefined() && !symbol.is_weak() {
                names.used.push(name);
            } else if symbol.is_global() && !symbol.is_undefined() {
                names.defined.push(name);
            }
        }
        names
    }
}
