//! Kept states against plain search over copies of the machine.

use std::collections::BTreeSet;
use std::thread;

use selvedge_core::FailureKind;
use selvedge_core::report::{Bug, Ending, NoObserver, Observer, Report};
use selvedge_core::states::{
    Algorithm, Identity, Settings, StateId, StateStep, States, replay, search, search_with,
};
use selvedge_core::witness::Witness;
use selvedge_testkit::{
    Flavour, Instruction, Program, Reachable, StateScript, ThreadPeers, random_program, reachable,
};

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
            let state = states.machine().state();
            let wrong = expected.failed.contains(&state) || expected.stuck.contains(&state);
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

/// The final states that a search over states finds.
#[derive(Default)]
struct Ends(BTreeSet<Vec<Vec<u8>>>);

impl Observer<StateScript> for Ends {
    fn ended(&mut self, machine: &StateScript) {
        self.0.insert(machine.state());
    }
}

fn settings(algorithm: Algorithm, identity: Identity) -> Settings {
    Settings {
        algorithm,
        identity,
        switches: None,
        races: true,
        audit: false,
        keep_going: false,
    }
}

/// A random program; in one of three, one variable is not atomic.
fn machine(seed: u64) -> StateScript {
    let machine = StateScript::new(random_program(seed, Flavour::ALL[seed as usize % 5]));
    match seed % 3 {
        0 => machine.with_plain(0),
        _ => machine,
    }
}

/// Runs the schedule of a bug on a fresh copy; whatever it says must be so there.
fn confirm(machine: &StateScript, bug: &Bug, expected: &Reachable) {
    let mut copy = machine.clone();
    let schedule = bug.witness.steps.iter();
    let schedule: Vec<StateStep> = schedule
        .map(|step| StateStep {
            thread: step.thread,
            choice: step.choice,
        })
        .collect();
    let witness = replay(&mut copy, &schedule).unwrap();
    assert_eq!(witness, bug.witness);
    let wrong = match bug.failure.kind {
        FailureKind::Deadlock => &expected.stuck,
        FailureKind::DataRace => &expected.races,
        _ => &expected.failed,
    };
    assert!(wrong.contains(&copy.state()), "{bug:?}");
}

#[test]
fn verdicts_final_states_and_counterexamples_are_those_of_brute_force() {
    let (mut buggy, mut worse, mut interesting) = (0, 0, 0);
    let small = |seed| {
        let machine = machine(seed);
        let expected = reachable(&machine, 2_000)?;
        Some((seed, machine, expected))
    };
    for (seed, mut machine, expected) in (0..).filter_map(small).take(2_000) {
        interesting += u32::from(expected.least_switches.is_some_and(|least| least > 2));
        for algorithm in Algorithm::ALL {
            for identity in [Identity::Fingerprint, Identity::Exact] {
                let asked = settings(algorithm, identity);
                let mut ends = Ends::default();
                let report = search(&mut machine, asked, &mut ends);
                let name = format!("seed {seed}, {algorithm}, {identity:?}");
                let Some(bug) = report.bugs.first() else {
                    assert!(!expected.fails(), "{name}: missed");
                    assert_eq!(report.ending, Ending::Complete);
                    let counts = report.states.unwrap();
                    assert_eq!(counts.states as usize, expected.states.len(), "{name}");
                    assert_eq!(ends.0, expected.complete, "{name}");
                    if algorithm != Algorithm::CsdrExact {
                        assert_eq!(counts.transitions, expected.transitions, "{name}");
                    }
                    continue;
                };
                assert_eq!(report.ending, Ending::FirstBug);
                confirm(&machine, bug, &expected);
                let least = expected.least_switches.unwrap();
                match algorithm {
                    Algorithm::CsdrExact => assert_eq!(bug.witness.switches, least, "{name}"),
                    Algorithm::Csdr => {
                        assert!(bug.witness.switches >= least);
                        worse += u32::from(bug.witness.switches > least);
                    }
                    Algorithm::Bfs => {
                        let steps = bug.witness.steps.len() as u32;
                        assert_eq!(Some(steps), expected.least_steps, "{name}");
                    }
                    Algorithm::Dfs => {}
                }
                buggy += 1;
            }
        }
    }
    assert!(buggy > 2_000 && interesting > 100, "{buggy} {interesting}");
    assert!(
        worse > 0,
        "remembering one thread per state never made a difference"
    );
}

