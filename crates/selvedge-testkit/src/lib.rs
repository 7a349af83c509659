//! Helpers that the tests of all explorers share: a scripted machine, random programs for it, and a
//! brute force that is simple enough to be obviously right.

pub mod axioms;
pub mod brute;
pub mod c_source;
pub mod candidates;
pub mod damage;
pub mod execution;
pub mod ltl;
pub mod ltl_oracle;
pub mod orders;
pub mod peers;
pub mod preemptions;
pub mod program;
pub mod random;
pub mod reach;
pub mod relation;
pub mod script;
pub mod state_script;
pub mod weak_preemptions;

pub use axioms::Axioms;
pub use brute::{Outcomes, brute_force};
pub use c_source::{c_source, enforceable_programs};
pub use candidates::allowed;
pub use damage::{damaged, damaged_inputs};
pub use execution::Execution;
pub use ltl::{holds_on_word, random_formula, random_server};
pub use ltl_oracle::{Explicit, temporal_size};
pub use orders::{random_cycle, random_litmus, with_random_orders};
pub use peers::ThreadPeers;
pub use preemptions::{Preemptions, least_cost, least_preemptions};
pub use program::{Instruction, Program};
pub use random::{Flavour, random_program};
pub use reach::{Reachable, reachable};
pub use script::{ScriptMachine, object_order};
pub use state_script::StateScript;
pub use weak_preemptions::allowed_preemptions;
