//! Numbers of executions of the thesis's programs (Tables 6.1, 6.2 and 7.1).
//!
//! The thesis counts executions blocked by sleep sets among its traces, and its compiled threads
//! begin with a local step. Its numbers stand in the comments where they differ.

use selvedge_core::dpor::{self, Engine, Specimen};
use selvedge_core::report::{Ending, NoObserver};
use selvedge_core::trust::Settings;
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

/// Complete executions, and those blocked by sleep sets.
fn count(program: &Program, engine: Engine, bound: Option<u32>) -> (u64, u64) {
    let mut machine = ScriptMachine::new(program.clone());
    let settings = Settings {
        keep_going: true,
        preemptions: bound,
    };
    let (report, statistics) = dpor::search(&mut machine, engine, settings, &mut NoObserver);
    assert!(matches!(report.ending, Ending::Complete | Ending::Lossy));
    assert!(report.bugs.is_empty());
    let executions = report.counts.executions;
    (executions, statistics.sleep_blocked)
}

fn unbounded(program: &Program, engine: Engine) -> (u64, u64) {
    count(program, engine, None)
}

/// Complete executions for the bounds 0, 1 and 2.
fn bounded(program: &Program, engine: Engine) -> [u64; 3] {
    [0, 1, 2].map(|bound| count(program, engine, Some(bound)).0)
}

/// Main starts the threads, in order, and ends.
fn started(workers: Vec<Vec<I>>) -> Program {
    let mut program = Program::of_workers(workers);
    program.threads[0].retain(|instruction| matches!(instruction, I::Create(_)));
    program
}

/// The same program, each thread with a step of its own in front.
fn with_local_step(program: &Program) -> Program {
    let mut program = program.clone();
    for (thread, code) in program.threads.iter_mut().enumerate().skip(1) {
        code.insert(0, I::Load(3, 1000 + thread as u32));
        for instruction in code {
            if let I::JumpIf(_, _, target) = instruction {
                *target += 1;
            }
        }
    }
    program
}

/// `micro.c`: `x++; x++; assert(0 < x)` three times.
fn micro() -> Program {
    let increment = |value| [I::Load(0, 0), I::Store(0, value)];
    let worker = |n: u128| [&increment(n)[..], &increment(n + 1), &[I::Load(1, 0)]].concat();
    started(vec![worker(1), worker(3), worker(5)])
}

/// `lazy.c`: three critical sections, two of which add to a number that the first started looks at.
fn lazy() -> Program {
    let section = |thread, body: Vec<I>| {
        let lock = vec![I::lock(10, thread)];
        [lock, body, vec![I::unlock(10)]].concat()
    };
    Program::of_workers(vec![
        section(1, vec![I::Load(0, 0)]),
        section(2, vec![I::Load(0, 0), I::Store(0, 1)]),
        section(3, vec![I::Load(0, 0), I::Store(0, 2)]),
    ])
}

/// `lastzero.c` with five writers: the reader looks for the last zero of an array from its end.
fn last_zero() -> Program {
    last_zero_with(5)
}

fn last_zero_with(writers: u32) -> Program {
    let mut reader = Vec::new();
    let end = 2 * (writers as usize + 1);
    for index in (0..=writers).rev() {
        reader.push(I::Load(0, index));
        reader.push(I::JumpIf(0, 0, end));
    }
    let writer = |index| vec![I::Load(0, index - 1), I::Store(index, 1)];
    let writers = (1..=writers).map(writer);
    started(std::iter::once(reader).chain(writers).collect())
}

/// `indexermod.c` with five threads: each takes the first free entry of a table.
fn indexer_mod() -> Program {
    let mut worker = Vec::new();
    for entry in 0..5 {
        worker.push(I::compare_exchange(0, entry, 0, 1));
        worker.push(I::JumpIf(0, 0, 10));
    }
    started(vec![worker; 5])
}

#[test]
fn micro_has_51318_executions_and_none_is_blocked() {
    // Thesis: 52495 and 53084 traces; its 1177 and 1766 blocked ones were not met in any order tried.
    for engine in [Engine::SourceDpor, Engine::NidhuggDpor, Engine::OptimalDpor] {
        assert_eq!(unbounded(&micro(), engine), (51318, 0), "{engine}");
    }
}

#[test]
fn table_6_1_source_and_nidhugg_dpor() {
    let (source, nidhugg) = (Engine::SourceDpor, Engine::NidhuggDpor);
    let program = with_local_step(&lazy());
    assert_eq!(unbounded(&program, source), (6, 0));
    assert_eq!(unbounded(&program, nidhugg), (6, 1));

    let program = with_local_step(&last_zero());
    assert_eq!(unbounded(&program, source), (64, 33));
    assert_eq!(unbounded(&program, nidhugg), (64, 33));

    let program = with_local_step(&indexer_mod());
    assert_eq!(unbounded(&program, source), (120, 0));
    assert_eq!(unbounded(&program, nidhugg), (120, 106));
}

#[test]
fn without_the_local_step_persistent_sets_block_differently() {
    let nidhugg = Engine::NidhuggDpor;
    assert_eq!(unbounded(&lazy(), nidhugg), (6, 0));
    assert_eq!(unbounded(&last_zero(), nidhugg), (64, 73));
    assert_eq!(unbounded(&indexer_mod(), nidhugg), (120, 55));
}

#[test]
fn lastzeromod_is_lastzero_of_three_writers_without_the_local_step() {
    // Thesis: 13 and 17 traces of a program that it does not print.
    let program = last_zero_with(3);
    assert_eq!(unbounded(&program, Engine::SourceDpor), (12, 1));
    assert_eq!(unbounded(&program, Engine::NidhuggDpor), (12, 5));
}

