//! A litmus test as a program under test: main creates all threads and waits for them.

use selvedge_core::op::Rmw;
use selvedge_core::{
    Failure, Function, Location, Machine, Op, Outcome, Pending, Site, SpinLoops, Stop, ThreadId,
    Value, Width,
};

use crate::code::{Instruction, Update, from_memory, to_memory};
use crate::parse::{Test, Thread};

/// Where a thread is.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    at: usize,
    pub(crate) registers: Vec<i64>,
}

impl Progress {
    /// A thread that stands at its first access.
    pub(crate) fn new(thread: &Thread) -> Progress {
        let mut progress = Progress {
            at: 0,
            registers: thread.initial.clone(),
        };
        progress.settle(thread);
        progress
    }

    /// Performs what is local.
    fn settle(&mut self, thread: &Thread) {
        loop {
            match thread.code.get(self.at) {
                Some(Instruction::Set(register, expression)) => {
                    self.registers[*register] = expression.value(&self.registers);
                    self.at += 1;
                }
                Some(Instruction::Unless(condition, target)) => {
                    let skips = condition.value(&self.registers) == 0;
                    self.at = if skips { *target } else { self.at + 1 };
                }
                Some(Instruction::Jump(target)) => self.at = *target,
                _ => return,
            }
        }
    }

    /// Performs the access that it stands at.
    pub(crate) fn perform(&mut self, thread: &Thread, outcome: Outcome) {
        let read = from_memory(outcome.read);
        match &thread.code[self.at] {
            Instruction::Load(register, ..) => self.registers[*register] = read,
            Instruction::Update {
                register,
                update: Update::CompareExchange(expected),
                ..
            } => {
                self.registers[*expected] = read;
                self.registers[*register] = i64::from(outcome.wrote.is_some());
            }
            Instruction::Update { register, .. } => self.registers[*register] = read,
            _ => {}
        }
        self.at += 1;
        self.settle(thread);
    }

    fn op(&self, thread: &Thread) -> Option<Op> {
        let value =
            |expression: &crate::code::Expression| to_memory(expression.value(&self.registers));
        Some(match thread.code.get(self.at)? {
            Instruction::Load(_, variable, order) => Op::Load {
                at: Location(*variable),
                order: *order,
            },
            Instruction::Store(variable, expression, order) => Op::Store {
                at: Location(*variable),
                value: value(expression),
                order: *order,
            },
            Instruction::Update {
                variable,
                update,
                operand,
                order,
                failure,
                ..
            } => {
                let operand = value(operand);
                let rmw = match update {
                    Update::Exchange => Rmw::Exchange(operand),
                    Update::Add => Rmw::Add(operand),
                    Update::Sub => Rmw::Sub(operand),
                    Update::And => Rmw::And(operand),
                    Update::Or => Rmw::Or(operand),
                    Update::Xor => Rmw::Xor(operand),
                    Update::CompareExchange(expected) => Rmw::CompareExchange {
                        expected: to_memory(self.registers[*expected]),
                        desired: operand,
                    },
                };
                let width = Width(4);
                Op::Update {
                    at: Location(*variable),
                    function: Function::memory(width, rmw),
                    order: *order,
                    failure: *failure,
                }
            }
            Instruction::Fence(order) => Op::Fence { order: *order },
            local => unreachable!("{local:?} is never waited at"),
        })
    }
}

pub(crate) struct LitmusMachine<'t> {
    test: &'t Test,
    main: u32,
    threads: Vec<Option<Progress>>,
}

impl<'t> LitmusMachine<'t> {
    pub(crate) fn new(test: &'t Test) -> LitmusMachine<'t> {
        let mut machine = LitmusMachine {
            test,
            main: 0,
            threads: Vec::new(),
        };
        machine.reset();
        machine
    }
}

impl Machine for LitmusMachine<'_> {
    fn reset(&mut self) {
        self.main = 0;
        self.threads.clear();
        self.threads.resize(self.test.threads.len(), None);
    }

    fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        let count = self.threads.len() as u32;
        let Some(index) = thread.index().checked_sub(1) else {
            return match self.main {
                step if step < count => Pending::Op(Op::Create {
                    child: ThreadId(step + 1),
                }),
                step if step < 2 * count => Pending::Op(Op::Join {
                    child: ThreadId(step - count + 1),
                }),
                _ => Pending::Stopped(Stop::Finished),
            };
        };
        match &self.threads[index] {
            None => Pending::Absent,
            Some(progress) => match progress.op(&self.test.threads[index]) {
                Some(op) => Pending::Op(op),
                None => Pending::Stopped(Stop::Finished),
            },
        }
    }

    fn initial(&self, location: Location) -> Value {
        to_memory(self.test.variables[location.index()].1)
    }

    fn resume(&mut self, thread: ThreadId, outcome: Outcome, _clock: &[u32]) {
        let Some(index) = thread.index().checked_sub(1) else {
            if let Some(child) = self.threads.get_mut(self.main as usize) {
                *child = Some(Progress::new(&self.test.threads[self.main as usize]));
            }
            self.main += 1;
            return;
        };
        if let Some(progress) = &mut self.threads[index] {
            progress.perform(&self.test.threads[index], outcome);
        }
    }

    fn site(&self, _thread: ThreadId) -> Site {
        Site(0)
    }

    fn failure(&self) -> Option<Failure> {
        None
    }

    fn refusal(&self) -> Option<String> {
        None
    }
}

/// Litmus tests have no loops.
impl SpinLoops for LitmusMachine<'_> {}
