//! Readers that see writes in different orders: IRIW, and coherence of one location.

use super::*;

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
