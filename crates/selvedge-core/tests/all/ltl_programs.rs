//! Formulas on programs, against a checker that shares no code with the one under test.

use std::ops::ControlFlow;

use selvedge_core::ltl::{
    Atom, Automaton, Find, Formula, Halt, Lasso, Move, Program, Property, Settings, Who, find,
    parse, search,
};
use selvedge_core::random::Random;
use selvedge_core::report::{Ending, NoObserver, Report, StateCounts};
use selvedge_core::{FailureKind, ThreadId};
use selvedge_testkit::Instruction;
use selvedge_testkit::ltl::MARK;
use selvedge_testkit::{
    Explicit, StateScript, holds_on_word, random_formula, random_server, temporal_size,
};

/// How a check ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Holds,
    Violated(Lasso),
    Bug,
}

fn settings(property: Property, fair: bool) -> Settings {
    Settings {
        property,
        fair,
        switches: None,
        races: true,
        keep_going: false,
    }
}

fn check(machine: &StateScript, formula: &Formula, how: Find) -> Answer {
    let automaton = Automaton::new(formula, false).unwrap();
    let atoms = automaton.atoms().iter();
    let labels: Vec<Atom> = atoms.filter(|atom| atom.is_of_state()).cloned().collect();
    let settings = settings(Property::Formula(formula.clone()), how.fair);
    let mut machine = machine.clone();
    let mut watch = |_: &StateCounts| ControlFlow::Continue(());
    let mut program = Program::new(&mut machine, &settings, &mut watch).unwrap();
    let found = match find(&mut program, &automaton, &labels, how) {
        Ok(None) => program.explore().map(|()| None),
        found => found,
    };
    match found {
        Ok(None) => Answer::Holds,
        Ok(Some(lasso)) => {
            program.confirm(&lasso).unwrap();
            Answer::Violated(lasso)
        }
        Err(Halt::Bug) => Answer::Bug,
        Err(halt) => panic!("{halt:?}"),
    }
}

/// A counterexample is one: it can be run, comes back to where its cycle begins, violates the
/// formula, and is fair if it has to be.
fn confirm(program: &Explicit, formula: &Formula, lasso: &Lasso, fair: bool) {
    let all: Vec<Move> = lasso.prefix.iter().chain(&lasso.cycle).copied().collect();
    let back = lasso.prefix.len();
    let passed = program.follow(&all);
    assert_eq!(passed[back], passed[all.len()], "the state comes back");
    let value = |atom: &Atom, at: usize| program.holds(atom, passed[at], &all[at]);
    assert!(
        !holds_on_word(formula, all.len(), back, &value),
        "{formula}"
    );
    // Where it is said to be decided, no other way to go on is better.
    if let Some(decided) = lasso.decided.filter(|&decided| decided > 0) {
        for pattern in 0..4 {
            let other = |atom: &Atom, at: usize| match at < decided {
                true => value(atom, at),
                false => pattern >> (at - decided) & 1 == 1,
            };
            let holds = holds_on_word(formula, decided + 2, decided, &other);
            assert!(!holds, "{formula}");
        }
    }
    if fair {
        for thread in (0..4).map(ThreadId) {
            let treated = (back..all.len()).any(|at| {
                all[at].thread == Some(thread) || !program.is_enabled(passed[at], thread)
            });
            assert!(treated, "{thread} can move and does not");
        }
    }
}

