//! Runs C and C++ programs natively under the control of an explorer.
//!
//! The program is compiled with the compiler's ThreadSanitizer instrumentation, linked into a shared
//! object together with small stubs that jump through [a table](abi), loaded into this process,
//! and run on fibers. [`NativeMachine`] drives it through [`selvedge_core::Machine`].
#![allow(dead_code)]

mod current;
mod posix;
