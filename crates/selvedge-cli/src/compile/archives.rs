//! Archives of objects that other compilers have instrumented: the members that a program needs are compiled
//! like objects of their own.

use std::fs;
use std::path::{Path, PathBuf};

use super::source::Source;
use super::{Language, Object, Program, foreign};
use crate::input;
use crate::problem::{Problem, note};
use crate::scan;

/// The directory for what is taken out of them.
pub(super) const MEMBERS: &str = "members";

/// The members of `archives` that a program with these objects needs, in the directory `MEMBERS`.
pub(super) fn members(
    program: &Program,
    archives: &[Source],
    objects: &[Object],
    scratch: &Path,
) -> Result<Vec<Source>, Problem> {
    let mut sources = Vec::new();
    if archives.is_empty() {
        return Ok(sources);
    }
    let into = scratch.join(MEMBERS);
    let failed = |path: &Path, error| Problem::internal(format!("{}: {error}", path.display()));
    fs::create_dir(&into).map_err(|error| failed(&into, error))?;
    let (mut missing, mut defined) = (scan::undefined(objects)?, scan::defined(objects)?);
    missing.extend((!defined.contains("main")).then(|| "main".to_owned()));
    for archive in archives {
        let path = program.path(&archive.path);
        let bytes = input::read(&path).map_err(|error| failed(&path, error))?;
        let all = foreign::members(&path, &bytes).unwrap_or_default();
        for member in foreign::needed(all, &mut missing, &mut defined) {
            let name = PathBuf::from(format!("{}({})", archive.path.display(), member.name));
            if !foreign::is_instrumented(&member.bytes) {
                note(&format!(
                    "{} carries no instrumentation and is left out",
                    name.display()
                ));
                continue;
            }
            let object = into.join(format!("member-{}.o", sources.len()));
            fs::write(&object, &member.bytes).map_err(|error| failed(&object, error))?;
            sources.push(Source {
                path: name,
                language: Language::C,
                compiled: Some(object),
                recorded: None,
                foreign: true,
            });
        }
    }
    Ok(sources)
}
