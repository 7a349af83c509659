//! The Z6 family: three threads, one critical cycle.

use super::*;

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

/// The models that still allow an outcome when orders or fences are as strong as possible: release-acquire ignores
/// them.
fn only_ra(allowed_by: &[Axioms]) -> &'static [Axioms] {
    if allowed_by.contains(&Ra) { &[Ra] } else { &[] }
}

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
        check(
            &z6(number as u32, SeqCst, None),
            sc,
            weak,
            only_ra(allowed_by),
        );
    }
}

#[test]
fn z6_with_fences() {
    for (number, (weak, sc, allowed_by)) in Z6.into_iter().enumerate() {
        let threads = z6(number as u32, Relaxed, Some(SeqCst));
        check(&threads, sc, weak, only_ra(allowed_by));
    }
}

/// Lahav et al. 2017, §2.1: hardware other than x86 shows it, so the repaired model must allow it.
#[test]
fn z6_u_stays_allowed() {
    let first = [w(X, 1, SeqCst), w(Y, 1, Release)].concat();
    let second = [u(Y, SeqCst), r(Y, Relaxed)].concat();
    let third = [w(Y, 3, SeqCst), r(X, SeqCst)].concat();
    let threads = [first, second, third];
    let weak = "|13|0 y=3";
    for (model, allowed) in [(Sc, false), (Tso, false), (Ra, true), (Rc11, true)] {
        let all = outcomes(&threads, model);
        assert_eq!(all.contains(weak), allowed, "{model:?}");
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
