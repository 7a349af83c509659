//! The classic litmus tests with each meaningful order and fence: under each model the outcomes are
//! those of sequential consistency and the listed weak ones, no more and no fewer.
//!
//! An outcome is what each thread reads, in program order, threads set apart by `|`, then the final
//! values of the variables that are written more than once.

mod common;

use std::collections::BTreeSet;

use common::explore;
use selvedge_core::MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use selvedge_core::op::Rmw;
use selvedge_core::{EventId, MemoryOrder};
use selvedge_testkit::Axioms::{self, Ra, Rc11, Sc, Tso};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Execution, Program};

const X: u32 = 0;
const Y: u32 = 1;
const Z: u32 = 2;

fn r(variable: u32, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::Load(0, variable)]
}

fn w(variable: u32, value: u128, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::Store(variable, value)]
}

/// fetch_add(variable, 1)
fn u(variable: u32, order: MemoryOrder) -> Vec<I> {
    vec![I::with(order), I::memory(0, variable, Rmw::Add(1))]
}

fn f(order: MemoryOrder) -> Vec<I> {
    vec![I::Fence(order)]
}

/// Two accesses with fences of `order` between them, if any.
fn two(first: Vec<I>, fence: Option<MemoryOrder>, second: Vec<I>) -> Vec<I> {
    let fence = fence.map(f).unwrap_or_default();
    [first, fence, second].concat()
}

fn outcome(execution: &Execution) -> String {
    let reads = execution.threads[1..].iter().map(|thread| {
        let values = thread.iter().filter(|record| record.source.is_some());
        let values = values.filter_map(|record| record.read);
        values.map(|value| value.to_string()).collect::<String>()
    });
    let finals = execution
        .coherence
        .iter()
        .filter(|(_, writes)| writes.len() > 1);
    let finals = finals.map(|(location, writes)| {
        let EventId { thread, index } = *writes.last().expect("written more than once");
        let record = &execution.threads[thread.index()][index as usize];
        let name = ["x", "y", "z"][location.index()];
        format!(" {name}={}", record.wrote.expect("a write"))
    });
    reads.collect::<Vec<_>>().join("|") + &finals.collect::<String>()
}

fn outcomes(threads: &[Vec<I>], model: Axioms) -> BTreeSet<String> {
    let program = Program::of_workers(threads.to_vec());
    let (seen, _) = explore(&program, model);
    assert!(seen.stuck.is_empty() && !seen.twice);
    seen.complete.iter().map(outcome).collect()
}

fn executions(threads: &[Vec<I>], model: Axioms) -> u64 {
    let program = Program::of_workers(threads.to_vec());
    explore(&program, model).1.counts.executions
}

/// Checks that there are `sc` outcomes under SC, and which models allow `weak` besides.
fn check(threads: &[Vec<I>], sc: usize, weak: &str, allowed_by: &[Axioms]) {
    check_all(threads, sc, &[(weak, allowed_by)]);
}

fn check_all(threads: &[Vec<I>], sc: usize, weak: &[(&str, &[Axioms])]) {
    let strong = outcomes(threads, Sc);
    assert_eq!(strong.len(), sc, "{strong:?}");
    for model in [Tso, Ra, Rc11] {
        let mut expected = strong.clone();
        for (outcome, allowed_by) in weak {
            assert!(!strong.contains(*outcome), "{outcome} is not weak");
            if allowed_by.contains(&model) {
                expected.insert((*outcome).to_owned());
            }
        }
        assert_eq!(outcomes(threads, model), expected, "{model:?}");
    }
}

/// Store buffering.
fn sb(write: MemoryOrder, fence: Option<MemoryOrder>, read: MemoryOrder) -> Vec<Vec<I>> {
    let thread = |mine, other| two(w(mine, 1, write), fence, r(other, read));
    vec![thread(X, Y), thread(Y, X)]
}

#[test]
fn sb_relaxed() {
    check(&sb(Relaxed, None, Relaxed), 3, "0|0", &[Tso, Ra, Rc11]);
}

#[test]
fn sb_release_acquire() {
    check(&sb(Release, None, Acquire), 3, "0|0", &[Tso, Ra, Rc11]);
}

#[test]
fn sb_seq_cst() {
    check(&sb(SeqCst, None, SeqCst), 3, "0|0", &[Tso, Ra]);
}

#[test]
fn sb_with_one_order_too_weak() {
    check(&sb(SeqCst, None, Acquire), 3, "0|0", &[Tso, Ra, Rc11]);
    check(&sb(Release, None, SeqCst), 3, "0|0", &[Tso, Ra, Rc11]);
}

