//! Formulas on native programs: the propositions and marks that they tell, and expressions.

use std::fs;
use std::path::Path;

use selvedge_core::FailureKind;
use selvedge_core::ltl::{self, Atom, Formula, Property, Unary, parse};
use selvedge_core::random::Random;
use selvedge_core::report::{Ending, NoObserver, Report};
use selvedge_core::states::{StateId, StateStep, States, identity, replay};
use selvedge_runtime::Settings;
use selvedge_testkit::{StateScript, c_source, random_formula, random_server};

use crate::common::{Build, CLANG, GCC, GCC_O2, Program, isolated};

/// The proposition `p` of scripted programs is an expression here.
fn in_c(formula: &Formula) -> Formula {
    match formula {
        Formula::Atom(Atom::Named(name)) => {
            let variable = if name == "p" { 0 } else { 1 };
            Formula::Atom(Atom::Expression(format!("p0x{variable} == 1")))
        }
        Formula::Unary(operator, operand) => Formula::unary(*operator, in_c(operand)),
        Formula::Binary(operator, left, right) => {
            Formula::binary(*operator, in_c(left), in_c(right))
        }
        other => other.clone(),
    }
}

fn has_next(formula: &Formula) -> bool {
    match formula {
        Formula::Unary(operator, operand) => *operator == Unary::Next || has_next(operand),
        Formula::Binary(_, left, right) => has_next(left) || has_next(right),
        _ => false,
    }
}

/// Random programs, scripted and in C, satisfy the same formulas. (Those with `X` count steps, of
/// which C has more.)
#[test]
fn random_programs_satisfy_the_same_formulas_as_scripted_ones() {
    isolated(
        "random_programs_satisfy_the_same_formulas_as_scripted_ones",
        || {
            let names = ["p", "q"].map(|name| Atom::Named(name.to_owned()));
            let mut random = Random::new(5);
            let (mut checks, mut violated) = (0, 0);
            for round in 0..40 {
                let script = random_server(&mut random);
                let machine = StateScript::new(script.clone())
                    .with_proposition("p", 0, 1)
                    .with_proposition("q", 1, 1);
                let formula = std::iter::repeat_with(|| random_formula(&mut random, &names, 3))
                    .find(|formula| !has_next(formula) && formula.atoms().len() == 2)
                    .expect("there is one in the end");
                let mut source = c_source(&[script]).expect("it can be written in C");
                source.insert_str(0, "static unsigned p0x0, p0x1;\n");
                for (n, atom) in in_c(&formula).atoms().iter().enumerate() {
                    let Atom::Expression(text) = atom else {
                        panic!("{atom} is no expression")
                    };
                    source += &format!("int selvedge_expression_{n}(void) {{ return {text}; }}\n");
                }
                let build = if round % 4 == 0 { CLANG } else { GCC };
                let build = Some(build).filter(|build| build.available()).unwrap_or(GCC);
                let program = Program::build(build, &source);
                for fair in [false, true] {
                    let settings = settings(Property::Formula(formula.clone()), fair);
                    let scripted = ltl::search(&mut machine.clone(), &settings, &mut NoObserver);
                    let native = check(&program, Property::Formula(in_c(&formula)), fair);
                    let (scripted, native) = (answer(&scripted), answer(&native));
                    let lasso = Some(FailureKind::LtlViolation);
                    // The order of the steps decides which of several bugs is met first.
                    let same = scripted == native || (scripted.is_some() && native.is_some());
                    assert!(
                        same,
                        "{formula} fair {fair}: {scripted:?} {native:?}\n{source}"
                    );
                    checks += 1;
                    violated += u32::from(native == lasso);
                }
            }
            println!("{checks} checks, {violated} violated");
            assert!(violated > 15 && violated + 15 < checks);
        },
    );
}

const BUILDS: [Build; 3] = [GCC, CLANG, GCC_O2];

fn example(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ltl");
    fs::read_to_string(directory.join(name)).expect("the example")
}

fn check(program: &Program, property: Property, fair: bool) -> Report {
    let propositions = match &property {
        Property::Formula(formula) => formula.atoms(),
        _ => Vec::new(),
    };
    let mut machine = program.load(Settings {
        stateful: true,
        propositions,
        progress: true,
        ..Settings::default()
    });
    ltl::search(&mut machine, &settings(property, fair), &mut NoObserver)
}

fn settings(property: Property, fair: bool) -> ltl::Settings {
    ltl::Settings {
        property,
        fair,
        switches: None,
        races: true,
        keep_going: false,
    }
}

fn formula(text: &str) -> Property {
    Property::Formula(parse(text).expect("a formula"))
}

