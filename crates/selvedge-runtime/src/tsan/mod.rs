//! The ThreadSanitizer ABI of gcc and clang.

mod atomic;
mod plain;

use crate::abi::Export;

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let mut all = plain::exports();
    all.extend(atomic::exports());
    all
}