#[test]
fn sb_with_fences() {
    check(&sb(Relaxed, Some(SeqCst), Relaxed), 3, "0|0", &[Ra]);
    let weak = sb(Relaxed, Some(AcqRel), Relaxed);
    check(&weak, 3, "0|0", &[Tso, Ra, Rc11]);
}

#[test]
fn sb_with_one_fence() {
    let mut threads = sb(Relaxed, Some(SeqCst), Relaxed);
    threads[1] = two(w(Y, 1, Relaxed), None, r(X, Relaxed));
    check(&threads, 3, "0|0", &[Tso, Ra, Rc11]);
}

#[test]
fn sb_with_updates() {
    let thread = |mine, other| [u(mine, AcqRel), r(other, Relaxed)].concat();
    // Each update reads 0.
    check(&[thread(X, Y), thread(Y, X)], 3, "00|00", &[Ra, Rc11]);
    let thread = |mine, other| [u(mine, SeqCst), r(other, SeqCst)].concat();
    check(&[thread(X, Y), thread(Y, X)], 3, "00|00", &[Ra]);
}

#[test]
fn sb_has_3_executions_under_sc_and_4_under_ra() {
    let threads = sb(Relaxed, None, Relaxed);
    assert_eq!([Sc, Ra].map(|model| executions(&threads, model)), [3, 4]);
}

/// Message passing.
fn mp(write: MemoryOrder, read: MemoryOrder) -> Vec<Vec<I>> {
    let writer = [w(X, 1, Relaxed), w(Y, 1, write)].concat();
    vec![writer, [r(Y, read), r(X, Relaxed)].concat()]
}

#[test]
fn mp_relaxed() {
    check(&mp(Relaxed, Relaxed), 3, "|10", &[Rc11]);
}

#[test]
fn mp_release_acquire() {
    check(&mp(Release, Acquire), 3, "|10", &[]);
    check(&mp(SeqCst, SeqCst), 3, "|10", &[]);
}

#[test]
fn mp_with_one_order_too_weak() {
    check(&mp(Release, Relaxed), 3, "|10", &[Rc11]);
    check(&mp(Relaxed, Acquire), 3, "|10", &[Rc11]);
}

#[test]
fn mp_with_fences() {
    let threads = |release, acquire| {
        [
            two(w(X, 1, Relaxed), Some(release), w(Y, 1, Relaxed)),
            two(r(Y, Relaxed), Some(acquire), r(X, Relaxed)),
        ]
    };
    check(&threads(Release, Acquire), 3, "|10", &[]);
    check(&threads(AcqRel, AcqRel), 3, "|10", &[]);
    check(&threads(SeqCst, SeqCst), 3, "|10", &[]);
    check(&threads(Acquire, Acquire), 3, "|10", &[Rc11]);
    check(&threads(Release, Release), 3, "|10", &[Rc11]);
}

#[test]
fn mp_with_a_fence_on_one_side() {
    let fenced_writer = two(w(X, 1, Relaxed), Some(Release), w(Y, 1, Relaxed));
    let fenced_reader = two(r(Y, Relaxed), Some(Acquire), r(X, Relaxed));
    let plain = mp(Release, Acquire);
    check(&[fenced_writer, plain[1].clone()], 3, "|10", &[]);
    check(&[plain[0].clone(), fenced_reader], 3, "|10", &[]);
}

#[test]
fn mp_through_an_update_is_a_release_sequence() {
    let threads = |update| {
        let reader = [r(Y, Acquire), r(X, Relaxed)].concat();
        let writer = [w(X, 1, Relaxed), w(Y, 1, Release)].concat();
        [writer, u(Y, update), reader]
    };
    // The reader sees what the update wrote over the release.
    check(&threads(Relaxed), 8, "|1|20 y=2", &[]);
    check(&threads(AcqRel), 8, "|1|20 y=2", &[]);
}

#[test]
fn mp_through_a_later_store_is_no_release_sequence_since_cxx20() {
    let writer = [w(X, 1, Relaxed), w(Y, 1, Release), w(Y, 2, Relaxed)].concat();
    let reader = [r(Y, Acquire), r(X, Relaxed)].concat();
    check(&[writer, reader], 4, "|20 y=2", &[Rc11]);
}

#[test]
fn lb_needs_a_cycle_of_causes() {
    for (read, write) in [(Relaxed, Relaxed), (Acquire, Release), (SeqCst, SeqCst)] {
        let thread = |from, to| [r(from, read), w(to, 1, write)].concat();
        check(&[thread(X, Y), thread(Y, X)], 3, "1|1", &[]);
    }
}

