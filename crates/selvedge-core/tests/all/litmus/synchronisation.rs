//! Updates, locks, creation and join.

use super::*;

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
