//! Random small programs.

use selvedge_core::ThreadId;
use selvedge_core::objects::ObjectFunction;
use selvedge_core::op::Rmw;
pub use selvedge_core::random::Random;

use crate::program::{Instruction, Program};

/// The instructions that a program is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Loads, stores, read-modify-writes and branches.
    Memory,
    /// The same with critical sections.
    Mutexes,
    /// Locks and unlocks in an order that invites deadlocks.
    Deadlocks,
    /// Read-write locks, semaphores, condition variables, barriers, once.
    Objects,
    /// Spin loops, data choices and assumptions.
    Loops,
    /// Little else than loops that wait, for one variable or for either of two.
    Waiting,
}

impl Flavour {
    /// All of them but the last.
    pub const ALL: [Flavour; 5] = [
        Flavour::Memory,
        Flavour::Mutexes,
        Flavour::Deadlocks,
        Flavour::Objects,
        Flavour::Loops,
    ];
}

const MUTEX: u32 = 10;
const RWLOCK: u32 = 20;
const SEMAPHORE: u32 = 21;
const CONDITION: u32 = 22;
const BARRIER: u32 = 23;
const ONCE: u32 = 24;

/// A random program with main and one to three workers.
pub fn random_program(seed: u64, flavour: Flavour) -> Program {
    let mut generator = Generator {
        random: Random::new(seed ^ ((flavour as u64 + 1) << 56)),
        flavour,
        variables: 1,
        value: 0,
    };
    generator.program()
}

struct Generator {
    random: Random,
    flavour: Flavour,
    variables: u64,
    value: u128,
}

impl Generator {
    fn program(&mut self) -> Program {
        let workers = 1 + self.random.below(3) as u32;
        self.variables = 1 + self.random.below(2);
        let budget = match workers {
            1 => 7,
            2 => 4,
            _ => 3,
        };
        let mut threads = vec![Vec::new()];
        for worker in 1..=workers {
            let length = 1 + self.random.below(budget);
            let mut code = Vec::new();
            for _ in 0..length {
                self.step(worker, &mut code);
            }
            threads.push(code);
        }
        let main = self.main(workers, &mut threads);
        threads[0] = main;
        Program {
            threads,
            initial: vec![(SEMAPHORE, self.random.below(2).into())],
        }
    }

    /// Main creates the workers (sometimes the first one creates the last), works or not, and
    /// joins some of them.
    fn main(&mut self, workers: u32, threads: &mut [Vec<Instruction>]) -> Vec<Instruction> {
        let mut main = Vec::new();
        let nested = workers > 1 && self.random.once_in(4);
        let created = if nested { workers - 1 } else { workers };
        if nested {
            threads[1].insert(0, Instruction::Create(workers));
            shift_jumps(&mut threads[1]);
        }
        for worker in 1..=created {
            main.push(Instruction::Create(worker));
        }
        let start = main.len();
        if self.random.once_in(2) {
            for _ in 0..1 + self.random.below(2) {
                self.step(0, &mut main);
            }
        }
        for instruction in &mut main[start..] {
            if let Instruction::JumpIf(_, _, target) = instruction {
                *target = (*target).max(start);
            }
        }
        for worker in 1..=created {
            if !self.random.once_in(4) {
                main.push(Instruction::Join(worker));
            }
        }
        if self.random.once_in(2) {
            main.push(Instruction::Load(0, 0));
        }
        main
    }

    fn variable(&mut self) -> u32 {
        self.random.below(self.variables) as u32
    }

    fn fresh(&mut self) -> u128 {
        self.value += 1;
        self.value
    }

    fn step(&mut self, thread: u32, code: &mut Vec<Instruction>) {
        let plain = match self.flavour {
            Flavour::Waiting => 4,
            _ => 2,
        };
        if self.random.once_in(plain) {
            return self.memory(code);
        }
        match self.flavour {
            Flavour::Memory => self.memory(code),
            Flavour::Mutexes => self.critical_section(thread, code),
            Flavour::Deadlocks => self.lock_or_unlock(thread, code),
            Flavour::Objects => self.object(thread, code),
            Flavour::Loops => self.special(code),
            Flavour::Waiting => self.wait(code),
        }
    }

    fn memory(&mut self, code: &mut Vec<Instruction>) {
        let variable = self.variable();
        let register = self.random.below(2) as usize;
        match self.random.below(12) {
            0..4 => code.push(Instruction::Load(register, variable)),
            4..7 => {
                let value = self.fresh();
                code.push(Instruction::Store(variable, value));
            }
            7 => code.push(Instruction::StoreRegister(variable, register)),
            8 => code.push(Instruction::fetch_add(register, variable, 1)),
            9 => {
                let value = self.fresh();
                let rmw = Rmw::Exchange(value);
                code.push(Instruction::memory(register, variable, rmw));
            }
            10 => {
                let expected = self.random.below(3).into();
                let desired = self.random.below(3).into();
                let cas = Instruction::compare_exchange(register, variable, expected, desired);
                code.push(cas);
            }
            _ => {
                let value = self.random.below(2).into();
                code.push(Instruction::Load(register, variable));
                // Skips the next instruction, whatever it will be.
                let target = code.len() + 2;
                code.push(Instruction::JumpIf(register, value, target));
                let value = self.fresh();
                code.push(Instruction::Store(variable, value));
                if self.random.once_in(3) {
                    code.push(Instruction::AssertNot(register, 1));
                }
            }
        }
    }

    fn critical_section(&mut self, thread: u32, code: &mut Vec<Instruction>) {
        let mutex = MUTEX + self.random.below(2) as u32;
        code.push(Instruction::lock(mutex, thread));
        if self.random.once_in(2) {
            self.memory(code);
        }
        code.push(Instruction::unlock(mutex));
    }

