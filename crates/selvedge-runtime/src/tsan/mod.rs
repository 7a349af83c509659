//! The ThreadSanitizer ABI of gcc and clang.

pub(crate) mod atomic;
mod calls;
pub(crate) mod plain;
mod range;
pub(crate) mod settle;

use crate::abi::Export;

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    [
        plain::exports(),
        range::exports(),
        calls::exports(),
        atomic::exports(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
