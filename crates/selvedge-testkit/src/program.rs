//! Programs that are a list of instructions for each thread.

use std::fmt;

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, ThreadId, Value, Width};

/// A register of a thread.
pub type Register = usize;
/// How many registers a thread has.
pub const REGISTERS: usize = 4;

/// One instruction of a scripted program. Variables and objects are numbered in one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `register = variable`
    Load(Register, u32),
    /// `variable = constant`
    Store(u32, Value),
    /// `variable = register`
    StoreRegister(u32, Register),
    /// `register = update(variable)`, the register gets the value read.
    Update(Register, u32, Function),
    /// Gives the access that follows its memory order, and an update that does not write the second
    /// one. Without it, accesses are sequentially consistent.
    With(MemoryOrder, MemoryOrder),
    /// A memory fence.
    Fence(MemoryOrder),
    /// Starts a thread.
    Create(u32),
    /// Waits for a thread.
    Join(u32),
    /// `register = any number below`
    Choose(Register, u32),
    /// Goes on at the given instruction if the register holds the value.
    JumpIf(Register, Value, usize),
    /// Fails if the register holds the value.
    AssertNot(Register, Value),
    /// Makes the execution uninteresting unless the register holds the value.
    Assume(Register, Value),
}

impl Instruction {
    /// `register = fetch_add(variable, addend)`
    pub fn fetch_add(register: Register, variable: u32, addend: Value) -> Instruction {
        Instruction::memory(register, variable, Rmw::Add(addend))
    }

    /// `register = compare_exchange(variable, expected, desired)`, the register gets what was read.
    pub fn compare_exchange(
        register: Register,
        variable: u32,
        expected: Value,
        desired: Value,
    ) -> Instruction {
        let rmw = Rmw::CompareExchange { expected, desired };
        Instruction::memory(register, variable, rmw)
    }

    /// A read-modify-write of a 32-bit variable.
    pub fn memory(register: Register, variable: u32, rmw: Rmw) -> Instruction {
        let width = Width(4);
        Instruction::Update(register, variable, Function::memory(width, rmw))
    }

    /// A step on an object; register 3 gets the state read.
    pub fn object(object: u32, function: ObjectFunction) -> Instruction {
        Instruction::Update(3, object, Function::Object(function))
    }

    /// Locks a mutex on behalf of thread `owner`.
    pub fn lock(object: u32, owner: u32) -> Instruction {
        let owner = ThreadId(owner);
        Instruction::object(object, ObjectFunction::MutexLock { owner })
    }

    /// The order of the access that follows; an update that fails has the part of it that a read
    /// can have.
    pub fn with(order: MemoryOrder) -> Instruction {
        let failure = match order {
            MemoryOrder::AcqRel => MemoryOrder::Acquire,
            MemoryOrder::Release => MemoryOrder::Relaxed,
            order => order,
        };
        Instruction::With(order, failure)
    }

    /// Unlocks a mutex.
    pub fn unlock(object: u32) -> Instruction {
        Instruction::Store(object, FREE)
    }
}

/// A program: one list of instructions per thread, main first, and the initial contents of
/// variables that do not start at zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The code of each thread.
    pub threads: Vec<Vec<Instruction>>,
    /// Initial contents.
    pub initial: Vec<(u32, Value)>,
}

impl Program {
    /// Main creates the given threads, in order, and joins them all.
    pub fn of_workers(workers: Vec<Vec<Instruction>>) -> Program {
        let ids = 1..=workers.len() as u32;
        let main = ids
            .clone()
            .map(Instruction::Create)
            .chain(ids.map(Instruction::Join));
        Program {
            threads: std::iter::once(main.collect()).chain(workers).collect(),
            initial: Vec::new(),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, code) in self.threads.iter().enumerate() {
            writeln!(f, "T{thread}:")?;
            for (line, instruction) in code.iter().enumerate() {
                writeln!(f, "  {line}: {instruction:?}")?;
            }
        }
        write!(f, "initial: {:?}", self.initial)
    }
}