/// Independent reads of independent writes.
fn iriw(write: MemoryOrder, first: MemoryOrder, second: MemoryOrder) -> Vec<Vec<I>> {
    let reader = |a, b| [r(a, first), r(b, second)].concat();
    vec![w(X, 1, write), w(Y, 1, write), reader(X, Y), reader(Y, X)]
}

#[test]
fn iriw_relaxed() {
    let threads = iriw(Relaxed, Relaxed, Relaxed);
    check(&threads, 15, "||10|10", &[Ra, Rc11]);
}

#[test]
fn iriw_release_acquire() {
    let threads = iriw(Release, Acquire, Acquire);
    check(&threads, 15, "||10|10", &[Ra, Rc11]);
}

#[test]
fn iriw_seq_cst() {
    check(&iriw(SeqCst, SeqCst, SeqCst), 15, "||10|10", &[Ra]);
}

/// Lahav et al. 2017, §2.1: C11 forbids it, its implementations do not, RC11 does not.
#[test]
fn iriw_acquire_seq_cst() {
    check(&iriw(SeqCst, Acquire, SeqCst), 15, "||10|10", &[Ra, Rc11]);
}

#[test]
fn iriw_with_fences() {
    let reader = |a, b| two(r(a, Relaxed), Some(SeqCst), r(b, Relaxed));
    let writes = [w(X, 1, Relaxed), w(Y, 1, Relaxed)];
    let [x, y] = writes;
    check(&[x, y, reader(X, Y), reader(Y, X)], 15, "||10|10", &[Ra]);
}

#[test]
fn iriw_has_15_executions_under_sc_and_16_under_ra() {
    let threads = iriw(Relaxed, Relaxed, Relaxed);
    assert_eq!([Sc, Ra].map(|model| executions(&threads, model)), [15, 16]);
}

#[test]
fn wrc() {
    let threads = |read, write| {
        let middle = [r(X, read), w(Y, 1, write)].concat();
        let last = [r(Y, read), r(X, Relaxed)].concat();
        [w(X, 1, write), middle, last]
    };
    check(&threads(Relaxed, Relaxed), 7, "|1|10", &[Rc11]);
    check(&threads(Acquire, Release), 7, "|1|10", &[]);
    check(&threads(SeqCst, SeqCst), 7, "|1|10", &[]);
}

#[test]
fn isa2() {
    let threads = |read, write| {
        let first = [w(X, 1, Relaxed), w(Y, 1, write)].concat();
        let second = [r(Y, read), w(Z, 1, write)].concat();
        let third = [r(Z, read), r(X, Relaxed)].concat();
        [first, second, third]
    };
    check(&threads(Relaxed, Relaxed), 7, "|1|10", &[Rc11]);
    check(&threads(Acquire, Release), 7, "|1|10", &[]);
}

#[test]
fn r_test() {
    let threads = |order, fence| {
        [
            two(w(X, 1, order), fence, w(Y, 1, order)),
            two(w(Y, 2, order), fence, r(X, order)),
        ]
    };
    check(&threads(Relaxed, None), 3, "|0 y=2", &[Tso, Ra, Rc11]);
    check(&threads(SeqCst, None), 3, "|0 y=2", &[Tso, Ra]);
    check(&threads(Relaxed, Some(SeqCst)), 3, "|0 y=2", &[Ra]);
}

#[test]
fn s_test() {
    let threads = |write, read| {
        [
            [w(X, 2, Relaxed), w(Y, 1, write)].concat(),
            [r(Y, read), w(X, 1, Relaxed)].concat(),
        ]
    };
    check(&threads(Relaxed, Relaxed), 3, "|1 x=2", &[Rc11]);
    check(&threads(Release, Acquire), 3, "|1 x=2", &[]);
    check(&threads(Release, Relaxed), 3, "|1 x=2", &[Rc11]);
}

/// Two writes each.
fn two_plus_two_w(order: MemoryOrder, fence: Option<MemoryOrder>) -> Vec<Vec<I>> {
    let thread = |a, b| two(w(a, 1, order), fence, w(b, 2, order));
    vec![thread(X, Y), thread(Y, X)]
}

#[test]
fn two_plus_two_writes() {
    let weak = "| x=1 y=1";
    check(&two_plus_two_w(Relaxed, None), 3, weak, &[Ra, Rc11]);
    check(&two_plus_two_w(Release, None), 3, weak, &[Ra, Rc11]);
    check(&two_plus_two_w(SeqCst, None), 3, weak, &[Ra]);
    check(&two_plus_two_w(Relaxed, Some(SeqCst)), 3, weak, &[Ra]);
}