fn compare(machine: &StateScript, program: &Explicit, formula: &Formula, fair: bool) -> Answer {
    let violated = program.violates(formula, fair);
    let mut answers = Vec::new();
    for complete_only in [false, true] {
        let how = Find {
            fair,
            complete_only,
            switches: None,
        };
        let answer = check(machine, formula, how);
        match &answer {
            Answer::Holds => assert!(!violated && !program.fails, "{formula} (fair: {fair})"),
            Answer::Bug => assert!(program.fails),
            Answer::Violated(lasso) => {
                assert!(violated, "{formula} (fair: {fair})");
                confirm(program, formula, lasso, fair);
            }
        }
        assert_eq!(
            check(machine, formula, how),
            answer,
            "the same answer twice"
        );
        answers.push(answer);
    }
    let bounded = Find {
        fair,
        complete_only: false,
        switches: Some(1),
    };
    match check(machine, formula, bounded) {
        Answer::Holds => assert!(!violated && !program.fails),
        Answer::Bug => assert!(program.fails),
        Answer::Violated(lasso) => confirm(program, formula, &lasso, fair),
    }
    answers.swap_remove(0)
}

#[test]
fn random_programs_and_formulas_agree_with_the_tableau() {
    let atoms = [
        Atom::Named("p".to_owned()),
        Atom::Named("q".to_owned()),
        Atom::Named("p".to_owned()),
        Atom::Named("q".to_owned()),
        Atom::Moves(Who::Thread(ThreadId(1))),
        Atom::Progress(Who::Any),
        Atom::Enabled(ThreadId(1)),
        Atom::Ended(ThreadId(1)),
        Atom::Joins(ThreadId(0)),
    ];
    let mut random = Random::new(11);
    let (mut programs, mut held, mut violated, mut bugs, mut only_fair) = (0, 0, 0, 0, 0);
    while programs < 400 {
        let machine = StateScript::new(random_server(&mut random))
            .with_proposition("p", 0, 1)
            .with_proposition("q", 1, 1)
            .with_progress(MARK);
        let Some(program) = Explicit::new(&machine, 60) else {
            continue;
        };
        programs += 1;
        for depth in [2, 3] {
            let formula = random_formula(&mut random, &atoms, depth);
            if temporal_size(&formula) > 4 {
                continue;
            }
            let answers = [false, true].map(|fair| compare(&machine, &program, &formula, fair));
            for answer in &answers {
                match answer {
                    Answer::Holds => held += 1,
                    Answer::Violated(_) => violated += 1,
                    Answer::Bug => bugs += 1,
                }
            }
            only_fair += u32::from(answers[0] != Answer::Holds && answers[1] == Answer::Holds);
        }
    }
    println!("{held} held, {violated} violated, {bugs} bugs, {only_fair} hold only if fair");
    assert!(held > 200 && violated > 200 && bugs > 20 && only_fair > 5);
}

/// Peterson's lock for two threads that take it for ever: variables 0 and 1 are the flags, 2 the
/// turn, 3 and 4 tell who is inside.
fn peterson() -> StateScript {
    let side = |own: u32| {
        let other = 1 - own;
        vec![
            Instruction::Store(own, 1),
            Instruction::Store(2, u128::from(other)),
            // Wait while the other one wants in and it is its turn.
            Instruction::Load(0, other),
            Instruction::JumpIf(0, 0, 6),
            Instruction::Load(0, 2),
            Instruction::JumpIf(0, u128::from(other), 2),
            Instruction::Store(3 + own, 1),
            Instruction::Store(3 + own, 0),
            Instruction::Store(own, 0),
            Instruction::JumpIf(2, 0, 0),
        ]
    };
    lock_propositions(vec![side(0), side(1)])
}

/// A lock that is taken by whoever sets it first: variable 2.
fn test_and_set() -> StateScript {
    let side = |own: u32| {
        vec![
            Instruction::Store(own, 1),
            Instruction::compare_exchange(0, 2, 0, 1),
            Instruction::JumpIf(0, 1, 1),
            Instruction::Store(own, 0),
            Instruction::Store(3 + own, 1),
            Instruction::Store(3 + own, 0),
            Instruction::Store(2, 0),
            Instruction::JumpIf(1, 0, 0),
        ]
    };
    lock_propositions(vec![side(0), side(1)])
}

