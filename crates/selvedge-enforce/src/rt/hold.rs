//! How a thread may hold an object so that what it does with it is no event: as the verifier counts,
//! such an operation changes nothing that others can see.

/// It does not matter.
pub const INDIFFERENT: u32 = 0;
/// Taking a mutex that it holds already.
pub const MUTEX_TAKEN: u32 = 1;
/// Unlocking a mutex that it holds more than once, or not at all.
pub const MUTEX_GIVEN: u32 = 2;
/// Waiting for a read-write lock that it holds for writing.
pub const LOCK_TAKEN: u32 = 3;
