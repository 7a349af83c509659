//! A machine that runs a [`Program`].

use std::collections::HashSet;

use selvedge_core::objects::ObjectFunction;
use selvedge_core::{
    Failure, FailureKind, Function, Location, Machine, MemoryOrder, Op, Outcome, Pending, Portable,
    Site, SpinLoops, Stop, ThreadId, Value,
};

use crate::program::{Instruction, Program, REGISTERS};

#[derive(Clone, Debug, Default)]
struct Thread {
    started: bool,
    at: usize,
    registers: [Value; REGISTERS],
    stop: Option<Stop>,
    events: u32,
    /// Reads since the last side effect: program point, registers, event index.
    seen: Vec<(usize, [Value; REGISTERS], u32)>,
}

/// Runs a [`Program`].
#[derive(Clone, Debug)]
pub struct ScriptMachine {
    program: Program,
    threads: Vec<Thread>,
    /// Whether threads that come back to where they were, having written nothing, stop there.
    pub(crate) parks: bool,
    /// The locations that are synchronisation objects.
    objects: HashSet<u32>,
    /// The threads before each step since the reset, if steps can be undone.
    log: Option<Vec<Before>>,
    /// Every this many steps, one cannot be undone.
    barrier: usize,
}

/// The threads that a step changes, as they were before it.
type Before = [Option<(ThreadId, Thread)>; 2];

/// With what order a step on an object is performed: taking acquires, giving back releases.
pub fn object_order(function: ObjectFunction) -> MemoryOrder {
    use ObjectFunction as F;
    match function {
        F::MutexLock { .. } | F::MutexTryLock { .. } => MemoryOrder::Acquire,
        F::ReadLock | F::ReadTryLock | F::WriteLock | F::WriteTryLock => MemoryOrder::Acquire,
        F::SemaphoreWait | F::SemaphoreTryWait => MemoryOrder::Acquire,
        F::ReadUnlock | F::SemaphorePost => MemoryOrder::Release,
        _ => MemoryOrder::AcqRel,
    }
}

impl ScriptMachine {
    /// A machine at the start of `program`.
    pub fn new(program: Program) -> ScriptMachine {
        let objects = program.threads.iter().flatten();
        let objects = objects.filter_map(|instruction| match *instruction {
            Instruction::Update(_, object, Function::Object(_)) => Some(object),
            _ => None,
        });
        let mut machine = ScriptMachine {
            objects: objects.collect(),
            program,
            threads: Vec::new(),
            parks: true,
            log: None,
            barrier: 0,
        };
        machine.reset();
        machine
    }

    /// The same, but threads that only wait go on waiting, for searches over states.
    pub fn without_parking(program: Program) -> ScriptMachine {
        let mut machine = ScriptMachine::new(program);
        machine.parks = false;
        machine.reset();
        machine
    }

    /// The same, but steps can be undone, except one in `barrier` steps if that is not zero.
    pub fn with_undo(program: Program, barrier: usize) -> ScriptMachine {
        let mut machine = ScriptMachine::new(program);
        (machine.log, machine.barrier) = (Some(Vec::new()), barrier);
        machine
    }

    /// Notes what a step of `thread`, which may begin `child`, is going to change.
    fn note(&mut self, thread: ThreadId, child: Option<ThreadId>) {
        let of = |thread: ThreadId| (thread, self.threads[thread.index()].clone());
        if let Some(log) = &mut self.log {
            log.push([Some(of(thread)), child.map(of)]);
        }
    }

    /// The registers of a thread.
    pub fn registers(&self, thread: ThreadId) -> [Value; REGISTERS] {
        self.threads[thread.index()].registers
    }

    /// The orders of the access at line `at` of the code of `thread`.
    fn orders(&self, thread: ThreadId, at: usize) -> (MemoryOrder, MemoryOrder) {
        let code = &self.program.threads[thread.index()];
        match (code[at], at.checked_sub(1).map(|before| code[before])) {
            (Instruction::Update(_, _, Function::Object(function)), _) => {
                (object_order(function), function.unchanged_order())
            }
            (Instruction::Store(variable, _), _) if self.objects.contains(&variable) => {
                (MemoryOrder::Release, MemoryOrder::Relaxed)
            }
            (_, Some(Instruction::With(order, failure))) => (order, failure),
            _ => (MemoryOrder::SeqCst, MemoryOrder::SeqCst),
        }
    }

