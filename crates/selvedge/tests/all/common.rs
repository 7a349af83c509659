//! Helpers that the tests share.
#![allow(dead_code, reason = "`outside` uses a part")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use selvedge::model::{Builder, Failure, MemoryModel, Report, Verdict};

/// Every memory model.
pub(crate) const MODELS: [MemoryModel; 4] = [
    MemoryModel::Sc,
    MemoryModel::Tso,
    MemoryModel::Ra,
    MemoryModel::Rc11,
];

/// A builder for this memory model.
pub(crate) fn builder(model: MemoryModel) -> Builder {
    let mut builder = Builder::new();
    builder.model = model;
    builder
}

/// Explores `test`, which must not fail.
pub(crate) fn verified(model: MemoryModel, test: impl Fn() + Send + Sync + 'static) -> Report {
    let report = builder(model).explore(test);
    assert_eq!(report.verdict, Verdict::Verified);
    report
}

/// The values that `test` returns in all of its executions.
pub(crate) fn outcomes<T: Ord + Send + 'static>(
    model: MemoryModel,
    test: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = Arc::clone(&seen);
    verified(model, move || {
        let outcome = test();
        all.lock().unwrap().insert(outcome);
    });
    std::mem::take(&mut *seen.lock().unwrap())
}

/// How `test` fails.
pub(crate) fn failure(model: MemoryModel, test: impl Fn() + Send + Sync + 'static) -> Failure {
    match builder(model).explore(test).verdict {
        Verdict::Failed(failure) => *failure,
        other => panic!("{other:?}"),
    }
}
