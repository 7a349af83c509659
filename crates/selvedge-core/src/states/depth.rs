//! Depth-first.

use std::ops::ControlFlow;

use super::parts::Contents;
use super::queue::{Node, PackedStep};
use super::search::{Search, Seen};
use super::space::StateStep;
use crate::ids::ThreadId;
use crate::report::{Ending, Observer, Report};
use crate::saved::StateMachine;

/// A search that always goes on from the newest state.
pub(super) struct Depth<'a, M, O> {
    search: Search<'a, M, O>,
    stack: Vec<Frame>,
    /// The states of the stack, and the steps that lead out of them.
    tuples: Vec<Contents>,
    steps: Vec<StateStep>,
}

/// A state on the way to the newest one.
struct Frame {
    node: Node,
    /// Where its tuple and its steps begin.
    tuple: usize,
    steps: usize,
    /// The next step to take.
    next: usize,
}

impl<'a, M: StateMachine, O: Observer<M>> Depth<'a, M, O> {
    pub(super) fn new(search: Search<'a, M, O>) -> Self {
        Depth {
            search,
            stack: Vec::new(),
            tuples: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Report {
        let ending = self.explore().break_value().unwrap_or(Ending::Complete);
        self.search.report(ending)
    }

    fn explore(&mut self) -> ControlFlow<Ending> {
        let main = StateStep {
            thread: ThreadId::MAIN,
            choice: 0,
        };
        self.arrive(0, main)?;
        while let Some(frame) = self.stack.last_mut() {
            if frame.next == self.steps.len() {
                self.tuples.truncate(frame.tuple);
                self.steps.truncate(frame.steps);
                self.stack.pop();
                continue;
            }
            let step = self.steps[frame.next];
            frame.next += 1;
            let node = frame.node;
            self.search.space.restore(&self.tuples[frame.tuple..]);
            self.search.take(node, step)?;
            self.arrive(node, step)?;
        }
        ControlFlow::Continue(())
    }

    /// The machine is in a state that `step` led to from that of `parent`.
    fn arrive(&mut self, parent: Node, step: StateStep) -> ControlFlow<Ending> {
        let search = &mut self.search;
        let identity = search.space.identity();
        let (_, verdict) = search.visited.claim(identity, 0, step.thread);
        if verdict.is_known() {
            return ControlFlow::Continue(());
        }
        let node = search.nodes.push(parent, PackedStep::new(step));
        match search.look()? {
            Seen::Open => {
                self.stack.push(Frame {
                    node,
                    tuple: self.tuples.len(),
                    steps: self.steps.len(),
                    next: self.steps.len(),
                });
                self.tuples.extend_from_slice(search.space.here());
                self.steps.extend_from_slice(&search.steps);
                search.layer = search.layer.max(self.stack.len() as u32 - 1);
            }
            Seen::Closed => {}
            Seen::Wrong => {
                let path = search.path(node);
                search.tell(&path)?;
            }
        }
        let frames = self.stack.capacity() * size_of::<Frame>();
        let tuples = self.tuples.capacity() * size_of::<Contents>();
        let steps = self.steps.capacity() * size_of::<StateStep>();
        self.search
            .breathe(self.stack.len(), frames + tuples + steps)
    }
}