/// With a bound, exact search finds a bug if and only if there is one within it, and knows whether
/// it left anything out.
#[test]
fn a_bound_on_switches_is_kept_to() {
    for seed in 0..600 {
        let mut machine = machine(seed);
        let Some(expected) = reachable(&machine, 2_000) else {
            continue;
        };
        for switches in 0..6 {
            for algorithm in [Algorithm::Csdr, Algorithm::CsdrExact] {
                let asked = Settings {
                    switches: Some(switches),
                    ..settings(algorithm, Identity::Fingerprint)
                };
                let report = search(&mut machine, asked, &mut NoObserver);
                let within = expected
                    .least_switches
                    .is_some_and(|least| least <= switches);
                let cut = report.counts.bound_blocked > 0;
                match (report.bugs.first(), algorithm) {
                    (Some(bug), _) => assert!(bug.witness.switches <= switches),
                    (None, Algorithm::CsdrExact) => {
                        assert!(!within, "seed {seed}, {switches}");
                        assert_eq!(report.ending, Ending::Complete);
                        assert!(cut || !expected.fails());
                    }
                    (None, _) if cut => assert_eq!(report.ending, Ending::Lossy),
                    (None, _) => assert!(!expected.fails()),
                }
                if !cut && report.bugs.is_empty() {
                    let states = report.states.unwrap().states as usize;
                    assert_eq!(states, expected.states.len());
                }
            }
        }
    }
}

/// Going on after a bug, each sort of bug is found.
#[test]
fn keep_going_finds_every_sort_of_bug() {
    for seed in 0..600 {
        let mut machine = machine(seed);
        let Some(expected) = reachable(&machine, 2_000) else {
            continue;
        };
        for algorithm in Algorithm::ALL {
            let asked = Settings {
                keep_going: true,
                ..settings(algorithm, Identity::Fingerprint)
            };
            let mut ends = Ends::default();
            let report = search(&mut machine, asked, &mut ends);
            assert_eq!(report.ending, Ending::Complete);
            assert_eq!(ends.0, expected.complete);
            let counts = report.states.unwrap();
            assert_eq!(counts.states as usize, expected.states.len(), "seed {seed}");
            let found = |kind| report.bugs.iter().any(|bug| bug.failure.kind == kind);
            assert_eq!(found(FailureKind::Deadlock), !expected.stuck.is_empty());
            assert_eq!(found(FailureKind::DataRace), !expected.races.is_empty());
            assert_eq!(found(FailureKind::Assertion), !expected.failed.is_empty());
        }
    }
}

/// Two threads that do the same for ever: an end is never reached, and yet everything is seen.
#[test]
fn endless_programs_are_verified() {
    let round = |me| {
        vec![
            Instruction::lock(10, me),
            Instruction::fetch_add(0, 0, 1),
            Instruction::Store(0, 0),
            Instruction::AssertNot(0, 1),
            Instruction::unlock(10),
            Instruction::JumpIf(1, 0, 0),
        ]
    };
    let mut machine = StateScript::new(Program::of_workers(vec![round(1), round(2)]));
    for algorithm in Algorithm::ALL {
        let asked = settings(algorithm, Identity::Fingerprint);
        let report = search(&mut machine, asked, &mut NoObserver);
        assert_eq!(report.ending, Ending::Complete, "{algorithm}");
        assert!(report.bugs.is_empty(), "{algorithm}");
    }
}