fn lock_propositions(workers: Vec<Vec<Instruction>>) -> StateScript {
    let program = selvedge_testkit::Program::of_workers(workers);
    StateScript::new(program)
        .with_proposition("wants1", 0, 1)
        .with_proposition("in1", 3, 1)
        .with_proposition("in2", 4, 1)
}

fn fair(fair: bool) -> Find {
    Find {
        fair,
        ..Find::default()
    }
}

#[test]
fn petersons_lock_starves_nobody_if_the_scheduler_is_fair() {
    let machine = peterson();
    let exclusion = parse("G !(in1 && in2)").unwrap();
    let starvation = parse("G (wants1 -> F in1)").unwrap();
    assert_eq!(check(&machine, &exclusion, fair(false)), Answer::Holds);
    assert_eq!(check(&machine, &starvation, fair(true)), Answer::Holds);
    let unfair = check(&machine, &starvation, fair(false));
    assert!(matches!(unfair, Answer::Violated(_)), "{unfair:?}");
}

#[test]
fn a_test_and_set_lock_starves_somebody_even_so() {
    let machine = test_and_set();
    let exclusion = parse("G !(in1 && in2)").unwrap();
    assert_eq!(check(&machine, &exclusion, fair(false)), Answer::Holds);
    let starvation = parse("G (wants1 -> F in1)").unwrap();
    let Answer::Violated(lasso) = check(&machine, &starvation, fair(true)) else {
        panic!("it starves")
    };
    // Both move in the cycle: one goes round the lock, the other one tries and fails.
    let program = Explicit::new(&machine, 1000).unwrap();
    confirm(&program, &starvation, &lasso, true);
    assert!(lasso.cycle.iter().any(|by| by.thread == Some(ThreadId(1))));
    assert!(lasso.cycle.iter().any(|by| by.thread == Some(ThreadId(2))));
    // But somebody always gets in.
    let somebody = parse("G F (in1 || in2)").unwrap();
    assert_eq!(check(&machine, &somebody, fair(true)), Answer::Holds);
}

fn run(machine: &StateScript, property: Property, fair: bool) -> Report {
    search(
        &mut machine.clone(),
        &settings(property, fair),
        &mut NoObserver,
    )
}

fn kinds(report: &Report) -> Vec<FailureKind> {
    report.bugs.iter().map(|bug| bug.failure.kind).collect()
}

#[test]
fn a_violated_formula_is_reported_with_its_cycle() {
    let machine = peterson();
    let formula = parse("G (wants1 -> F in1)").unwrap();
    let report = run(&machine, Property::Formula(formula.clone()), false);
    assert_eq!(report.ending, Ending::FirstBug);
    assert_eq!(kinds(&report), [FailureKind::LtlViolation]);
    let bug = &report.bugs[0];
    assert_eq!(
        bug.failure.message,
        "G (wants1 -> F in1) does not hold: then the cycle repeats for ever"
    );
    let cycle = bug.witness.cycle.unwrap() as usize;
    // T1 wants in; then T2 alone goes round.
    let who = |step: &selvedge_core::witness::Step| step.thread;
    assert!(
        bug.witness.steps[cycle..]
            .iter()
            .all(|step| who(step) == ThreadId(2))
    );
    let report = run(&machine, Property::Formula(formula), true);
    assert_eq!((report.ending, report.bugs.len()), (Ending::Complete, 0));
}

/// Two threads that take a lock for ever and mark progress while they have it.
fn marked(lock: &[Instruction], unlock: &[Instruction]) -> StateScript {
    let side = || {
        let mut code = lock.to_vec();
        code.push(Instruction::Store(MARK, 0));
        code.extend_from_slice(unlock);
        code.push(Instruction::JumpIf(1, 0, 0));
        code
    };
    let program = selvedge_testkit::Program::of_workers(vec![side(), side()]);
    StateScript::new(program).with_progress(MARK)
}

