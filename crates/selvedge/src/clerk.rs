//! An OS thread for what confined threads may not do: write files and start processes.
//!
//! The thread of a test that `cargo selvedge` runs gives up these system calls before its first model,
//! for the sake of the program under test. Reports, checkpoints and workers need them later.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};

type Task = Box<dyn FnOnce() + Send>;

static CLERK: OnceLock<Mutex<Sender<Task>>> = OnceLock::new();

/// Starts the clerk if the calling thread is going to be confined. It must not be confined yet.
pub(crate) fn prepare() {
    if std::env::var_os("SELVEDGE_CONFINE").is_none() {
        return;
    }
    CLERK.get_or_init(|| {
        let (sender, tasks) = mpsc::channel::<Task>();
        std::thread::spawn(move || tasks.into_iter().for_each(|task| task()));
        Mutex::new(sender)
    });
}

/// The result of `work`, which the clerk does if there is one.
///
/// # Panics
///
/// If `work` does.
pub(crate) fn have<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let Some(clerk) = CLERK.get() else {
        return work();
    };
    let (answer, answered) = mpsc::channel();
    let task: Task = Box::new(move || {
        let _ = answer.send(work());
    });
    let sent = clerk
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send(task);
    match sent.ok().and_then(|()| answered.recv().ok()) {
        Some(result) => result,
        None => panic!("the thread that writes files for confined tests has ended"),
    }
}
