//! A write that waits while a later access goes ahead: SB, R, RWC, 2+2W.

use super::*;

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
    check(&sb(SeqCst, None, SeqCst), 3, "0|0", &[Ra]);
}

#[test]
fn sb_with_one_order_too_weak() {
    check(&sb(SeqCst, None, Acquire), 3, "0|0", &[Ra, Rc11]);
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

#[test]
fn r_test() {
    let threads = |order, fence| {
        [
            two(w(X, 1, order), fence, w(Y, 1, order)),
            two(w(Y, 2, order), fence, r(X, order)),
        ]
    };
    check(&threads(Relaxed, None), 3, "|0 y=2", &[Tso, Ra, Rc11]);
    check(&threads(SeqCst, None), 3, "|0 y=2", &[Ra]);
    check(&threads(Relaxed, Some(SeqCst)), 3, "|0 y=2", &[Ra]);
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
fn rwc() {
    let threads = |order, fence| {
        let second = two(r(X, order), fence, r(Y, order));
        let third = two(w(Y, 1, order), fence, r(X, order));
        [w(X, 1, order), second, third]
    };
    check(&threads(Relaxed, None), 7, "|10|0", &[Tso, Ra, Rc11]);
    check(&threads(SeqCst, None), 7, "|10|0", &[Ra]);
    check(&threads(Relaxed, Some(SeqCst)), 7, "|10|0", &[Ra]);
}

/// The SC read comes before the write that it does not see, and by that before the fence that the write
/// synchronises with (`fr; hb; [F]`): SC accesses and SC fences work together.
#[test]
fn rwc_with_seq_cst_accesses_and_one_fence() {
    let second = two(r(X, Relaxed), Some(SeqCst), r(Y, SeqCst));
    let third = two(w(Y, 1, SeqCst), None, r(X, SeqCst));
    let threads = [w(X, 1, SeqCst), second, third];
    check(&threads, 7, "|10|0", &[Ra]);
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