#[test]
fn two_plus_two_writes_have_3_executions_under_sc_and_4_under_ra() {
    let threads = two_plus_two_w(Relaxed, None);
    assert_eq!([Sc, Ra].map(|model| executions(&threads, model)), [3, 4]);
}

#[test]
fn coherence_of_one_location() {
    // CoRR, CoWW, CoRW, CoWR
    let corr = [w(X, 1, Relaxed), [r(X, Relaxed), r(X, Relaxed)].concat()];
    check(&corr, 3, "|10", &[]);
    let coww = [[w(X, 1, Relaxed), w(X, 2, Relaxed)].concat()];
    check(&coww, 1, " x=1", &[]);
    let corw = [[r(X, Relaxed), w(X, 1, Relaxed)].concat(), w(X, 2, Relaxed)];
    check(&corw, 3, "2| x=2", &[]);
    let cowr = [[w(X, 1, Relaxed), r(X, Relaxed)].concat(), w(X, 2, Relaxed)];
    check(&cowr, 3, "2| x=1", &[]);
}

#[test]
fn corr_of_two_readers() {
    let reader = || [r(X, Relaxed), r(X, Relaxed)].concat();
    let threads = [w(X, 1, Relaxed), w(X, 2, Relaxed), reader(), reader()];
    for model in [Tso, Ra, Rc11] {
        let all = outcomes(&threads, model);
        assert_eq!(all, outcomes(&threads, Sc), "{model:?}");
        assert!(!all.iter().any(|outcome| outcome.starts_with("||12|21")));
    }
}

#[test]
fn rwc() {
    let threads = |order, fence| {
        let second = two(r(X, order), fence, r(Y, order));
        let third = two(w(Y, 1, order), fence, r(X, order));
        [w(X, 1, order), second, third]
    };
    check(&threads(Relaxed, None), 7, "|10|0", &[Tso, Ra, Rc11]);
    check(&threads(SeqCst, None), 7, "|10|0", &[Tso, Ra]);
    check(&threads(Relaxed, Some(SeqCst)), 7, "|10|0", &[Ra]);
}

/// The SC read comes before the write that it does not see, and by that before the fence that the write
/// synchronises with (`fr; hb; [F]`): SC accesses and SC fences work together.
#[test]
fn rwc_with_seq_cst_accesses_and_one_fence() {
    let second = two(r(X, Relaxed), Some(SeqCst), r(Y, SeqCst));
    let third = two(w(Y, 1, SeqCst), None, r(X, SeqCst));
    let threads = [w(X, 1, SeqCst), second, third];
    check(&threads, 7, "|10|0", &[Tso, Ra]);
}

/// Lahav et al. 2017, §2.3, where C11's fences are too weak.
#[test]
fn w_rwc_with_fences() {
    let threads = |fence| {
        let first = [w(X, 1, Relaxed), w(Y, 1, Release)].concat();
        let second = two(r(Y, Acquire), fence, r(Z, Relaxed));
        let third = two(w(Z, 1, Relaxed), fence, r(X, Relaxed));
        [first, second, third]
    };
    check(&threads(None), 7, "|10|0", &[Tso, Ra, Rc11]);
    check(&threads(Some(SeqCst)), 7, "|10|0", &[Ra]);
}

/// The Z6 family of herd: three threads, each with one of the six shapes of a critical cycle.
fn z6(number: u32, order: MemoryOrder, fence: Option<MemoryOrder>) -> Vec<Vec<I>> {
    let w = |variable, value| w(variable, value, order);
    let r = |variable| r(variable, order);
    let two = |first, second| two(first, fence, second);
    match number {
        0 => vec![
            two(w(X, 1), w(Y, 1)),
            two(r(Y), w(Z, 1)),
            two(w(Z, 2), r(X)),
        ],
        1 => vec![
            two(w(X, 2), w(Y, 1)),
            two(w(Y, 2), w(Z, 1)),
            two(r(Z), w(X, 1)),
        ],
        2 => vec![
            two(w(X, 2), w(Y, 1)),
            two(r(Y), w(Z, 1)),
            two(r(Z), w(X, 1)),
        ],
        3 => vec![
            two(w(X, 1), w(Y, 1)),
            two(w(Y, 2), w(Z, 1)),
            two(r(Z), r(X)),
        ],
        4 => vec![
            two(w(X, 1), w(Y, 1)),
            two(w(Y, 2), r(Z)),
            two(w(Z, 1), r(X)),
        ],
        _ => vec![
            two(w(X, 1), w(Y, 1)),
            two(w(Y, 2), w(Z, 1)),
            two(w(Z, 2), r(X)),
        ],
    }
}

