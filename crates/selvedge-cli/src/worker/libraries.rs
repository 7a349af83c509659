//! The shared libraries that a program loads. With other libraries, a search of the program is a
//! different search.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::{File, Object as _};
use sha2::{Digest as _, Sha256};

use super::protocol::Library;

/// The libraries in this process, besides the command itself and `program`.
pub(super) fn loaded(program: &Path) -> Vec<Library> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let ourselves = fs::read_link("/proc/self/exe").unwrap_or_default();
    let code = maps.lines().filter_map(|line| {
        let (fields, path) = line.split_at(line.find('/')?);
        let permissions = fields.split_whitespace().nth(1)?;
        permissions.contains('x').then_some(Path::new(path))
    });
    let paths: BTreeSet<&Path> = code
        .filter(|&path| path != program && path != ourselves)
        .collect();
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into()
    };
    let mut libraries: Vec<Library> = paths
        .into_iter()
        .map(|path| (name(path), version(path)))
        .collect();
    libraries.sort();
    libraries
}

/// The build id of a library; else, a hash of its contents.
fn version(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let file = File::parse(&*bytes).ok();
    let id = file.and_then(|file| file.build_id().ok().flatten().map(hexadecimal));
    id.unwrap_or_else(|| hexadecimal(&Sha256::digest(&bytes)))
}

/// Bytes as text.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
