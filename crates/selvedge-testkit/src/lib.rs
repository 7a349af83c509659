//! Tests tools.