#[test]
fn optimal_dpor_is_never_blocked() {
    let optimal = Engine::OptimalDpor;
    for (program, executions) in [(lazy(), 6), (last_zero(), 64), (indexer_mod(), 120)] {
        let local = with_local_step(&program);
        assert_eq!(unbounded(&program, optimal), (executions, 0));
        assert_eq!(unbounded(&local, optimal), (executions, 0));
    }
}

#[test]
fn classic_dpor_repeats_itself() {
    let classic = Engine::ClassicDpor;
    assert_eq!(unbounded(&lazy(), classic), (6, 0));
    assert_eq!(unbounded(&last_zero(), classic), (1993, 0));
    assert_eq!(unbounded(&indexer_mod(), classic), (14315, 0));
}

#[test]
fn table_6_2_bpor() {
    // Thesis, for Nidhugg-BPOR and Source-BPOR alike: 6 27 42, 6 93 886, 252 2444 10614, 120 1320 7920.
    // It keeps some sleep sets, which may lose executions.
    let bpor = Engine::Bpor;
    assert_eq!(bounded(&lazy(), bpor), [6, 6, 6]);
    assert_eq!(bounded(&micro(), bpor), [6, 78, 660]);
    assert_eq!(bounded(&last_zero(), bpor), [252, 1557, 4466]);
    assert_eq!(bounded(&indexer_mod(), bpor), [120, 840, 3840]);
    let local = with_local_step;
    assert_eq!(bounded(&local(&micro()), bpor), [6, 96, 1014]);
    assert_eq!(bounded(&local(&indexer_mod()), bpor), [120, 1320, 9120]);
}

#[test]
fn a_figure_of_table_6_2_comes_of_putting_threads_to_sleep_that_end() {
    // Putting these threads to sleep loses executions of other programs.
    let program = with_local_step(&indexer_mod());
    let traces = [0, 1, 2].map(|bound| {
        let mut machine = ScriptMachine::new(program.clone());
        let settings = Settings {
            keep_going: true,
            preemptions: Some(bound),
        };
        let specimen = Specimen::OnlyEndedThreadsSleep;
        let (report, _) = dpor::search_specimen(&mut machine, specimen, settings, &mut NoObserver);
        report.counts.executions
    });
    assert_eq!(traces, [120, 1320, 7920]);
}

#[test]
fn conservative_branches_that_find_their_thread_asleep_come_to_little() {
    // As Algorithm 8 prints it. The thesis's own numbers for the bound 0, 252 and 120, need the
    // branches that are lost here: its implementation does something else than its print.
    let nidhugg = Engine::NidhuggBpor;
    assert_eq!(bounded(&last_zero(), nidhugg), [2, 13, 32]);
    assert_eq!(bounded(&indexer_mod(), nidhugg), [5, 20, 45]);
}

#[test]
fn table_7_1_lazy_bpor() {
    // Thesis, with its first approximation: 6 6 6, 60 805 4362, 97 97 97, 120 120 120. Its count
    // for micro is too low: there are no more than 6, 78 and 582 executions within those bounds.
    let lazy_bpor = Engine::LazyBpor;
    assert_eq!(bounded(&lazy(), lazy_bpor), [6, 6, 6]);
    assert_eq!(bounded(&micro(), lazy_bpor), [6, 78, 582]);
    assert_eq!(bounded(&last_zero(), lazy_bpor), [64, 64, 64]);
    assert_eq!(bounded(&indexer_mod(), lazy_bpor), [120, 120, 120]);
    let blocked = count(&with_local_step(&last_zero()), lazy_bpor, Some(0));
    assert_eq!(blocked, (64, 33));
    assert_eq!(bounded(&micro(), Engine::LazyBpor1), [6, 78, 573]);
    assert_eq!(bounded(&micro(), Engine::LazyBpor2), [6, 78, 582]);
}

/// The curves of Figures 6.1, 6.5 and 7.3.
#[test]
fn readers_have_a_power_of_two_executions_and_bpor_visits_a_factorial() {
    let mut arrangements = 1;
    for readers in 1..=5 {
        let reader = vec![I::Load(0, 0)];
        let workers = std::iter::once(vec![I::Store(0, 1)]).chain(vec![reader; readers]);
        let program = started(workers.collect());
        let executions = 1 << readers;
        for engine in [Engine::SourceDpor, Engine::OptimalDpor] {
            assert_eq!(unbounded(&program, engine).0, executions);
        }
        assert_eq!(bounded(&program, Engine::LazyBpor), [executions; 3]);
        // As many as there are ways to put some of the readers in a row.
        arrangements = arrangements * readers as u64 + 1;
        assert_eq!(bounded(&program, Engine::Bpor), [arrangements; 3]);
    }
}

/// A failed compare-exchange that is moved to where it succeeds is a write there.
#[test]
fn the_kind_of_a_compare_exchange_is_taken_anew() {
    let program = Program::of_workers(vec![
        vec![I::fetch_add(0, 0, 1)],
        vec![I::compare_exchange(0, 0, 0, 2)],
        vec![I::compare_exchange(0, 0, 0, 1)],
    ]);
    for engine in Engine::ALL.into_iter().filter(|engine| !engine.bounded()) {
        let (executions, _) = unbounded(&program, engine);
        assert!(executions >= 5, "{engine}");
        assert!(executions == 5 || !engine.visits_once(), "{engine}");
    }
}