    fn lock_or_unlock(&mut self, thread: u32, code: &mut Vec<Instruction>) {
        let held = |mutex: u32, code: &[Instruction]| {
            let locks = code
                .iter()
                .filter(|&&i| i == Instruction::lock(mutex, thread));
            let unlocks = code.iter().filter(|&&i| i == Instruction::unlock(mutex));
            locks.count() > unlocks.count()
        };
        let mutex = MUTEX + self.random.below(2) as u32;
        let owner = ThreadId(thread);
        if held(mutex, code) {
            code.push(Instruction::unlock(mutex));
        } else if self.random.once_in(5) {
            // Unlocking is skipped when the lock was not obtained.
            let attempt = ObjectFunction::MutexTryLock { owner };
            code.push(Instruction::object(mutex, attempt));
            let target = code.len() + 2;
            let other = self.random.below(3) as u32;
            let other = u128::from(other) + 1;
            code.push(Instruction::JumpIf(3, other, target));
            code.push(Instruction::Load(0, 0));
        } else {
            code.push(Instruction::lock(mutex, thread));
        }
    }

    fn object(&mut self, thread: u32, code: &mut Vec<Instruction>) {
        use ObjectFunction as F;
        let object = Instruction::object;
        match self.random.below(9) {
            0 => {
                code.push(object(RWLOCK, F::ReadLock));
                self.memory(code);
                code.push(object(RWLOCK, F::ReadUnlock));
            }
            1 => {
                code.push(object(RWLOCK, F::WriteLock));
                code.push(Instruction::Store(RWLOCK, 0));
            }
            2 => code.push(object(SEMAPHORE, F::SemaphoreWait)),
            3 | 4 => code.push(object(SEMAPHORE, F::SemaphorePost)),
            5 => {
                // Each thread has a slot of its own only if it enqueues alone; good enough for a
                // scripted machine, which cannot compute the slot: slot 0.
                code.push(object(CONDITION, F::ConditionEnqueue));
                code.push(Instruction::JumpIf(3, 0, code.len() + 2));
                code.push(object(CONDITION, F::ConditionLeave { slot: 1 }));
                code.push(object(CONDITION, F::ConditionAwait { slot: 0 }));
            }
            6 => code.push(object(CONDITION, F::ConditionSignal)),
            7 => {
                let parties = 2;
                code.push(object(BARRIER, F::BarrierArrive { parties }));
                code.push(object(BARRIER, F::BarrierAwait { generation: 0 }));
            }
            _ => {
                let _ = thread;
                code.push(object(ONCE, F::OnceBegin));
                code.push(Instruction::JumpIf(3, 2, code.len() + 2));
                code.push(Instruction::Store(ONCE, 2));
            }
        }
    }

    fn special(&mut self, code: &mut Vec<Instruction>) {
        let variable = self.variable();
        match self.random.below(5) {
            0 => {
                let here = code.len();
                code.push(Instruction::Load(2, variable));
                code.push(Instruction::JumpIf(2, 0, here));
            }
            3 => {
                let here = code.len();
                code.push(Instruction::memory(2, variable, Rmw::Exchange(7)));
                code.push(Instruction::JumpIf(2, 7, here));
            }
            1 => {
                let here = code.len();
                code.push(Instruction::compare_exchange(2, variable, 0, 7));
                code.push(Instruction::JumpIf(2, 7, here));
                if self.random.once_in(2) {
                    self.memory(code);
                }
                if self.random.once_in(2) {
                    code.push(Instruction::Store(variable, 0));
                }
            }
            2 => {
                code.push(Instruction::Choose(2, 2 + self.random.below(2) as u32));
                code.push(Instruction::StoreRegister(variable, 2));
            }
            _ => {
                code.push(Instruction::Load(2, variable));
                code.push(Instruction::Assume(2, self.random.below(2).into()));
            }
        }
    }
}

/// The loops of [`Flavour::Waiting`].
impl Generator {
    fn wait(&mut self, code: &mut Vec<Instruction>) {
        let variable = self.variable();
        let here = code.len();
        match self.random.below(6) {
            0 => {
                code.push(Instruction::Load(2, variable));
                code.push(Instruction::JumpIf(2, self.random.below(3).into(), here));
            }
            1 => {
                code.push(Instruction::compare_exchange(2, variable, 0, 7));
                code.push(Instruction::JumpIf(2, 7, here));
                code.push(Instruction::Store(variable, 0));
            }
            2 => {
                code.push(Instruction::memory(2, variable, Rmw::Exchange(7)));
                code.push(Instruction::JumpIf(2, 7, here));
                code.push(Instruction::Store(variable, 0));
            }
            3 => {
                code.push(Instruction::Load(2, variable));
                code.push(Instruction::JumpIf(2, 7, here));
                code.push(Instruction::compare_exchange(2, variable, 0, 7));
                code.push(Instruction::JumpIf(2, 7, here));
                code.push(Instruction::Store(variable, 0));
            }
            4 => {
                code.push(Instruction::Load(2, 0));
                code.push(Instruction::JumpIf(2, 1, here + 4));
                code.push(Instruction::Load(2, 1));
                code.push(Instruction::JumpIf(2, 0, here));
            }
            _ => code.push(Instruction::Store(variable, self.random.below(3).into())),
        }
    }
}

/// Code that moved down by one instruction.
fn shift_jumps(code: &mut [Instruction]) {
    for instruction in code {
        if let Instruction::JumpIf(_, _, target) = instruction {
            *target += 1;
        }
    }
}