    fn op(&self, thread: ThreadId, line: usize) -> Option<Op> {
        let instruction = self.program.threads[thread.index()][line];
        let (order, failure) = self.orders(thread, line);
        let at = Location;
        let registers = &self.threads[thread.index()].registers;
        Some(match instruction {
            Instruction::Load(_, variable) => Op::Load {
                at: at(variable),
                order,
            },
            Instruction::Store(variable, value) => Op::Store {
                at: at(variable),
                value,
                order,
            },
            Instruction::StoreRegister(variable, register) => Op::Store {
                at: at(variable),
                value: registers[register],
                order,
            },
            Instruction::Update(_, variable, function) => Op::Update {
                at: at(variable),
                function,
                order,
                failure,
            },
            Instruction::Fence(order) => Op::Fence { order },
            Instruction::Create(child) => Op::Create {
                child: ThreadId(child),
            },
            Instruction::Join(child) => Op::Join {
                child: ThreadId(child),
            },
            Instruction::Choose(_, alternatives) => Op::Choose { alternatives },
            Instruction::JumpIf(..)
            | Instruction::AssertNot(..)
            | Instruction::Assume(..)
            | Instruction::With(..) => return None,
        })
    }

    /// Runs `thread` up to its next visible operation.
    fn settle(&mut self, thread: ThreadId) {
        loop {
            let state = &mut self.threads[thread.index()];
            let code = &self.program.threads[thread.index()];
            let Some(&instruction) = code.get(state.at) else {
                state.stop = Some(Stop::Finished);
                return;
            };
            match instruction {
                Instruction::JumpIf(register, value, target) => {
                    let taken = state.registers[register] == value;
                    state.at = if taken { target } else { state.at + 1 };
                }
                Instruction::AssertNot(register, value) => {
                    if state.registers[register] == value {
                        state.stop = Some(Stop::Failed);
                        return;
                    }
                    state.at += 1;
                }
                Instruction::Assume(register, value) => {
                    if state.registers[register] != value {
                        state.stop = Some(Stop::Assumed);
                        return;
                    }
                    state.at += 1;
                }
                Instruction::With(..) => state.at += 1,
                _ if !self.parks => return,
                Instruction::Load(register, _) | Instruction::Update(register, ..) => {
                    // The value of the register is about to be overwritten.
                    let mut registers = state.registers;
                    registers[register] = 0;
                    let key = (state.at, registers);
                    let before = state.seen.iter().find(|seen| (seen.0, seen.1) == key);
                    if let Some(&(_, _, since)) = before {
                        state.stop = Some(Stop::Spinning { since });
                    } else {
                        state.seen.push((key.0, key.1, state.events));
                    }
                    return;
                }
                // A fence writes nothing: it may be part of a pure iteration.
                Instruction::Fence(_) => return,
                _ => {
                    state.seen.clear();
                    return;
                }
            }
        }
    }

    /// Appends all that tells what `thread` will do; nothing if it has not been created.
    pub(crate) fn save_thread(&self, thread: usize, into: &mut Vec<u8>) {
        let thread = &self.threads[thread];
        if !thread.started {
            return;
        }
        let stop = match thread.stop {
            None => 0,
            Some(Stop::Finished) => 1,
            Some(Stop::Failed) => 2,
            Some(Stop::Assumed) => 3,
            Some(stop) => unreachable!("{stop:?}"),
        };
        into.extend_from_slice(&[stop]);
        into.extend_from_slice(&(thread.at as u32).to_le_bytes());
        for register in thread.registers {
            into.extend_from_slice(&register.to_le_bytes());
        }
    }

    /// Makes `thread` what it was when it was saved.
    pub(crate) fn restore_thread(&mut self, thread: usize, from: &[u8]) {
        let thread = &mut self.threads[thread];
        let Some((&[stop, a, b, c, d], registers)) = from.split_first_chunk() else {
            *thread = Thread::default();
            return;
        };
        thread.started = true;
        thread.at = u32::from_le_bytes([a, b, c, d]) as usize;
        thread.stop = match stop {
            0 => None,
            1 => Some(Stop::Finished),
            2 => Some(Stop::Failed),
            _ => Some(Stop::Assumed),
        };
        let (registers, _) = registers.as_chunks();
        for (register, &bytes) in thread.registers.iter_mut().zip(registers) {
            *register = Value::from_le_bytes(bytes);
        }
    }

