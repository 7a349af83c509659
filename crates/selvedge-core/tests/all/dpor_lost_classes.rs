//! The smallest programs on which printed forms of the bounded algorithms lose classes, and the
//! repaired ones do not. `docs/interleaving.md` tells the story.

use std::collections::HashSet;

use selvedge_core::dpor::{self, Engine, Specimen};
use selvedge_core::report::Ending;
use selvedge_core::trust::Settings;
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Execution, Program, ScriptMachine, least_preemptions};

use crate::common::Collect;

const X: u32 = 0;
const Y: u32 = 1;
const Z: u32 = 2;
const MUTEX: u32 = 10;

fn read(variable: u32) -> I {
    I::Load(0, variable)
}

fn write(variable: u32, value: u128) -> I {
    I::Store(variable, value)
}

/// A variant that loses classes.
#[derive(Clone, Copy, Debug)]
enum Form {
    Offered(Engine),
    Kept(Specimen),
}

fn found(program: &Program, form: Form, bound: u32) -> HashSet<Execution> {
    let mut machine = ScriptMachine::new(program.clone());
    let settings = Settings {
        keep_going: true,
        preemptions: Some(bound),
    };
    let mut classes = Collect::default();
    let (report, ending) = match form {
        Form::Offered(engine) => {
            let (report, _) = dpor::search(&mut machine, engine, settings, &mut classes);
            let complete = engine.complete();
            let ending = [Ending::Lossy, Ending::Complete][usize::from(complete)].clone();
            (report, ending)
        }
        Form::Kept(specimen) => {
            let (report, _) = dpor::search_specimen(&mut machine, specimen, settings, &mut classes);
            (report, Ending::Lossy)
        }
    };
    assert_eq!(report.ending, ending);
    classes.complete
}

/// Shows that `form` finds all but `lost` of the `wanted` classes, and the complete engines all.
fn show(program: &Program, bound: u32, form: Form, wanted: usize, lost: usize) {
    let mut machine = ScriptMachine::new(program.clone());
    let least = least_preemptions(&mut machine, 100_000).expect("the program is small");
    let within = least.within(bound);
    let missed = within.difference(&found(program, form, bound)).count();
    for engine in [Engine::Bpor, Engine::LazyBpor, Engine::LazyBpor2] {
        let all = found(program, Form::Offered(engine), bound);
        assert_eq!(within.difference(&all).count(), 0, "{engine} loses classes");
    }
    assert_eq!((within.len(), missed), (wanted, lost), "{form:?}");
}

/// `r = y; z = 1 | z = 1`
fn late_write() -> Program {
    Program::of_workers(vec![vec![read(Y), write(Z, 1)], vec![write(Z, 1)]])
}

/// `y = 1; r = x | r = x | x = 1; x = 3`
fn two_readers_of_two_writes() -> Program {
    Program::of_workers(vec![
        vec![write(Y, 1), read(X)],
        vec![read(X)],
        vec![write(X, 1), write(X, 3)],
    ])
}

/// Three critical sections, and an addition by main in between.
fn sections_and_an_addition() -> Program {
    let mut program = Program::of_workers(vec![
        vec![I::lock(MUTEX, 1), read(X), read(X), I::unlock(MUTEX)],
        vec![read(X), I::lock(MUTEX, 2), I::unlock(MUTEX)],
        vec![I::lock(MUTEX, 3), write(X, 2), I::unlock(MUTEX)],
    ]);
    program.threads[0].insert(3, I::fetch_add(0, X, 1));
    program
}

#[test]
fn naive_bpor_rejects_the_only_representative() {
    show(&late_write(), 0, Form::Offered(Engine::NaiveBpor), 2, 1);
}

#[test]
fn nidhugg_and_source_bpor_put_the_cheap_start_to_sleep() {
    show(&late_write(), 0, Form::Offered(Engine::NidhuggBpor), 2, 1);
    show(&late_write(), 0, Form::Offered(Engine::SourceBpor), 2, 1);
}

#[test]
fn waking_everybody_in_conservative_branches_is_not_enough() {
    let form = Form::Kept(Specimen::ConservativeBranchesWakeAll);
    show(&two_readers_of_two_writes(), 1, form, 9, 1);
}