#[test]
fn spinning_for_a_lock_makes_progress_but_may_starve() {
    let take = [
        Instruction::compare_exchange(0, 2, 0, 1),
        Instruction::JumpIf(0, 1, 0),
    ];
    let machine = marked(&take, &[Instruction::Store(2, 0)]);
    let starvation = Property::NoStarvation { marks: true };
    assert_eq!(kinds(&run(&machine, Property::Progress, true)), []);
    // An unfair scheduler may let the waiting thread spin alone.
    let spins = kinds(&run(&machine, Property::Progress, false));
    assert_eq!(spins, [FailureKind::NonProgress]);
    for fair in [false, true] {
        let report = run(&machine, starvation.clone(), fair);
        assert_eq!(kinds(&report), [FailureKind::Starvation]);
    }
    // A fair scheduler lets a thread go on that only has to take steps.
    let steps = Property::NoStarvation { marks: false };
    assert_eq!(kinds(&run(&machine, steps.clone(), true)), []);
    assert_eq!(
        kinds(&run(&machine, steps, false)),
        [FailureKind::Starvation]
    );
}

#[test]
fn a_program_that_ends_neither_starves_nor_stops_making_progress() {
    let worker = || vec![Instruction::fetch_add(0, 0, 1)];
    let program = selvedge_testkit::Program::of_workers(vec![worker(), worker()]);
    let machine = StateScript::new(program).with_proposition("both", 0, 2);
    for property in [
        Property::Progress,
        Property::NoStarvation { marks: false },
        Property::Formula(parse("F G both").unwrap()),
        Property::Formula(parse("F !any.moves").unwrap()),
    ] {
        let report = run(&machine, property, false);
        assert_eq!((report.ending, report.bugs.len()), (Ending::Complete, 0));
    }
    let violate = |text: &str| run(&machine, Property::Formula(parse(text).unwrap()), false);
    // No cycle is needed: it is violated as soon as both have counted.
    let bug = &violate("G !both").bugs[0];
    assert_eq!((bug.witness.steps.len(), bug.witness.cycle), (4, None));
    let message = "G !both does not hold: whatever comes next";
    assert_eq!(bug.failure.message, message);
    let report = violate("G F !both");
    let witness = &report.bugs[0].witness;
    // The cycle is empty: the program has ended.
    assert_eq!(witness.cycle, Some(witness.steps.len() as u32));
    assert!(
        report.bugs[0]
            .failure
            .message
            .ends_with("then nothing changes any more")
    );
}

#[test]
fn bugs_on_the_way_are_reported_as_everywhere() {
    let worker = vec![
        Instruction::Load(0, 0),
        Instruction::AssertNot(0, 1),
        Instruction::JumpIf(1, 0, 0),
    ];
    let other = vec![Instruction::Store(0, 1), Instruction::Store(0, 0)];
    let program = selvedge_testkit::Program::of_workers(vec![worker, other]);
    let machine = StateScript::new(program).with_proposition("p", 0, 1);
    let formula = || Property::Formula(parse("G !p").unwrap());
    // Nothing satisfies the negation of this, and yet every state is looked at.
    let report = run(&machine, Property::Formula(Formula::Constant(true)), false);
    assert_eq!(kinds(&report), [FailureKind::Assertion]);
    assert_eq!(report.bugs[0].witness.cycle, None);
    assert_eq!(report.bugs[0].witness.switches, 2);
    let all = Settings {
        keep_going: true,
        ..settings(formula(), false)
    };
    let report = search(&mut machine.clone(), &all, &mut NoObserver);
    let found = [FailureKind::Assertion, FailureKind::LtlViolation];
    assert_eq!(
        (report.ending.clone(), kinds(&report)),
        (Ending::Complete, found.to_vec())
    );
}

#[test]
fn propositions_that_nobody_knows_are_refused() {
    let formula = Property::Formula(parse("F nonsense").unwrap());
    let Ending::Refused(what) = run(&peterson(), formula, false).ending else {
        panic!("there is no such proposition")
    };
    assert!(what.contains("nonsense"), "{what}");
}
