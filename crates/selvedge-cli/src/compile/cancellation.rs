//! How programs that cancel threads are linked: their cancellation points are replaced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use selvedge_runtime::support::{cancellation_points, environment_functions};
use selvedge_runtime::symbols::{Symbol, classify};

use super::Object;
use super::toolchain::Toolchain;
use crate::problem::Problem;
use crate::scan;

/// The part that a program which cancels threads is linked with; nothing for all others.
#[derive(Debug, Default)]
pub(super) struct Cancellation {
    /// The functions that the linker replaces.
    pub(super) wrapped: Vec<&'static str>,
    /// An object with replacements.
    pub(super) stubs: Option<PathBuf>,
}

impl Cancellation {
    /// Assembles the replacements for the functions that `objects` leave `undefined`, and for those that
    /// the C++ library may call, which is linked in whole files. A definition of the program's own is no
    /// cancellation point.
    pub(super) fn prepare(
        objects: &[Object],
        undefined: &BTreeSet<String>,
        has_environment: bool,
        toolchain: &Toolchain,
        scratch: &Path,
    ) -> Result<Cancellation, Problem> {
        let own = scan::defined(objects)?;
        let modelled = |name: &str| {
            classify(name) == Symbol::Provided
                || (has_environment && environment_functions().any(|known| known == name))
        };
        let used = |name: &str| !own.contains(name) && (undefined.contains(name) || modelled(name));
        let (wrapped, text) = cancellation_points(used);
        let stubs = scratch.join("cancellation-stubs.o");
        toolchain.assemble_text(&text, &stubs.with_extension("s"), &stubs)?;
        Ok(Cancellation {
            wrapped,
            stubs: Some(stubs),
        })
    }
}
