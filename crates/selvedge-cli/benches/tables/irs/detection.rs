//! A program without the comparison of its events with what was proven, to tell what that costs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// Where the numbers of functions and of places that were taken out are in the notes of an executable, and how long
/// the notes' beginning is.
const COUNTS: [usize; 2] = [24, 28];
const HEAD: usize = 72;
/// The words of the prefix that tell how many histories and repeats there are.
const HISTORIES: [usize; 2] = [5, 6];

/// Makes a copy of an executable that knows no histories, so that none are compared.
pub(super) fn without(program: &Path) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut bytes = fs::read(program).map_err(failed)?;
    let notes = notes(&bytes).ok_or("the executable has no notes")?;
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*word) as usize)
    };
    let [functions, removed] = COUNTS.map(|at| word(notes + at).unwrap_or(0));
    let prefix = notes + HEAD + 16 * functions + 4 * removed;
    for place in HISTORIES {
        let word = bytes.get_mut(prefix + 4 * place..).unwrap_or_default();
        word.iter_mut().take(4).for_each(|byte| *byte = 0);
    }
    let copy = program.with_extension("silent");
    fs::write(&copy, bytes).map_err(failed)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    Ok(copy)
}

/// Where the notes of an executable are in its file.
fn notes(bytes: &[u8]) -> Option<usize> {
    let file = object::File::parse(bytes).ok()?;
    let mut symbols = file.symbols();
    let symbol = symbols.find(|symbol| symbol.name() == Ok("selvedge_image"))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let offset = symbol.address() - section.address();
    Some((section.file_range()?.0 + offset) as usize)
}
