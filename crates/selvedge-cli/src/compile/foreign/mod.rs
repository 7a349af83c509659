//! Objects that another compiler has instrumented, as assembly.
//!
//! An object without its source can be checked if it calls ThreadSanitizer's callbacks, which its `__tsan_`
//! symbols tell: those of a Rust library, for example. It is taken apart into assembly, which then goes the
//! way of what our own compilers write, so that the scan looks at it and checks are put behind its stores.
//!
//! The text must be the same program. So it is assembled and taken apart once more, which has to give the same text;
//! and everything that is not understood is refused.

mod archive;
mod lines;
mod pieces;
mod writer;

use std::path::Path;

use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, Symbol};

use super::Program;
use crate::input;
use crate::problem::Problem;
pub(crate) use archive::{Member, members, needed};
pub(super) use lines::Lines;
use writer::Writer;

/// Whether `path` is such an object, or an archive of some.
pub(crate) fn is(path: &Path) -> bool {
    let named = |wanted: &str| path.extension().is_some_and(|end| end == wanted);
    (named("o") || named("a")) && input::read(path).is_ok_and(|bytes| holds(path, &bytes))
}

/// Whether the file `path` with these bytes is such an object, or an archive of some.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    match members(path, bytes) {
        Some(members) => members.iter().any(|it| is_instrumented(&it.bytes)),
        None => is_instrumented(bytes),
    }
}

/// Refuses an option that needs the source of everything.
pub(crate) fn refuse(program: &Program, option: &str) -> Result<(), Problem> {
    let mut files = program.files.iter();
    match files.find(|file| is(&program.path(file))) {
        None => Ok(()),
        Some(file) => Err(Problem::request(format!(
            "{option} needs the source of {}",
            file.display()
        ))
        .note("instrumentation by another compiler leaves out what this option is about")
        .help("name the source files instead: selvedge verify FILE…")),
    }
}

/// Whether an object calls ThreadSanitizer.
pub(crate) fn is_instrumented(bytes: &[u8]) -> bool {
    let called = |symbol: Symbol<'_, '_>| {
        let name = symbol.name().unwrap_or_default();
        symbol.is_undefined() && name.starts_with("__tsan_") && name != "__tsan_init"
    };
    File::parse(bytes).is_ok_and(|file| file.symbols().any(called))
}

/// Whether LLVM wrote an object, which leaves atomic loads beside their callbacks.
pub(super) fn is_of_llvm(bytes: &[u8]) -> bool {
    let comment = |file: File<'_>| {
        let section = file.section_by_name(".comment")?;
        let text = String::from_utf8_lossy(section.data().ok()?).into_owned();
        Some(
            ["clang", "rustc", "LLVM", "flang"]
                .iter()
                .any(|name| text.contains(name)),
        )
    };
    File::parse(bytes).ok().and_then(comment).unwrap_or(false)
}

/// An object as assembly, with the lines of its source if debug information tells them. The error says what
/// is not understood.
pub(super) fn assembly(bytes: &[u8], lines: &Lines) -> Result<String, String> {
    let file = File::parse(bytes).map_err(|_| "it is not an object of this system".to_owned())?;
    Writer::new(&file, lines)?.write()
}
