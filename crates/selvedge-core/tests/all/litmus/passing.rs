//! A message and the flag that announces it: MP, LB, WRC, ISA2, S.

use super::*;

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
