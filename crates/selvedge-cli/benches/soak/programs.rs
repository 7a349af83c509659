//! Random programs, and what brute force says of them.

use selvedge_testkit::random::Random;
use selvedge_testkit::{
    Axioms, Flavour, Program, ScriptMachine, allowed, brute_force, c_source, random_program,
    with_random_orders,
};

/// Programs with more prefixes than this are left out.
const LIMIT: usize = 3_000;

/// Loops come last: brute force unrolls them only under sequential consistency.
const FLAVOURS: [Flavour; 4] = [
    Flavour::Memory,
    Flavour::Mutexes,
    Flavour::Deadlocks,
    Flavour::Loops,
];

/// Some programs in one file; the first choice of main picks one.
pub(crate) struct Programs {
    pub(crate) source: String,
    pub(crate) count: usize,
    pub(crate) model: &'static str,
    /// The complete executions of all of them.
    pub(crate) executions: u64,
    /// Whether one of them can fail or get stuck.
    pub(crate) bug: bool,
    /// Whether they may spin, which searches over states do not call a bug.
    pub(crate) spins: bool,
}

impl Programs {
    pub(crate) fn new(random: &mut Random) -> Programs {
        let models = [
            ("sc", Axioms::Sc),
            ("tso", Axioms::Tso),
            ("ra", Axioms::Ra),
            ("rc11", Axioms::Rc11),
        ];
        let (model, axioms) = models[random.below(4) as usize];
        let flavour = FLAVOURS[random.below(if model == "sc" { 4 } else { 3 }) as usize];
        let wanted = 1 + random.below(6) as usize;
        // Half of the files hold only programs without a bug.
        let clean = random.once_in(2);
        let (mut programs, mut executions, mut bug) = (Vec::new(), 0, false);
        while programs.len() < wanted {
            let (seed, orders) = (random.word(), random.word());
            let mut program = random_program(seed, flavour);
            program.initial.clear();
            if model != "sc" {
                program = with_random_orders(&program, orders);
            }
            let machine = &mut ScriptMachine::new(program.clone());
            let outcomes = match model {
                "sc" => brute_force(machine, LIMIT),
                _ => allowed(machine, axioms, LIMIT),
            };
            let Some(outcomes) = outcomes else { continue };
            let fails = outcomes.fails || !outcomes.stuck.is_empty();
            if is_written(&program) && !(clean && fails) {
                executions += outcomes.complete.len() as u64;
                bug |= fails;
                programs.push(program);
            }
        }
        Programs {
            source: c_source(&programs).expect("each of them can be written in C"),
            count: programs.len(),
            model,
            executions,
            bug,
            spins: flavour == Flavour::Loops,
        }
    }
}

/// Whether the program can be written in C.
fn is_written(program: &Program) -> bool {
    c_source(std::slice::from_ref(program)).is_some()
}
