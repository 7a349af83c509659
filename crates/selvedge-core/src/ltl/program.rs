//! The states of a program as a graph, each of them run once.
//!
//! The graph keeps the label and the moves of each state. So the machine is not needed for the second
//! pass, the counterexample and further formulas.

use std::convert::Infallible;
use std::ops::ControlFlow;

use super::check::Settings;
use super::formula::Atom;
use super::graph::{Graph, Lasso, Move};
use super::shortest;
use crate::failure::Failure;
use crate::ids::ThreadId;
use crate::machine::{Pending, Stop};
use crate::op::Op;
use crate::report::{Divergence, Ending, StateCounts, same_bug};
use crate::saved::StateMachine;
use crate::states::{Look, StateId, StateStep, States, look};

/// The threads that formulas and fairness can speak of.
pub const MOST_THREADS: usize = 64;

/// The states of a machine, as far as they have been asked about.
pub struct Program<'m, M> {
    states: States<'m, M>,
    questions: Vec<Question>,
    labels: Vec<u64>,
    rows: Vec<Row>,
    moves: Vec<PackedMove>,
    steps: Vec<StateStep>,
    races: bool,
    keep_going: bool,
    /// The known failures, with their places.
    known: Vec<Failure>,
    wrong: Vec<StateId>,
    unrolled: bool,
    expanded: u64,
    /// A failure at the very start.
    halted: Option<Halt>,
    watch: &'m mut dyn FnMut(&StateCounts) -> ControlFlow<()>,
}

/// How many states are run between two reports to the observer.
const BREATH: u64 = 1 << 10;

/// Why the program cannot be run any further.
#[derive(Clone, Debug)]
pub enum Halt {
    /// Something is wrong in a state, and that is enough.
    Bug,
    /// The program did something else when it was run again.
    Differs(Divergence),
    /// The program does something that is not modelled.
    Refused(String),
    /// The observer stopped the search.
    Stopped,
}

impl From<Halt> for Ending {
    fn from(halt: Halt) -> Ending {
        match halt {
            Halt::Bug => Ending::FirstBug,
            Halt::Differs(what) => Ending::Nondeterministic(what),
            Halt::Refused(what) => Ending::Refused(what),
            Halt::Stopped => Ending::Stopped,
        }
    }
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
struct PackedMove {
    to: u32,
    step: u32,
}

const THREAD: u32 = 0x7f;
const NOBODY: u32 = THREAD;
const PROGRESS: u32 = 0x80;
const CHOICE: u32 = 8;

impl PackedMove {
    fn new(to: StateId, step: StateStep, progress: bool) -> PackedMove {
        let mark = if progress { PROGRESS } else { 0 };
        PackedMove {
            to: to.0,
            step: step.choice << CHOICE | mark | step.thread.0,
        }
    }

    fn stays(at: StateId) -> PackedMove {
        PackedMove {
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
    /// Resets the machine. Fails if the property asks for a proposition that the machine does not know.
    pub fn new(
        machine: &'m mut M,
        settings: &Settings,
        watch: &'m mut dyn FnMut(&StateCounts) -> ControlFlow<()>,
    ) -> Result<Program<'m, M>, String> {
        let known = machine.propositions();
        let mut questions = Vec::new();
        for atom in &settings.property.labels() {
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
            races: settings.races,
            keep_going: settings.keep_going,
            known: Vec::new(),
            wrong: Vec::new(),
            unrolled: false,
            expanded: 0,
            halted: None,
            watch,
        };
        program.halted = program.arrived().err();
        Ok(program)
    }

    /// Runs what no search has asked about. An automaton may lose interest in an execution long
    /// before something goes wrong in it.
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
    pub fn counts(&self) -> StateCounts {
        let labels = self.labels.capacity() * size_of::<u64>();
        let moves = self.moves.capacity() * size_of::<PackedMove>();
        let rows = self.rows.capacity() * size_of::<Row>();
        StateCounts {
            states: self.states.len() as u64,
            transitions: self.moves.len() as u64,
            layer: 0,
            queue: self.states.len() as u64 - self.expanded,
            bytes: (self.states.bytes() + labels + moves + rows) as u64,
        }
    }

    /// The states in which something is wrong, one for each bug.
    pub fn wrong(&self) -> &[StateId] {
        &self.wrong
    }

    /// Whether a loop was cut.
    pub fn unrolled(&self) -> bool {
        self.unrolled
    }

    /// The steps to a state that has been met, with few context switches.
    pub fn way_to(&mut self, state: StateId) -> Vec<StateStep> {
        let step = |by: Move| StateStep {
            thread: by
                .thread
                .expect("programs that have ended stay where they are"),
            choice: by.choice,
        };
        let Ok(way) = shortest::to_state(&mut Met(self), state.0);
        way.into_iter().map(step).collect()
    }

    /// Runs a lasso once, to be sure.
    pub fn confirm(&mut self, lasso: &Lasso) -> Result<(), Halt> {
        self.states.go(StateId::FIRST);
        let mut home = StateId::FIRST;
        for (n, by) in lasso.moves().enumerate() {
            if n == lasso.prefix.len() {
                home = self.states.here();
            }
            let Some(thread) = by.thread else {
                continue;
            };
            let step = StateStep {
                thread,
                choice: by.choice,
            };
            let mut steps = Vec::new();
            self.states.steps(&mut steps);
            if !steps.contains(&step) || self.states.take(step).state.0 != by.to {
                let what = format!("{thread} took another way when it was run again");
                return Err(Halt::Differs(what.into()));
            }
        }
        match self.states.here() == home {
            true => Ok(()),
            false => Err(Halt::Differs("a cycle did not come back".to_owned().into())),
        }
    }

    /// The states themselves.
    pub fn states(&mut self) -> &mut States<'m, M> {
        &mut self.states
    }

