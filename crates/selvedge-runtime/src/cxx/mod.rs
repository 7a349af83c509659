//! What the C++ runtime library asks for: guards of local statics, exceptions that threads share, and
//! the end of a program that does not catch its exceptions.

mod exception;
mod guard;
mod terminate;

/// The functions that the stubs inside the program's shared object jump to: name and address.
pub(crate) fn entries() -> Vec<(&'static str, usize)> {
    [exception::entries(), guard::entries(), terminate::entries()].concat()
}
