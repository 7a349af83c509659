//! Leaving the frames of an execution that is over.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::engine::{Engine, Next, current, host};
use super::memory::{self, Owner};

/// What a thread of an abandoned execution unwinds with.
struct Abandoned;

/// So many steps a thread of an abandoned execution may take to leave its frames.
const LEAVING_STEPS: u32 = 100_000;

/// Whether a thread unwinds because its execution is over.
pub(super) fn is_leaving(payload: &dyn Any) -> bool {
    payload.is::<Abandoned>()
}

impl Engine {
    /// Leaves the frames of every thread, the youngest thread first, since it may borrow from the
    /// older ones.
    pub(super) fn abandon(&self) {
        self.abandoning.set(true);
        loop {
            let mut state = self.state().borrow_mut();
            let Some(thread) = state.begun.pop() else {
                break;
            };
            let alive = state.threads[thread].alive;
            drop(state);
            if alive {
                self.run(thread);
            }
        }
        let mut state = self.state().borrow_mut();
        let threads = state.threads.iter_mut();
        let left: Vec<_> = threads
            .map(|thread| (thread.start.take(), std::mem::take(&mut thread.locals)))
            .collect();
        drop(state);
        self.discard(left);
        let statics = std::mem::take(&mut self.state().borrow_mut().statics);
        self.discard(statics);
        self.abandoning.set(false);
    }

    /// Drops what belongs to the execution that is over.
    pub(super) fn discard<T>(&self, value: T) {
        let before = self.abandoning.replace(true);
        memory::allocate_for(Owner::Model);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
        memory::allocate_for(Owner::Checker);
        self.abandoning.set(before);
        // A destructor that fails while nobody looks: there is nothing to tell.
        drop(dropped);
    }
}

/// The execution is over: the thread leaves its frames, unless it is doing so already.
pub(super) fn leave() {
    if !std::thread::panicking() || !host(|state| state.is_unwinding()) {
        host(|state| state.threads[state.running].leaving = 1);
        resume_unwind(Box::new(Abandoned));
    }
}

/// A thread of an abandoned execution cannot go on: its frames are left as they are.
pub(crate) fn give_up() -> ! {
    let engine = current();
    if !engine.on_fiber.get() {
        resume_unwind(Box::new(Abandoned));
    }
    engine.call(&mut |state| {
        let running = state.running;
        state.threads[running].alive = false;
        Next::Stop
    });
    unreachable!("a thread that was given up is not resumed")
}

/// Counts a step of a thread that leaves; false if it has taken too many.
pub(super) fn may_leave(steps: &mut u32) -> bool {
    *steps += 1;
    *steps <= LEAVING_STEPS
}
