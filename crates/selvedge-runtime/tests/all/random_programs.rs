//! Random programs, compiled and run natively, against brute force.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use selvedge_core::graph::{Graph, Kind};
use selvedge_core::model::SequentialConsistency;
use selvedge_core::op::{Function, Op};
use selvedge_core::trust::{self, Ending, Observer, Settings};
use selvedge_core::{ThreadId, Value};
use selvedge_testkit::{Flavour, ScriptMachine, brute_force, c_source, random_program};

use crate::common::{Build, CLANG, GCC, Program, isolated};

const ALL_BUGS: Settings = Settings {
    keep_going: true,
    preemptions: None,
};

/// The values that each thread read and wrote, threads in no particular order.
type Values = Vec<Vec<(Option<Value>, Option<Value>)>>;

#[derive(Default)]
struct Collect {
    executions: BTreeMap<u32, u64>,
    values: BTreeMap<u32, BTreeSet<Values>>,
}

impl<M> Observer<M> for Collect {
    fn complete(&mut self, graph: &Graph) {
        let choice = graph.event(graph.thread(ThreadId::MAIN)[0]).choice;
        *self.executions.entry(choice).or_default() += 1;
        let values = (0..graph.threads() as u32).map(|t| values(graph, ThreadId(t)));
        let mut values: Values = values.filter(|values| !values.is_empty()).collect();
        values.sort();
        self.values.entry(choice).or_default().insert(values);
    }
}

fn values(graph: &Graph, thread: ThreadId) -> Vec<(Option<Value>, Option<Value>)> {
    let events = graph.thread(thread).iter().map(|&slot| graph.event(slot));
    let mut values = Vec::new();
    for event in events {
        let object = match event.op {
            Op::Update { function, .. } => matches!(function, Function::Object(_)),
            Op::Store { value, .. } => value == 0 && event.id.index > 0,
            _ => false,
        };
        match event.kind {
            Kind::Read if !object => values.push((Some(event.read), None)),
            Kind::WriteHalf if !object => values.push((Some(event.read), Some(event.wrote))),
            Kind::Write if !object => values.push((None, Some(event.wrote))),
            _ => {}
        }
    }
    values
}

fn compare(build: Build, flavour: Flavour, seeds: std::ops::Range<u64>) {
    let mut programs = Vec::new();
    let mut expected = Vec::new();
    for seed in seeds {
        let mut program = random_program(seed, flavour);
        program.initial.clear();
        let known = brute_force(&mut ScriptMachine::new(program.clone()), 2_000);
        if let (Some(outcomes), Some(_)) = (known, c_source(std::slice::from_ref(&program))) {
            programs.push(program);
            expected.push(outcomes);
        }
    }
    let source = c_source(&programs).expect("each of them can be written in C");
    let program = Program::build(build, &source);
    let mut machine = program.load(Default::default());
    let mut seen = Collect::default();
    let report = trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut seen);
    assert_eq!(report.ending, Ending::Complete);
    let mut scripted: HashMap<u32, BTreeSet<Values>> = HashMap::new();
    for (number, program) in programs.iter().enumerate() {
        let number = number as u32;
        let mut all = Script::default();
        let mut machine = ScriptMachine::new(program.clone());
        trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut all);
        scripted.insert(number, all.0);
        let executions = seen.executions.get(&number).copied().unwrap_or(0);
        let expected = expected[number as usize].complete.len() as u64;
        assert_eq!(
            executions, expected,
            "program {number} {program:?}\n{source}"
        );
        let values = seen.values.remove(&number).unwrap_or_default();
        assert_eq!(values, scripted[&number], "program {number} {program:?}");
    }
    println!(
        "{} programs, {} executions",
        programs.len(),
        report.counts.executions
    );
}

/// The same of the scripted machine.
#[derive(Default)]
struct Script(BTreeSet<Values>);

impl<M> Observer<M> for Script {
    fn complete(&mut self, graph: &Graph) {
        let values = (0..graph.threads() as u32).map(|t| values(graph, ThreadId(t)));
        let mut values: Values = values.filter(|values| !values.is_empty()).collect();
        values.sort();
        self.0.insert(values);
    }
}

#[test]
fn memory_programs_run_natively_as_scripted() {
    isolated("memory_programs_run_natively_as_scripted", || {
        compare(GCC, Flavour::Memory, 0..120);
    });
}

#[test]
fn programs_with_mutexes_run_natively_as_scripted() {
    isolated("programs_with_mutexes_run_natively_as_scripted", || {
        compare(GCC, Flavour::Mutexes, 0..120);
    });
}

#[test]
fn programs_built_with_clang_run_natively_as_scripted() {
    isolated("programs_built_with_clang_run_natively_as_scripted", || {
        for build in Build::installed(&[CLANG]) {
            compare(build, Flavour::Memory, 200..260);
        }
    });
}
#[test]
fn programs_with_loops_run_natively_as_scripted() {
    isolated("programs_with_loops_run_natively_as_scripted", || {
        compare(GCC, Flavour::Loops, 0..120);
    });
}