const Z6: [(&str, usize, &[Axioms]); 6] = [
    ("|1|0 z=2", 7, &[Tso, Ra]),
    ("||1 x=2 y=2", 7, &[Ra]),
    ("|1|1 x=2", 7, &[]),
    ("||10 y=2", 7, &[Ra]),
    ("|0|0 y=2", 7, &[Tso, Ra]),
    ("||0 y=2 z=2", 7, &[Tso, Ra]),
];

#[test]
fn z6_relaxed() {
    for (number, (weak, sc, allowed_by)) in Z6.into_iter().enumerate() {
        let threads = z6(number as u32, Relaxed, None);
        check(&threads, sc, weak, &[allowed_by, &[Rc11]].concat());
    }
}

#[test]
fn z6_seq_cst() {
    for (number, (weak, sc, allowed_by)) in Z6.into_iter().enumerate() {
        check(&z6(number as u32, SeqCst, None), sc, weak, allowed_by);
    }
}

#[test]
fn z6_with_fences() {
    for (number, (weak, sc, allowed_by)) in Z6.into_iter().enumerate() {
        let only_ra: &[Axioms] = if allowed_by.contains(&Ra) { &[Ra] } else { &[] };
        let threads = z6(number as u32, Relaxed, Some(SeqCst));
        check(&threads, sc, weak, only_ra);
    }
}

/// Lahav et al. 2017, §2.1: hardware shows it, so the repaired model must allow it.
#[test]
fn z6_u_stays_allowed() {
    let first = [w(X, 1, SeqCst), w(Y, 1, Release)].concat();
    let second = [u(Y, SeqCst), r(Y, Relaxed)].concat();
    let third = [w(Y, 3, SeqCst), r(X, SeqCst)].concat();
    let threads = [first, second, third];
    let weak = "|13|0 y=3";
    assert!(!outcomes(&threads, Sc).contains(weak));
    for model in [Tso, Ra, Rc11] {
        assert!(outcomes(&threads, model).contains(weak), "{model:?}");
    }
}

/// The same with loads: the acquire and the SC load are at one location, so what happens before the
/// first does not come before the second in `scb`.
#[test]
fn z6_u_with_loads_stays_allowed() {
    let first = [w(X, 1, SeqCst), w(Y, 1, Release)].concat();
    let second = [r(Y, Acquire), r(Y, SeqCst)].concat();
    let third = [w(Y, 3, SeqCst), r(X, SeqCst)].concat();
    // The search adds the event that could close a cycle last in one of the two.
    let one = [first.clone(), second.clone(), third.clone()];
    let other = [first, third, second];
    for (threads, weak) in [(one, "|11|0 y=3"), (other, "|0|11 y=3")] {
        assert!(!outcomes(&threads, Sc).contains(weak));
        assert!(outcomes(&threads, Rc11).contains(weak));
    }
}

#[test]
fn updates_of_one_location_never_read_the_same_write() {
    for order in [Relaxed, AcqRel, SeqCst] {
        let threads = [u(X, order), u(X, order), u(X, order)];
        for model in [Sc, Tso, Ra, Rc11] {
            assert_eq!(executions(&threads, model), 6, "{model:?}");
        }
    }
}

#[test]
fn critical_sections_pass_messages_under_every_model() {
    let worker = |thread, mut inside: Vec<I>| {
        inside.insert(0, I::lock(10, thread));
        inside.push(I::unlock(10));
        inside
    };
    let write = [w(X, 1, Relaxed), w(Y, 1, Relaxed)].concat();
    let read = [r(Y, Relaxed), r(X, Relaxed)].concat();
    let program = Program::of_workers(vec![worker(1, write), worker(2, read)]);
    for model in [Sc, Tso, Ra, Rc11] {
        let (seen, report) = explore(&program, model);
        let counts = (report.counts.executions, report.counts.blocked);
        assert_eq!((counts, seen.complete.len()), ((2, 0), 2), "{model:?}");
    }
}

#[test]
fn creation_and_join_pass_messages_under_every_model() {
    let mut program = Program::of_workers(vec![[r(X, Relaxed), w(Y, 1, Relaxed)].concat()]);
    program.threads[0].splice(0..0, w(X, 1, Relaxed));
    program.threads[0].extend(r(Y, Relaxed));
    for model in [Sc, Tso, Ra, Rc11] {
        assert_eq!(explore(&program, model).1.counts.executions, 1, "{model:?}");
    }
}
