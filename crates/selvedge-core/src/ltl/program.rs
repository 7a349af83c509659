//! The states of a program as a graph, each of them run once.
//!
//! What is kept of a state is its label and its moves, so the searches over the product never touch the machine
//! again: the second pass, the counterexample and every further formula work on what is here.

use std::ops::ControlFlow;

use super::formula::Atom;
use super::graph::{Graph, Move};
use super::judge::{Judgement, judge};
use crate::ids::ThreadId;
use crate::machine::Pending;
use crate::op::Op;
use crate::saved::StateMachine;
use crate::states::{StateId, States, Step};

/// The threads that formulas and fairness can speak of.
pub const MOST_THREADS: usize = 64;

/// The states of a machine, as far as they have been asked about.
pub struct Program<'m, M> {
    states: States<'m, M>,
    questions: Vec<Question>,
    labels: Vec<u64>,
    rows: Vec<Row>,
    moves: Vec<Packed>,
    steps: Vec<Step>,
    watch: &'m mut dyn FnMut(Seen) -> ControlFlow<()>,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// States of the program.
    pub states: u64,
    /// Moves between them.
    pub moves: u64,
}

/// Why the program cannot be run any further.
#[derive(Clone, Debug)]
pub enum Halt {
    /// Something is wrong in this state.
    Bug(StateId),
    /// The program does something that is not modelled.
    Refused(String),
    /// Whoever watches the search said so.
    Stopped,
}

/// Where a bit of a label comes from.
enum Question {
    Proposition(usize),
    Ended(ThreadId),
    Joins(ThreadId),
}

/// The moves of a state.
#[derive(Clone, Copy)]
struct Row {
    start: u32,
    end: u32,
}

impl Row {
    /// Not asked about yet.
    const UNKNOWN: Row = Row { start: 1, end: 0 };

    fn is_unknown(self) -> bool {
        self.start > self.end
    }
}

/// A move in eight bytes: the choice is above the mark and the thread.
#[derive(Clone, Copy)]
struct Packed {
    to: u32,
    step: u32,
}

const THREAD: u32 = 0x7f;
const NOBODY: u32 = THREAD;
const PROGRESS: u32 = 0x80;
const CHOICE: u32 = 8;

impl Packed {
    fn new(to: StateId, step: Step, progress: bool) -> Packed {
        let mark = if progress { PROGRESS } else { 0 };
        Packed {
            to: to.0,
            step: step.choice << CHOICE | mark | step.thread.0,
        }
    }

    fn stays(at: StateId) -> Packed {
        Packed {
            to: at.0,
            step: NOBODY,
        }
    }

    fn unpack(self) -> Move {
        let thread = self.step & THREAD;
        Move {
            to: self.to,
            thread: (thread != NOBODY).then_some(ThreadId(thread)),
            choice: self.step >> CHOICE,
            progress: self.step & PROGRESS != 0,
        }
    }
}

impl<'m, M: StateMachine> Program<'m, M> {
    /// Resets the machine. `labels` are the atoms that the bits of labels stand for. Fails if one of them is not a
    /// proposition of the machine.
    pub fn new(
        machine: &'m mut M,
        labels: &[Atom],
        watch: &'m mut dyn FnMut(Seen) -> ControlFlow<()>,
    ) -> Result<Program<'m, M>, String> {
        let known = machine.propositions();
        let mut questions = Vec::new();
        for atom in labels {
            questions.push(match atom {
                Atom::Ended(thread) => Question::Ended(*thread),
                Atom::Joins(thread) => Question::Joins(*thread),
                Atom::Named(_) | Atom::Expression(_) => {
                    let place = known.iter().position(|name| *name == atom.to_string());
                    Question::Proposition(
                        place.ok_or_else(|| format!("the program has no proposition {atom}"))?,
                    )
                }
                Atom::Moves(_) | Atom::Progress(_) | Atom::Enabled(_) => {
                    return Err(format!("{atom} is not about a state alone"));
                }
            });
        }
        let mut program = Program {
            states: States::new(machine),
            questions,
            labels: Vec::new(),
            rows: Vec::new(),
            moves: Vec::new(),
            steps: Vec::new(),
            watch,
        };
        program.arrived();
        Ok(program)
    }

    /// Runs what no search has asked about. An automaton may lose interest in an execution long before something goes
    /// wrong in it.
    pub fn explore(&mut self) -> Result<(), Halt> {
        let mut state = 0;
        while state < self.rows.len() {
            if self.rows[state].is_unknown() {
                self.expand(StateId(state as u32))?;
            }
            state += 1;
        }
        Ok(())
    }

    /// How much was seen so far.
    pub fn seen(&self) -> Seen {
        Seen {
            states: self.states.len() as u64,
            moves: self.moves.len() as u64,
        }
    }

    /// The states themselves.
    pub fn states(&mut self) -> &mut States<'m, M> {
        &mut self.states
    }

    /// Labels the state that the machine has come to, if it is new.
    fn arrived(&mut self) {
        if self.states.here().index() < self.labels.len() {
            return;
        }
        let mut label = 0;
        for (bit, question) in self.questions.iter().enumerate() {
            let machine = self.states.machine_mut();
            let holds = match *question {
                Question::Proposition(place) => machine.holds(place),
                Question::Ended(thread) => {
                    thread.index() >= machine.threads() || machine.pending(thread).has_ended()
                }
                Question::Joins(thread) => {
                    thread.index() < machine.threads()
                        && matches!(
                            machine.pending(thread),
                            Pending::Op(Op::Join { .. } | Op::JoinAll)
                        )
                }
            };
            label |= u64::from(holds) << bit;
        }
        self.labels.push(label);
        self.rows.push(Row::UNKNOWN);
    }

    /// Runs every step of a state.
    fn expand(&mut self, state: StateId) -> Result<(), Halt> {
        self.states.go(state);
        let start = self.moves.len() as u32;
        match judge(self.states.machine()) {
            Judgement::GoesOn => {}
            Judgement::Ended => self.moves.push(Packed::stays(state)),
            Judgement::Uninteresting => {}
            Judgement::Bug => return Err(Halt::Bug(state)),
            Judgement::Refused(what) => return Err(Halt::Refused(what)),
        }
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        if self.moves.len() as u32 == start {
            self.states.steps(&mut steps);
        }
        for &step in &steps {
            if step.thread.index() >= MOST_THREADS || step.choice >= 1 << (32 - CHOICE) {
                let what = format!("temporal logic knows {MOST_THREADS} threads at most");
                return Err(Halt::Refused(what));
            }
            self.states.go(state);
            let progress = self.states.machine().marks_progress(step.thread);
            let reached = self.states.take(step);
            self.arrived();
            self.moves.push(Packed::new(reached.state, step, progress));
        }
        self.steps = steps;
        let end = self.moves.len() as u32;
        self.rows[state.index()] = Row { start, end };
        let seen = self.seen();
        match (self.watch)(seen) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }
}

impl<M: StateMachine> Graph for Program<'_, M> {
    type Stop = Halt;

    fn moves(&mut self, state: u32, into: &mut Vec<Move>) -> Result<(), Halt> {
        if self.rows[state as usize].is_unknown() {
            self.expand(StateId(state))?;
        }
        let Row { start, end } = self.rows[state as usize];
        into.clear();
        let packed = &self.moves[start as usize..end as usize];
        into.extend(packed.iter().map(|packed| packed.unpack()));
        Ok(())
    }

    fn label(&self, state: u32) -> u64 {
        self.labels[state as usize]
    }
}