    fn start(&mut self, thread: ThreadId) {
        self.threads[thread.index()].started = true;
        self.settle(thread);
    }
}

impl Machine for ScriptMachine {
    fn reset(&mut self) {
        self.threads.clear();
        let threads = self.program.threads.len();
        self.threads.resize(threads, Thread::default());
        if let Some(log) = &mut self.log {
            log.clear();
        }
        self.start(ThreadId::MAIN);
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        let state = &self.threads[thread.index()];
        if !state.started {
            return Pending::Absent;
        }
        if let Some(stop) = state.stop {
            return Pending::Stopped(stop);
        }
        let op = self.op(thread, state.at);
        Pending::Op(op.expect("a settled thread is at a visible operation"))
    }

    fn initial(&self, location: Location) -> Value {
        let mut initial = self.program.initial.iter();
        let found = initial.find(|(variable, _)| *variable == location.0);
        found.map_or(0, |&(_, value)| value)
    }

    fn resume(&mut self, thread: ThreadId, outcome: Outcome, _clock: &[u32]) {
        let at = self.threads[thread.index()].at;
        let instruction = self.program.threads[thread.index()][at];
        let child = match instruction {
            Instruction::Create(child) => Some(ThreadId(child)),
            _ => None,
        };
        self.note(thread, child);
        let state = &mut self.threads[thread.index()];
        state.at += 1;
        state.events += 1;
        match instruction {
            Instruction::Load(register, _) | Instruction::Choose(register, _) => {
                state.registers[register] = outcome.read;
            }
            Instruction::Update(register, ..) => {
                state.registers[register] = outcome.read;
                if outcome.wrote.is_some() {
                    state.events += 1;
                }
                if outcome.wrote.is_some_and(|wrote| wrote != outcome.read) {
                    state.seen.clear();
                }
            }
            Instruction::Create(child) => self.start(ThreadId(child)),
            _ => {}
        }
        self.settle(thread);
    }

    fn undo(&mut self, steps: usize) -> bool {
        let Some(log) = &mut self.log else {
            return false;
        };
        let kept = log.len() - steps;
        let mut undone = kept + 1..=log.len();
        if self.barrier != 0 && undone.any(|step| step.is_multiple_of(self.barrier)) {
            return false;
        }
        for before in log.drain(kept..).rev() {
            for (thread, state) in before.into_iter().flatten() {
                self.threads[thread.index()] = state;
            }
        }
        true
    }

    fn site(&self, thread: ThreadId) -> Site {
        // Each thread has code of its own.
        let at = self.threads[thread.index()].at as u64;
        Site((u64::from(thread.0) << 32) | at)
    }

    fn failure(&self) -> Option<Failure> {
        let failed = |thread: &Thread| thread.stop == Some(Stop::Failed);
        let thread = self.threads.iter().position(failed)?;
        let at = self.threads[thread].at;
        let Instruction::AssertNot(register, value) = self.program.threads[thread][at] else {
            unreachable!("only assertions fail");
        };
        Some(Failure {
            kind: FailureKind::Assertion,
            message: format!("register {register} is {value}"),
            thread: ThreadId(thread as u32),
            site: Site(at as u64),
            other: None,
        })
    }

    fn refusal(&self) -> Option<String> {
        None
    }
}

impl SpinLoops for ScriptMachine {
    fn quiet(&mut self, _: ThreadId) -> bool {
        true
    }

    fn never_races(&mut self, _: Location) -> bool {
        true
    }

    fn can_retry(&mut self, _: Location) -> bool {
        true
    }

    fn retry(&mut self, thread: ThreadId) {
        self.note(thread, None);
        let state = &mut self.threads[thread.index()];
        match state.stop.take() {
            Some(Stop::Spinning { since }) => state.events = since,
            other => unreachable!("{thread} does not spin: {other:?}"),
        }
    }
}

/// Programs say which number each thread has.
impl Portable for ScriptMachine {}
