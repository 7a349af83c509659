//! What threads share, as in [`std::sync`].

mod arc;
pub mod atomic;

pub use arc::Arc;
#[doc(no_inline)]
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
