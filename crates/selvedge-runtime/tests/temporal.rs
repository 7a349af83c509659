//! Formulas on native programs: the propositions and marks that they tell, and expressions.

mod common;

use std::fs;
use std::path::Path;

use common::{Build, CLANG, GCC, GCC_O2, Program, isolated};
use selvedge_core::FailureKind;
use selvedge_core::ltl::{self, Property, parse};
use selvedge_core::report::{Ending, Report, Silent};
use selvedge_runtime::Settings;

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
    let settings = ltl::Settings {
        property,
        fair,
        switches: None,
        races: true,
        keep_going: false,
    };
    ltl::search(&mut machine, &settings, &mut Silent)
}

fn formula(text: &str) -> Property {
    Property::Formula(parse(text).expect("a formula"))
}

/// What is wrong, if anything is.
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
