//! Support for the C++ runtime library: guards of local statics, exceptions that threads share, and
//! the end of a program that does not catch its exceptions.

mod exception;
mod guard;
mod terminate;

/// The functions that the stubs inside the program's shared object jump to.
pub(crate) fn entries() -> Vec<crate::abi::EntryPoint> {
    [exception::entries(), guard::entries(), terminate::entries()].concat()
}
