//! All tests of the command, in one program: what they share is compiled once.
#![allow(missing_docs)]

mod bad_input;
#[cfg(feature = "cluster")]
mod cases;
mod cluster;
mod commands;
mod common;
mod compare;
mod confinement;
mod corpora;
mod counts;
mod cxx20;
mod debugger;
mod docs;
mod environment;
mod estimate;
mod examples;
mod explain;
mod fleet;
mod formats;
mod inline_assembly;
mod irs_enforce;
mod irs_verify;
mod kills;
mod library;
mod limits;
mod litmus;
mod ltl;
mod memory;
mod misuse;
mod mixed_sizes;
mod pages;
mod projects;
mod real_code;
mod replay;
mod reports;
mod scale;
mod schema;
mod semantics;
mod spinning;
mod states;
mod uninstrumented;
mod unroll;
mod unsupported;
mod weak_memory;
mod webdriver;