/// However many search together, they find the same, by the same nodes.
#[test]
fn several_peers_find_what_one_finds() {
    let mut apart = 0;
    for seed in 0..100 {
        let machine = machine(seed);
        for algorithm in [Algorithm::Csdr, Algorithm::CsdrExact, Algorithm::Bfs] {
            for keep_going in [false, true] {
                let asked = Settings {
                    keep_going,
                    ..settings(algorithm, Identity::Fingerprint)
                };
                let mut ends = Ends::default();
                let alone = search(&mut machine.clone(), asked, &mut ends);
                for count in [2, 3] {
                    let (together, met) = search_together(&machine, asked, count);
                    let name = format!("seed {seed}, {algorithm}, {count} peers");
                    assert_eq!(together.ending, alone.ending, "{name}");
                    let witnesses = |report: &Report| -> Vec<Witness> {
                        let bugs = report.bugs.iter();
                        bugs.map(|bug| bug.witness.clone()).collect()
                    };
                    if !keep_going {
                        assert_eq!(witnesses(&together), witnesses(&alone), "{name}");
                    }
                    let (one, all) = (alone.states.unwrap(), together.states.unwrap());
                    if alone.ending == Ending::Complete {
                        assert_eq!(met.0, ends.0, "{name}");
                        assert_eq!((one.states, one.layer), (all.states, all.layer), "{name}");
                        assert_eq!(one.transitions, all.transitions, "{name}");
                        let sorts = |report: &Report| -> BTreeSet<FailureKind> {
                            report.bugs.iter().map(|bug| bug.failure.kind).collect()
                        };
                        assert_eq!(sorts(&alone), sorts(&together), "{name}");
                        apart += u32::from(one.states > 100);
                    }
                }
            }
        }
    }
    assert!(apart > 20, "{apart}");
}

/// If states are identified by different bytes in different peers, the first of them does it alone.
#[test]
fn peers_that_do_not_agree_do_not_mix_their_states() {
    let script = |value| {
        let worker = vec![
            Instruction::Store(0, value),
            Instruction::Load(0, 1),
            Instruction::Store(1, value),
        ];
        StateScript::new(Program::of_workers(vec![worker; 3]))
    };
    for algorithm in [Algorithm::Csdr, Algorithm::CsdrExact, Algorithm::Bfs] {
        let asked = settings(algorithm, Identity::Fingerprint);
        let mut ends = Ends::default();
        let alone = search(&mut script(1), asked, &mut ends);
        let all = search_each(vec![script(1), script(2), script(1)], asked);
        let (first, met) = &all[0];
        assert_eq!(first.ending, Ending::Complete, "{algorithm}");
        assert_eq!(first.states, alone.states, "{algorithm}");
        assert_eq!(met.0, ends.0, "{algorithm}");
        assert!(
            all[1..]
                .iter()
                .all(|(report, _)| report.ending == Ending::Stopped)
        );
    }
}

/// The report of rank 0, and the ends that all of them have met.
fn search_together(machine: &StateScript, asked: Settings, count: usize) -> (Report, Ends) {
    let mut all = search_each(vec![machine.clone(); count], asked).into_iter();
    let (report, mut ends) = all.next().unwrap();
    all.for_each(|(_, more)| ends.0.extend(more.0));
    (report, ends)
}

/// The reports of all, and the ends that they have met.
fn search_each(machines: Vec<StateScript>, asked: Settings) -> Vec<(Report, Ends)> {
    thread::scope(|scope| {
        let peers = ThreadPeers::new(machines.len()).into_iter();
        let one = |(peer, mut machine): (ThreadPeers, StateScript)| {
            scope.spawn(move || {
                let mut ends = Ends::default();
                let report = search_with(&mut machine, asked, peer, &mut ends);
                (report, ends)
            })
        };
        let threads: Vec<_> = peers.zip(machines).map(one).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.map(|result| result.unwrap()).collect()
    })
}
