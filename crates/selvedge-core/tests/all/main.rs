//! All tests of the engines, in one program: each of the engines is compiled for them once.

mod brute_force;
mod cheaper_bounds;
mod common;
mod descents;
mod dpor_brute_force;
mod dpor_figures;
mod dpor_lost_classes;
mod frontier;
mod irs;
mod known_counts;
mod litmus;
mod ltl_automata;
mod ltl_programs;
mod model_order;
mod preemptions;
mod reads_from;
mod reads_from_awaits;
mod reads_from_counts;
mod repair;
mod slices;
mod states;
mod undo;
mod weak_models;
mod weak_preemptions;
mod weak_witness;
mod witness;
