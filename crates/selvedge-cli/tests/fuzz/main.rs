//! Random C programs that run natively and under Selvedge must come to the same results.
//!
//! These tests need more than Rust and a C compiler, and minutes, so they are run only when asked for:
//! `cargo test -p selvedge-cli --test fuzz -- --ignored --nocapture --test-threads 1`. Each of them takes
//! its range of seeds from a variable of the environment, such as `SELVEDGE_CSMITH=1..20001`.

mod checksum;
#[path = "../all/common.rs"]
#[allow(dead_code)]
mod common;
mod constructs;
mod csmith;
mod tally;
mod threads;
