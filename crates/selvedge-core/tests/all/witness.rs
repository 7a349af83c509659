//! Counterexamples: as few context switches as there can be, and the same failure again.

use selvedge_core::interleave::Run;
use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, Bug, NoObserver, Settings};
use selvedge_core::witness::{Origin, Switch};
use selvedge_core::{FailureKind, Machine, Pending, Stop, ThreadId};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Flavour, Program, ScriptMachine, random_program};

fn first_bug(program: &Program) -> Option<Bug> {
    let mut machine = ScriptMachine::new(program.clone());
    let report = trust::search::<SequentialConsistency, _>(
        &mut machine,
        Settings::default(),
        &mut NoObserver,
    );
    report.bugs.into_iter().next()
}

/// The least number of switches over every interleaving in which each thread takes exactly
/// the steps, with the values, that it takes in `bug`.
fn least_switches(machine: &mut ScriptMachine, bug: &Bug) -> u32 {
    let steps_of = |thread: ThreadId| {
        let steps = bug.witness.steps.iter();
        steps
            .filter(|step| step.thread == thread)
            .collect::<Vec<_>>()
    };
    let threads: Vec<_> = (0..machine.threads() as u32)
        .map(|t| steps_of(ThreadId(t)))
        .collect();
    let total = bug.witness.steps.len();
    let mut least = u32::MAX;
    let mut stack = vec![Vec::<ThreadId>::new()];
    while let Some(order) = stack.pop() {
        let mut run = Run::new(machine);
        let mut taken = vec![0; threads.len()];
        let mut previous = ThreadId::MAIN;
        let mut switches = 0;
        let mut same = true;
        for &thread in &order {
            let step = threads[thread.index()][taken[thread.index()]];
            let performed = run.step(thread, step.choice);
            let read = step.read.is_none_or(|read| read == performed.read);
            same &= read && performed.wrote == step.wrote;
            taken[thread.index()] += 1;
            switches += u32::from(thread != previous);
            previous = thread;
        }
        if !same || switches >= least {
            continue;
        }
        if order.len() == total {
            least = switches;
            continue;
        }
        for thread in (0..threads.len() as u32).map(ThreadId) {
            let left = taken[thread.index()] < threads[thread.index()].len();
            if left && run.alternatives(thread) > 0 {
                let mut order = order.clone();
                order.push(thread);
                stack.push(order);
            }
        }
    }
    least
}

#[test]
fn schedules_have_the_fewest_switches() {
    let mut compared = 0;
    for seed in 0..400 {
        for flavour in [Flavour::Memory, Flavour::Mutexes, Flavour::Deadlocks] {
            let program = random_program(seed, flavour);
            let Some(bug) = first_bug(&program) else {
                continue;
            };
            if bug.witness.steps.len() > 10 {
                continue;
            }
            let least = least_switches(&mut ScriptMachine::new(program.clone()), &bug);
            // Values do not tell which of two equal writes was read, so brute force may find
            // a schedule of another graph; it can only be shorter.
            let writes_differ = distinct_writes(&bug);
            assert!(bug.witness.switches >= least, "{program:?}\n{bug:?}");
            if writes_differ {
                assert_eq!(bug.witness.switches, least, "{program:?}\n{bug:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "only {compared} schedules were compared");
}

/// Whether no two steps write the same non-zero value to one location, and none writes zero.
fn distinct_writes(bug: &Bug) -> bool {
    let writes = bug.witness.steps.iter();
    let writes = writes.filter_map(|step| Some((step.op.location()?, step.wrote?)));
    let writes: Vec<_> = writes.collect();
    let unique: std::collections::HashSet<_> = writes.iter().collect();
    unique.len() == writes.len() && writes.iter().all(|&(_, value)| value != 0)
}

#[test]
fn a_schedule_leads_to_the_failure_it_explains() {
    let mut failures = 0;
    for seed in 0..400 {
        let program = random_program(seed, Flavour::Memory);
        let Some(bug) = first_bug(&program) else {
            continue;
        };
        let mut machine = ScriptMachine::new(program);
        let mut run = Run::new(&mut machine);
        for step in &bug.witness.steps {
            let performed = run.step(step.thread, step.choice);
            assert_eq!((performed.op, performed.wrote), (step.op, step.wrote));
            assert!(step.read.is_none_or(|read| read == performed.read));
        }
        let pending = run.machine().pending(bug.failure.thread);
        assert_eq!(pending, Pending::Stopped(Stop::Failed));
        failures += 1;
    }
    assert!(failures > 20, "only {failures} programs failed");
}

#[test]
fn a_lost_update_is_explained_by_the_write_that_was_seen_last() {
    // Both threads add one to x without atomicity; main looks at the end.
    let increment = |value| vec![I::Load(0, 0), I::Store(0, value)];
    let mut program = Program::of_workers(vec![increment(1), increment(2)]);
    program.threads[0].push(I::Load(0, 0));
    program.threads[0].push(I::AssertNot(0, 1));
    let bug = first_bug(&program).expect("1 may be the last value written");
    assert_eq!(bug.failure.kind, FailureKind::Assertion);
    assert!(bug.witness.switches <= 4, "{bug:?}");
    let last = bug.witness.steps.last().expect("main reads");
    assert!(matches!(last.origin, Some(Origin::Step(_))));
}

#[test]
fn a_deadlock_names_who_waits_for_whom() {
    let worker = |t, first, second| {
        let lock = |mutex| I::lock(mutex, t);
        vec![
            lock(first),
            lock(second),
            I::unlock(second),
            I::unlock(first),
        ]
    };
    let program = Program::of_workers(vec![worker(1, 10, 11), worker(2, 11, 10)]);
    let bug = first_bug(&program).expect("locks are taken in opposite order");
    assert_eq!(bug.failure.kind, FailureKind::Deadlock);
    let waits: Vec<_> = bug
        .waiting
        .iter()
        .map(|w| (w.thread.0, w.on.map(|t| t.0)))
        .collect();
    assert_eq!(waits, [(0, Some(1)), (1, Some(2)), (2, Some(1))]);
    let preemptions = bug
        .witness
        .steps
        .iter()
        .filter(|s| s.switch == Switch::Preemption);
    assert_eq!(preemptions.count(), 1);
}