/// The failure, if there is one.
fn answer(report: &Report) -> Option<FailureKind> {
    match (&report.ending, &report.bugs[..]) {
        (Ending::Complete, []) => None,
        (Ending::FirstBug, [bug]) => Some(bug.failure.kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn propositions_that_a_program_names() {
    isolated("propositions_that_a_program_names", || {
        for build in Build::installed(&BUILDS) {
            let program = Program::build(build, &example("peterson.c"));
            let starves = formula("G (wants -> F inside)");
            assert_eq!(answer(&check(&program, starves.clone(), true)), None);
            let report = check(&program, starves, false);
            assert_eq!(answer(&report), Some(FailureKind::LtlViolation));
            assert!(report.bugs[0].witness.cycle.is_some());
            let never = check(&program, formula("G !inside"), false);
            assert_eq!(answer(&never), Some(FailureKind::LtlViolation));
            assert_eq!(never.bugs[0].witness.cycle, None);
        }
    });
}

#[test]
fn expressions_over_static_variables() {
    isolated("expressions_over_static_variables", || {
        for build in Build::installed(&BUILDS) {
            let source = format!(
                "{}\nint selvedge_expression_0(void) {{ return count > 1; }}\n\
                 int selvedge_expression_1(void) {{ return count == 1; }}\n",
                example("peterson.c")
            );
            let program = Program::build(build, &source);
            let holds = formula("G !{count > 1} && G F {count == 1}");
            assert_eq!(answer(&check(&program, holds, true)), None);
            let fails = formula("G !{count > 1} && F G {count == 1}");
            let report = check(&program, fails, true);
            assert_eq!(answer(&report), Some(FailureKind::LtlViolation));
        }
    });
}

#[test]
fn progress_and_starvation() {
    isolated("progress_and_starvation", || {
        let starvation = || Property::NoStarvation { marks: true };
        let (starves, stalls) = (
            Some(FailureKind::Starvation),
            Some(FailureKind::NonProgress),
        );
        for build in Build::installed(&BUILDS) {
            for (name, progress, fair_starvation, unfair_starvation) in [
                ("peterson.c", None, None, starves),
                ("ticket_lock.c", None, None, starves),
                ("test_and_set.c", None, starves, starves),
                ("after_you.c", stalls, starves, starves),
            ] {
                let program = Program::build(build, &example(name));
                let told = answer(&check(&program, Property::Progress, true));
                assert_eq!(told, progress, "{name} {build:?}");
                let told = answer(&check(&program, starvation(), true));
                assert_eq!(told, fair_starvation, "{name} {build:?}");
                let told = answer(&check(&program, starvation(), false));
                assert_eq!(told, unfair_starvation, "{name} {build:?}");
            }
        }
    });
}

/// Every state of an endless program, come to by restoring, by running on, and by running from the
/// start.
#[test]
fn states_are_the_same_however_they_are_come_to() {
    isolated("states_are_the_same_however_they_are_come_to", || {
        for build in Build::installed(&BUILDS) {
            for (name, count) in [("server.c", 29), ("ticket_lock.c", 81), ("after_you.c", 25)] {
                let program = Program::build(build, &example(name));
                let mut machine = program.load(Settings {
                    stateful: true,
                    ..Settings::default()
                });
                let (ways, identities) = ways(&mut States::new(&mut machine));
                // Optimised code leaves more behind in registers than the analysis of frames can
                // tell from what is needed.
                let exact = build.level == "-O0";
                assert!(
                    !exact || ways.len() == count,
                    "{name} {build:?}: {}",
                    ways.len()
                );
                for (way, expected) in ways.iter().zip(identities) {
                    replay(&mut machine, way).expect("it can be run again");
                    assert!(
                        identity(&mut machine) == expected,
                        "{name} {build:?}: {way:?}"
                    );
                }
            }
        }
    });
}

/// The way to each state and what tells it from others.
fn ways(
    states: &mut States<'_, selvedge_runtime::NativeMachine>,
) -> (Vec<Vec<StateStep>>, Vec<Vec<Vec<u8>>>) {
    let (mut ways, mut identities) = (vec![Vec::new()], Vec::new());
    while identities.len() < ways.len() {
        let at = StateId(identities.len() as u32);
        states.go(at);
        identities.push(identity(states.machine_mut()));
        let mut steps = Vec::new();
        states.steps(&mut steps);
        for step in steps {
            states.go(at);
            if states.take(step).new {
                let way: &Vec<StateStep> = &ways[at.index()];
                ways.push(way.iter().copied().chain([step]).collect());
            }
        }
    }
    for (n, way) in ways.iter().enumerate() {
        states.go(StateId::FIRST);
        for &step in way {
            states.take(step);
        }
        assert_eq!(states.here().index(), n, "{way:?}");
    }
    (ways, identities)
}
