//! All tests of the runtime, in one program: what they share is compiled once.
#![allow(missing_docs)]

mod abi;
mod common;
mod cxx;
mod faults;
mod futex;
mod libc_environment;
mod libc_memory;
mod memory;
mod mutexes;
mod objects;
mod parking;
mod plain_sc;
mod race;
mod random_looks;
mod random_loops;
mod random_programs;
mod random_retries;
mod smoke;
mod spin;
mod state;
mod states;
mod symbols;
mod temporal;
mod threads;
mod unseen;