#[test]
fn putting_only_ended_threads_to_sleep_is_not_enough() {
    let program = Program::of_workers(vec![
        vec![read(X), read(Y)],
        vec![write(Y, 1)],
        vec![read(Y), read(Z)],
        vec![write(Z, 1)],
    ]);
    let form = Form::Kept(Specimen::OnlyEndedThreadsSleep);
    show(&program, 0, form, 8, 1);
}

#[test]
fn source_sets_do_not_go_with_conservative_branches() {
    let form = Form::Kept(Specimen::SourceBporWithoutSleep);
    show(&two_readers_of_two_writes(), 1, form, 9, 1);
}

#[test]
fn what_happens_before_the_next_step_matters_under_a_bound() {
    let program = sections_and_an_addition();
    let form = Form::Kept(Specimen::NidhuggBporWithoutSleep);
    show(&program, 2, form, 49, 1);
    show(&program, 2, Form::Kept(Specimen::BporRacesOnly), 49, 1);
}

#[test]
fn bpor_needs_its_conservative_branches() {
    let form = Form::Kept(Specimen::BporWithoutConservative);
    show(&late_write(), 0, form, 2, 1);
}

/// To be within two preemptions, main has to write x before the first thread ends: only then does
/// it have to wait, and is left for free.
#[test]
fn bpor_must_heed_what_ends_a_wait() {
    let program = Program {
        threads: vec![
            vec![
                I::Create(1),
                I::Create(2),
                write(X, 4),
                I::Join(1),
                write(X, 5),
            ],
            vec![write(Y, 1)],
            vec![write(X, 1), write(Y, 2), write(X, 3)],
        ],
        initial: Vec::new(),
    };
    let form = Form::Kept(Specimen::BporHeedlessOfWaiting);
    show(&program, 2, form, 11, 1);
}

#[test]
fn bpor_needs_the_running_thread_first() {
    let program = Program::of_workers(vec![
        vec![write(X, 1)],
        vec![write(X, 1), write(Y, 3)],
        vec![write(Y, 4), read(Y)],
    ]);
    show(&program, 1, Form::Kept(Specimen::BporOldestFirst), 6, 1);
}

#[test]
fn lazy_bpor_as_printed_loses_what_lies_behind_a_rejected_branch() {
    let program = Program::of_workers(vec![vec![read(X)], vec![write(X, 1), write(X, 2)]]);
    show(&program, 0, Form::Kept(Specimen::LazyOldestFirst), 2, 1);
    let program = Program::of_workers(vec![
        vec![write(X, 1), write(Y, 0)],
        vec![read(Y), write(X, 0)],
        vec![write(X, 3)],
    ]);
    show(&program, 0, Form::Kept(Specimen::LazyRunningFirst), 6, 1);
}

/// A race that is two rejected steps away is not seen.
#[test]
fn lazy_bpor_needs_slack() {
    let (lock, unlock) = (I::lock, I::unlock);
    let (a, b) = (MUTEX, MUTEX + 1);
    let mut program = Program::of_workers(vec![
        vec![lock(b, 1), unlock(b), write(X, 1)],
        vec![
            lock(a, 2),
            unlock(a),
            lock(b, 2),
            unlock(b),
            lock(a, 2),
            read(X),
            unlock(a),
        ],
    ]);
    let main = [lock(a, 0), unlock(a), lock(b, 0), read(X), unlock(b)];
    program.threads[0].splice(2..2, main);
    show(&program, 2, Form::Kept(Specimen::LazyWithoutSlack), 30, 1);
}

#[test]
fn the_first_approximation_counts_too_much() {
    let program = Program::of_workers(vec![
        vec![write(X, 1)],
        vec![read(X), read(X), write(Y, 1)],
        vec![write(Y, 2)],
    ]);
    show(&program, 1, Form::Offered(Engine::LazyBpor1), 6, 1);
}

#[test]
fn joins_and_locks_must_not_be_counted() {
    let program = Program::of_workers(vec![vec![read(X)]]);
    for specimen in [
        Specimen::FirstApproximationOfAll,
        Specimen::SecondApproximationOfAll,
    ] {
        show(&program, 0, Form::Kept(specimen), 1, 1);
    }
}