    fn known_moves(&self, state: u32, into: &mut Vec<Move>) {
        into.clear();
        let row = self.rows[state as usize];
        if !row.is_unknown() {
            let packed = &self.moves[row.start as usize..row.end as usize];
            into.extend(packed.iter().map(|packed| packed.unpack()));
        }
    }

    /// Looks at the state that the machine has come to, if it is new.
    fn arrived(&mut self) -> Result<(), Halt> {
        let here = self.states.here();
        if here.index() < self.labels.len() {
            return Ok(());
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
        // The failure has to be taken up now: a machine that comes back to this state no longer knows it.
        let machine = self.states.machine();
        let mut threads = (0..machine.threads() as u32).map(ThreadId);
        let over = [Stop::Failed, Stop::Refused].map(Pending::Stopped);
        if threads.any(|thread| over.contains(&machine.pending(thread))) {
            self.rows[here.index()] = Row { start: 0, end: 0 };
            match look(machine, self.races, &mut Vec::new(), &mut self.unrolled) {
                Look::Refused(what) => return Err(Halt::Refused(what)),
                Look::Wrong(wrong) => self.note(here, wrong.0)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Something is wrong with a state.
    fn note(&mut self, state: StateId, failure: Failure) -> Result<(), Halt> {
        if !self.known.iter().any(|known| same_bug(known, &failure)) {
            self.known.push(failure);
            self.wrong.push(state);
        }
        match self.keep_going {
            true => Ok(()),
            false => Err(Halt::Bug),
        }
    }

    /// Runs every step of a state.
    fn expand(&mut self, state: StateId) -> Result<(), Halt> {
        if let Some(halt) = self.halted.take() {
            return Err(halt);
        }
        self.states.go(state);
        let start = self.moves.len() as u32;
        let mut steps = std::mem::take(&mut self.steps);
        let machine = self.states.machine();
        let stopped = |stop: Stop| {
            let mut threads = (0..machine.threads() as u32).map(ThreadId);
            threads.any(|thread| machine.pending(thread) == Pending::Stopped(stop))
        };
        match look(machine, self.races, &mut steps, &mut self.unrolled) {
            Look::Refused(what) => return Err(Halt::Refused(what)),
            Look::Wrong(wrong) => {
                steps.clear();
                self.note(state, wrong.0)?;
            }
            // Nothing after a failed assumption is explored, even if other threads could go on.
            _ if stopped(Stop::Assumed) || stopped(Stop::Unrolled) => steps.clear(),
            Look::Complete => self.moves.push(PackedMove::stays(state)),
            Look::Open if stopped(Stop::Exited) => {
                steps.clear();
                self.moves.push(PackedMove::stays(state));
            }
            Look::Open | Look::Blocked => {}
        }
        for &step in &steps {
            if step.thread.index() >= MOST_THREADS || step.choice >= 1 << (32 - CHOICE) {
                let what = format!("temporal logic knows {MOST_THREADS} threads at most");
                return Err(Halt::Refused(what));
            }
            self.states.go(state);
            let progress = self.states.machine().marks_progress(step.thread);
            let reached = self.states.take(step);
            self.moves
                .push(PackedMove::new(reached.state, step, progress));
            // Also what is found out only now has to be on record when the way there is asked for.
            let end = self.moves.len() as u32;
            self.rows[state.index()] = Row { start, end };
            self.arrived()?;
        }
        self.steps = steps;
        let end = self.moves.len() as u32;
        self.rows[state.index()] = Row { start, end };
        self.expanded += 1;
        if self.expanded.is_multiple_of(BREATH) {
            let counts = self.counts();
            if (self.watch)(&counts).is_break() {
                return Err(Halt::Stopped);
            }
        }
        Ok(())
    }
}

/// The part of a program that has been run.
struct Met<'a, 'm, M>(&'a Program<'m, M>);

impl<M: StateMachine> Graph for Met<'_, '_, M> {
    type Stop = Infallible;

    fn moves(&mut self, state: u32, into: &mut Vec<Move>) -> Result<(), Infallible> {
        self.0.known_moves(state, into);
        Ok(())
    }

    fn label(&self, _: u32) -> u64 {
        0
    }
}

impl<M: StateMachine> Graph for Program<'_, M> {
    type Stop = Halt;

    fn moves(&mut self, state: u32, into: &mut Vec<Move>) -> Result<(), Halt> {
        if self.rows[state as usize].is_unknown() || self.halted.is_some() {
            self.expand(StateId(state))?;
        }
        self.known_moves(state, into);
        Ok(())
    }

    fn label(&self, state: u32) -> u64 {
        self.labels[state as usize]
    }
}
