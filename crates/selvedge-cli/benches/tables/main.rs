//! The tables of the papers that the engines come from, measured anew with programs written for
//! this project, each figure beside the one that the paper prints.
//!
//! `cargo bench -p selvedge-cli --bench tables -- [PAPER]... [--full]`
//!
//! Without a paper, all of them. `--full` adds the rows that take long.
#![allow(missing_docs)]

mod buster;
mod buster_rows;
mod check;
mod csdr;
mod irs;
mod nidhugg;
mod rcu;
mod table;
mod tracer;
mod tracer_cost;

use std::process::exit;

/// The request of the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Also the rows that take long.
    pub(crate) full: bool,
}

/// A paper: its name on the command line, its title, and what prints its tables.
type Paper = (&'static str, &'static str, fn(Extent));

const PAPERS: &[Paper] = &[
    (
        "buster",
        "Marmanis, Kokologiannakis, Vafeiadis: Reconciling Preemption Bounding with DPOR (2023)",
        buster::print,
    ),
    (
        "tracer",
        "Abdulla, Atig, Jonsson, Ngo: Optimal Stateless Model Checking under the Release-Acquire Semantics (2018)",
        tracer::print,
    ),
    (
        "nidhugg",
        "Sachinoglou: Preemption Bounding Techniques for Dynamic Partial Order Reduction (diploma thesis, NTUA)",
        nidhugg::print,
    ),
    (
        "csdr",
        "Štill, Ročkai, Barnat: Context-Switch-Directed Verification in DIVINE (MEMICS 2014)",
        csdr::print,
    ),
    (
        "irs",
        "Metzler, Saissi, Bokor, Suri: Safe Execution of Concurrent Programs by Enforcement of Scheduling Constraints (2018)",
        irs::print,
    ),
];

fn main() {
    // Cargo itself passes `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let (options, names): (Vec<_>, Vec<_>) = arguments
        .iter()
        .partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| **option != "--full") {
        refuse(&format!("{unknown} is not an option here; there is --full"));
    }
    let known: Vec<&str> = PAPERS.iter().map(|(name, ..)| *name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        refuse(&format!("no tables of `{unknown}`; there are {known:?}"));
    }
    let extent = Extent {
        full: !options.is_empty(),
    };
    for (name, title, print) in PAPERS {
        if names.is_empty() || names.iter().any(|asked| asked == name) {
            println!("# {title}\n");
            print(extent);
        }
    }
}

fn refuse(message: &str) -> ! {
    eprintln!("{message}");
    exit(2);
}
