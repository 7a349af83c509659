//! All tests of the library, in one program: what they share is compiled once. Only those that
//! change statics all the time have a program of their own, `outside`: a spin loop of another test
//! might take that for its own doing.
#![allow(missing_docs)]

mod algorithms;
mod browser;
mod channels;
mod checkpoints;
mod common;
mod confinement;
mod counts;
mod failures;
mod freed;
mod interface;
mod jobs;
mod litmus;
mod owners;
mod pages;
mod panics;
mod poison;
mod primitives;
mod random_programs;
mod spurious_events;
mod std_interface;
mod values;
#[path = "../../../selvedge-cli/tests/all/webdriver.rs"]
#[allow(dead_code, reason = "the command's tests need all of it")]
mod webdriver;
