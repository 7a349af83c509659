//! The one list of what the program under test may call in the runtime.
//!
//! Each module contributes its part. The list yields both the assembly stubs that are linked into
//! the program ([`crate::support::stub_assembly`]) and the table in the [`crate::gate`] that
//! they jump through.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::OnceLock;

use crate::gate;

/// An entry point into the runtime.
pub(crate) struct Export {
    /// The symbol the program refers to.
    pub(crate) name: Cow<'static, str>,
    /// The address of the function it gets.
    pub(crate) function: usize,
    /// The data that the stub notes before it jumps.
    pub(crate) entry: Entry,
}

/// The data that the stub of an export notes in the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Return address and stack pointer.
    Light,
    /// The callee-saved registers too: for everything that may turn out to be a visible operation, so
    /// that a repeated state can be recognised.
    Full,
    /// This number of arguments as well, where the operation does not tell them.
    Arguments(u8),
}

impl Entry {
    /// How many arguments are noted.
    pub(crate) fn arguments(self) -> usize {
        match self {
            Entry::Light | Entry::Full => 0,
            Entry::Arguments(count) => usize::from(count).min(gate::ARGUMENTS),
        }
    }
}

/// A function of the runtime as a program calls it: name, address, number of arguments.
pub(crate) type EntryPoint = (&'static str, usize, u8);

/// All exports, in the order of the table.
pub(crate) fn exports() -> Vec<Export> {
    let mut all = crate::tsan::exports();
    let full = |(name, function, arguments): EntryPoint| Export {
        name: name.into(),
        function,
        entry: Entry::Arguments(arguments),
    };
    all.extend(crate::posix::entries().into_iter().map(full));
    all.extend(crate::cxx::entries().into_iter().map(full));
    all.extend(crate::locals::entries().into_iter().map(full));
    let mut seen = HashSet::new();
    all.retain(|export| seen.insert(export.name.clone()));
    all
}

/// How many arguments are noted, by the place in the table.
static NOTED_ARGUMENTS: OnceLock<Vec<usize>> = OnceLock::new();

/// How many arguments the stub at `slot` of the table notes.
pub(crate) fn noted_arguments(slot: usize) -> usize {
    let noted = |export: &Export| export.entry.arguments();
    let all = NOTED_ARGUMENTS.get_or_init(|| exports().iter().map(noted).collect());
    all.get(slot).copied().unwrap_or(0)
}

impl Export {
    /// Whether all that it changes is written to the log of [`crate::undo`].
    pub(crate) fn is_undoable(&self) -> bool {
        self.name.starts_with("__tsan_") || crate::posix::UNDOABLE.contains(&&*self.name)
    }
}

/// Whether that is so for the function at `slot` of the table.
pub(crate) fn is_undoable(slot: usize) -> bool {
    static UNDOABLE: OnceLock<Vec<bool>> = OnceLock::new();
    let all = UNDOABLE.get_or_init(|| exports().iter().map(Export::is_undoable).collect());
    all.get(slot).copied().unwrap_or(false)
}

/// Fills the table of the mapped gate.
pub(crate) fn fill_table() -> io::Result<()> {
    let exports = exports();
    assert!(
        exports.len() <= gate::CAPACITY,
        "the gate's table is too small"
    );
    let _ = noted_arguments(0);
    crate::posix::library::prepare();
    gate::set_targets(|targets| {
        (targets.settle, targets.stored) = callbacks();
        for (slot, export) in exports.iter().enumerate() {
            targets.table[slot] = export.function;
        }
    })
}

/// Whether the gate leads where [`fill_table`] had it lead.
pub(crate) fn is_as_filled(targets: &gate::Targets) -> bool {
    let functions = exports().into_iter().map(|export| export.function);
    let table = functions.chain(std::iter::repeat(0)).take(gate::CAPACITY);
    (targets.settle, targets.stored) == callbacks() && table.eq(targets.table)
}

/// The functions that are called before an entry and behind a store.
fn callbacks() -> (usize, usize) {
    (
        crate::tsan::settle::at_entry as *const () as usize,
        crate::tsan::settle::stored as *const () as usize,
    )
}
