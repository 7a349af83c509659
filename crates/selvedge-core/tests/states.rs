//! Kept states against plain search over copies of the machine.

use std::collections::BTreeSet;

use selvedge_core::states::{StateId, States};
use selvedge_testkit::{Flavour, StateScript, random_program, reachable};

/// Walks over all states in the order of their numbers, going back to each.
#[test]
fn every_state_is_known_once_and_can_be_come_back_to() {
    for seed in 0..400 {
        let flavour = Flavour::ALL[seed as usize % 5];
        let program = random_program(seed, flavour);
        let mut machine = StateScript::new(program.clone());
        let Some(expected) = reachable(&machine, 3_000) else {
            continue;
        };
        let mut states = States::new(&mut machine);
        let mut met = BTreeSet::new();
        let mut next = 0;
        while next < states.len() {
            let here = StateId(next as u32);
            states.go(here);
            assert!(met.insert(states.machine().state()), "{program:?}");
            let wrong = expected.failed.contains(&states.machine().state());
            let mut steps = Vec::new();
            states.steps(&mut steps);
            for step in steps.into_iter().filter(|_| !wrong) {
                states.go(here);
                let before = states.len();
                let reached = states.take(step);
                assert_eq!(reached.new, states.len() > before);
                assert_eq!(states.here(), reached.state);
            }
            next += 1;
        }
        assert_eq!(met, expected.states, "{program:?}");
    }
}
