//! The protections that keep accesses from going unseen, in parts that tests switch off one at a time: the comparison
//! of memory with its known contents then has to end the search as incomplete. Only tests and benchmarks build the
//! runtime with the feature `specimens`; without it nothing can be switched off.

/// A part that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// The announcements that are added where the compiler forgot them.
    Announcements,
    /// The checks behind stores.
    Checks,
    /// The comparison of memory with its known contents.
    Comparison,
    /// The runtime's announcements of the writes of library functions.
    Library,
    /// The checks of accesses for locations of other sizes that share bytes with theirs.
    Sizes,
}

impl Protection {
    /// The environment's variable that names the part to switch off.
    #[cfg(feature = "specimens")]
    pub const VARIABLE: &str = "SELVEDGE_WITHOUT";

    /// Whether it is switched off.
    #[cfg(feature = "specimens")]
    #[inline]
    pub fn is_off(self) -> bool {
        use std::sync::LazyLock;
        static OFF: LazyLock<Option<Protection>> = LazyLock::new(|| {
            use Protection::{Announcements, Checks, Comparison, Library, Sizes};
            let name = std::env::var(Protection::VARIABLE).ok()?;
            let mut all = [Announcements, Checks, Comparison, Library, Sizes].into_iter();
            all.find(|protection| format!("{protection:?}") == name)
        });
        *OFF == Some(self)
    }

    /// It is not.
    #[cfg(not(feature = "specimens"))]
    #[inline(always)]
    pub const fn is_off(self) -> bool {
        false
    }
}
